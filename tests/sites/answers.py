"""Expected results of exploring a fixture site as plain data, and their comparison with an exploration.

Answers are written next to their pages. `judge` compares answers with a `SiteCapture` and with the requests that the
servers received; `score` counts seen and expected per area, `table` prints that for a failing test or a benchmark.

    area = Area("modal", {"/modal": "<button onclick='...'>Open</button>"}, (shows("modal-open", by="Open"),))
    print(table(judge([area], capture, site)))

Pages show `found: NAME` where an exploration should find something, in an element `f-NAME`, because states
differ by their elements, not by their texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from tests.sites.server import Answer, FixtureServer
from waygraph.index.graph import Edge
from waygraph.pipeline.explore.records.capture import SiteCapture

Kind = Literal["shows", "hidden", "states", "edge", "blocked", "dialog", "skipped", "fetched", "never"]

#: In every fixture page: `say(name)` shows a find, in `into` or in the element `#out` or at the end of the page.
LIBRARY = """
const say = (name, into) => {
  const element = document.createElement('f-' + name);
  element.style.display = 'block';
  element.textContent = 'found: ' + name;
  (into || document.querySelector('#out') || document.body).append(element);
  return element;
};
"""


@dataclass(frozen=True, slots=True)
class Expect:
    """One expected result of exploring.

    Attributes
    ----------
    kind : `shows` a state shows a find; `hidden` no state shows it; `states` as many states have this path; `edge` an
        element was acted on; `blocked` a request was stopped and is on an edge; `dialog` a dialog is on an edge;
        `skipped` something was left alone for a reason; `fetched` the server was asked for a target; `never` no server
        was.
    what : find, path, "POST /path", "type: message" or reason.
    by : part of the name of the element that is acted on; empty: whichever.
    count : for `states`.
    """

    area: str
    kind: Kind
    what: str
    by: str = ""
    count: int = 0

    def __str__(self) -> str:
        words = [self.area, self.kind, self.what, *([str(self.count)] if self.kind == "states" else []), self.by]
        return " | ".join(word for word in words if word)


def shows(find: str, by: str = "") -> Expect:
    """A state shows `found: FIND`; with `by`, an edge of that element leads to it."""
    return Expect("", "shows", find, by)


def hidden(find: str) -> Expect:
    """No state shows `found: FIND`."""
    return Expect("", "hidden", find)


def states(path: str, count: int) -> Expect:
    """Exactly `count` states have this URL path (with fragment, where it is a route)."""
    return Expect("", "states", path, count=count)


def edge(by: str) -> Expect:
    """The element called `by` has a walked edge, wherever it leads."""
    return Expect("", "edge", "", by)


def blocked(method: str, path: str, by: str = "") -> Expect:
    """An edge records that this request was stopped."""
    return Expect("", "blocked", f"{method} {path}", by)


def dialog(text: str, by: str = "") -> Expect:
    """An edge records a dialog, "type: message"."""
    return Expect("", "dialog", text, by)


def skipped(reason: str, by: str = "") -> Expect:
    """The report says that an element was left alone for this reason."""
    return Expect("", "skipped", reason, by)


def fetched(target: str) -> Expect:
    """The site's server was asked (GET) for this path and query."""
    return Expect("", "fetched", target)


def never(target: str) -> Expect:
    """Neither server was ever asked for this path and query."""
    return Expect("", "never", target)


@dataclass(frozen=True)
class Area:
    """Pages about one phenomenon, and what exploring them finds. The first page is linked from the start page.

    `OTHER` in a page is replaced by the address of the other origin (without a final slash); `other` are its pages.
    """

    name: str
    pages: Mapping[str, Answer]
    answers: tuple[Expect, ...]
    other: Mapping[str, Answer] | None = None

    @property
    def start(self) -> str:
        """Path of the first page."""
        return next(iter(self.pages))

    @property
    def expected(self) -> tuple[Expect, ...]:
        """The answers, each with the name of its area."""
        return tuple(replace(answer, area=self.name) for answer in self.answers)


def page(body: str, title: str = "Fixture") -> str:
    """A page that may `say` what is found in it."""
    out = "" if "id=out" in body else "<div id=out></div>"
    return f"<!doctype html><html lang=en><title>{title}</title><script>{LIBRARY}</script>{body}{out}"


def found(name: str) -> str:
    """A page on which there is something to be found."""
    return f"<!doctype html><html lang=en><title>{name}</title><f-{name} style='display:block'>found: {name}</f-{name}>"


def link_page(areas: Iterable[Area], title: str) -> str:
    """The start page: a link to each area."""
    links = "".join(f"<li><a href='{area.start}'>Area {area.name}</a>" for area in areas)
    return f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1><ul>{links}</ul>"


def site_pages(areas: Iterable[Area], title: str, other: FixtureServer | None = None) -> dict[str, Answer]:
    """All pages of a site, with its start page; the pages of the other origin are given to `other`."""
    areas = list(areas)
    address = other.url.rstrip("/") if other else ""
    pages: dict[str, Answer] = {"/": link_page(areas, title)}
    for area in areas:
        for path, answer in area.pages.items():
            pages[path] = answer.replace("OTHER", address) if isinstance(answer, str) else answer
        if other and area.other:
            other.pages.update(area.other)
    return pages


