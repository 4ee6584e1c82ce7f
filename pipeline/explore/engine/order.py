"""Orders of exploration: which known elements form the next round of work.

A round is planned from committed results only, so it depends neither on the number of workers nor on timing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from waygraph.index.graph import PASSIVE_KINDS
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.engine.novelty import ItemKind, NoveltyModel, ShownContent, crc, page_key
from waygraph.pipeline.explore.identity.gain import pack_numbers, unpack_numbers
from waygraph.pipeline.explore.identity.parameters import positioned_links

#: Items of a round in the order of novelty. Fewer follow what was learned sooner; more keep more workers busy.
MIN_ROUND, MAX_ROUND = 24, 1_024
#: Number of states for each item of a round, so that the number of rounds grows with the logarithm of the map.
_STATES_PER_ITEM = 8


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An element that is known and was not acted on.

    Attributes
    ----------
    state
        Place of its state in the order of discovery.
    element
        Place of the element among the candidates of the state's snapshot.
    candidate
        Element and action.
    kind
        Kinds that it belongs to.
    """

    state: int
    element: int
    candidate: Candidate
    kind: ItemKind


class ExplorationOrder(Protocol):
    """An order of exploration."""

    @property
    def pending(self) -> int:
        """Number of items that were added and not taken."""

    def begin(self, start: Snapshot, /) -> None:
        """Note the start page."""

    def add(self, item: PendingItem) -> None:
        """Add an element."""

    def take(self, states: int, room: int, /) -> list[PendingItem]:
        """Return the items of the next round, by state and element; empty if none are pending.

        Parameters
        ----------
        states
            Number of states found so far.
        room
            Number of states until the limit.

        Returns
        -------
        list of PendingItem
            Each item is taken once.
        """

    def learn(self, kind: ItemKind, found: Snapshot | None, /) -> float:
        """Learn from the result of an item, and return its gain. `found` is the new state that it led to, if any."""

    def expected_gain(
        self, count: int, planned: Iterable[PendingItem] = (), found: Iterable[PendingItem] = (), /
    ) -> float:
        """Return the expected gain of that many further items together; 0 if the order does not predict it.

        Parameters
        ----------
        count
            Number of items.
        planned
            Items that were taken and not performed. They count as pending.
        found
            Items that were not added yet. They count as pending.

        Returns
        -------
        float
            About the number of pages of new kinds.
        """

    def to_checkpoint(self) -> dict[str, Any]:
        """Return what was learned, as plain JSON."""

    def load_checkpoint(self, checkpoint: Mapping[str, Any], pending: Iterable[PendingItem], /) -> None:
        """Restore what `to_checkpoint` returned, with the pending items."""


class BreadthOrder:
    """Breadth first: a round is one level, all elements of the states at one depth (WebNavigator, Alg. 1)."""

    def __init__(self) -> None:
        self._items: list[PendingItem] = []

    @property
    def pending(self) -> int:
        """See `ExplorationOrder`."""
        return len(self._items)

    def begin(self, _start: Snapshot) -> None:
        """See `ExplorationOrder`."""

    def add(self, item: PendingItem) -> None:
        """See `ExplorationOrder`."""
        self._items.append(item)

    def take(self, _states: int, _room: int) -> list[PendingItem]:
        """See `ExplorationOrder`."""
        taken, self._items = self._items, []
        return taken

    def learn(self, _kind: ItemKind, _found: Snapshot | None) -> float:
        """See `ExplorationOrder`."""
        return 0.0

    def expected_gain(
        self, _count: int, _planned: Iterable[PendingItem] = (), _found: Iterable[PendingItem] = ()
    ) -> float:
        """See `ExplorationOrder`."""
        return 0.0

    def to_checkpoint(self) -> dict[str, Any]:
        """See `ExplorationOrder`."""
        return {}

    def load_checkpoint(self, _checkpoint: Mapping[str, Any], pending: Iterable[PendingItem]) -> None:
        """See `ExplorationOrder`."""
        self._items = list(pending)


