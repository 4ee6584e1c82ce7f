"""Which states are encoded together, and what becomes of a batch whose encoder died? Plain rules over plain data.

When an encoder dies, the batch in it may have killed it (memory, a defect), or anything else may have. So:

1. Batches that were in it together are done again, each alone in an encoder: whichever kills it then is known.
2. A batch that dies alone is tried alone once more.
3. Then it is split, and its halves are done alone, until the one state that kills encoders stands alone. It is
   given up: its state gets no vectors, every other one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import Generic, TypeVar

Item = TypeVar("Item")

#: So often a batch may lose an encoder that had nothing else to do.
_TRIES = 2


@dataclass(slots=True, eq=False)
class Split:
    """A batch that was split. When both halves work out, not one state was too much, but so many at once."""

    half: int
    """States in the larger half."""
    done: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Generic[Item]):
    """States that are encoded together.

    Attributes
    ----------
    context : of their site; what a batch is sent with.
    joinable : may be encoded together with the next such batch.
    alone : is encoded by an encoder that has no other batch.
    losses : encoders that died of it while it was alone.
    machines : machines that were lost while an encoder there had it.
    split : what it is a half of.

    """

    items: tuple[Item, ...]
    context: object = None
    joinable: bool = False
    alone: bool = False
    losses: int = 0
    machines: int = 0
    split: Split | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.items)


def planned(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Items in order, `size` at a time. What a killed run left undone falls into the very same batches again.

    >>> planned("abcde", 2)
    ['ab', 'cd', 'e']
    """
    return [items[start : start + size] for start in range(0, len(items), size)]


def take(waiting: list[Batch[Item]], size: int) -> Batch[Item]:
    """Take the next batch out of the line, with at most `size` items; joinable ones of one context are joined."""
    batch = waiting.pop(0)
    while batch.joinable and len(batch) < size and waiting:
        following = waiting[0]
        if not following.joinable or following.context != batch.context or len(batch) + len(following) > size:
            break
        batch = replace(batch, items=batch.items + waiting.pop(0).items)
    if len(batch) > size:
        waiting.insert(0, replace(batch, items=batch.items[size:], split=None))
        batch = replace(batch, items=batch.items[:size], split=None)
    return batch


def after_loss(batch: Batch[Item], *, was_alone: bool) -> list[Batch[Item]]:
    """What to do, first of all, after the encoder that had `batch` died; nothing: its only state is given up."""
    if not was_alone:
        return [replace(batch, alone=True, joinable=False)]
    losses = batch.losses + 1
    if losses < _TRIES:
        return [replace(batch, alone=True, joinable=False, losses=losses)]
    if len(batch) == 1:
        return []
    middle = (len(batch) + 1) // 2
    split = Split(middle)
    return [
        # A single state is given up only after tries of its own.
        Batch(half, batch.context, alone=True, losses=0 if len(half) == 1 else losses - 1, split=split)
        for half in (batch.items[:middle], batch.items[middle:])
    ]


def most_losses(size: int) -> int:
    """Encoders that may die in a row, with no batch done in between. More say that it is no state's doing.

    >>> most_losses(1), most_losses(32)
    (11, 16)
    """
    # One death together with others, the tries of the whole, one at every size below it; then four bad states in a row.
    return 1 + _TRIES + ceil(log2(size)) + 4 * _TRIES


def learned_size(batch: Batch[Item]) -> int | None:
    """Take note that `batch` worked out; the size of batch to keep to from now on, if it teaches one."""
    if batch.split is None:
        return None
    batch.split.done += 1
    return batch.split.half if batch.split.done == 2 else None
