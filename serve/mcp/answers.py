"""How much of an answer does a language model get? Small models of the HTTP answers, cut to a budget.

An agent pays for every token of a tool's answer on each of its later steps, so answers leave out what is for programs
(evidence, boxes, equal values) and keep to `BUDGET` bytes of UTF-8: 2,000 tokens at four bytes each. What is left
out is counted, and can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from waygraph.schemas import (
    Hit,
    LocateAnswer,
    NavigateAnswer,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SiteSummary,
    StepModel,
)

#: Bytes of one answer as JSON; the parts below add up to less.
BUDGET = 8_000
_TEXTS, _ACTIONS, _STEPS, _FETCHED = 3_600, 2_600, 3_200, 6_000
#: Longest title or name, text of a page, and address, in bytes.
NAME, _TEXT, _URL = 120, 240, 300

T = TypeVar("T")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Site(_Answer):
    """A mapped site."""

    site: str
    """Key: what other tools take as `site`."""
    start_url: str
    screens: int
    mapped: str
    """When the map was made (UTC)."""


class Sites(_Answer):
    """Mapped sites."""

    sites: list[Site]
    more: int = 0
    """Sites that are not shown; narrow them down with `contains`."""


class Screen(_Answer):
    """A screen: a page in one state, such as with a tab or a dialog open."""

    site: str
    id: str
    title: str
    url: str
    """Several screens may share it."""
    score: float
    """Higher is better, comparable within one answer."""
    matched: str = ""
    """Text that fits the question best."""


class Screens(_Answer):
    """Found screens."""

    screens: list[Screen]
    """Best first."""
    skipped: dict[str, str] = {}
    """Sites that could not be searched, and why."""
    nothing_matches: bool = False


class Step(_Answer):
    """One action of a way."""

    do: str
    """What to do, in words. Names are quoted from the page."""
    expect_url: str
    """Address afterwards."""
    expect_id: str
    """Screen afterwards."""
    nth: int = 0
    """Which of the elements with this role and name, from 0."""
    frame: list[str] = []
    """The element is inside these frames."""
    xpath: str = ""
    """Given for elements without a name."""
    notes: list[str] = []


class Way(_Answer):
    """Actions that lead to a screen."""

    start: str | None
    """Screen where it begins; null: anywhere, the first step loads an address."""
    seconds: float
    steps: list[Step]
    """None: already there."""
    more_steps: int = 0
    """Ask again for the rest from the last `expect_id`."""
    note: str = ""


class Navigation(_Answer):
    """A chosen screen and the way to it."""

    chosen: Screen | None
    """Null: none of the candidates fits."""
    reason: str
    way: Way | None = None
    nothing_matches: bool = False
    others: list[Screen] = []
    """Next best candidates: `path_to` leads there."""
    notes: list[str] = []


class Action(_Answer):
    """Something that can be done on a screen."""

    do: str
    to: str
    """Screen that it leads to."""
    to_url: str = ""
    """Given when the address changes."""


class ScreenDetail(_Answer):
    """What a screen shows."""

    site: str
    id: str
    title: str
    url: str
    texts: list[str]
    """Visible texts in reading order, headings marked with #."""
    more_texts: int = 0
    """Texts after these: ask with a higher `first_text`."""
    actions: list[Action] = []
    """What can be done here."""
    more_actions: int = 0
    """Actions after these: ask with a higher `first_action`."""
    screenshot: str = ""
    """Resource with the picture (JPEG)."""


class Result(_Answer):
    """A found screen."""

    id: str
    title: str
    url: str


class Results(_Answer):
    """Found screens."""

    results: list[Result]


