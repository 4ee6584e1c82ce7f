"""Conversion of HTTP answers to tool answers, cut to a size budget.

An agent pays for every token of a tool's answer in each of its later steps. So tool answers omit what is meant for
programs (evidence, boxes, default values) and stay below `BUDGET` bytes of UTF-8: 2,000 tokens of four bytes each. They
count what is left out, and the tools return it on request, except hits of a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from waygraph.core.json_schema import with_short_texts
from waygraph.core.schemas import (
    ActionModel,
    Hit,
    LocateAnswer,
    NavigateAnswer,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SiteSummary,
    StepModel,
    ToolModel,
    ToolsAnswer,
)
from waygraph.core.urls import is_random_token
from waygraph.index.graph import HIDDEN_ROLE
from waygraph.index.graph.model import SCROLL_MARK
from waygraph.index.graph.path_costs import duration_ms
from waygraph.serve.mcp.models import (
    Document,
    Navigation,
    Result,
    Results,
    Screen,
    ScreenAction,
    ScreenDetail,
    Screens,
    ScreenTool,
    ScreenToolDetail,
    ScreenTools,
    Site,
    Sites,
    Step,
    Way,
)
from waygraph.serve.mcp.selectors import selector_of

#: Largest answer as JSON, in bytes.
BUDGET = 8_000
#: Largest parts of an answer, in bytes. Parts of the same answer add up to less than `BUDGET`.
_TEXTS_BUDGET, _ACTIONS_BUDGET, _STEPS_BUDGET, _CANDIDATES_BUDGET, _DOCUMENT_BUDGET = 3_600, 2_600, 3_200, 2_600, 6_000
_SCREENS_BUDGET, _TOOLS_BUDGET, _SCHEMA_BUDGET = 6_400, 7_000, 4_800
#: Most bytes of the inputs of a tool in a list, and of the tools that the end of a way names.
_INPUTS_BUDGET, _TOOL_NAMES_BUDGET = 400, 800
#: Longest description of a tool, in bytes, and most screens of one.
_DESCRIPTION_BYTES, _MAX_TOOL_SCREENS = 1_000, 5
#: Most candidates of a navigation.
_MAX_CANDIDATES = 5
#: Confidence in the first hit below which an answer says that it is unsure, and what it says.
_LEAST_CONFIDENCE = 0.5
_ALIKE = "Scores nearly as well as the first."
_ALIKE_CANDIDATES = "The two best scores are nearly alike: either candidate may be meant."
#: Longest title or name, in bytes.
NAME_BYTES = 120
#: Longest text of a page and longest address, in bytes.
_TEXT_BYTES, _URL_BYTES = 240, 300
#: Most reasons and notes in an answer.
_MAX_NOTES = 5
#: Characters of an ISO 8601 time that give the minute.
_MINUTE_CHARS = 16
#: Parts of a URL's path, query and fragment.
_URL_PIECE = re.compile(r"[^/?&=#;]+")

T = TypeVar("T")


def sites(summaries: Sequence[SiteSummary], contains: str, limit: int) -> Sites:
    """Return the sites whose key, start page or title contains a text, sorted by key."""
    text = contains.lower()
    matching = [each for each in summaries if text in f"{each.site} {each.start_url} {each.title}".lower()]
    shown = [
        Site(
            site=each.site,
            title=cut(each.title, NAME_BYTES),
            start_url=cut(each.start_url, _URL_BYTES),
            screens=each.states,
            mapped=each.explored[:_MINUTE_CHARS],
        )
        for each in matching[:limit]
    ]
    kept = _first_within(shown, BUDGET)
    return Sites(sites=kept, more=len(matching) - len(kept))


def screen(hit: Hit) -> Screen:
    """Return one found state."""
    return Screen(
        site=hit.site,
        id=hit.node_id,
        title=cut(hit.title, NAME_BYTES),
        url=cut(hit.url, _URL_BYTES),
        score=round(hit.score, 3),
        matched=cut(hit.matched.text, _TEXT_BYTES) if hit.matched is not None else "",
        note=" ".join(note for note in (_visit_note(hit), _match_note(hit)) if note),
    )


def _visit_note(hit: Hit) -> str:
    if hit.visited:
        return ""
    no_way = f"; no way leads there ({hit.refusal})" if hit.refusal else ""
    return f"Known from links only, never visited{no_way}: check what it shows."


def _match_note(hit: Hit) -> str:
    if hit.matched is None or not hit.matched.generated:
        return ""
    return "The matching text was generated and is not on the page."


def _is_unsure(confidence: float | None) -> bool:
    return confidence is not None and confidence < _LEAST_CONFIDENCE


def screens(answer: SearchAnswer) -> Screens:
    """Return found states, best first."""
    skipped = {site: cut(reason, _TEXT_BYTES) for site, reason in list(answer.skipped.items())[:_MAX_NOTES]}
    screens = [screen(hit) for hit in answer.hits]
    if _is_unsure(answer.confidence):
        screens[1] = screens[1].model_copy(update={"note": f"{_ALIKE} {screens[1].note}".strip()})
    kept = _first_within(screens, _SCREENS_BUDGET)
    return Screens(
        screens=kept,
        more=len(screens) - len(kept),
        skipped=skipped,
        nothing_matches=bool(answer.nothing_matches),
    )


def way(answer: PathAnswer, located: LocateAnswer | None = None, tools: Sequence[ToolModel] = ()) -> Way:
    """Return a path; `located` is how its start was recognised, `tools` what one can do where it ends."""
    shown = _first_within([list(_steps(step)) for step in answer.steps], _STEPS_BUDGET)
    return Way(
        start=answer.source,
        seconds=round(sum(duration_ms(each.cost_ms, inherited=each.inherited) for each in answer.steps) / 1000, 1),
        steps=[step for steps in shown for step in steps],
        more_steps=len(answer.steps) - len(shown),
        tools=_first_within([_call(tool) for tool in tools], _TOOL_NAMES_BUDGET),
        note=_recognition_note(located),
    )


def navigation(answer: NavigateAnswer, tools: Sequence[ToolModel] = ()) -> Navigation:
    """Return the best candidates, the chosen one first, and the path to it. What no path leads to is left out.

    `tools` is what one can do on the chosen one.
    """
    ranked = sorted(answer.candidates, key=lambda hit: (hit.node_id != answer.node_id, hit.rank))
    shown = [_candidate(hit) for hit in ranked if not hit.refusal][:_MAX_CANDIDATES]
    notes = [*([_ALIKE_CANDIDATES] if _is_unsure(answer.confidence) else []), *answer.notes]
    return Navigation(
        candidates=_first_within(shown, _CANDIDATES_BUDGET),
        confidence=answer.confidence,
        reason=cut(answer.reason, _TEXT_BYTES),
        way=way(answer.path, answer.current, tools) if answer.path is not None else None,
        nothing_matches=bool(answer.nothing_matches),
        notes=[cut(note, _TEXT_BYTES) for note in notes[:_MAX_NOTES]],
    )


def _candidate(hit: Hit) -> Screen:
    """Return a found state of the site that was asked about, with the text that tells it from the others."""
    found = screen(hit)
    return found.model_copy(update={"site": "", "matched": "" if found.matched == found.title else found.matched})


def screen_detail(node: NodeAnswer, screenshot: str, first_text: int, first_action: int) -> ScreenDetail:
    """Return one state with a part of its texts and actions.

    Parameters
    ----------
    node
        The state.
    screenshot
        Address of its screenshot among the server's resources.
    first_text
        Index of the first text to return.
    first_action
        Index of the first action to return.

    Returns
    -------
    ScreenDetail
        The part, with the number of texts and actions after it.
    """
    texts = _first_within(list(_lines(node, first_text)), _TEXTS_BUDGET)
    actions = _first_within([_action(node, edge) for edge in node.edges[first_action:]], _ACTIONS_BUDGET)
    return ScreenDetail(
        site=node.site,
        id=node.node_id,
        title=cut(node.title, NAME_BYTES),
        url=cut(node.url, _URL_BYTES),
        texts=texts,
        more_texts=max(0, len(node.segments) - first_text - len(texts)),
        actions=actions,
        more_actions=max(0, len(node.edges) - first_action - len(actions)),
        screenshot=screenshot if node.screenshot else "",
    )


def page_tools(answer: ToolsAnswer, first: int) -> ScreenTools:
    """Return a part of a site's tools; `first` is the number of those before it."""
    kept = _first_within(list(map(_page_tool, answer.tools)), _TOOLS_BUDGET)
    return ScreenTools(tools=kept, more=max(0, answer.total - first - len(kept)))


