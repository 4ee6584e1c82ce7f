"""What is MaxSim, exactly? The reference that the engines are compared with: packed NumPy, nothing approximate."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from index.vectors.checks import checked_k, checked_page, checked_query, ranked
from index.vectors.protocol import ScoredNode

#: Rows scored by one matrix product. The product of a 32-row query with this many rows stays in the CPU's caches.
ROWS_PER_CHUNK = 4_096


def maxsim(query: NDArray[np.floating], page: NDArray[np.floating]) -> float:
    """MaxSim of a query (m, dim) and a page (n, dim) as the mean over query rows (WebNavigator, eq. 4).

    >>> maxsim(np.eye(2), np.array([[1.0, 0.0], [0.5, 0.5]]))
    0.75
    """
    products = np.asarray(query, dtype=np.float64) @ np.asarray(page, dtype=np.float64).T
    return float(products.max(axis=1).mean())


class ExactIndex:
    """A `VectorIndex` in memory: all rows of all states packed into one float32 matrix, scored chunk by chunk.

    Parameters
    ----------
    dim : number of columns of every multi-vector.

    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._pages: dict[str, NDArray[np.float32]] = {}
        self._packed: _Packed | None = None
        self._lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. Nothing is added when one of them is refused."""
        pages = {node_id: checked_page(node_id, page, self.dim).astype(np.float32) for node_id, page in items}
        with self._lock:
            self._pages = self._pages | pages
            self._packed = None

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states, see `VectorIndex.search`."""
        rows, limit = checked_query(query, self.dim), checked_k(k)
        with self._lock:
            if self._packed is None:
                self._packed = _Packed(self._pages)
            packed = self._packed
        return ranked(packed.scores(rows), limit)

    def compact(self) -> None:
        """Nothing to do: there are no files."""

    def __len__(self) -> int:
        return len(self._pages)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._pages, self._packed = {}, None


class _Packed:
    """Immutable: the rows of all states behind one another, and where each state's rows begin."""

    def __init__(self, pages: dict[str, NDArray[np.float32]]) -> None:
        self._ids = list(pages)
        self._chunks: list[tuple[NDArray[np.float32], NDArray[np.intp]]] = []
        waiting: list[NDArray[np.float32]] = []
        for page in pages.values():
            waiting.append(page)
            if sum(map(len, waiting)) >= ROWS_PER_CHUNK:
                self._chunks.append(_chunk(waiting))
                waiting = []
        if waiting:
            self._chunks.append(_chunk(waiting))

    def scores(self, query: NDArray[np.float32]) -> list[tuple[str, float]]:
        means = [
            np.maximum.reduceat(query @ rows.T, starts, axis=1).mean(axis=0, dtype=np.float64)
            for rows, starts in self._chunks
        ]
        return list(zip(self._ids, np.concatenate(means).tolist() if means else [], strict=True))


def _chunk(pages: list[NDArray[np.float32]]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    lengths = [len(page) for page in pages]
    return np.concatenate(pages), np.cumsum([0, *lengths[:-1]])