class Document(_Answer):
    """A screen as text."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


def sites(found: Sequence[SiteSummary], contains: str, limit: int) -> Sites:
    """Sites whose key or start page contains a text, by key."""
    wanted = contains.lower()
    fitting = [each for each in found if wanted in each.site.lower() or wanted in each.start_url.lower()]
    shown = [
        Site(
            site=each.site, start_url=cut(each.start_url, _URL), screens=each.states, mapped=each.created[:16]
        )  # minutes are enough
        for each in fitting[:limit]
    ]
    kept = _fitting(shown, BUDGET)
    return Sites(sites=kept, more=len(fitting) - len(kept))


def screen(hit: Hit) -> Screen:
    """One found state."""
    return Screen(
        site=hit.site,
        id=hit.node_id,
        title=cut(hit.title, NAME),
        url=cut(hit.url, _URL),
        score=round(hit.score, 3),
        matched=cut(hit.matched.text, _TEXT) if hit.matched is not None else "",
    )


def screens(answer: SearchAnswer) -> Screens:
    """Found states, best first."""
    skipped = {site: cut(reason, _TEXT) for site, reason in list(answer.skipped.items())[:5]}
    screens = [screen(hit) for hit in answer.hits]
    return Screens(screens=screens, skipped=skipped, nothing_matches=bool(answer.nothing_matches))


def way(answer: PathAnswer, located: LocateAnswer | None = None) -> Way:
    """A path; `located` is how its start was recognised."""
    steps = _fitting([_step(step) for step in answer.steps], _STEPS)
    return Way(
        start=answer.source,
        seconds=round(answer.cost_ms / 1000, 1),
        steps=steps,
        more_steps=len(answer.steps) - len(steps),
        note=_recognition(located),
    )


def navigation(answer: NavigateAnswer, others: int = 4) -> Navigation:
    """What was chosen, and the way to it."""
    chosen = next((hit for hit in answer.candidates if hit.node_id == answer.node_id), None)
    rest = [screen(hit) for hit in answer.candidates if hit.node_id != answer.node_id][:others]
    return Navigation(
        chosen=screen(chosen) if chosen is not None else None,
        reason=cut(answer.reason, _TEXT),
        way=way(answer.path, answer.current) if answer.path is not None else None,
        nothing_matches=bool(answer.nothing_matches),
        others=_fitting(rest, 2_000),
        notes=[cut(note, _TEXT) for note in answer.notes[:5]],
    )


def detail(node: NodeAnswer, screenshot: str, first_text: int, first_action: int) -> ScreenDetail:
    """One state: some of its texts, and some of what can be done there."""
    texts = _fitting(list(_lines(node, first_text)), _TEXTS)
    actions = _fitting([_action(node, edge) for edge in node.edges[first_action:]], _ACTIONS)
    return ScreenDetail(
        site=node.site,
        id=node.node_id,
        title=cut(node.title, NAME),
        url=cut(node.url, _URL),
        texts=texts,
        more_texts=max(0, len(node.segments) - first_text - len(texts)),
        actions=actions,
        more_actions=max(0, len(node.edges) - first_action - len(actions)),
        screenshot=screenshot if node.screenshot else "",
    )


def results(answer: SearchAnswer) -> Results:
    """Found states as OpenAI's `search` gives them."""
    return Results(
        results=[
            Result(id=f"{hit.site}/{hit.node_id}", title=cut(hit.title, NAME), url=cut(hit.url, _URL))
            for hit in answer.hits
        ]
    )


def document(node: NodeAnswer, screenshot: str) -> Document:
    """One state as OpenAI's `fetch` gives it."""
    lines = list(_lines(node, 0))
    kept = _fitting(lines, _FETCHED)
    if len(lines) > len(kept):
        kept.append(f"[{len(lines) - len(kept)} more texts: get_screen shows them]")
    metadata = {"site": node.site, "screen": node.node_id, "version": str(node.version)}
    return Document(
        id=f"{node.site}/{node.node_id}",
        title=cut(node.title, NAME),
        text="\n".join(kept),
        url=cut(node.url, _URL),
        metadata={**metadata, "screenshot": screenshot} if node.screenshot else metadata,
    )


def cut(text: str, length: int) -> str:
    """One line of at most so many bytes of UTF-8.

    >>> cut("a  b", 9), cut("abcdefgh", 6)
    ('a b', 'abc…')
    """
    line = " ".join(text.split())
    spelt = line.encode()
    return line if len(spelt) <= length else f"{spelt[: length - len('…'.encode())].decode(errors='ignore')}…"


def compact(answer: BaseModel) -> str:
    """The answer as JSON, without what its schema says anyway."""
    return answer.model_dump_json(exclude_defaults=True)


def _step(step: StepModel) -> Step:
    action = step.action
    notes = {
        "opens a new tab": step.opens_tab,
        "never walked while mapping": step.inherited,
        "lately reported as broken": step.suspect,
    }
    return Step(
        do=_words(step),
        expect_url=cut(step.expected_url, _URL),
        expect_id=step.expected_node_id,
        nth=action.nth,
        frame=[cut(frame, _URL) for frame in action.frame],
        xpath=action.xpath if action.kind != "goto" and not action.name else "",
        notes=[note for note, said in notes.items() if said],
    )


def _words(step: StepModel) -> str:
    action = step.action
    if action.kind == "goto":
        return f"goto {action.url}"
    value = f' with "{cut(action.value, NAME)}"' if action.value else ""
    return f'{action.kind} {action.role or "element"} "{cut(action.name, NAME)}"{value}'


def _action(node: NodeAnswer, edge: StepModel) -> Action:
    url = cut(edge.expected_url, _URL) if edge.expected_url != node.url else ""
    return Action(do=cut(_words(edge), _URL), to=edge.expected_node_id, to_url=url)


def _lines(node: NodeAnswer, first: int) -> Iterable[str]:
    for segment in node.segments[first:]:
        yield f"{'# ' if segment.role == 'heading' else ''}{cut(segment.text, _TEXT)}"


def _recognition(located: LocateAnswer | None) -> str:
    if located is None or located.rule == "exact":
        return ""
    if located.node_id is None:
        return "The map does not know the page that you are on: the way begins by loading an address."
    return f"Your screen was recognised by its {located.rule} (confidence {located.confidence:.2f})."


def _fitting(items: Sequence[T], budget: int) -> list[T]:
    """As many of the first items as fit into so many bytes of JSON; at least one, so that asking on gets further."""
    kept: list[T] = []
    for item in items:
        budget -= len(to_json(item)) + 1
        if budget < 0 and kept:
            break
        kept.append(item)
    return kept
