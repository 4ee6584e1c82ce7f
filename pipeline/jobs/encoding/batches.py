"""Batches of states: which states are encoded together, and how a batch changes after its encoder was lost.

`waygraph.pipeline.jobs.failures.decide_batch_retry` decides what happens to a batch; this module carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from waygraph.pipeline.jobs.failures import BatchLosses, BatchRetry

Item = TypeVar("Item")


@dataclass(slots=True, eq=False)
class BatchSplit:
    """A batch that was split. If both halves succeed, the size of the batch was the problem, not a single state."""

    half: int
    """Number of states in the larger half."""
    encoded: int = 0
    """Number of halves that were encoded."""


@dataclass(frozen=True, slots=True, eq=False)
class StateBatch(Generic[Item]):
    """States that are encoded together.

    Attributes
    ----------
    items
        The states.
    context
        Encoder context of their site, sent with the batch.
    joinable
        Whether it may be joined with the next such batch.
    alone
        Whether it needs an encoder that has no other batch.
    losses
        Encoders that were lost with it.
    split
        The batch that it is a half of.
    """

    items: tuple[Item, ...]
    context: object = None
    joinable: bool = False
    alone: bool = False
    losses: BatchLosses = field(default_factory=BatchLosses)
    split: BatchSplit | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.items)


def plan_batches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Split items into batches of `size`, in order. A resumed run forms the same batches again.

    >>> plan_batches("abcde", 2)
    ['ab', 'cd', 'e']
    """
    return [items[start : start + size] for start in range(0, len(items), size)]


def take_batch(queue: list[StateBatch[Item]], size: int) -> StateBatch[Item]:
    """Remove the next batch from the queue.

    Joinable batches of one context are joined. A batch that is too large is cut, and its rest stays in the queue.

    Parameters
    ----------
    queue
        Waiting batches, at least one. Changed in place.
    size
        Maximal number of states of the returned batch.

    Returns
    -------
    StateBatch
        The batch to encode next.
    """
    batch = queue.pop(0)
    while batch.joinable and len(batch) < size and queue:
        following = queue[0]
        if not following.joinable or following.context != batch.context or len(batch) + len(following) > size:
            break
        batch = replace(batch, items=batch.items + queue.pop(0).items)
    if len(batch) > size:
        queue.insert(0, replace(batch, items=batch.items[size:], split=None))
        batch = replace(batch, items=batch.items[:size], split=None)
    return batch


def batches_to_retry(batch: StateBatch[Item], retry: BatchRetry) -> list[StateBatch[Item]]:
    """Return the batches that replace a batch whose encoder was lost.

    Parameters
    ----------
    batch
        The batch.
    retry
        The decision about it.

    Returns
    -------
    list of StateBatch
        The batch itself, its two halves, or nothing if its only state is given up.
    """
    if retry.action == "give up":
        return []
    if retry.action == "requeue":
        return [replace(batch, losses=retry.losses)]
    if retry.action == "isolate":
        return [replace(batch, alone=True, joinable=False, losses=retry.losses)]
    middle = (len(batch) + 1) // 2
    split = BatchSplit(middle)
    return [
        # One more loss splits a half of several states again. A single state has both attempts again.
        StateBatch(
            half,
            batch.context,
            alone=True,
            losses=BatchLosses(alone=0 if len(half) == 1 else retry.losses.alone - 1),
            split=split,
        )
        for half in (batch.items[:middle], batch.items[middle:])
    ]


def learn_batch_size(batch: StateBatch[Item]) -> int | None:
    """Record that `batch` succeeded. Return the batch size to use from now on if its split shows one, else None."""
    if batch.split is None:
        return None
    batch.split.encoded += 1
    return batch.split.half if batch.split.encoded == 2 else None