class NoveltyOrder:
    """Items with the highest expected gain first, see `novelty.py`. Links to known pages come last.

    Parameters
    ----------
    url_key
        Returns the URL by which two links lead to one page.
    wanted
        URLs of pages to visit before all others.
    """

    def __init__(self, url_key: Callable[[str], str], wanted: Iterable[str] = ()) -> None:
        self._url_key = url_key
        self._wanted_targets = {crc(url_key(url)) for url in wanted}
        self._wanted: deque[PendingItem] = deque()
        self._model = NoveltyModel()
        self._shown = ShownContent()
        self._groups: dict[ItemKind, deque[PendingItem]] = {}
        self._known_targets: list[PendingItem] = []
        """Links to pages that were loaded or are planned: they add an edge and no state."""
        self._targets: set[int] = set()
        """Pages that were loaded or are planned."""
        self._offered: set[int] = set()
        """Pages that items lead to. Those of items that were taken may be missing."""
        self._pending = 0

    @property
    def pending(self) -> int:
        """See `ExplorationOrder`."""
        return self._pending

    def add(self, item: PendingItem) -> None:
        """See `ExplorationOrder`."""
        target = self._target(item)
        if target is not None:
            self._offered.add(target)
        if self._wanted_targets and target in self._wanted_targets:
            self._wanted.append(item)
        elif target in self._targets:
            self._known_targets.append(item)
        else:
            self._groups.setdefault(item.kind, deque()).append(item)
        self._pending += 1

    def begin(self, start: Snapshot) -> None:
        """See `ExplorationOrder`."""
        self._shown.add(start)
        self._model.entities.learn(start.url, _links(start))
        self._targets.add(crc(self._url_key(start.url)))

    def take(self, states: int, room: int) -> list[PendingItem]:
        """See `ExplorationOrder`."""
        size = min(max(MIN_ROUND, states // _STATES_PER_ITEM), MAX_ROUND, max(room, _STATES_PER_ITEM))
        # Wanted pages have rounds of their own: a limit cuts a round in the order of its elements.
        taken = self._take_wanted(size) or self._take_novel(size)
        if self._pending <= room:
            self._take_along(taken)
        self._pending -= len(taken)
        return sorted(taken, key=lambda item: (item.state, item.element))

    def _take_wanted(self, size: int) -> list[PendingItem]:
        taken: list[PendingItem] = []
        while self._wanted and len(taken) < size:
            self._take(self._wanted.popleft(), taken)
        return taken

    def _take_novel(self, size: int) -> list[PendingItem]:
        planned: Counter[int] = Counter()
        taken: list[PendingItem] = []
        promising = self._model.most_promising(self._groups, planned, _rank)
        while len(taken) < size and (found := next(promising, None)):
            kind, item, _ = found
            if self._take(item, taken):
                planned.update(kind.keys)
        if len(taken) < size:
            # Rounds are small so that one learns from another. Links to known pages teach nothing.
            self._take_known(size if taken else MAX_ROUND, taken)
        return taken

    def _take_known(self, size: int, taken: list[PendingItem]) -> None:
        """Fill a round with links to known pages, and add all of those of the states that it visits anyway.

        They are taken state by state, because a state must be reached again in each round that acts on it.
        """
        visited = {item.state for item in taken}
        self._known_targets.sort(key=lambda item: (item.state not in visited, *_rank(item)))
        at_visited = sum(item.state in visited for item in self._known_targets)
        count = max(size - len(taken), min(at_visited, MAX_ROUND - len(taken)))
        taken += self._known_targets[:count]
        del self._known_targets[:count]

    def _take_along(self, taken: list[PendingItem]) -> None:
        """Add what else can be done on the pages of a round without following a link: they are loaded for it anyway.

        Only where the limit of states leaves room for all that is pending: what is promising goes first elsewhere.
        """
        visited = {item.state for item in taken}
        for kind, items in list(self._groups.items()):
            along = [item for item in items if item.state in visited and self._target(item) is None]
            taken += along
            if len(along) == len(items):
                del self._groups[kind]
            elif along:
                self._groups[kind] = deque(item for item in items if item not in along)

    def _take(self, item: PendingItem, taken: list[PendingItem]) -> bool:
        """Add an item to the round. Return False if it only links to a page that was loaded or is planned."""
        target = self._target(item)
        if target is not None and target in self._targets:
            self._known_targets.append(item)
            return False
        taken.append(item)
        if target is not None:
            self._targets.add(target)
        return True

    def learn(self, kind: ItemKind, found: Snapshot | None) -> float:
        """See `ExplorationOrder`."""
        if found is None:
            self._model.learn(kind, 0.0)
            return 0.0
        gain = self._shown.add(found)
        is_variant = kind.page == page_key(found.url) and not self._offers_new_pages(found)
        self._model.learn(kind, gain, is_variant=is_variant)
        self._model.entities.learn(found.url, _links(found))
        self._targets.add(crc(self._url_key(found.url)))
        return gain

    def _offers_new_pages(self, found: Snapshot) -> bool:
        keys = (crc(self._url_key(link)) for link in _links(found))
        return any(key not in self._targets and key not in self._offered for key in keys)

    def expected_gain(
        self, count: int, planned: Iterable[PendingItem] = (), found: Iterable[PendingItem] = ()
    ) -> float:
        """See `ExplorationOrder`. Links to known pages, and further links to one page, are expected to gain nothing."""
        planned = list(planned)
        known = self._targets - {self._target(item) for item in planned}
        chosen: Counter[int] = Counter()
        groups = {kind: deque(items) for kind, items in self._groups.items()}
        for item in (*planned, *found):
            groups.setdefault(item.kind, deque()).append(item)
        total, left = 0.0, count
        promising = self._model.most_promising(groups, chosen, _rank)
        while left > 0 and (next_item := next(promising, None)):
            kind, item, gain = next_item
            if (target := self._target(item)) is not None:
                if target in known:
                    continue
                known.add(target)
            total += gain
            chosen.update(kind.keys)
            left -= 1
        return round(total, 2)

    def _target(self, item: PendingItem) -> int | None:
        """Return what identifies the page that an item leads to; None if it follows no link."""
        action = item.candidate.action
        if action.kind in PASSIVE_KINDS or not action.target.startswith(("http:", "https:")):
            return None
        return crc(self._url_key(action.target))

    def to_checkpoint(self) -> dict[str, Any]:
        """See `ExplorationOrder`."""
        return {
            "model": self._model.to_checkpoint(),
            "shown": self._shown.to_checkpoint(),
            "targets": pack_numbers(self._targets),
            "offered": pack_numbers(self._offered),
            "known_targets": [[item.state, item.element] for item in self._known_targets],
            "wanted": sorted(self._wanted_targets),
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any], pending: Iterable[PendingItem]) -> None:
        """See `ExplorationOrder`."""
        self._model.load_checkpoint(checkpoint["model"])
        self._shown = ShownContent.from_checkpoint(checkpoint["shown"])
        self._targets = set(unpack_numbers(checkpoint["targets"]))
        # Reports that arrived since the interrupted run began do not change its order.
        self._wanted_targets = set(checkpoint["wanted"])
        places = {(state, element): place for place, (state, element) in enumerate(checkpoint["known_targets"])}
        known: dict[int, PendingItem] = {}
        for item in pending:
            if (place := places.get((item.state, item.element))) is None:
                self.add(item)
            else:
                known[place] = item
                self._pending += 1
        self._known_targets += [known[place] for place in sorted(known)]
        # Keys of links may have changed since their items were added.
        self._offered = set(unpack_numbers(checkpoint["offered"]))


def _links(seen: Snapshot) -> list[str]:
    return [candidate.action.target for _, candidate in positioned_links(seen)]


def _rank(item: PendingItem) -> tuple[int, int]:
    return item.state, item.element