def found_tools(answer: SearchAnswer) -> ScreenTools:
    """Return the tools that a search found, best first, each with the screen of its hit."""
    found = [_page_tool(hit.tool, hit.node_id) for hit in answer.hits if hit.tool is not None]
    kept = _first_within(found, _TOOLS_BUDGET)
    return ScreenTools(tools=kept, more=len(found) - len(kept))


def _page_tool(tool: ToolModel, screen: str = "") -> ScreenTool:
    return ScreenTool(
        id=tool.id,
        name=cut(tool.name, NAME_BYTES),
        does=cut(tool.description or tool.title, _TEXT_BYTES),
        inputs=_first_within(_inputs(tool), _INPUTS_BUDGET),
        may_change=not tool.read_only,
        screen=screen or tool.states[0],
        url=cut(tool.url, _URL_BYTES),
    )


def page_tool_detail(tool: ToolModel) -> ScreenToolDetail:
    """Return one tool with as much of the schema of its inputs as fits."""
    schema, more = _short_schema(tool.input_schema)
    notes = {
        "Declared by the page." if tool.source != "inferred" else "Inferred from the page's form.": True,
        "It reads and changes nothing, as far as is known.": tool.read_only,
        "It may change something.": not tool.read_only,
        "The page says that its effects are serious.": tool.consequential,
        "Its answers hold what others wrote.": tool.untrusted,
        "A call fills the form; it is submitted by somebody.": tool.source == "form" and not tool.autosubmit,
    }
    return ScreenToolDetail(
        id=tool.id,
        name=cut(tool.name, NAME_BYTES),
        does=cut(tool.description or tool.title, _DESCRIPTION_BYTES),
        input_schema=schema,
        more_inputs=more,
        submits=cut(f"{tool.method} {tool.target}", _URL_BYTES) if tool.method else "",
        screens=tool.states[:_MAX_TOOL_SCREENS],
        notes=[note for note, applies in notes.items() if applies],
    )


