"""Exact MaxSim in NumPy: the reference for all engines."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from waygraph.index.vectors.protocol import ScoredNode
from waygraph.index.vectors.validation import top_k, validate_k, validate_page, validate_query

#: Rows scored by one matrix product. The product of a 32-row query with this many rows stays in the CPU's caches.
ROWS_PER_CHUNK = 4_096


def maxsim(query: NDArray[np.floating], page: NDArray[np.floating]) -> float:
    """Return MaxSim of a query (m, dim) and a page (n, dim) as the mean over query rows (WebNavigator, eq. 4).

    >>> maxsim(np.eye(2), np.array([[1.0, 0.0], [0.5, 0.5]]))
    0.75
    """
    products = np.asarray(query, dtype=np.float64) @ np.asarray(page, dtype=np.float64).T
    return float(products.max(axis=1).mean())


class ExactIndex:
    """A `VectorIndex` in memory: all rows of all states in float32 matrices, scored chunk by chunk.

    Parameters
    ----------
    dim
        Number of columns of every multi-vector.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._pages: dict[str, NDArray[np.float32]] = {}
        self._chunks: _ChunkedPages | None = None
        self._lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. If one is rejected, none is added."""
        pages = {node_id: validate_page(node_id, page, self.dim).astype(np.float32) for node_id, page in items}
        with self._lock:
            self._pages = self._pages | pages
            self._chunks = None

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """Return the top k states, see `VectorIndex.search`."""
        rows, limit = validate_query(query, self.dim), validate_k(k)
        with self._lock:
            if self._chunks is None:
                self._chunks = _ChunkedPages(self._pages)
            chunks = self._chunks
        return top_k(chunks.scores(rows), limit)

    def compact(self) -> None:
        """Do nothing: there are no files."""

    def __len__(self) -> int:
        return len(self._pages)

    def close(self) -> None:
        """Release the memory of all states."""
        with self._lock:
            self._pages, self._chunks = {}, None


class _ChunkedPages:
    """Immutable chunks of rows of consecutive states, with the offset at which each state's rows begin."""

    def __init__(self, pages: dict[str, NDArray[np.float32]]) -> None:
        self._ids = list(pages)
        self._chunks: list[tuple[NDArray[np.float32], NDArray[np.intp]]] = []
        pending: list[NDArray[np.float32]] = []
        for page in pages.values():
            pending.append(page)
            if sum(map(len, pending)) >= ROWS_PER_CHUNK:
                self._chunks.append(_chunk(pending))
                pending = []
        if pending:
            self._chunks.append(_chunk(pending))

    def scores(self, query: NDArray[np.float32]) -> list[tuple[str, float]]:
        means = [
            np.maximum.reduceat(query @ rows.T, starts, axis=1).mean(axis=0, dtype=np.float64)
            for rows, starts in self._chunks
        ]
        return list(zip(self._ids, np.concatenate(means).tolist() if means else [], strict=True))


def _chunk(pages: list[NDArray[np.float32]]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    lengths = [len(page) for page in pages]
    return np.concatenate(pages), np.cumsum([0, *lengths[:-1]])
