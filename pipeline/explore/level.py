"""In which order is one level's work done, and in which is it taken into the graph?

Workers take items in whatever order keeps them close to where their browser already is; outcomes are committed in the
canonical order of the items. So what the graph becomes, and where a cap cuts it off, does not depend on how many
workers there are or how fast they were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.worker import Outcome


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work: act on `candidate` of `state`. `index` is its place in the canonical order of its level."""

    index: int
    state: Snapshot
    candidate: Candidate


class Level:
    """The work of one level.

    Parameters
    ----------
    items : in canonical order.
    commit : takes an item's outcome into the graph; returns False to end the level there, at a cap.
    """

    def __init__(self, items: Sequence[Item], commit: Callable[[Item, Outcome], bool]) -> None:
        self._items = items
        self._commit = commit
        self._groups: dict[str, deque[Item]] = {}
        for item in items:
            self._groups.setdefault(item.state.id, deque()).append(item)
        self._owned: set[str] = set()
        self._outcomes: dict[int, Outcome] = {}
        self._next = 0
        self._closed = False

    @property
    def pending(self) -> int:
        """Items that were not committed yet."""
        return 0 if self._closed else len(self._items) - self._next

    def take(self, near: str | None) -> Item | None:
        """The next item for a worker whose last item was of state `near`; nothing when all are taken."""
        if self._closed or not self._groups:
            return None
        if near in self._groups:
            group = near
        else:
            free = (state for state in self._groups if state not in self._owned)
            group = next(free, None) or max(self._groups, key=lambda state: len(self._groups[state]))
            self._owned.add(group)
        item = self._groups[group].popleft()
        if not self._groups[group]:
            del self._groups[group]
        return item

    def done(self, item: Item, outcome: Outcome) -> None:
        """Hand in an outcome. It is committed as soon as those of all earlier items are."""
        self._outcomes[item.index] = outcome
        while not self._closed and self._next in self._outcomes:
            self._closed = not self._commit(self._items[self._next], self._outcomes.pop(self._next))
            self._next += 1

    def stop(self) -> None:
        """End the level early (wall time, interrupt): commit what is done, gaps or not, and give out nothing more."""
        for index in sorted(self._outcomes):
            if not self._closed:
                self._closed = not self._commit(self._items[index], self._outcomes.pop(index))
        self._closed = True
