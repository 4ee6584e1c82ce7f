"""In which order is one level's work done, and in which is it taken into the graph?

Workers take chunks: a few items of one state, in canonical order, done one after the other on one page. Outcomes are
committed in the canonical order of the items. So what the graph becomes, and where a cap cuts it off, does not depend
on how many workers there are or how fast they were; nor does what a page's scripts remember of earlier items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipeline.browser.snapshot import Candidate
from pipeline.explore.worker import Outcome

#: Items of one state that are done on one page before it is loaded anew. More would save loads, and leave cores idle at
#: the end of a level.
CHUNK = 12


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work: act on `candidate` of a state. `index` is its place in the canonical order of its level."""

    index: int
    state_id: str
    candidate: Candidate


class Level:
    """The work of one level.

    Parameters
    ----------
    items : in canonical order.
    commit : takes an item's outcome into the graph; returns False to end the level there, at a cap.
    committed : so many items are part of the graph already.
    done : further items whose outcomes an earlier run left behind; they are handed in, and not given out.
    closed : it was ended at a cap already.
    """

    def __init__(
        self,
        items: Sequence[Item],
        commit: Callable[[Item, Outcome], bool],
        *,
        committed: int = 0,
        done: Collection[int] = (),
        closed: bool = False,
    ) -> None:
        self._items = items
        self._commit = commit
        self._chunks: deque[tuple[Item, ...]] = deque()
        for _, group in groupby(items, key=lambda item: item.state_id):
            of_state = tuple(group)
            for first in range(0, len(of_state), CHUNK):
                if chunk := tuple(
                    item
                    for item in of_state[first : first + CHUNK]
                    if item.index >= committed and item.index not in done
                ):
                    self._chunks.append(chunk)
        self._outcomes: dict[int, Outcome] = {}
        self.committed = committed
        self.closed = closed

    @property
    def pending(self) -> int:
        """Items that were not committed yet."""
        return 0 if self.closed else len(self._items) - self.committed

    def take(self) -> tuple[Item, ...]:
        """The next chunk for a worker; nothing when all are taken."""
        return self._chunks.popleft() if self._chunks and not self.closed else ()

    def done(self, item: Item, outcome: Outcome) -> None:
        """Hand in an outcome. It is committed as soon as those of all earlier items are."""
        self._outcomes[item.index] = outcome
        while not self.closed and self.committed in self._outcomes:
            self.closed = not self._commit(self._items[self.committed], self._outcomes.pop(self.committed))
            self.committed += not self.closed

    def stop(self) -> None:
        """End the level early (wall time, interrupt): commit what is done, gaps or not, and give out nothing more."""
        for index in sorted(self._outcomes):
            if not self.closed:
                self.closed = not self._commit(self._items[index], self._outcomes.pop(index))
        self.closed = True
