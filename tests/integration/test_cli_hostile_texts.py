"""No text of a page, model, store or server controls the terminal, in whatever a command prints."""

import json
import logging
import unicodedata
from dataclasses import replace

import msgspec
import pytest

from tests.browsers import BROWSERS
from tests.chat_server import raw, reply, serving_chat
from tests.small_map import SmallMap
from waygraph.cli import main
from waygraph.core.settings import Settings
from waygraph.demo_site import DemoSite
from waygraph.index.graph import Action, InteractionGraph
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder

#: A title that sets the window's, clears the screen, turns text around, hides some, and is markup.
HOSTILE = "\x1b]0;owned\x07\x9b2J\r\u202egnp\u2066\u200b\ufeff\u2028\x00\x7f[red]x[/red]"
SITE = "tea.example"
MAP = SmallMap(SITE)


def hostile_action(action: Action, bad: str) -> Action:
    return msgspec.structs.replace(action, name=action.name + bad, role=bad, value=bad)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two versions of a map whose every text is hostile."""
    location = str(tmp_path_factory.mktemp("hostile") / "maps")
    opened = Store.open(location, create=True)
    encoder = create_encoder(Settings().encode)
    for suffix in ("", "2"):
        draft = MAP.draft(encoder, opened.blobs)
        bad = HOSTILE + suffix
        graph = InteractionGraph(
            (replace(node, title=node.title + bad, url=node.url + "#" + bad) for node in draft.graph.nodes.values()),
            (replace(edge, action=hostile_action(edge.action, bad)) for edge in draft.graph.edges),
        )
        observations = {
            node_id: replace(
                seen,
                title=seen.title + bad,
                segments=tuple(
                    msgspec.structs.replace(each, text=each.text + bad, role=each.role + bad) for each in seen.segments
                ),
            )
            for node_id, seen in draft.observations.items()
        }
        report = {"seconds": 1.0, "advice": [bad], "counters": {f"skip/{bad}": 3}, "title": bad}
        opened.publish(
            replace(draft, graph=graph, observations=observations, start_url=draft.start_url + bad, report=report)
        )
    return location


def controls(text: str) -> set[str]:
    """Return the characters of a text that a terminal may act on."""
    return {
        character
        for character in text
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in "\n\t"
    }


COMMANDS = {
    "sites": ["sites"],
    "search": ["search", SITE, "credit card"],
    "show": ["show", SITE],
    "show state": ["show", SITE, MAP.id("cards")],
    "path": ["path", SITE, MAP.id("cards")],
    "navigate": ["navigate", SITE, "credit card"],
    "history": ["history", SITE],
    "diff": ["diff", SITE],
    "runs": ["runs"],
    "unknown site": ["show", HOSTILE],
    "unknown state": ["show", SITE, HOSTILE],
    "unknown page": ["path", SITE, f"http://{SITE}/{HOSTILE}"],
    "unknown option": ["search", SITE, "x", f"--{HOSTILE}"],
    "unknown command": [HOSTILE],
    "wrong value": ["search", SITE, "x", "--k", HOSTILE],
}


@pytest.mark.parametrize(("name", "words"), COMMANDS.items(), ids=COMMANDS)
def test_a_command_prints_hostile_texts_escaped(store, name, words, capsys, monkeypatch):
    monkeypatch.setenv("WAYGRAPH_DEBUG", "1")  # tracebacks quote texts as well
    code = main([*words, "--store", store])
    assert (code != 0) == name.startswith(("unknown", "wrong"))
    printed = capsys.readouterr()
    assert controls(printed.out + printed.err) == set()
    assert printed.out + printed.err


@pytest.mark.parametrize("name", ["sites", "search", "show", "show state", "path", "navigate", "history", "diff"])
def test_json_holds_hostile_texts_exactly_and_in_ascii(store, name, capsys):
    assert main([*COMMANDS[name], "--store", store, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert controls(out) == set()
    document = json.loads(out)
    if name == "search":
        assert document["hits"][0]["title"] == f"Your account{HOSTILE}2"


def test_titles_and_markup_are_shown_as_they_are_written(store, capsys):
    assert main(["search", SITE, "credit card", "--store", store]) == 0
    assert r"\x1b]0;owned\x07\x9b2J \u202egnp\u2066\u200b\ufeff \x00\x7f[red]x[/red]" in capsys.readouterr().out


@pytest.mark.parametrize("model_says", ["answer", "error"])
def test_what_an_agents_model_says_is_escaped(capsys, model_says):
    answer = {
        "history_summary": HOSTILE,
        "observation_description": HOSTILE,
        "reason": HOSTILE,
        "action": f"stop [{HOSTILE}]",
        "observation_highlight": [],
    }
    error = raw(json.dumps({"error": {"message": HOSTILE, "code": HOSTILE}}), "application/json", 400)
    server = serving_chat(reply(json.dumps(answer)) if model_says == "answer" else error)
    running = BROWSERS.run(server.__aenter__())
    try:
        with DemoSite() as site:
            model = ["--agent", "occam", "--model", "m", "--base-url", running.url]
            main(["do", site.url, HOSTILE, "--no-map", *model])
    finally:
        BROWSERS.run(server.__aexit__(None, None, None))
    printed = capsys.readouterr()
    assert "owned" in printed.out + printed.err
    assert controls(printed.out + printed.err) == set()


def test_log_lines_are_escaped_with_their_arguments_and_exceptions(capsys):
    main(["--version"])  # every command begins by this
    stream = logging.StreamHandler()
    log = logging.getLogger("waygraph.test")
    log.addHandler(stream)
    try:
        log.warning("a page says %s", HOSTILE)
        log.error("it failed: %r", HOSTILE, exc_info=ValueError(HOSTILE))
    finally:
        log.removeHandler(stream)
    printed = capsys.readouterr().err
    assert printed.count("owned") >= 3
    assert controls(printed) == set()
