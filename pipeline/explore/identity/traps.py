"""Trap detection: groups of pages that only lead to more of themselves are skipped once their budget is spent.

Refused elements and links have the reason `trap`. `explore.trap_budget` sets how many visits without gain a group is
granted; a large budget switches trap detection off.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from waygraph.index.graph.url_tokens import url_parts
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.difference import difference_key
from waygraph.pipeline.explore.identity.features import content_key
from waygraph.pipeline.explore.identity.gain import PageGroup, pack_numbers, unpack_numbers
from waygraph.pipeline.explore.identity.recognition_rules import Arrival
from waygraph.pipeline.explore.identity.skeleton import Skeleton
from waygraph.pipeline.explore.identity.templates import is_date, is_identifier
from waygraph.pipeline.explore.identity.thresholds import (
    DATE_BUDGET_DIVISOR,
    MAX_CHOICES,
    MAX_UNTRIED_CHOICES,
    MAX_UNVERIFIED_LINKS,
    MIN_NEW_WORDS,
    MIN_NEW_WORDS_OF_DATES,
)
from waygraph.pipeline.explore.identity.url_groups import folder_of, group_of, implausible_url, query_kind, section_of
from waygraph.pipeline.explore.policies.policy import Refusal


@dataclass(frozen=True, slots=True)
class _LinkedGroups:
    """Where the new links of a page lead, besides more of its own group.

    Attributes
    ----------
    leads_to_new
        Whether a link certainly leads to new states. The links after it were not examined.
    groups
        Other groups, each with the first link into it.
    folders
        Folders of those groups that probably have new states, see `MAX_UNVERIFIED_LINKS`.
    """

    leads_to_new: bool
    groups: Mapping[str, str]
    folders: frozenset[str]

    @property
    def is_gain(self) -> bool:
        """Whether a link is worth following."""
        return self.leads_to_new or bool(self.folders)


class TrapDetector:
    """Groups of states, and the budget that each has left for visits without gain.

    States are grouped by host and path (numbers and random tokens masked, repetitions collapsed, queries left out).
    States that an action showed without changing the URL are grouped by that URL. A visit is a *gain* if it has words
    or a structure that its group had not shown, or a link worth following to a page outside the group. A visit without
    gain that offers more of its group costs budget; a group without budget is *exhausted*.

    For example, with a budget of 5, pages `/list/1`, `/list/2` ... that show the same words and lead to the next one
    only: the first is a gain, since its structure is new. The other ones cost 1 each. After `/list/6` the group
    `/list/#` is exhausted: the link to `/list/7` is refused. Had `/list/3` shown many new words, the budget would have
    been full again (a gain gives 2 back, up to 5), and the walk would have ended at `/list/8`.

    A server may ignore the rest of a path. A relative link (`b/`, or `partner.example/` without a scheme) then leads to
    the same page at `/b/`, `/b/b/`, `/b/c/b/` ... A page that shows what a page above it shows, in equal texts and
    elements, and whose links grow from its own address as those grow from the other, is no state.

    An exhausted group is still visited for *choices* that no visit of it made: words of a parameter that has few of
    them. A tool that every page links to with the page's name (`/media?page=a`, `/media?page=b`) spends the budget on
    names alone; its tabs (`&tab=upload`) are pages of their own.

    Deterministic: `add_state` must be called in the order of commits.

    Parameters
    ----------
    budget
        Visits without gain that a group is granted. Groups of pages named by dates, which never end, get half.
    url_key
        Canonical form of URLs, `Recogniser.url_key`.
    skeleton
        Counts pages without visiting them; links to such pages are a gain. None outside skeleton mode.
    """

    def __init__(self, budget: int, url_key: Callable[[str], str], *, skeleton: Skeleton | None = None) -> None:
        self._budget = budget
        self._url_key = url_key
        self._skeleton = skeleton
        self._groups: dict[str, PageGroup] = {}
        self._member_of: dict[str, str] = {}
        """By state whose visit brought nothing, its group."""
        self._in_page: set[str] = set()
        """States that an action showed without changing the URL. A state found from one of them may be part of a
        chain."""
        self._offered: set[int] = set()
        self._visited: set[int] = set()
        self._contents: dict[int, int] = {}
        """By URL of a visited page, what it shows."""
        self._filters: set[int] = set()
        self._choices: dict[int, set[int]] = {}
        """By group and parameter, the words that links offered for it; one more than `MAX_CHOICES` at most."""
        self._made: set[int] = set()
        """Choices that a visited page had in its URL."""
        self._unverified_links_by_folder: dict[str, int] = {}
        """Pages whose links into a folder counted as a gain, since a page of the folder was visited last."""

    # ---- refusals ------------------------------------------------------------------------------------------------

    def refuse_link(self, url: str) -> Refusal | None:
        """Return why a link is not followed; None if it is.

        The first rule that applies decides: an implausible URL is refused; a visited page is not, since its edge costs
        nothing; a page of an exhausted group is refused, unless it makes a choice that was not tried; a filter
        combination of an exhausted section is refused.
        """
        if rule := implausible_url(url):
            return Refusal("trap", rule)
        url = self._url_key(url)
        if _crc(url) in self._visited:
            return None
        if refusal := self._refuse_group(group_of(url)):
            return None if self._is_untried_choice(url) else refusal
        is_filter = _crc(url) in self._filters or next(self._shorter_filters(url), "")
        return self._refuse_group(section_of(url)) if is_filter else None

    def refuse_snapshot(self, snapshot: Snapshot, source: Snapshot | None, arrival: Arrival) -> Refusal | None:
        """Return why a page does not become a state: its group was exhausted while the page was loaded.

        In-page states are kept; `refuse_state` decides whether they are acted on.

        Parameters
        ----------
        snapshot
            Snapshot that is no known state.
        source
            Snapshot of the state that it was found from; None for the start page.
        arrival
            How it was reached.

        Returns
        -------
        Refusal | None
            None if it becomes a state.
        """
        if self._is_in_page(snapshot, source, arrival):
            return None
        if above := self._page_above(snapshot):
            return Refusal("trap", f"the page shows what {above} shows, and its relative links lead on and on")
        return self.refuse_link(snapshot.url)

    def _page_above(self, snapshot: Snapshot) -> str:
        """Return the address of a page above a page that shows the same, from which the same links grow; else ""."""
        parts = urlsplit(self._url_key(snapshot.url))
        content = content_key(snapshot)
        if content is None or parts.path.count("/") < 2:
            return ""
        here = _folder(snapshot.url)
        links = self._links(snapshot)
        grown = {link.removeprefix(here) for link in links if link.startswith(here) and link != here} - {""}
        path = parts.path.rstrip("/")
        while grown and path:
            path = path.rpartition("/")[0]
            for address in (f"{path}/", path):
                above = urlunsplit((*parts[:2], address, *parts[3:]))
                if self._contents.get(_crc(above)) == _crc(content) and any(
                    _crc(f"{_folder(above)}{rest}") in self._offered for rest in grown
                ):
                    return above
        return ""

    def refuse_state(self, node_id: str) -> Refusal | None:
        """Return why the elements of a state are not acted on: its visit brought nothing and its group is exhausted."""
        group = self._member_of.get(node_id)
        return self._refuse_group(group) if group is not None else None

    def _refuse_group(self, name: str) -> Refusal | None:
        group = self._groups.get(name)
        if group is None or not group.exhausted:
            return None
        return Refusal(
            "trap", f"{name}: {group.visits_without_gain} of {group.visits} pages led only to more of the same group"
        )

    # ---- learning ------------------------------------------------------------------------------------------------

    def add_state(
        self, snapshot: Snapshot, source: Snapshot | None, arrival: Arrival, *, is_repeated: bool = False
    ) -> None:
        """Count the visit of a new state.

        Parameters
        ----------
        snapshot
            Snapshot of the state.
        source
            Snapshot of the state that it was found from; None for the start page.
        arrival
            How it was reached.
        is_repeated
            Whether the action was the one that had shown `source`, which may be repeated without end.
        """
        links = dict.fromkeys(self._links(snapshot))
        self._count_choices(links)
        new_links = [link for link in links if _crc(link) not in self._offered]
        if self._is_in_page(snapshot, source, arrival) and source is not None:
            self._add_in_page_state(snapshot, source, new_links, is_repeated=is_repeated)
        else:
            self._add_page(snapshot, source, new_links)
        self._offered.update(map(_crc, links))

    def _add_page(self, snapshot: Snapshot, source: Snapshot | None, new_links: list[str]) -> None:
        url = self._url_key(snapshot.url)
        name = group_of(url)
        group = self._group(name, url)
        gain, cluster = group.add_visit(snapshot)
        group.cluster_by_query.setdefault(query_kind(url), cluster)
        group.untried_choices += group.exhausted and self._is_untried_choice(url)
        self._made.update(choice for _, choice in _choices(url))
        self._visited.add(_crc(url))
        if (content := content_key(snapshot)) is not None:
            self._contents[_crc(url)] = _crc(content)
        self._unverified_links_by_folder.pop(folder_of(name), None)
        new_links = [link for link in new_links if link != url]
        more = [link for link in new_links if group_of(link) == name and _is_more(group, cluster, link)]
        offers_more = bool(more) or (source is not None and _has_new_handlers(snapshot, source))
        group.visits_offering_more += offers_more
        others = [link for link in new_links if link not in more]
        shorter_filters = {link: list(self._shorter_filters(link)) for link in others}
        linked = self._linked_groups(url, others, group, cluster)
        self._count_links(linked)
        self._update_budget(
            snapshot.id, name, gain=gain, worth_following=linked.is_gain, offers_more=offers_more or is_date(url)
        )
        if any(shorter_filters.values()):
            self._filters.update(_crc(shorter) for each in shorter_filters.values() for shorter in each)
            others = [link for link in others if not shorter_filters[link]]
            linked = self._linked_groups(url, others, group, cluster)
            self._count_links(linked)
            self._add_to_section(snapshot, url, worth_following=linked.is_gain)

    def _add_to_section(self, snapshot: Snapshot, url: str, *, worth_following: bool) -> None:
        """Count a visit for its section, where filters are path segments: /red, /large, /red/large.

        Every combination has a path of its own, so no group of one path contains the next combination.
        """
        group = self._group(section_of(url), url)
        gain, _ = group.add_visit(snapshot)
        if gain:
            group.restore_budget()
        elif not worth_following:
            group.spend_budget()

    def _add_in_page_state(
        self, snapshot: Snapshot, source: Snapshot, new_links: list[str], *, is_repeated: bool
    ) -> None:
        name = f"in page {self._url_key(snapshot.url)}"
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = PageGroup(self._budget, self._budget)
            group.add_visit(source)
        gain, cluster = group.add_visit(snapshot)
        offers_more = is_repeated or _has_new_handlers(snapshot, source)
        group.visits_offering_more += offers_more
        # A dialog of a page is no chain, even if it has little text; a dialog opened from a dialog may be one.
        is_chain = source.id in self._in_page or source.id in self._member_of
        linked = self._linked_groups(snapshot.url, new_links, group, cluster)
        self._count_links(linked)
        self._update_budget(
            snapshot.id, name, gain=gain, worth_following=linked.is_gain, offers_more=offers_more and is_chain
        )
        self._in_page.add(snapshot.id)

    def _update_budget(self, node_id: str, name: str, *, gain: bool, worth_following: bool, offers_more: bool) -> None:
        group = self._groups[name]
        if gain:
            group.restore_budget()
        elif not worth_following:
            self._member_of[node_id] = name
            if offers_more:
                group.spend_budget()

    # ---- links ---------------------------------------------------------------------------------------------------

    def _linked_groups(self, url: str, links: Iterable[str], group: PageGroup, cluster: int) -> _LinkedGroups:
        """Return where new links of a page lead out of its group.

        Parameters
        ----------
        url
            URL of the page.
        links
            The new links.
        group
            Group of the page.
        cluster
            Index of the page's structure in its group.

        Returns
        -------
        _LinkedGroups
            Links to other hosts, and from dates to dates, are left out.
        """
        groups: dict[str, str] = {}
        folders: set[str] = set()
        for link in links:
            if url_parts(link).host != url_parts(url).host or (is_date(url) and is_date(link)):
                continue
            if self._skeleton is not None and self._skeleton.stands_for(link):
                return _LinkedGroups(True, groups, frozenset(folders))
            name = group_of(link)
            if name == group_of(url):
                if not _is_more(group, cluster, link):
                    return _LinkedGroups(True, groups, frozenset(folders))
                continue
            groups.setdefault(name, link)
            linked = self._groups.get(name) or self._new_group(groups[name])
            unverified = self._unverified_links_by_folder.get(folder_of(name), 0)
            if linked.has_mostly_content_pages and unverified < MAX_UNVERIFIED_LINKS:
                folders.add(folder_of(name))
        return _LinkedGroups(False, groups, frozenset(folders))

    def _count_links(self, linked: _LinkedGroups) -> None:
        """Add the groups that a page links to, and count the links that were a gain only if they show new states.

        Links that never do so (back from a login page, to products with the filters in their addresses) stop counting
        as a gain after `MAX_UNVERIFIED_LINKS` per folder.
        """
        for name, link in linked.groups.items():
            self._group(name, link)
        if not linked.leads_to_new:
            for folder in sorted(linked.folders):
                self._unverified_links_by_folder[folder] = self._unverified_links_by_folder.get(folder, 0) + 1

    def _count_choices(self, links: Iterable[str]) -> None:
        for link in links:
            for parameter, choice in _choices(link):
                offered = self._choices.setdefault(parameter, set())
                if len(offered) <= MAX_CHOICES:
                    offered.add(choice)

    def _is_untried_choice(self, url: str) -> bool:
        """Return whether a URL makes a choice that no visit of its exhausted group made, and may be visited for it."""
        group = self._groups.get(group_of(url))
        if group is None or group.untried_choices >= MAX_UNTRIED_CHOICES or is_date(url):
            return False
        return any(
            choice not in self._made and len(self._choices.get(parameter, ())) <= MAX_CHOICES
            for parameter, choice in _choices(url)
        )

    def _shorter_filters(self, url: str) -> Iterator[str]:
        """Yield the offered URLs that lack one middle path segment of this URL, as filter combinations do."""
        segments = url_parts(url).segments[1:-1]
        shorter = (url.replace(f"/{segment}/", "/", 1) for segment in segments if segment)
        return (candidate for candidate in shorter if _crc(candidate) in self._offered)

    def _links(self, snapshot: Snapshot) -> Iterator[str]:
        for candidate in snapshot.candidates:
            if candidate.action.target.startswith(("http:", "https:")):
                yield self._url_key(candidate.action.target)

    def _group(self, name: str, url: str) -> PageGroup:
        """Return the group with this name; if there is none yet, a new one, first seen by this URL."""
        if name not in self._groups:
            self._groups[name] = self._new_group(url)
        return self._groups[name]

    def _new_group(self, url: str) -> PageGroup:
        budget = math.ceil(self._budget / DATE_BUDGET_DIVISOR) if is_date(url) else self._budget
        return PageGroup(budget, budget, MIN_NEW_WORDS_OF_DATES if is_date(url) else MIN_NEW_WORDS)

    def _is_in_page(self, snapshot: Snapshot, source: Snapshot | None, arrival: Arrival) -> bool:
        return arrival == "in_page" and source is not None and self._url_key(source.url) == self._url_key(snapshot.url)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return groups and counted links, as plain JSON."""
        return {
            "groups": {name: group.to_json() for name, group in self._groups.items()},
            "member_of": self._member_of,
            "in_page": sorted(self._in_page),
            "offered": pack_numbers(self._offered),
            "visited": pack_numbers(self._visited),
            "contents": list(self._contents.items()),
            "filters": pack_numbers(self._filters),
            "choices": [[parameter, pack_numbers(offered)] for parameter, offered in self._choices.items()],
            "made": pack_numbers(self._made),
            "promises": self._unverified_links_by_folder,
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._groups = {name: PageGroup.from_json(group) for name, group in checkpoint["groups"].items()}
        self._member_of = dict(checkpoint["member_of"])
        # Checkpoints written before 2026-11-23 lack "in_page": all in-page states were in "member_of".
        self._in_page = set(checkpoint.get("in_page", checkpoint["member_of"]))
        self._offered = set(unpack_numbers(checkpoint["offered"]))
        self._visited = set(unpack_numbers(checkpoint["visited"]))
        self._contents = dict(checkpoint["contents"])
        self._filters = set(unpack_numbers(checkpoint["filters"]))
        # Checkpoints written before 2026-11-25 lack choices.
        self._choices = {
            parameter: set(unpack_numbers(offered)) for parameter, offered in checkpoint.get("choices", ())
        }
        self._made = set(unpack_numbers(checkpoint.get("made", "")))
        self._unverified_links_by_folder = dict(checkpoint["promises"])


def _is_more(group: PageGroup, cluster: int, link: str) -> bool:
    """Return whether a link into a page's own group leads to more of the same, not to pages of another structure."""
    return group.cluster_by_query.get(query_kind(link), cluster) == cluster


def _choices(url: str) -> Iterator[tuple[int, int]]:
    """Yield group and parameter, and group, parameter and value, of each value in a query that is a word."""
    group = group_of(url)
    for key, value in url_parts(url).query:
        if value and not is_identifier(value):
            yield _crc(f"{group} {key}"), _crc(f"{group} {key}={value}")


def _has_new_handlers(snapshot: Snapshot, source: Snapshot) -> bool:
    """Return whether a state has elements to act on, other than links, that its source lacks."""
    known = {difference_key(candidate, "element") for candidate in source.candidates}
    return any(
        not candidate.action.target and difference_key(candidate, "element") not in known
        for candidate in snapshot.candidates
    )


def _folder(url: str) -> str:
    """Return the address that the relative links of a page begin with."""
    return url.partition("?")[0].partition("#")[0].rpartition("/")[0] + "/"


def _crc(text: str) -> int:
    return zlib.crc32(text.encode(errors="replace"))
