"""Conversion of HTTP answers to tool answers, cut to a size budget.

An agent pays for every token of a tool's answer in each of its later steps. So tool answers omit what is meant for
programs (evidence, boxes, default values) and stay below `BUDGET` bytes of UTF-8: 2,000 tokens of four bytes each. They
count what is left out, and the tools return it on request, except hits of a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

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
)
from waygraph.index.graph import HIDDEN_ROLE
from waygraph.serve.mcp.models import (
    Document,
    Navigation,
    Result,
    Results,
    Screen,
    ScreenAction,
    ScreenDetail,
    Screens,
    Site,
    Sites,
    Step,
    Way,
)

#: Largest answer as JSON, in bytes.
BUDGET = 8_000
#: Largest parts of an answer, in bytes. Parts of the same answer add up to less than `BUDGET`.
_TEXTS_BUDGET, _ACTIONS_BUDGET, _STEPS_BUDGET, _OTHERS_BUDGET, _DOCUMENT_BUDGET = 3_600, 2_600, 3_200, 2_000, 6_000
_SCREENS_BUDGET = 6_400
#: Confidence in the first hit below which an answer says that it is unsure, and what it says.
_LEAST_CONFIDENCE = 0.5
_ALIKE = "Scores nearly as well as the first."
_ALIKE_CANDIDATES = "The first two candidates score nearly alike: the other one may be meant."
#: Longest title or name, in bytes.
NAME_BYTES = 120
#: Longest text of a page and longest address, in bytes.
_TEXT_BYTES, _URL_BYTES = 240, 300
#: Most reasons and notes in an answer.
_MAX_NOTES = 5
#: Characters of an ISO 8601 time that give the minute.
_MINUTE_CHARS = 16

T = TypeVar("T")


def sites(summaries: Sequence[SiteSummary], contains: str, limit: int) -> Sites:
    """Return the sites whose key or start page contains a text, sorted by key."""
    text = contains.lower()
    matching = [each for each in summaries if text in each.site.lower() or text in each.start_url.lower()]
    shown = [
        Site(
            site=each.site,
            start_url=cut(each.start_url, _URL_BYTES),
            screens=each.states,
            mapped=each.created[:_MINUTE_CHARS],
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


def way(answer: PathAnswer, located: LocateAnswer | None = None) -> Way:
    """Return a path; `located` is how its start was recognised."""
    steps = _first_within([_step(step) for step in answer.steps], _STEPS_BUDGET)
    return Way(
        start=answer.source,
        seconds=round(answer.cost_ms / 1000, 1),
        steps=steps,
        more_steps=len(answer.steps) - len(steps),
        note=_recognition_note(located),
    )


def navigation(answer: NavigateAnswer, others: int = 4) -> Navigation:
    """Return the chosen state, the path to it, and the next best candidates."""
    chosen = next((hit for hit in answer.candidates if hit.node_id == answer.node_id), None)
    rest = [screen(hit) for hit in answer.candidates if hit.node_id != answer.node_id][:others]
    notes = [*([_ALIKE_CANDIDATES] if _is_unsure(answer.confidence) else []), *answer.notes]
    return Navigation(
        chosen=screen(chosen) if chosen is not None else None,
        reason=cut(answer.reason, _TEXT_BYTES),
        way=way(answer.path, answer.current) if answer.path is not None else None,
        nothing_matches=bool(answer.nothing_matches),
        others=_first_within(rest, _OTHERS_BUDGET),
        notes=[cut(note, _TEXT_BYTES) for note in notes[:_MAX_NOTES]],
    )


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


def _step(step: StepModel) -> Step:
    action = step.action
    notes = {
        "opens a new tab": step.opens_tab,
        "never walked while mapping": step.inherited,
        "recently reported as broken": step.suspect,
    }
    return Step(
        do=_step_words(step),
        expect_url=cut(step.expected_url, _URL_BYTES),
        expect_id=step.expected_node_id,
        nth=action.nth,
        frame=[cut(frame, _URL_BYTES) for frame in action.frame],
        xpath=action.xpath if action.kind != "goto" and not action.name else "",
        notes=[note for note, applies in notes.items() if applies],
    )


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
    url = cut(edge.expected_url, _URL_BYTES) if edge.expected_url != node.url else ""
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
