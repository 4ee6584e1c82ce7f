"""Embedded search by Qdrant Edge, in a private folder that is deleted with the index."""

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

from waygraph.core.errors import StoreError
from waygraph.index.vectors.options import PAGE, POOLED, IndexOptions
from waygraph.index.vectors.pooling import pool_windows
from waygraph.index.vectors.protocol import ScoredNode
from waygraph.index.vectors.validation import top_k_from_engine, validate_k, validate_page, validate_query

_POINTS_PER_UPDATE = 64
#: Disk space that stays free: the files of a shard are memory-mapped, and a process that writes to a mapped file on a
#: full disk is killed.
_SPARE_BYTES = 64 * 2**20

_STORAGE = {
    "f16": edge.VectorStorageDatatype.Float16,
    "int8": edge.VectorStorageDatatype.Turbo8,
    "int4": edge.VectorStorageDatatype.Turbo4,  # type: ignore[attr-defined]  # its stubs are outdated
}
_Codes = edge.ScalarQuantizationConfig | edge.BinaryQuantizationConfig | edge.TurboQuantQuantizationConfig
_Vectors = dict[str, "list[float] | edge.SparseVector | list[list[float]]"]


class EdgeIndex:
    """A `VectorIndex` over a Qdrant Edge shard: multi-vectors scored by MaxSim and dot product, no HNSW graph.

    Opening a shard rewrites files in it, and a shard has one owner. Therefore every index creates a private folder and
    deletes it on `close`, when it is garbage collected, or at exit. The versions in the store stay the only source of
    truth, so the shard needs no write-ahead log. Threads may search at once.

    Parameters
    ----------
    dim
        Number of columns of every multi-vector.
    options
        Storage and search stages.
    parent
        Where the private folder is created; None: the system's temporary folder.
    search_threads
        Threads of one search; None: as many as there are CPUs.
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
            # By default small segments get no codes, and a first stage on codes would silently become an exact search.
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
        # The shard is private, so points are numbered consecutively; no payload is needed to map them to node ids.
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. Batches before a rejected state stay added.

        Parameters
        ----------
        items
            Pairs of node id and matrix of shape (n, dim).

        Raises
        ------
        InvalidInput
            If a matrix cannot be stored.
        StoreError
            If the disk has too little free space.
        """
        remaining = iter(items)
        while batch := list(itertools.islice(remaining, _POINTS_PER_UPDATE)):
            pages = {node_id: validate_page(node_id, page, self.dim).astype(np.float32) for node_id, page in batch}
            self._check_free_space(sum(page.nbytes for page in pages.values()))
            with self._lock:
                points = [edge.Point(self._number(node_id), self._vectors_of(page)) for node_id, page in pages.items()]
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def compact(self) -> None:
        """Reduce the shard to its smallest size, and compute the codes of a quantization. Call it after filling.

        Optimizing rewrites every segment, and the old ones stay on the disk until the flush: measured between the two,
        a shard takes twice its size.

        Raises
        ------
        StoreError
            If the disk has too little free space for the copy.
        """
        with self._lock:
            if self._options.quantization is not None:
                self._check_free_space(2 * self.disk_bytes())
                self._shard.optimize()
            self._shard.flush()

    def disk_bytes(self) -> int:
        """Return the disk space of the shard. Its files are sparse: their lengths add up to several times as much."""
        files = (path.stat() for path in Path(self._folder).rglob("*") if path.is_file())
        return sum(file.st_blocks * 512 for file in files)

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """Return the top k states, see `VectorIndex.search`; with a first stage, the top k of its candidates."""
        rows, limit = validate_query(query, self.dim), validate_k(k)

        def fetch(count: int) -> list[tuple[str, float]]:
            hits = self._shard.query(self._request(rows, count))
            # MAX_SIM is a sum over query rows; scores here are means.
            return [(self._ids[cast("int", hit.id)], hit.score / len(rows)) for hit in hits]

        return top_k_from_engine(fetch, limit, len(self))

    def __len__(self) -> int:
        return len(self._ids)

    def close(self) -> None:
        """Close the shard and delete its folder. Closing twice is allowed; searching afterwards is an error."""
        self._release()

    def _request(self, rows: NDArray[np.float32], count: int) -> edge.QueryRequest:
        # Without `ignore`, every stage scores on the codes if there are any, the last stage included. (`exact` would
        # keep every stage from using them, the first one too. There is no HNSW graph, so nothing else is approximate.)
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
            vectors[POOLED] = _rows(pool_windows(page, self._options.pooled_rows))
        return vectors

    def _number(self, node_id: str) -> int:
        number = self._numbers.setdefault(node_id, len(self._ids))
        if number == len(self._ids):
            self._ids.append(node_id)
        return number

    def _check_free_space(self, wanted: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < wanted + _SPARE_BYTES:
            raise StoreError(
                f"No disk space for the search index: {wanted >> 20} MiB and a reserve of {_SPARE_BYTES >> 20} MiB are "
                f"needed in {Path(self._folder).parent}, {free >> 20} MiB are free.",
                hint="Free disk space, or set TMPDIR to a folder on a larger disk.",
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
    # A forked child process that ends must not delete what its parent uses.
    if os.getpid() == owner:
        shard.close()
        shutil.rmtree(folder)


def _rows(matrix: NDArray[np.float32]) -> list[list[float]]:
    # The engine accepts NumPy arrays; its stubs do not say so.
    return cast("list[list[float]]", matrix)
