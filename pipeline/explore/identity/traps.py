"""Where does a site only repeat itself? Groups of pages that bring nothing new are left alone after a budget."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from index.graph.tokens import shape_of
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.difference import difference_key
from pipeline.explore.identity.gain import MIN_NEW_WORDS, MIN_NEW_WORDS_OF_DATES, Group, pack, unpack
from pipeline.explore.identity.recognise import CameBy
from pipeline.explore.identity.skeleton import Skeleton
from pipeline.explore.identity.templates import is_date, is_identifier, mask
from pipeline.explore.policy import Refusal

#: RFC 9110 asks for 8,000 at least; no page that a person is meant to find has a quarter of that.
MAX_URL_LENGTH = 2_000
#: Visits that may count links into a folder as gain before one of these links shows a new state.
MAX_PROMISES = 2
#: So often in a row the same segments are no path any more.
MAX_SEGMENT_REPEATS = 3

#: Query parameters that choose a page among many behind one path, when their value is a word.
ROUTES = frozenset({
    "page", "p", "action", "act", "do", "op", "cmd", "route", "r", "title", "mod", "module", "section", "controller",
    "option", "task", "path", "topic", "content",
})  # fmt: skip


class Traps:
    """Notices groups of states that only lead to more of themselves. Deterministic: call it in the order of commits.

    States are grouped by host and path (numbers and tokens masked, repetitions collapsed, queries left out), and states
    that an action showed without changing the URL by that URL. A visit brings a *gain* when it has words or a structure
    that its group had not shown, or a link that is worth following to a page outside of it. One that brings none but
    offers more of its group is charged; a group without credit is *exhausted*.

    Parameters
    ----------
    budget : visits without gain that a group is granted; pages named by dates, which never end, are granted half.
    key : canonical form of URLs, `Recogniser.key`.
    skeleton : counts pages without visiting them; links to those are a gain.
    """

    def __init__(self, budget: int, key: Callable[[str], str], *, skeleton: Skeleton | None = None) -> None:
        self._budget = budget
        self._key = key
        self._skeleton = skeleton
        self._groups: dict[str, Group] = {}
        self._member_of: dict[str, str] = {}
        self._in_page: set[str] = set()
        """States that an action showed without changing the URL: what is found from one of them may be a chain."""
        self._offered: set[int] = set()
        self._visited: set[int] = set()
        self._filters: set[int] = set()
        self._promises: dict[str, int] = {}

    # ---- what the explorer asks ----------------------------------------------------------------------------------

    def refuse_link(self, url: str) -> Refusal | None:
        """Why a link must not be followed. Pages that were visited are never refused: their edges cost nothing."""
        if rule := _absurd(url):
            return Refusal("trap", rule)
        url = self._key(url)
        if _crc(url) in self._visited:
            return None
        if refusal := self._refuse_group(group_of(url)):
            return refusal
        is_filter = _crc(url) in self._filters or next(self._recombined(url), "")
        return self._refuse_group(_section(url)) if is_filter else None

    def refuse_seen(self, seen: Snapshot, source: Snapshot | None, came_by: CameBy) -> Refusal | None:
        """Why a look that is no known state must not become one: its group was exhausted while it was fetched.

        States of the URL they were found on are kept; what they lead to is `refuse_state`'s matter.
        """
        if self._is_in_page(seen, source, came_by):
            return None
        return self.refuse_link(seen.url)

    def refuse_state(self, node_id: str) -> Refusal | None:
        """Why the elements of a state must not be acted on: its visit brought nothing, and its group is exhausted."""
        group = self._member_of.get(node_id)
        return self._refuse_group(group) if group is not None else None

    def _refuse_group(self, name: str) -> Refusal | None:
        group = self._groups.get(name)
        if group is None or not group.exhausted:
            return None
        return Refusal("trap", f"{name}: {group.spent} pages of {group.visits} brought nothing but more of themselves")

    # ---- what it is told -----------------------------------------------------------------------------------------

    def visited(self, seen: Snapshot, source: Snapshot | None, came_by: CameBy, *, is_repeated: bool = False) -> None:
        """Take note of a new state that was just added.

        Parameters
        ----------
        source : the state it was found from.
        is_repeated : by the action that had shown `source`, which may be done on and on.
        """
        links = dict.fromkeys(self._links(seen))
        fresh = [link for link in links if _crc(link) not in self._offered]
        if self._is_in_page(seen, source, came_by) and source is not None:
            self._visited_in_page(seen, source, fresh, is_repeated=is_repeated)
        else:
            self._visited_page(seen, source, fresh)
        self._offered.update(map(_crc, links))

    def _visited_page(self, seen: Snapshot, source: Snapshot | None, fresh: list[str]) -> None:
        url = self._key(seen.url)
        name = group_of(url)
        group = self._group(name, url)
        gain, cluster = group.shows(seen)
        group.kinds.setdefault(_kind(url), cluster)
        self._visited.add(_crc(url))
        self._promises.pop(_folder(name), None)
        fresh = [link for link in fresh if link != url]
        more = [link for link in fresh if group_of(link) == name and self._is_more(group, cluster, link)]
        is_generating = bool(more) or (source is not None and _new_handlers(seen, source))
        group.generating += is_generating
        others = [link for link in fresh if link not in more]
        recombined = {link: list(self._recombined(link)) for link in others}
        worth = self._are_worth_following(url, others, group, cluster)
        self._settle(seen.id, name, gain=gain, worth=worth, generating=is_generating or is_date(url))
        if any(recombined.values()):
            self._filters.update(_crc(shorter) for each in recombined.values() for shorter in each)
            others = [link for link in others if not recombined[link]]
            self._visited_section(seen, url, worth=self._are_worth_following(url, others, group, cluster))

    def _visited_section(self, seen: Snapshot, url: str, *, worth: bool) -> None:
        """Filters that are segments of the path, each page of which offers the others again: /red, /large, /red/large.

        Every combination has a path of its own, so that no group of one path ever sees the next.
        """
        group = self._group(_section(url), url)
        gain, _ = group.shows(seen)
        if gain:
            group.give_back()
        elif not worth:
            group.charge()

    def _recombined(self, url: str) -> Iterator[str]:
        """Offered URLs that become this one by a further segment in the middle of the path."""
        shorter = (url.replace(f"/{segment}/", "/", 1) for segment in shape_of(url).segments[1:-1] if segment)
        return (candidate for candidate in shorter if _crc(candidate) in self._offered)

    def _visited_in_page(self, seen: Snapshot, source: Snapshot, fresh: list[str], *, is_repeated: bool) -> None:
        name = f"in page {self._key(seen.url)}"
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(self._budget, self._budget)
            group.shows(source)
        gain, cluster = group.shows(seen)
        generating = is_repeated or _new_handlers(seen, source)
        group.generating += generating
        # A dialog of a page is no chain, however little it says; what is opened from within it may be.
        is_chain = source.id in self._in_page or source.id in self._member_of
        worth = self._are_worth_following(seen.url, fresh, group, cluster)
        self._settle(seen.id, name, gain=gain, worth=worth, generating=generating and is_chain)
        self._in_page.add(seen.id)

    def _settle(self, node_id: str, name: str, *, gain: bool, worth: bool, generating: bool) -> None:
        group = self._groups[name]
        if gain:
            group.give_back()
        elif not worth:
            self._member_of[node_id] = name
            if generating:
                group.charge()

    # ---- judging -------------------------------------------------------------------------------------------------

    def _is_more(self, group: Group, cluster: int, link: str) -> bool:
        """Whether a link of this page's own group leads to more of the same, not to pages of another structure."""
        return group.kinds.get(_kind(link), cluster) == cluster

    def _are_worth_following(self, url: str, links: Iterable[str], group: Group, cluster: int) -> bool:
        """Whether unseen links out of its group make a visit a gain.

        They promise new states. Where promises are not kept (links back from a log-in page, products with the filters
        in their addresses), they do not count any longer.
        """
        promising: set[str] = set()
        for link in links:
            if shape_of(link).host != shape_of(url).host or (is_date(url) and is_date(link)):
                continue
            if self._skeleton is not None and self._skeleton.stands_for(link):
                return True
            name = group_of(link)
            if name == group_of(url):
                if not self._is_more(group, cluster, link):
                    return True
            elif self._group(name, link).is_fertile and self._promises.get(_folder(name), 0) < MAX_PROMISES:
                promising.add(_folder(name))
        for folder in sorted(promising):
            self._promises[folder] = self._promises.get(folder, 0) + 1
        return bool(promising)

    def _group(self, name: str, url: str) -> Group:
        if name not in self._groups:
            budget = (self._budget + 1) // 2 if is_date(url) else self._budget
            words = MIN_NEW_WORDS_OF_DATES if is_date(url) else MIN_NEW_WORDS
            self._groups[name] = Group(budget, budget, words)
        return self._groups[name]

    def _is_in_page(self, seen: Snapshot, source: Snapshot | None, came_by: CameBy) -> bool:
        return came_by == "in_page" and source is not None and self._key(source.url) == self._key(seen.url)

    def _links(self, seen: Snapshot) -> Iterator[str]:
        for candidate in seen.candidates:
            if candidate.action.target.startswith(("http:", "https:")):
                yield self._key(candidate.action.target)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def remember(self) -> dict[str, Any]:
        """Everything that was noticed, as plain JSON."""
        return {
            "groups": {name: group.to_json() for name, group in self._groups.items()},
            "member_of": self._member_of,
            "in_page": sorted(self._in_page),
            "offered": pack(self._offered),
            "visited": pack(self._visited),
            "filters": pack(self._filters),
            "promises": self._promises,
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over what `remember` gave."""
        self._groups = {name: Group.from_json(group) for name, group in memory["groups"].items()}
        self._member_of = dict(memory["member_of"])
        self._in_page = set(memory.get("in_page", memory["member_of"]))  # until 2026-11-23 they were members all
        self._offered = set(unpack(memory["offered"]))
        self._visited = set(unpack(memory["visited"]))
        self._filters = set(unpack(memory["filters"]))
        self._promises = dict(memory["promises"])


@lru_cache(maxsize=65_536)
def group_of(url: str) -> str:
    """Which pages a URL belongs with: host and path with numbers masked and runs collapsed, and words that route.

    >>> group_of("http://x/calendar/2024/05/12?view=week")
    'http://x/calendar/#'
    >>> group_of("http://x/index.php?id=17&page=orders"), group_of("http://x/a/b/a/b")
    ('http://x/index.php?page=orders', 'http://x/a/b')
    """
    shape = shape_of(url)
    masked = [mask(segment) if is_identifier(segment) else segment for segment in shape.segments if segment]
    collapsed: list[str] = []
    for segment in masked:
        is_number = segment in {"#", "*"} or set(segment) <= set("#-_.")
        if is_number and collapsed and collapsed[-1] == "#":
            continue
        collapsed.append("#" if is_number else segment)
        # a/b/a/b -> a/b
        for length in range(1, len(collapsed) // 2 + 1):
            if collapsed[-length:] == collapsed[-2 * length : -length]:
                del collapsed[-length:]
                break
    routes = [f"{key}={value}" for key, value in shape.query if key in ROUTES and not is_identifier(value)]
    return "/".join((shape.host, *collapsed)) + ("?" + "&".join(sorted(routes)) if routes else "")


def _folder(name: str) -> str:
    """The group and its neighbours: the last segment of its path left open, when there are others before it."""
    path = name.partition("?")[0]
    return path.rpartition("/")[0] + "/*" if path.count("/") > 3 else name


def _kind(url: str) -> str:
    """A query with what numbers things masked."""
    return "&".join(f"{key}={mask(value) if is_identifier(value) else value}" for key, value in shape_of(url).query)


def _section(url: str) -> str:
    """The first segment of the path: what filters that are written as segments come after."""
    shape = shape_of(url)
    return f"{shape.host}/{shape.segments[0] if shape.segments else ''}/**"


def _absurd(url: str) -> str:
    """Why no person was meant to follow this URL; empty when one was."""
    if len(url) > MAX_URL_LENGTH:
        return f"the URL has {len(url)} characters"
    segments = [segment for segment in shape_of(url).segments if segment]
    for length in range(1, len(segments) // MAX_SEGMENT_REPEATS + 1):
        for start in range(len(segments) - MAX_SEGMENT_REPEATS * length + 1):
            piece = segments[start : start + length]
            again = segments[start : start + MAX_SEGMENT_REPEATS * length]
            if again == piece * MAX_SEGMENT_REPEATS and not all(segment.isdigit() for segment in piece):
                return f"/{'/'.join(piece)} comes {MAX_SEGMENT_REPEATS} times in a row"
    return ""


def _new_handlers(seen: Snapshot, source: Snapshot) -> bool:
    """Whether a state has elements to act on that its source lacks, and that are no links."""
    known = {difference_key(candidate, "element") for candidate in source.candidates}
    return any(
        not candidate.action.target and difference_key(candidate, "element") not in known
        for candidate in seen.candidates
    )


def _crc(text: str) -> int:
    return zlib.crc32(text.encode(errors="replace"))
