"""How is a GPU kept busy? Batches by token budget, prepared ahead of it on threads, halved when memory runs out."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.encode.batching import token_batches
from waygraph.errors import EncodingFailed

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")

#: Batches that are prepared while another one is computed.
_AHEAD = 2


class BatchRunner(Generic[Item, Prepared]):
    """Encodes sequences of any lengths in batches whose padded size stays within a budget of tokens.

    While one batch is computed the next ones are prepared on threads, and the results of the one before are fetched.
    When memory runs out, the batch is halved, and so is the budget from then on.

    Parameters
    ----------
    prepare : makes an item ready (decodes, shrinks); called on threads.
    forward : computes a batch: unit vectors of shape (items, longest, dim), which may still be in flight on a GPU.
    budget : tokens of a batch at most, padding included.

    """

    def __init__(
        self,
        prepare: Callable[[Item], Prepared],
        forward: Callable[[Sequence[Prepared]], Tensor],
        *,
        budget: int,
        threads: int,
    ) -> None:
        self._prepare = prepare
        self._forward = forward
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="prepare")
        self.budget = budget

    def run(self, items: Sequence[Item], lengths: Sequence[int]) -> list[NDArray[np.float32]]:
        """Vectors of every item, float32 of shape (length, dim), in order.

        Raises
        ------
        EncodingFailed
            When one item alone is too large for memory, or a vector has a component that is not finite.

        """
        results: list[NDArray[np.float32] | None] = [None] * len(items)
        waiting = deque(token_batches(lengths, self.budget))
        prepared: dict[int, Future[Prepared]] = {}
        flying: tuple[list[int], Tensor] | None = None
        try:
            while waiting:
                for batch in list(waiting)[: 1 + _AHEAD]:
                    for index in batch:
                        if index not in prepared:
                            prepared[index] = self._threads.submit(self._prepare, items[index])
                batch = waiting.popleft()
                ready = [prepared[index].result() for index in batch]
                computed = self._computed(ready)
                if computed is None:
                    self._shrink(batch, lengths)
                    rest = [index for later in (batch, *waiting) for index in later]
                    again = token_batches([lengths[index] for index in rest], self.budget)
                    waiting = deque([[rest[place] for place in places] for places in again])
                    continue
                if flying is not None:
                    _land(*flying, lengths, results)
                flying = batch, computed
                for index in batch:
                    del prepared[index]
            if flying is not None:
                _land(*flying, lengths, results)
        finally:
            for future in prepared.values():
                future.cancel()
        return [vectors for vectors in results if vectors is not None]

    def _computed(self, ready: Sequence[Prepared]) -> Tensor | None:
        """`None` when memory ran out. Returning frees what the failed try still holds, before the next one."""
        try:
            return self._forward(ready)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
        return None

    def _shrink(self, batch: Sequence[int], lengths: Sequence[int]) -> None:
        longest = max(lengths[index] for index in batch)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(batch) == 1:
            raise too_large(f"One sequence of {longest} tokens")
        self.budget = longest * (len(batch) // 2)
        log.warning("out of memory: batches have %d tokens from now on", self.budget)


def _land(
    batch: Sequence[int], computed: Tensor, lengths: Sequence[int], results: list[NDArray[np.float32] | None]
) -> None:
    vectors = computed.to("cpu", torch.float32).numpy()
    for row, index in enumerate(batch):
        own = vectors[row, : lengths[index]].copy()
        check_vectors(own)
        results[index] = own


def _is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class Halving(Generic[Item]):
    """Encodes items in batches of at most `size`, halved for good when memory runs out; for models that pad themselves.

    Parameters
    ----------
    encode : computes a batch: one matrix for each item.

    """

    def __init__(self, encode: Callable[[Sequence[Item]], list[NDArray[np.float32]]], *, size: int) -> None:
        self._encode = encode
        self.size = size

    def run(self, items: Sequence[Item]) -> list[NDArray[np.float32]]:
        """A matrix for every item, in order.

        Raises
        ------
        EncodingFailed
            When one item alone is too large for memory, or a number is not finite, or an item has no vectors.

        """
        results: list[NDArray[np.float32]] = []
        while len(results) < len(items):
            batch = items[len(results) : len(results) + self.size]
            computed = self._tried(batch)
            if computed is None:
                if len(batch) == 1:
                    raise too_large("One page or text")
                self.size = len(batch) // 2
                log.warning("out of memory: batches have %d members from now on", self.size)
                continue
            for vectors in computed:
                check_vectors(vectors)
            results += computed
        return results

    def _tried(self, batch: Sequence[Item]) -> list[NDArray[np.float32]] | None:
        """`None` when memory ran out. Returning frees what the failed try still holds."""
        try:
            return self._encode(batch)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
        return None


def check_vectors(vectors: NDArray[np.float32]) -> None:
    """Refuse what no index should hold (EncodingFailed)."""
    if not len(vectors):
        raise EncodingFailed("The model computed no vectors.", hint="It may leave out what was given to it.")
    if not np.isfinite(vectors).all():
        raise EncodingFailed(
            "The model computed numbers that are not finite.",
            hint="Try WAYGRAPH_ENCODE__DTYPE=float32, and check the weights: waygraph doctor --encoder NAME.",
        )


def too_large(what: str) -> EncodingFailed:
    """The error for what does not fit into memory even alone."""
    return EncodingFailed(
        f"{what} does not fit into memory.",
        hint="Lower WAYGRAPH_ENCODE__MAX_PIXELS, or use a smaller encoder or a larger GPU.",
    )
