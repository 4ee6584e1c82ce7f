"""How are states searched without a server? Qdrant Edge, embedded, in a private folder that goes with the index."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np
import qdrant_edge as edge
from numpy.typing import NDArray

from index.vectors.checks import checked_k, checked_page, checked_query, ranked_from
from index.vectors.protocol import ScoredNode

VECTOR = "page"
_POINTS_PER_UPDATE = 64


class EdgeIndex:
    """A `VectorIndex` over a Qdrant Edge shard: float16 multi-vectors, exact MaxSim by dot product, no HNSW graph.

    Opening a shard rewrites files in it and a shard has one owner, so every index makes a folder of its own and deletes
    it on `close`, when it is garbage collected, or at exit. The versions in the store stay the only source of truth;
    therefore the shard needs no write-ahead log. Threads may search at once.

    Parameters
    ----------
    dim : number of columns of every multi-vector.
    parent : where the private folder is made; None: the system's temporary folder.
    search_threads : threads of one search; None: as many as there are CPUs.

    """

    def __init__(self, dim: int, *, parent: Path | None = None, search_threads: int | None = None) -> None:
        self.dim = dim
        self._folder = tempfile.mkdtemp(prefix="waygraph-edge-", dir=parent)
        config = edge.EdgeConfig(
            vectors={
                VECTOR: edge.EdgeVectorParams(
                    size=dim,
                    distance=edge.Distance.Dot,
                    multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
                    datatype=edge.VectorStorageDatatype.Float16,
                    hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000),
                )
            },
            max_search_threads=search_threads,
            wal_enabled=False,
        )
        try:
            self._shard = edge.EdgeShard.create(str(Path(self._folder) / "shard"), config)
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        self._release = weakref.finalize(self, _release, self._shard, self._folder, os.getpid())
        # The shard is private, so points are simply numbered; nothing has to be read back to name them.
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. Batches before a refused state stay added."""
        remaining = iter(items)
        while batch := list(itertools.islice(remaining, _POINTS_PER_UPDATE)):
            pages = {node_id: checked_page(node_id, page, self.dim).astype(np.float32) for node_id, page in batch}
            with self._lock:
                points = [edge.Point(self._number(node_id), {VECTOR: _rows(page)}) for node_id, page in pages.items()]
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states, see `VectorIndex.search`."""
        rows, limit = checked_query(query, self.dim), checked_k(k)
        nearest = edge.Query.Nearest(_rows(rows), using=VECTOR)

        def fetch(count: int) -> list[tuple[str, float]]:
            hits = self._shard.query(edge.QueryRequest(limit=count, query=nearest))
            # MAX_SIM is a sum over query rows; scores here are means.
            return [(self._ids[cast("int", hit.id)], hit.score / len(rows)) for hit in hits]

        return ranked_from(fetch, limit, len(self))

    def __len__(self) -> int:
        return len(self._ids)

    def close(self) -> None:
        """Close the shard and delete its folder. Closing twice is allowed; searching afterwards is an error."""
        self._release()

    def _number(self, node_id: str) -> int:
        number = self._numbers.setdefault(node_id, len(self._ids))
        if number == len(self._ids):
            self._ids.append(node_id)
        return number


def _release(shard: edge.EdgeShard, folder: str, owner: int) -> None:
    # A forked child that ends must not delete what its parent uses.
    if os.getpid() == owner:
        shard.close()
        shutil.rmtree(folder)


def _rows(matrix: NDArray[np.float32]) -> list[list[float]]:
    # The engine reads NumPy arrays as they are; its stubs do not say so.
    return cast("list[list[float]]", matrix)
