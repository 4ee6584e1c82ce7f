"""The work of one round: chunks for workers, and commits in canonical order.

Workers take chunks: a few items of one state, performed in order on one page. Outcomes are committed in the canonical
order of the items. The graph and the place where a cap ends it therefore depend neither on the number nor on the speed
of workers, nor does the state that a page's scripts keep between items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.records.outcome import ActionOutcome

#: Number of items of one state that are performed on one page before it is loaded again. More items save loads and
#: leave cores idle at the end of a round.
CHUNK = 12


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One piece of work: act on `candidate` of a state. `index` is its place in the canonical order of its round."""

    index: int
    state_id: str
    candidate: Candidate


class Round:
    """The work of one round.

    Parameters
    ----------
    items
        All items in canonical order.
    commit
        Commits an outcome to the graph. Returns False if a cap ends the round there.
    committed
        Number of items that are committed already.
    done
        Indices of further items whose outcomes an earlier run left. They are handed in and not given to workers.
    closed
        Whether a cap ended the round already.
    """

    def __init__(
        self,
        items: Sequence[WorkItem],
        commit: Callable[[WorkItem, ActionOutcome], bool],
        *,
        committed: int = 0,
        done: Collection[int] = (),
        closed: bool = False,
    ) -> None:
        self.items = items
        self._commit = commit
        self._chunks: deque[tuple[WorkItem, ...]] = deque()
        for _, group in groupby(items, key=lambda item: item.state_id):
            of_state = tuple(group)
            for first in range(0, len(of_state), CHUNK):
                if chunk := tuple(
                    item
                    for item in of_state[first : first + CHUNK]
                    if item.index >= committed and item.index not in done
                ):
                    self._chunks.append(chunk)
        self._outcomes: dict[int, ActionOutcome] = {}
        self.committed = committed
        self.closed = closed

    @property
    def pending(self) -> int:
        """Number of items that are not committed yet."""
        return 0 if self.closed else len(self.items) - self.committed

    def take(self, shown: str = "") -> tuple[WorkItem, ...]:
        """Return the next chunk for a worker, if possible of the state that its page shows; empty if all are taken."""
        if self.closed or not self._chunks:
            return ()
        chunk = next((each for each in self._chunks if each[0].state_id == shown), self._chunks[0])
        self._chunks.remove(chunk)
        return chunk

    def done(self, item: WorkItem, outcome: ActionOutcome) -> None:
        """Hand in an outcome. It is committed when those of all earlier items are."""
        self._outcomes[item.index] = outcome
        while not self.closed and self.committed in self._outcomes:
            self.closed = not self._commit(self.items[self.committed], self._outcomes.pop(self.committed))
            self.committed += not self.closed

    def stop(self) -> list[WorkItem]:
        """End the round early: commit all outcomes, even with gaps. Return the items that were not performed."""
        rest = () if self.closed else self.items[self.committed :]
        left = [item for item in rest if item.index not in self._outcomes]
        for index in sorted(self._outcomes):
            if not self.closed:
                self.closed = not self._commit(self.items[index], self._outcomes.pop(index))
        self.closed = True
        return left
