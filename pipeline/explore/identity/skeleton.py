"""Which pages are alike but for their content? One representative stands for them all (WebNavigator 4.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from index.graph import Merge, UrlPolicy, normalize_url
from index.graph.tokens import shape_of
from pipeline.browser.features import short_hash
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.identity.parameters import link_places
from pipeline.explore.identity.templates import difference, is_identifier, mask
from pipeline.explore.policy import Refusal

#: Members of a group that were visited and agreed before the others are taken for the same without a visit.
AGREED = 3
#: Representatives compared per template.
MAX_REPRESENTATIVES = 8
#: Of the smaller page's elements, how many the larger one has; and of all elements of both, how many both have.
CONTAINED, COMMON = 0.8, 0.4

_INDEX = re.compile(r"\[\d+\]")


class Skeleton:
    """Collapses functionally equivalent pages: URLs of one template, similar structure.

    What varies in a template is learned from the site. Numbers, dates and tokens vary by their nature. A *word* (the
    slug of an article) varies when both URLs were first offered side by side in one list of one page, and the page
    that stands for them does not offer that list itself: a navigation bar is on every page it leads to.

    Parameters
    ----------
    url_policy : which parts of a URL name a page.
    look : the canonical look of a known state, by id.
    """

    def __init__(self, url_policy: UrlPolicy, look: Callable[[str], Snapshot]) -> None:
        self._url_policy = url_policy
        self._look = look
        self._urls: dict[str, str] = {}
        self._by_template: dict[str, list[str]] = {}
        self._visited: dict[str, set[str]] = {}
        self._unvisited: dict[str, set[str]] = {}
        self._agreed: dict[str, dict[str, int]] = {}
        self._offered: dict[str, str] = {}
        self._stands_for: dict[str, str] = {}
        self._shown: set[str] = set()
        """Pages that were visited before anything refused them."""

    def place(self, seen: Snapshot, source: Snapshot | None) -> Merge | None:
        """The state that already stands for pages like `seen`, which was found from `source`.

        The next page of a list is kept as long as it lists what was not listed before: else what it lists would be
        missing from the counts.
        """
        if source is not None and self._is_equivalent_url(source.id, seen.url) and self._lists_more(seen):
            return None
        for template in _templates(seen.url):
            for kept in self._by_template.get(template, ()):
                if self._is_equivalent_url(kept, seen.url) and _is_similar(self._look(kept), seen):
                    self._show(seen.url)
                    self._count(kept, template, seen.url)
                    return Merge(kept, seen.id, "equivalent", seen.url)
        return None

    def _show(self, url: str) -> None:
        """Links to visited pages stay edges; but a page that was refused once and shown in another way stays refused.

        Workers ask at different times, and must all be told the same.
        """
        if self.stands_for(url) is None:
            self._shown.add(short_hash(url))

    def _count(self, kept: str, template: str, url: str) -> None:
        members = self._visited.setdefault(kept, set())
        if short_hash(url) in members:
            return
        members.add(short_hash(url))
        votes = self._agreed.setdefault(template, {})
        votes[kept] = votes.get(kept, 0) + 1
        others = {self._urls[other] for other in self._by_template[template]} - {self._urls[kept]}
        if 1 + votes[kept] >= AGREED + len(others):
            # Never taken back: what was refused once is refused whenever it is asked again.
            self._stands_for.setdefault(template, kept)

    def add(self, seen: Snapshot) -> None:
        """Take a new state, which may come to stand for others, and the lists that it offers."""
        self._show(seen.url)
        self._urls[seen.id] = seen.url
        for template in _templates(seen.url):
            representatives = self._by_template.setdefault(template, [])
            if len(representatives) < MAX_REPRESENTATIVES:
                representatives.append(seen.id)
        for _, candidate in link_places(seen):
            action = candidate.action
            offer = f"{seen.id[:12]}{_list_place(action.xpath)}"
            self._offered.setdefault(short_hash(self._url(action.target)), offer)

    def refuse_link(self, url: str) -> Refusal | None:
        """Why a link need not be followed: enough pages like its target were visited, and all were alike."""
        kept = self.stands_for(url)
        return Refusal("skeleton", kept) if kept is not None else None

    def leave(self, url: str) -> None:
        """Count the page of a link that is not followed. Like all that changes something, in the order of commits."""
        if (kept := self.stands_for(url)) is not None:
            self._unvisited.setdefault(kept, set()).add(short_hash(self._url(url)))

    def stands_for(self, url: str) -> str | None:
        """The state that stands for a page that was not visited, and need not be."""
        url = self._url(url)
        if short_hash(url) in self._shown:
            return None
        for template in _templates(url):
            kept = self._stands_for.get(template)
            if kept is not None and self._is_equivalent_url(kept, url):
                return kept
        return None

    def counts(self) -> dict[str, int]:
        """How many pages each state stands for, itself included; states that stand for themselves are left out."""
        stands_for = {}
        for node_id in self._urls:
            visited = self._visited.get(node_id, set())
            if members := visited | self._unvisited.get(node_id, set()):
                stands_for[node_id] = 1 + len(members)
        return stands_for

    def _url(self, url: str) -> str:
        return normalize_url(url, self._url_policy)

    def _is_equivalent_url(self, kept: str, url: str) -> bool:
        where = difference(self._urls[kept], url)
        if where is None or not where.values:
            return False
        words = [pair for pair in where.values if not (is_identifier(pair[0]) and is_identifier(pair[1]))]
        if not words:
            return True
        return len(words) == 1 and self._is_listed_with(kept, url)

    def _lists_more(self, seen: Snapshot) -> bool:
        own = set(_templates(seen.url))
        links = {self._url(candidate.action.target) for _, candidate in link_places(seen)}
        return any(short_hash(link) not in self._offered and not own & set(_templates(link)) for link in links)

    def _is_listed_with(self, kept: str, url: str) -> bool:
        offer = self._offered.get(short_hash(url))
        if offer is None or offer != self._offered.get(short_hash(self._urls[kept])):
            return False
        own = (c.action for _, c in link_places(self._look(kept)))
        return not any(self._url(a.target) == url and offer.endswith(_list_place(a.xpath)) for a in own)

    def remember(self) -> dict[str, Any]:
        """What was counted, as plain JSON."""
        return {
            "urls": self._urls,
            "stands_for": self._stands_for,
            "by_template": self._by_template,
            "visited": {kept: sorted(urls) for kept, urls in self._visited.items()},
            "unvisited": {kept: sorted(urls) for kept, urls in self._unvisited.items()},
            "agreed": self._agreed,
            "offered": self._offered,
            "shown": sorted(self._shown),
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over what `remember` gave."""
        self._urls = dict(memory["urls"])
        self._stands_for = dict(memory["stands_for"])
        self._by_template = {template: list(ids) for template, ids in memory["by_template"].items()}
        self._visited = {kept: set(urls) for kept, urls in memory["visited"].items()}
        self._unvisited = {kept: set(urls) for kept, urls in memory["unvisited"].items()}
        self._agreed = {template: dict(votes) for template, votes in memory["agreed"].items()}
        self._offered = dict(memory["offered"])
        self._shown = set(memory["shown"])


def _templates(url: str) -> Iterator[str]:
    """The URL with what numbers things masked, then the same with one word more left open each time."""
    shape = shape_of(url)
    segments = [mask(s) if is_identifier(s) else s for s in shape.segments]
    query = [(key, mask(value) if is_identifier(value) else value) for key, value in shape.query]
    yield repr((shape.host, segments, query))
    for index, segment in enumerate(segments):
        if segment and segment == shape.segments[index] and segment != "#":
            yield repr((shape.host, [*segments[:index], "*", *segments[index + 1 :]], query))
    for index, (key, value) in enumerate(query):
        if value and value == shape.query[index][1]:
            yield repr((shape.host, segments, [*query[:index], (key, "*"), *query[index + 1 :]]))


def _list_place(xpath: str) -> str:
    """Where an element stands (12 characters), the same for all items of a list."""
    return short_hash(_INDEX.sub("", xpath))


def _is_similar(first: Snapshot, second: Snapshot) -> bool:
    a, b = set(first.structure), set(second.structure)
    common = len(a & b)
    return common >= CONTAINED * min(len(a), len(b)) and common >= COMMON * len(a | b)