def _call(tool: ToolModel) -> str:
    """Return the name of a tool with its inputs, as in `search(q*, page)`."""
    return f"{cut(tool.name, NAME_BYTES)}({cut(', '.join(_inputs(tool)), NAME_BYTES)})"


def _inputs(tool: ToolModel) -> list[str]:
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    needed = required if isinstance(required, list) else []
    return [
        cut(name, NAME_BYTES) + ("*" if name in needed else "")
        for name in (properties if isinstance(properties, dict) else ())
    ]


def _short_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a schema that fits into an answer, and the number of properties that were left out."""
    short: dict[str, Any] = with_short_texts(schema, _TEXT_BYTES // 2)
    if len(to_json(short)) <= _SCHEMA_BUDGET:
        return short, 0
    properties, required = short.get("properties"), short.get("required")
    items = list(properties.items()) if isinstance(properties, dict) else []
    kept = [item for item in _first_within(items, _SCHEMA_BUDGET) if len(to_json(item)) <= _SCHEMA_BUDGET]
    cut_schema: dict[str, Any] = {"type": "object", "properties": dict(kept)}
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    if needed := [name for name in _first_within(names, _INPUTS_BUDGET) if len(name) <= _INPUTS_BUDGET]:
        cut_schema["required"] = needed  # those that were left out as well
    return cut_schema, len(items) - len(kept)


def results(answer: SearchAnswer) -> Results:
    """Return found states in the form of OpenAI's `search`."""
    return Results(
        results=[
            Result(id=f"{hit.site}/{hit.node_id}", title=cut(hit.title, NAME_BYTES), url=cut(hit.url, _URL_BYTES))
            for hit in answer.hits
        ]
    )


def document(node: NodeAnswer, screenshot: str) -> Document:
    """Return one state in the form of OpenAI's `fetch`."""
    lines = list(_lines(node, 0))
    kept = _first_within(lines, _DOCUMENT_BUDGET)
    if len(lines) > len(kept):
        kept.append(f"[{len(lines) - len(kept)} more texts: get_screen shows them]")
    metadata = {"site": node.site, "screen": node.node_id, "version": str(node.version)}
    return Document(
        id=f"{node.site}/{node.node_id}",
        title=cut(node.title, NAME_BYTES),
        text="\n".join(kept),
        url=cut(node.url, _URL_BYTES),
        metadata={**metadata, "screenshot": screenshot} if node.screenshot else metadata,
    )


