"""Batched encoding that keeps a GPU busy: token budgets, preparation on threads, out-of-memory backoff."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waygraph.core.errors import EncodingFailed
from waygraph.pipeline.encode.runtime.batching import token_batches

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")

#: Number of batches that are prepared while another one is computed.
_PREFETCH = 2


class BatchRunner(Generic[Item, Prepared]):
    """Encode sequences of any lengths in batches whose padded size stays within a token budget.

    While one batch is computed, the next ones are prepared on threads and the results of the one before are copied from
    the device. When memory runs out, the batch is halved, and the budget with it.

    Threads may call `run` at once. Batches are computed by one thread at a time; a second call prepares its first
    batches meanwhile, and computes as soon as the last batch of the first call is on its way, so that a
    device need not pause between the calls.

    Parameters
    ----------
    prepare
        Prepares an item (decodes, resizes). Called on threads.
    forward
        Computes a batch: unit vectors of shape (items, longest, dim), which may still be in flight on a GPU.
    budget
        Maximal number of tokens of a batch, padding included.
    threads
        Number of threads that prepare items.
    turn
        Held while batches are computed. Runners of one device share it.
    """

    def __init__(
        self,
        prepare: Callable[[Item], Prepared],
        forward: Callable[[Sequence[Prepared]], Tensor],
        *,
        budget: int,
        threads: int,
        turn: threading.Lock | None = None,
    ) -> None:
        self._prepare = prepare
        self._forward = forward
        self._turn = turn or threading.Lock()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="prepare")
        self.budget = budget

    def run(self, items: Sequence[Item], lengths: Sequence[int]) -> list[NDArray[np.float32]]:
        """Return the vectors of every item, float32 of shape (length, dim), in order.

        Parameters
        ----------
        items
            Items to encode.
        lengths
            Number of tokens of each item.

        Returns
        -------
        list[NDArray[np.float32]]
            One matrix per item.

        Raises
        ------
        EncodingFailed
            If a single item does not fit into memory, or a vector has a component that is not finite.
        """
        if not items:
            return []  # without waiting for the turn
        results: list[NDArray[np.float32] | None] = [None] * len(items)
        budget = self.budget
        waiting = self._planned(range(len(items)), lengths)
        prepared: dict[int, Future[Prepared]] = {}
        try:
            self._prepare_next(waiting, items, prepared)
            with self._turn:
                if self.budget != budget:  # another call ran out of memory meanwhile
                    waiting = self._planned(range(len(items)), lengths)
                flying = self._compute(waiting, items, lengths, prepared, results)
            if flying is not None:
                flying.land(lengths, results)
        finally:
            for future in prepared.values():
                future.cancel()
        return [vectors for vectors in results if vectors is not None]

    def _compute(
        self,
        waiting: deque[list[int]],
        items: Sequence[Item],
        lengths: Sequence[int],
        prepared: dict[int, Future[Prepared]],
        results: list[NDArray[np.float32] | None],
    ) -> _Flying | None:
        """Compute the waiting batches, and put the results of all but the last into `results`. Return the last."""
        flying: _Flying | None = None
        while waiting:
            self._prepare_next(waiting, items, prepared)
            batch = waiting.popleft()
            computed = self._computed([prepared[index].result() for index in batch])
            if computed is None:
                self._shrink(batch, lengths)
                rest = [index for later in (batch, *waiting) for index in later]
                waiting.clear()
                waiting.extend(self._planned(rest, lengths))
                continue
            started = _Flying(batch, computed)
            if flying is not None:
                flying.land(lengths, results)
            flying = started
            for index in batch:
                del prepared[index]
        return flying

    def _prepare_next(
        self, waiting: deque[list[int]], items: Sequence[Item], prepared: dict[int, Future[Prepared]]
    ) -> None:
        for batch in list(waiting)[: 1 + _PREFETCH]:
            for index in batch:
                if index not in prepared:
                    prepared[index] = self._threads.submit(self._prepare, items[index])

    def _planned(self, indices: Sequence[int], lengths: Sequence[int]) -> deque[list[int]]:
        """Return batches of items within the budget."""
        batches = token_batches([lengths[index] for index in indices], self.budget)
        return deque([[indices[place] for place in places] for places in batches])

    def _computed(self, ready: Sequence[Prepared]) -> Tensor | None:
        """Return the result, or None if memory ran out. Returning frees the memory of the failed attempt."""
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
        self.budget = min(self.budget, longest * (len(batch) // 2))
        log.warning("encode/out_of_memory token budget reduced to %d", self.budget)


class _Flying:
    """A batch whose results are on the way to the CPU.

    Parameters
    ----------
    batch
        Indices of its items.
    computed
        Its vectors, of shape (items, longest, dim), which may not be computed yet.
    """

    def __init__(self, batch: Sequence[int], computed: Tensor) -> None:
        self._batch = batch
        self._arrived: torch.cuda.Event | None = None
        if computed.is_cuda:
            # The copy is queued right behind the computation. Queued later, it would wait for the next batch.
            self._vectors = torch.empty(computed.shape, dtype=torch.float32, pin_memory=True)
            self._vectors.copy_(computed, non_blocking=True)
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record(torch.cuda.current_stream(computed.device))
        else:
            self._vectors = computed.to("cpu", torch.float32)

    def land(self, lengths: Sequence[int], results: list[NDArray[np.float32] | None]) -> None:
        """Wait for the vectors, check them, and put them into `results`."""
        if self._arrived is not None:
            self._arrived.synchronize()
        vectors = self._vectors.numpy()
        for row, index in enumerate(self._batch):
            own = vectors[row, : lengths[index]].copy()
            check_vectors(own)
            results[index] = own


def _is_out_of_memory(error: RuntimeError) -> bool:
    # torch's CPU allocator raises a plain RuntimeError: its text is the only sign.
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class OutOfMemoryBackoff(Generic[Item]):
    """Encode items in batches whose size is halved when memory runs out. For models that pad by themselves.

    Parameters
    ----------
    encode
        Computes a batch: one matrix per item.
    size
        Initial number of items of a batch. It never grows again.
    """

    def __init__(self, encode: Callable[[Sequence[Item]], list[NDArray[np.float32]]], *, size: int) -> None:
        self._encode = encode
        self.size = size

    def run(self, items: Sequence[Item]) -> list[NDArray[np.float32]]:
        """Return a matrix for every item, in order.

        Parameters
        ----------
        items
            Items to encode.

        Returns
        -------
        list[NDArray[np.float32]]
            One matrix per item.

        Raises
        ------
        EncodingFailed
            If a single item does not fit into memory, a number is not finite, or an item has no vectors.
        """
        results: list[NDArray[np.float32]] = []
        while len(results) < len(items):
            batch = items[len(results) : len(results) + self.size]
            computed = self._computed(batch)
            if computed is None:
                if len(batch) == 1:
                    raise too_large("One page or text")
                self.size = len(batch) // 2
                log.warning("encode/out_of_memory batch size reduced to %d", self.size)
                continue
            for vectors in computed:
                check_vectors(vectors)
            results += computed
        return results

    def _computed(self, batch: Sequence[Item]) -> list[NDArray[np.float32]] | None:
        """Return the result, or None if memory ran out. Returning frees the memory of the failed attempt."""
        try:
            return self._encode(batch)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
        return None


def check_vectors(vectors: NDArray[np.float32]) -> None:
    """Raise EncodingFailed if there are no vectors or a component is not finite."""
    if not len(vectors):
        raise EncodingFailed("The model computed no vectors.", hint="The model may ignore this kind of input.")
    if not np.isfinite(vectors).all():
        raise EncodingFailed(
            "The model computed numbers that are not finite.",
            hint="Try WAYGRAPH_ENCODE__DTYPE=float32, and check the weights: waygraph doctor --encoder NAME.",
        )


def too_large(what: str) -> EncodingFailed:
    """Return the error for an item that does not fit into memory."""
    return EncodingFailed(
        f"{what} does not fit into memory.",
        hint="Lower WAYGRAPH_ENCODE__MAX_PIXELS, or use a smaller encoder or a larger GPU.",
    )