@dataclass(frozen=True, slots=True)
class Result:
    """One answer, whether the exploration agrees, and what it says instead."""

    expect: Expect
    seen: bool
    instead: str = ""


class Judge:
    """Compares answers with the results of an exploration."""

    def __init__(self, capture: SiteCapture, site: FixtureServer, other: FixtureServer | None = None) -> None:
        self._capture = capture
        self._requests = list(site.requests)
        self._others = list(other.requests) if other else []
        self._texts = {
            node_id: "\n".join([seen.title, *(segment.text for segment in seen.segments)])
            for node_id, seen in capture.observations.items()
        }
        self._walked = [edge for edge in capture.graph.edges if not edge.inherited]

    def __call__(self, expect: Expect) -> Result:
        """Whether the exploration agrees with an answer."""
        look: Callable[[Expect], tuple[bool, str]] = getattr(self, f"_{expect.kind}")
        seen, instead = look(expect)
        return Result(expect, seen, "" if seen else instead)

    def _by(self, expect: Expect) -> list[Edge]:
        return [edge for edge in self._walked if expect.by in edge.action.name]

    def _showing(self, find: str) -> set[str]:
        pattern = re.compile(rf"found: {re.escape(find)}(?![\w-])")
        return {node_id for node_id, text in self._texts.items() if pattern.search(text)}

    def _shows(self, expect: Expect) -> tuple[bool, str]:
        showing = self._showing(expect.what)
        if not expect.by:
            return bool(showing), "no state shows it"
        by = self._by(expect)
        if any(edge.target in showing for edge in by):
            return True, ""
        led = ", ".join(sorted({f"{edge.action.kind} to {self._url(edge.target)}" for edge in by}))
        tried = f"its element led to: {led}" if by else f"no edge; {self._left(expect.by) or 'never acted on'}"
        return False, f"{tried}; shown by {len(showing)} states"

    def _left(self, by: str) -> str:
        report = self._capture.report
        left = [f"skipped as {skip.reason}" for skip in report.skips if by in skip.element]
        return ", ".join(left + [failure.reason for failure in report.failures if by in failure.action])

    def _url(self, node_id: str) -> str:
        node = self._capture.graph.nodes[node_id]
        return f"{_target(node.url)} ({len(node.structure)} elements)"

    def _hidden(self, expect: Expect) -> tuple[bool, str]:
        showing = self._showing(expect.what)
        return not showing, f"shown by {sorted(map(self._url, showing))}"

    def _states(self, expect: Expect) -> tuple[bool, str]:
        there = [node.id for node in self._capture.graph.nodes.values() if _target(node.url) == expect.what]
        return len(there) == expect.count, f"{len(there)}: {sorted(map(self._url, there))}"

    def _edge(self, expect: Expect) -> tuple[bool, str]:
        return bool(self._by(expect)), f"no edge; {self._left(expect.by) or 'never acted on'}"

    def _blocked(self, expect: Expect) -> tuple[bool, str]:
        recorded = sorted({f"{b.method} {_target(b.url)}" for edge in self._by(expect) for b in edge.blocked})
        return expect.what in recorded, f"recorded: {recorded}; {self._left(expect.by) or 'no skip'}"

    def _dialog(self, expect: Expect) -> tuple[bool, str]:
        recorded = sorted({text for edge in self._by(expect) for text in edge.dialogs})
        return expect.what in recorded, f"recorded: {recorded}"

    def _skipped(self, expect: Expect) -> tuple[bool, str]:
        skips = self._capture.report.skips
        if any(skip.reason == expect.what and expect.by in f"{skip.element} {skip.detail}" for skip in skips):
            return True, ""
        return False, f"{self._left(expect.by) or 'no skip'}; {len(self._by(expect))} edges"

    def _fetched(self, expect: Expect) -> tuple[bool, str]:
        return ("GET", expect.what) in self._requests, "never asked for"

    def _never(self, expect: Expect) -> tuple[bool, str]:
        asked = [method for method, target in self._requests + self._others if target == expect.what]
        return not asked, f"asked for with {asked}"


def _target(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")


def judge(
    areas: Iterable[Area], capture: SiteCapture, site: FixtureServer, other: FixtureServer | None = None
) -> list[Result]:
    """Every answer of `areas`, and whether the exploration agrees."""
    ask = Judge(capture, site, other)
    return [ask(expect) for area in areas for expect in area.expected]


def score(results: Iterable[Result]) -> dict[str, tuple[int, int]]:
    """(seen, expected) per area, in the order of the answers."""
    counts: dict[str, tuple[int, int]] = {}
    for result in results:
        seen, expected = counts.get(result.expect.area, (0, 0))
        counts[result.expect.area] = (seen + result.seen, expected + 1)
    return counts


def table(results: Iterable[Result]) -> str:
    """The score as lines of text, with what is missing."""
    results = list(results)
    counts = score(results)
    total = sum(seen for seen, _ in counts.values())
    lines = [f"{total} of {len(results)} answers"]
    for area, (seen, expected) in counts.items():
        lines.append(f"{area:24} {seen:3} of {expected:3}")
        lines += [
            f"    {result.expect}: {result.instead}"
            for result in results
            if result.expect.area == area and not result.seen
        ]
    return "\n".join(lines)