def cut(text: str, max_bytes: int) -> str:
    """Return a text as one line, cut to a number of bytes of UTF-8.

    >>> cut("a  b", 9), cut("abcdefgh", 6)
    ('a b', 'abc…')
    """
    line = " ".join(text.split())
    encoded = line.encode()
    if len(encoded) <= max_bytes:
        return line
    return f"{encoded[: max_bytes - len('…'.encode())].decode(errors='ignore')}…"


def compact(answer: BaseModel) -> str:
    """Return an answer as JSON, without default values, which its schema contains."""
    return answer.model_dump_json(exclude_defaults=True)


def _steps(step: StepModel) -> Iterator[Step]:
    """Yield the actions of a step: those that show its element, and the one that leads on."""
    for opener in step.openers:
        yield _step(opener)
    notes = {
        "opens a new tab": step.opens_tab,
        "never walked while mapping": step.inherited,
        "recently reported as broken": step.suspect,
        "scroll its list until the element is there": SCROLL_MARK in step.action.xpath,
    }
    expected, match = _expected(step)
    yield _step(step.action).model_copy(
        update={
            "expect_url": expected,
            "match": match,
            "expect_id": step.expected_node_id,
            "notes": [note for note, applies in notes.items() if applies],
        }
    )


def _step(action: ActionModel) -> Step:
    return Step(
        do=action.kind,
        value=action.url if action.kind == "goto" else cut(action.value, _TEXT_BYTES),
        role=action.role,
        name=cut(action.name, NAME_BYTES),
        selector=selector_of(action),
    )


def _expected(step: StepModel) -> tuple[str, Literal["exact", "path", "glob"]]:
    """Return the address after a step, and how agents compare it, as `teleport` does.

    Random-looking parts may differ unless they identify the page. Search forms send hidden fields of their page along.
    """
    url = step.expected_url
    if step.action.kind == "submit":
        return cut(url.partition("?")[0], _URL_BYTES), "path"
    if step.evidence is not None and not step.evidence.named:
        scheme, mark, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        url = f"{scheme}{mark}{host}{slash}{_URL_PIECE.sub(lambda piece: _glob(piece[0]), path)}"
    short = cut(url, _URL_BYTES)
    if short != url:
        url = f"{short.removesuffix('…')}*"
    return url, "exact" if url == step.expected_url else "glob"


def _glob(piece: str) -> str:
    return "*" if is_random_token(piece) else piece


def _step_words(step: StepModel) -> str:
    return ", then ".join(map(_action_words, (*step.openers, step.action)))


def _action_words(action: ActionModel) -> str:
    if action.kind == "goto":
        return f"goto {action.url}"
    if action.kind == "press" and not (action.xpath or action.role or action.name):
        return f"press {cut(action.value, NAME_BYTES)}"
    value = f' with "{cut(action.value, NAME_BYTES)}"' if action.value else ""
    return f'{action.kind} {action.role or "element"} "{cut(action.name, NAME_BYTES)}"{value}'


def _action(node: NodeAnswer, edge: StepModel) -> ScreenAction:
    url = cut(edge.expected_url, _URL_BYTES) if edge.expected_url != (node.normalized_url or node.url) else ""
    return ScreenAction(do=cut(_step_words(edge), _URL_BYTES), to=edge.expected_node_id, to_url=url)


def _lines(node: NodeAnswer, first: int) -> Iterable[str]:
    for segment in node.segments[first:]:
        mark = {"heading": "# ", HIDDEN_ROLE: "(hidden until opened) "}.get(segment.role, "")
        yield f"{mark}{cut(segment.text, _TEXT_BYTES)}"


def _recognition_note(located: LocateAnswer | None) -> str:
    if located is None or located.rule == "exact":
        return ""
    if located.node_id is None:
        return "The map does not know the page that you are on: the way begins by loading an address."
    return f"Your screen was recognised by its {located.rule} (confidence {located.confidence:.2f})."


def _first_within(items: Sequence[T], budget: int) -> list[T]:
    """Return as many of the first items as fit into a number of bytes of JSON.

    At least one item is returned, so that repeated calls for the rest make progress.
    """
    kept: list[T] = []
    for item in items:
        budget -= len(to_json(item)) + 1
        if budget < 0 and kept:
            break
        kept.append(item)
    return kept
