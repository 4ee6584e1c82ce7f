"""Static HTML as a `Snapshot`, and a breadth-first walk over a site of such pages, without a browser.

Fast enough for a site of hundreds of pages in a unit test. Every element is exposed unless it or an ancestor is
`hidden`; links, buttons and text fields are actionable; buttons and fields do nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal
from urllib.parse import urljoin

from tests.sites.server import Answer, Page
from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.demo_site.local_server import Request
from waygraph.index.graph import Action, Box, Merge, Segment, element_hash, node_id
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.identity import Recogniser, Skeleton, TrapDetector
from waygraph.pipeline.explore.identity.difference import split_candidates

BASE = "http://still.example"
VOID = {"area", "base", "br", "hr", "img", "input", "link", "meta", "source", "wbr"}
NOT_SHOWN = {"head", "title", "script", "style", "meta", "template"}
ROLES = {"a": "link", "button": "button", "h1": "heading", "h2": "heading", "h3": "heading"}
NOWHERE = Box(0, 0, 1, 1)


@dataclass
class _Open:
    tag: str
    xpath: str
    hidden: bool
    attributes: Mapping[str, str | None]
    counts: dict[str, int] = field(default_factory=dict)
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.title = ""
        self.stack = [_Open("", "", hidden=False, attributes={})]
        self.hashes: set[str] = set()
        self.segments: list[Segment] = []
        self.candidates: list[Candidate] = []
        self.handle_starttag("html", [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "html" and len(self.stack) > 1:
            return
        if tag in {"li", "p"} and self.stack[-1].tag == tag:
            self.handle_endtag(tag)
        parent = self.stack[-1]
        parent.counts[tag] = parent.counts.get(tag, 0) + 1
        attributes = dict(attrs)
        xpath = f"{parent.xpath}/{tag}[{parent.counts[tag]}]"
        hidden = parent.hidden or "hidden" in attributes or tag in NOT_SHOWN or attributes.get("type") == "hidden"
        if not hidden:
            self.hashes.add(element_hash(xpath))
            if tag == "input":
                name = " ".join(parent.text.split()) if parent.tag == "label" else attributes.get("aria-label") or ""
                self._act(Action("click", role="textbox", name=name, xpath=xpath), tag)
        if tag not in VOID:
            self.stack.append(_Open(tag, xpath, hidden, attributes))

    def handle_endtag(self, tag: str) -> None:
        if not any(element.tag == tag for element in self.stack[1:]):
            return
        while True:
            element = self.stack.pop()
            self._close(element)
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        self.stack[-1].text += data

    def _close(self, element: _Open) -> None:
        text = " ".join(element.text.split())
        if element.tag == "title":
            self.title = text
        if element.hidden:
            return
        if text:
            self.segments.append(Segment(text, ROLES.get(element.tag, "text"), NOWHERE))
        href = element.attributes.get("href")
        if element.tag == "button" or (element.tag == "a" and href is not None):
            action = Action(
                "click",
                role=ROLES[element.tag],
                name=text,
                xpath=element.xpath,
                target=urljoin(self.url, href) if href is not None else "",
            )
            self._act(action, element.tag)

    def _act(self, action: Action, tag: str) -> None:
        self.candidates.append(Candidate(action, tag, disabled=False, submits="", download=False, box=NOWHERE))


def look(html: str, url: str) -> Snapshot:
    """Return the snapshot of a static page."""
    reader = _Reader(url)
    reader.feed(html)
    reader.close()
    while len(reader.stack) > 1:
        reader.handle_endtag(reader.stack[-1].tag)
    structure = tuple(sorted(reader.hashes))
    normal = normalize_url(url)
    return Snapshot(
        id=node_id(structure, normal),
        url=normal,
        raw_url=url,
        title=reader.title,
        content_type="text/html",
        status=200,
        structure=structure,
        candidates=tuple(reader.candidates),
        segments=tuple(reader.segments),
        capped=False,
        opened=0,
    )


@dataclass
class Walk:
    """Explores a site of still pages, breadth first, asking in the order in which the explorer asks.

    `states` are in the order of their discovery; `refused` says why by URL; `budget` of 0: traps are not looked for.
    """

    pages: Mapping[str, Answer]
    depth: int = 12
    budget: int = 5
    identity: Literal["exact", "tolerant"] = "tolerant"
    is_skeleton: bool = False
    resumes: bool = False
    """After every state, recogniser and traps are replaced by such as only know what they are told, as JSON."""
    states: dict[str, Snapshot] = field(default_factory=dict)
    merges: list[Merge] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    loads: int = 0

    def __post_init__(self) -> None:
        self._renew()
        self._loaded: set[str] = set()

    def _renew(self) -> None:
        policy = UrlPolicy()
        look = self.states.__getitem__
        skeleton = Skeleton(policy, look) if self.is_skeleton else None
        self.recogniser = Recogniser(self.identity, policy, look, skeleton=skeleton)
        self.traps = TrapDetector(self.budget or 1_000_000, self.recogniser.url_key, skeleton=skeleton)

    def paths(self, under: str = "/") -> list[str]:
        """Paths of the states, with queries, that begin with `under`."""
        paths = [state.url.removeprefix(BASE) for state in self.states.values()]
        return [path for path in paths if path.startswith(under)]

    def run(self) -> Walk:
        """Walk to the depth, or to the end."""
        first = self._load(f"{BASE}/")
        assert first is not None
        assert self._commit(first, None)
        frontier: list[tuple[Snapshot, Snapshot | None]] = [(first, None)]
        for _ in range(self.depth):
            frontier = [found for state, parent in frontier for found in self._expand(state, parent)]
        return self

    def _expand(self, state: Snapshot, parent: Snapshot | None) -> list[tuple[Snapshot, Snapshot | None]]:
        if self.traps.refuse_state(state.id):
            return []
        found: list[tuple[Snapshot, Snapshot | None]] = []
        for candidate in split_candidates(state, parent, "element")[0]:
            url = candidate.action.target
            key = self.recogniser.url_key(url)
            if not url.startswith(BASE) or key in self._loaded:
                continue
            skeleton = self.recogniser.skeleton
            if no := self.traps.refuse_link(url) or (skeleton and skeleton.refuse_link(url)):
                self.refused[url] = f"{no.reason} {no.detail}"
                if no.reason == "skeleton" and skeleton:
                    skeleton.count_unvisited(url)
                continue
            self._loaded.add(key)
            seen = self._load(url)
            if seen is not None and self._commit(seen, state):
                found.append((seen, state))
        return found

    def _load(self, url: str) -> Snapshot | None:
        self.loads += 1
        for _ in range(20):
            target = url.partition("#")[0].removeprefix(BASE) or "/"
            answer = self.pages.get(target, self.pages.get(target.partition("?")[0], self.pages.get("*")))
            if callable(answer):
                answer = answer(Request("GET", target, {}))
            page = answer if isinstance(answer, Page) else Page(answer) if answer is not None else Page(status=404)
            if not page.redirect:
                return look(str(page.body), url) if page.status < 400 else None
            url = urljoin(url, page.redirect)
        return None

    def _commit(self, seen: Snapshot, source: Snapshot | None) -> bool:
        placement = self.recogniser.place(seen, source=source, arrival="load")
        if placement.merge:
            self.merges.append(placement.merge)
        if placement.node_id in self.states:
            return False
        if no := self.traps.refuse_snapshot(seen, source, "load"):
            self.refused[seen.url] = f"{no.reason} {no.detail}"
            return False
        self.states[seen.id] = seen
        self.recogniser.add(seen, placement, "load")
        self.traps.add_state(seen, source, "load")
        if self.resumes:
            memory = json.loads(json.dumps([self.recogniser.to_checkpoint(), self.traps.to_checkpoint()]))
            self._renew()
            self.recogniser.load_checkpoint(memory[0])
            self.traps.load_checkpoint(memory[1])
        return True
