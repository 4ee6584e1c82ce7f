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
from index.vectors.options import PAGE, POOLED, IndexOptions
from index.vectors.pooling import pooled
from index.vectors.protocol import ScoredNode
from waygraph.errors import StoreError

_POINTS_PER_UPDATE = 64
#: Kept free on the disk: files of a shard are mapped, and a process that writes to one on a full disk is killed.
_SPARE_BYTES = 64 * 2**20

_STORAGE = {
    "f16": edge.VectorStorageDatatype.Float16,
    "int8": edge.VectorStorageDatatype.Turbo8,
    "int4": edge.VectorStorageDatatype.Turbo4,  # type: ignore[attr-defined]  # its stubs are older
}
_Codes = edge.ScalarQuantizationConfig | edge.BinaryQuantizationConfig | edge.TurboQuantQuantizationConfig
_Vectors = dict[str, "list[float] | edge.SparseVector | list[list[float]]"]


class EdgeIndex:
    """A `VectorIndex` over a Qdrant Edge shard: multi-vectors scored by MaxSim and dot product, no HNSW graph.

    Opening a shard rewrites files in it and a shard has one owner, so every index makes a folder of its own and deletes
    it on `close`, when it is garbage collected, or at exit. The versions in the store stay the only source of truth;
    therefore the shard needs no write-ahead log. Threads may search at once.

    Parameters
    ----------
    dim : number of columns of every multi-vector.
    options : what is kept of a state, and in how many stages is searched.
    parent : where the private folder is made; None: the system's temporary folder.
    search_threads : threads of one search; None: as many as there are CPUs.

    """

    def __init__(
        self,
        dim: int,
        *,
        options: IndexOptions = IndexOptions(),  # noqa: B008 - frozen
        parent: Path | None = None,
        search_threads: int | None = None,
    ) -> None:
        self.dim = dim
        self._options = options
        self._folder = tempfile.mkdtemp(prefix="waygraph-edge-", dir=parent)
        config = edge.EdgeConfig(
            vectors=_vectors(dim, options),
            # By default small segments get no codes, and a first stage on codes would silently be an exact search.
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=1),
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
        """Add or replace states, see `VectorIndex.add`. Batches before a refused state stay added.

        Raises
        ------
        StoreError
            When the disk has no room for them.

        """
        remaining = iter(items)
        while batch := list(itertools.islice(remaining, _POINTS_PER_UPDATE)):
            pages = {node_id: checked_page(node_id, page, self.dim).astype(np.float32) for node_id, page in batch}
            self._need_room(sum(page.nbytes for page in pages.values()))
            with self._lock:
                points = [edge.Point(self._number(node_id), self._vectors_of(page)) for node_id, page in pages.items()]
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def compact(self) -> None:
        """Make the shard as small as it gets; codes of a quantization exist from then on. Call it after filling.

        Optimizing writes every segment anew, and the old ones stay on the disk until the flush: measured between the
        two, a shard looks twice its size.

        Raises
        ------
        StoreError
            When the disk has no room for the copy.

        """
        with self._lock:
            if self._options.quantization is not None:
                self._need_room(2 * self.disk_bytes())
                self._shard.optimize()
            self._shard.flush()

    def disk_bytes(self) -> int:
        """What the shard takes on the disk. Its files are sparse: their lengths add up to several times as much."""
        files = (path.stat() for path in Path(self._folder).rglob("*") if path.is_file())
        return sum(file.st_blocks * 512 for file in files)

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states, see `VectorIndex.search`; with a first stage, the k best of its candidates."""
        rows, limit = checked_query(query, self.dim), checked_k(k)

        def fetch(count: int) -> list[tuple[str, float]]:
            hits = self._shard.query(self._request(rows, count))
            # MAX_SIM is a sum over query rows; scores here are means.
            return [(self._ids[cast("int", hit.id)], hit.score / len(rows)) for hit in hits]

        return ranked_from(fetch, limit, len(self))

    def __len__(self) -> int:
        return len(self._ids)

    def close(self) -> None:
        """Close the shard and delete its folder. Closing twice is allowed; searching afterwards is an error."""
        self._release()

    def _request(self, rows: NDArray[np.float32], count: int) -> edge.QueryRequest:
        # Without `ignore`, a stage scores on the codes wherever there are some, the last stage included. (`exact` would
        # keep every stage from using them, the first one too. There is no HNSW graph, so nothing else is inexact.)
        originals = edge.SearchParams(quantization=edge.QuantizationSearchParams(ignore=True))
        codes = edge.SearchParams(quantization=edge.QuantizationSearchParams(rescore=False))
        first = {
            None: None,
            "pooled": (POOLED, originals),
            "codes": (PAGE, codes),
        }[self._options.first_stage]
        nearest = {name: edge.Query.Nearest(_rows(rows), using=name) for name in (PAGE, POOLED)}
        limit = max(self._options.candidates, count)
        prefetches = [] if first is None else [edge.Prefetch(limit=limit, query=nearest[first[0]], params=first[1])]
        return edge.QueryRequest(limit=count, query=nearest[PAGE], prefetches=prefetches, params=originals)

    def _vectors_of(self, page: NDArray[np.float32]) -> _Vectors:
        vectors: _Vectors = {PAGE: _rows(page)}
        if self._options.first_stage == "pooled":
            vectors[POOLED] = _rows(pooled(page, self._options.pooled_rows))
        return vectors

    def _number(self, node_id: str) -> int:
        number = self._numbers.setdefault(node_id, len(self._ids))
        if number == len(self._ids):
            self._ids.append(node_id)
        return number

    def _need_room(self, wanted: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < wanted + _SPARE_BYTES:
            raise StoreError(
                f"No room for the search index: {wanted >> 20} MiB and a spare of {_SPARE_BYTES >> 20} are needed "
                f"in {Path(self._folder).parent}, {free >> 20} MiB are free.",
                hint="Make room, or let TMPDIR name a folder on a larger disk.",
            )


def _vectors(dim: int, options: IndexOptions) -> dict[str, edge.EdgeVectorParams]:
    def params(storage: edge.VectorStorageDatatype, codes: _Codes | None) -> edge.EdgeVectorParams:
        return edge.EdgeVectorParams(
            size=dim,
            distance=edge.Distance.Dot,
            multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
            datatype=storage,
            hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000),
            quantization_config=codes,
        )

    codes: dict[str | None, _Codes | None] = {
        None: None,
        "scalar": edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8),
        "binary": edge.BinaryQuantizationConfig(),
        "turbo": edge.TurboQuantQuantizationConfig(bits=edge.TurboQuantBitSize.Bits4),
    }
    vectors = {PAGE: params(_STORAGE[options.storage], codes[options.quantization])}
    if options.first_stage == "pooled":
        vectors[POOLED] = params(edge.VectorStorageDatatype.Float16, None)
    return vectors


def _release(shard: edge.EdgeShard, folder: str, owner: int) -> None:
    # A forked child that ends must not delete what its parent uses.
    if os.getpid() == owner:
        shard.close()
        shutil.rmtree(folder)


def _rows(matrix: NDArray[np.float32]) -> list[list[float]]:
    # The engine reads NumPy arrays as they are; its stubs do not say so.
    return cast("list[list[float]]", matrix)
