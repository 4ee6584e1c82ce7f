"""A store for tests of the page: a site with two versions, and one whose texts are hostile."""

from __future__ import annotations

import io
from dataclasses import replace

import msgspec
from PIL import Image

from tests.page_service import screenshot_of
from tests.small_map import SmallMap
from waygraph.core.settings import Settings
from waygraph.index.graph import InteractionGraph, Lead, Segment, Tool, lead_id, tool_id
from waygraph.index.store import Store
from waygraph.index.store.element_outcomes import write_element_outcomes
from waygraph.pipeline.encode.registry import create_encoder

TEA, ODD = SmallMap("tea.example"), SmallMap("odd.example:8080")
HOME, CARDS, ACCOUNT, RETURNS = (TEA.id(name) for name in ("home", "cards", "account", "returns"))
NEWS = "http://tea.example/news"
#: Titles of `ODD`: markup, direction marks, and more text than anybody reads.
HOSTILE = {
    "home": "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">",
    "returns": "\u202egnp.exe \u2066 \u05e9\u05dc\u05d5\u05dd \u0000 \u0007",
    "account": "long " * 2_000,
    "cards": "{{7*7}} ${7*7} javascript:alert(1)",
}
#: Captures of the start page of `TEA`.
DOM, ARIA = "<html><script>document.title = 'run'</script>", '- heading "Welcome to our shop"'


#: Settings of an encoder whose rows are parts of screenshots, with a known answer to the name of a colour.
VISUAL = {"encode": {"encoder": "tests.patch_encoder:create"}}


def make_visual_store(location: str) -> str:
    """Make a store whose states are encoded by their screenshots: white, with a red and a blue sixteenth."""
    opened = Store.open(location, create=True)
    encoder = create_encoder(Settings(**VISUAL).encode, opened.blobs)
    image = Image.new("RGB", (1280, 800), "white")
    image.paste("red", (320, 200, 640, 400))
    image.paste("blue", (960, 600, 1280, 800))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=95, subsampling=0)
    opened.publish(TEA.draft(encoder, opened.blobs, screenshot=written.getvalue()))
    return opened.location


def ask_tool(*inputs: str) -> dict[str, Tool]:
    """Return a tool of the start page by its id."""
    schema = {"type": "object", "properties": dict.fromkeys(inputs, True), "required": list(inputs[:1])}
    tool = Tool("", "ask", "", "<b>Asks</b> the shop.", schema, "script", (HOME,), "http://tea.example", read_only=True)
    return {name: replace(tool, id=name) for name in (tool_id(tool),)}


def make_store(location: str) -> str:
    """Make the store; return its location."""
    opened = Store.open(location, create=True)
    encoder = create_encoder(Settings().encode)
    earlier = TEA.draft(encoder, opened.blobs, without=("returns",))
    account = earlier.observations[ACCOUNT]
    old_text = Segment("Old delivery address", "textbox", account.segments[1].box)
    old = replace(
        account,
        segments=(account.segments[0], old_text, *account.segments[2:]),
        screenshot=opened.blobs.put(screenshot_of("Your old account")),
    )
    opened.publish(replace(earlier, observations={**earlier.observations, ACCOUNT: old}, tools=ask_tool("question")))
    draft = TEA.draft(encoder, opened.blobs)
    skipped = {"state": HOME, "element": 'click link "Sign out"', "status": "skipped", "reason": "hazard"}
    rows = [{**skipped, "detail": "Sign out", "rule": "the lexicon of names"}]
    acted_on = {"state": HOME, "element": 'click link "Returns"', "status": "done"}
    failed = {"state": ACCOUNT, "element": 'click button "Save"', "status": "failed", "reason": "element_gone"}
    lead = Lead(lead_id(NEWS), NEWS, ("News",), "", "", HOME, TEA.edges[0].action, 1)
    seen = {
        node_id: replace(each, screenshot=opened.blobs.put(screenshot_of(each.title)) if each.screenshot else "")
        for node_id, each in draft.observations.items()
    }
    dom, aria = (opened.blobs.put(text.encode()) for text in (DOM, ARIA))
    seen[HOME] = replace(seen[HOME], dom=dom, aria=aria)
    report = {
        "seconds": 61.5,
        "skips": rows,
        "fates": opened.blobs.put(write_element_outcomes([*rows, *[acted_on] * 3, failed])),
        "depths": [
            {"depth": depth, "states": states, "activations": 4, "seconds": 6.0}
            for depth, states in enumerate((1, 2, 1))
        ],
    }
    tools = ask_tool("question", "days")
    opened.publish(replace(draft, observations=seen, report=report, leads={lead.id: lead}, tools=tools))
    odd = ODD.draft(encoder, opened.blobs)
    titles = {ODD.id(name): title for name, title in HOSTILE.items()}
    nodes = [replace(node, title=titles[node.id]) for node in odd.graph.nodes.values()]
    edges = [
        replace(edge, action=msgspec.structs.replace(edge.action, name=titles[edge.target])) for edge in odd.graph.edges
    ]
    seen = {node_id: replace(each, title=titles[node_id]) for node_id, each in odd.observations.items()}
    rows = [
        {"state": ODD.id("home"), "element": text, "status": "skipped", "reason": text, "detail": text}
        for text in HOSTILE.values()
    ]
    report = {"fates": opened.blobs.put(write_element_outcomes(rows)), "advice": [HOSTILE["home"]]}
    opened.publish(replace(odd, graph=InteractionGraph(nodes, edges), observations=seen, report=report))
    return opened.location
