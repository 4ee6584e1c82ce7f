"""Skeleton mode: one representative for pages that are alike except for their content (WebNavigator, section 4.2).

Links to further pages of a kind are skipped with the reason `skeleton`. Switch it on with `--mode skeleton`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.index.graph import Merge
from waygraph.index.graph.url_tokens import url_parts
from waygraph.pipeline.browser.page.features import short_hash
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.parameters import positioned_links
from waygraph.pipeline.explore.identity.templates import is_identifier, mask_identifier, url_difference
from waygraph.pipeline.explore.identity.thresholds import (
    COMMON_SHARE,
    CONTAINED_SHARE,
    MAX_REPRESENTATIVES,
    MIN_AGREEING_PAGES,
)
from waygraph.pipeline.explore.policies.policy import Refusal

_INDEX = re.compile(r"\[\d+\]")


class Skeleton:
    """Representatives of functionally equivalent pages: URLs of one template, similar structure.

    What varies in a template is learned from the site. Numbers, dates and random tokens vary by their nature. A word
    (the slug of an article) varies if both URLs were first offered in the same list of the same page, and the
    representative does not offer that list itself: a navigation bar is on every page it leads to.

    Parameters
    ----------
    url_policy
        Which parts of a URL name a page.
    snapshot_of
        Returns the recorded snapshot of a known state, by id.
    """

    def __init__(self, url_policy: UrlPolicy, snapshot_of: Callable[[str], Snapshot]) -> None:
        self._url_policy = url_policy
        self._snapshot_of = snapshot_of
        self._urls: dict[str, str] = {}
        self._by_template: dict[str, list[str]] = {}
        self._visited: dict[str, set[str]] = {}
        self._unvisited: dict[str, set[str]] = {}
        self._agreed: dict[str, dict[str, int]] = {}
        self._offered: dict[str, str] = {}
        self._stands_for: dict[str, str] = {}
        self._shown: set[str] = set()
        """Pages that were visited before a link to them was refused."""

    def place(self, snapshot: Snapshot, source: Snapshot | None) -> Merge | None:
        """Return a merge with the representative of a page, if there is one.

        The next page of a list is kept as long as it lists something new: otherwise the items that it lists would be
        missing from the counts.

        Parameters
        ----------
        snapshot
            Snapshot of the page.
        source
            Snapshot of the state that it was found from.

        Returns
        -------
        Merge | None
            None if the page is of no known kind.
        """
        if source is not None and self._is_equivalent_url(source.id, snapshot.url) and self._lists_more(snapshot):
            return None
        for template in _templates(snapshot.url):
            for kept in self._by_template.get(template, ()):
                if self._is_equivalent_url(kept, snapshot.url) and _is_similar(self._snapshot_of(kept), snapshot):
                    self._mark_shown(snapshot.url)
                    self._count_visited(kept, template, snapshot.url)
                    return Merge(kept, snapshot.id, "equivalent", snapshot.url)
        return None

    def add(self, snapshot: Snapshot) -> None:
        """Add a new state, which may become a representative, and the lists that it offers."""
        self._mark_shown(snapshot.url)
        self._urls[snapshot.id] = snapshot.url
        for template in _templates(snapshot.url):
            representatives = self._by_template.setdefault(template, [])
            if len(representatives) < MAX_REPRESENTATIVES:
                representatives.append(snapshot.id)
        for _, candidate in positioned_links(snapshot):
            action = candidate.action
            offer = f"{snapshot.id[:12]}{_list_position(action.xpath)}"
            self._offered.setdefault(short_hash(self._normalize(action.target)), offer)

    def refuse_link(self, url: str) -> Refusal | None:
        """Return why a link is not followed: enough pages like its target were visited, and all agreed."""
        kept = self.stands_for(url)
        return Refusal("skeleton", kept) if kept is not None else None

    def count_unvisited(self, url: str) -> None:
        """Count the page of a link that is not followed. Must be called in the order of commits."""
        if (kept := self.stands_for(url)) is not None:
            self._unvisited.setdefault(kept, set()).add(short_hash(self._normalize(url)))

    def stands_for(self, url: str) -> str | None:
        """Return the representative of a page that need not be visited; None if it must be."""
        url = self._normalize(url)
        if short_hash(url) in self._shown:
            return None
        for template in _templates(url):
            kept = self._stands_for.get(template)
            if kept is not None and self._is_equivalent_url(kept, url):
                return kept
        return None

    def counts(self) -> dict[str, int]:
        """Return how many pages each representative stands for, itself included. Other states are left out."""
        stands_for = {}
        for node_id in self._urls:
            visited = self._visited.get(node_id, set())
            if members := visited | self._unvisited.get(node_id, set()):
                stands_for[node_id] = 1 + len(members)
        return stands_for

    def _mark_shown(self, url: str) -> None:
        """Keep links to a visited page as edges, unless a link to it was already refused.

        Workers look up refusals at different times and must all get the same result.
        """
        if self.stands_for(url) is None:
            self._shown.add(short_hash(url))

    def _count_visited(self, kept: str, template: str, url: str) -> None:
        members = self._visited.setdefault(kept, set())
        if short_hash(url) in members:
            return
        members.add(short_hash(url))
        votes = self._agreed.setdefault(template, {})
        votes[kept] = votes.get(kept, 0) + 1
        others = {self._urls[other] for other in self._by_template[template]} - {self._urls[kept]}
        if 1 + votes[kept] >= MIN_AGREEING_PAGES + len(others):
            # Never revoked: a link that was refused once must stay refused.
            self._stands_for.setdefault(template, kept)

    def _normalize(self, url: str) -> str:
        return normalize_url(url, self._url_policy)

    def _is_equivalent_url(self, kept: str, url: str) -> bool:
        differing = url_difference(self._urls[kept], url)
        if differing is None or not differing.values:
            return False
        words = [pair for pair in differing.values if not (is_identifier(pair[0]) and is_identifier(pair[1]))]
        if not words:
            return True
        return len(words) == 1 and self._is_listed_with(kept, url)

    def _lists_more(self, snapshot: Snapshot) -> bool:
        """Return whether a page links to a page of another kind that no state offered before."""
        own = set(_templates(snapshot.url))
        links = {self._normalize(candidate.action.target) for _, candidate in positioned_links(snapshot)}
        return any(short_hash(link) not in self._offered and not own & set(_templates(link)) for link in links)

    def _is_listed_with(self, kept: str, url: str) -> bool:
        """Return whether a page was first offered in the same list as the representative, which lacks that list."""
        offer = self._offered.get(short_hash(url))
        if offer is None or offer != self._offered.get(short_hash(self._urls[kept])):
            return False
        own = (c.action for _, c in positioned_links(self._snapshot_of(kept)))
        return not any(self._normalize(a.target) == url and offer.endswith(_list_position(a.xpath)) for a in own)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return representatives and counts, as plain JSON."""
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

    def load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._urls = dict(checkpoint["urls"])
        self._stands_for = dict(checkpoint["stands_for"])
        self._by_template = {template: list(ids) for template, ids in checkpoint["by_template"].items()}
        self._visited = {kept: set(urls) for kept, urls in checkpoint["visited"].items()}
        self._unvisited = {kept: set(urls) for kept, urls in checkpoint["unvisited"].items()}
        self._agreed = {template: dict(votes) for template, votes in checkpoint["agreed"].items()}
        self._offered = dict(checkpoint["offered"])
        self._shown = set(checkpoint["shown"])


def _templates(url: str) -> Iterator[str]:
    """Yield the URL with its identifiers masked, then the same with one more word left open each time."""
    parts = url_parts(url)
    segments = [mask_identifier(s) if is_identifier(s) else s for s in parts.segments]
    query = [(key, mask_identifier(value) if is_identifier(value) else value) for key, value in parts.query]
    yield repr((parts.host, segments, query))
    for index, segment in enumerate(segments):
        if segment and segment == parts.segments[index] and segment != "#":
            yield repr((parts.host, [*segments[:index], "*", *segments[index + 1 :]], query))
    for index, (key, value) in enumerate(query):
        if value and value == parts.query[index][1]:
            yield repr((parts.host, segments, [*query[:index], (key, "*"), *query[index + 1 :]]))


def _list_position(xpath: str) -> str:
    """Return a hash of an element's path (12 characters) that is the same for all items of a list."""
    return short_hash(_INDEX.sub("", xpath))


def _is_similar(first: Snapshot, second: Snapshot) -> bool:
    a, b = set(first.structure), set(second.structure)
    common = len(a & b)
    return common >= CONTAINED_SHARE * min(len(a), len(b)) and common >= COMMON_SHARE * len(a | b)
