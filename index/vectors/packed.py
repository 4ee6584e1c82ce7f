"""Exact search in memory, on a CPU or a GPU: the rows of a site packed into a few large matrices.

One matrix product per chunk scores thousands of rows at once. Every approximate score has a bound on its error. If
rounding in the scan's dtype could change the top k, the affected states are rescored in float64 from the original rows.
The ranking is therefore that of `waygraph.index.vectors.exact.maxsim`, whatever the dtype.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors.gpu import GpuRows, fused_kernel
from waygraph.index.vectors.protocol import ScoredNode
from waygraph.index.vectors.validation import SCORE_DECIMALS, top_k, validate_k, validate_page, validate_query
from waygraph.index.vectors.workers import parallel_map

log = logging.getLogger(__name__)

#: Rows of one product on a CPU. With 20 to 120 query rows it mostly stays in the second-level cache.
ROWS_PER_CHUNK = 3_000
#: Rows of one product on a GPU, which needs larger products.
ROWS_PER_CHUNK_ON_GPU = 262_144

K = TypeVar("K")
Pages = Mapping[str, NDArray[np.floating]]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class PackedIndex:
    """A `VectorIndex` in memory that ranks as float64 would, and scans in a smaller type. Threads may search at once.

    float16 matrices are kept as they are given, without a copy: do not change them.

    Parameters
    ----------
    dim
        Number of columns of every multi-vector.
    dtype
        Type of the scan: `float32`, `bfloat16` or `float16`. Half precision halves the scan's memory; on CPUs bfloat16
        is fast if states differ clearly, and float16 has no fast kernels. Empty: `float32`; on a GPU, float16 matrices
        are scored by a fused kernel where it is installed (see `waygraph.index.vectors.gpu`).
    device
        Device of the packed rows, as torch names it. The original rows stay in the CPU's memory.
    """

    def __init__(self, dim: int, *, dtype: str = "", device: str = "cpu") -> None:
        chosen = dtype or "float32"
        if chosen not in DTYPES:
            raise InvalidInput(f"There is no scan in '{chosen}'.", hint=f"Known types: {', '.join(DTYPES)}.")
        self.dim = dim
        self._dtype, self._device = DTYPES[chosen], torch.device(device)
        self._kernel = fused_kernel() if self._device.type == "cuda" and not dtype else None
        self._pages: dict[str, NDArray[np.floating]] = {}
        self._packed: PackedRows | GpuRows | None = None
        self._lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. If one is rejected, none is added."""
        pages = {node_id: _compact_original(validate_page(node_id, page, self.dim)) for node_id, page in items}
        with self._lock:
            self._pages = self._pages | pages
            self._packed = None

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """Return the top k states as float64 finds and orders them, see `VectorIndex.search`."""
        rows, limit = validate_query(query, self.dim), validate_k(k)
        with self._lock:
            if self._packed is None:
                self._packed = self._pack()
            packed, pages = self._packed, self._pages
        return packed.top_k(rows, limit) if isinstance(packed, GpuRows) else packed.top_k(rows, limit, pages)

    def _pack(self) -> PackedRows | GpuRows:
        if self._kernel is not None and all(page.dtype == np.float16 for page in self._pages.values()):
            halves = {node_id: page.astype(np.float16, copy=False) for node_id, page in self._pages.items()}
            try:
                return GpuRows(halves, self._device, self._kernel)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - Triton raises many types when it cannot compile
                self._kernel = None
                log.warning("index/no_fused_kernel the kernel does not run, torch's products do: %r", error)
        return PackedRows(self._pages, self._dtype, self._device)

    def compact(self) -> None:
        """Pack the rows, which the first search would do otherwise. There are no files."""
        with self._lock:
            self._packed = self._packed or self._pack()

    def __len__(self) -> int:
        return len(self._pages)

    def close(self) -> None:
        """Release the memory of all states."""
        with self._lock:
            self._pages, self._packed = {}, None


def maxsim_scores(query: NDArray[np.float32], pages: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """Compute MaxSim of some pages in float32. Pages that are scored only once are not worth packing.

    Parameters
    ----------
    query
        float32 of shape (m, dim).
    pages
        Matrices of shape (n, dim).

    Returns
    -------
    NDArray
        float64 of shape (pages,).
    """
    query_rows = torch.from_numpy(query)

    def best_products(run: Sequence[NDArray[np.floating]]) -> list[torch.Tensor]:
        best: list[torch.Tensor] = []
        buffer = query_rows.new_empty((0, query_rows.shape[1]))
        # A few pages at a time, widened into one buffer: what is written there is still in the cache for the product.
        for few in _runs_by_rows(run, len, ROWS_PER_CHUNK):
            lengths = [len(page) for page in few]
            if len(buffer) < sum(lengths):
                buffer = query_rows.new_empty((sum(lengths), query_rows.shape[1]))
            rows = buffer[: sum(lengths)]
            for part, page in zip(torch.split(rows, lengths), few, strict=True):
                part.copy_(torch.from_numpy(page))
            best += [products.amax(1) for products in torch.split(query_rows @ rows.t(), lengths, dim=1)]
        return best

    best = [products for run in parallel_map(best_products, pages) for products in run]
    means: NDArray[np.float64] = torch.stack(best).double().mean(1).numpy()
    return means


@dataclass(frozen=True, slots=True)
class PackedChunk:
    """Pages of similar length, padded to the longest by repeating the last row, which changes no maximum.

    Attributes
    ----------
    rows
        Shape (pages * length, dim).
    pages
        Number of pages.
    length
        Number of rows of each padded page.
    """

    rows: torch.Tensor
    pages: int
    length: int

    def best_products(self, query: torch.Tensor) -> torch.Tensor:
        """Return for each row of a query (m, dim) and each page the largest product, shape (m, pages)."""
        # A row of products for each query row, so that the values of one maximum are contiguous.
        return (query @ self.rows.t()).view(len(query), self.pages, self.length).amax(2)


def fastest_dtype() -> torch.dtype:
    """Return the type of the fastest scan on this machine's CPU, for uses where precision does not matter."""
    return torch.bfloat16 if torch.backends.cpu.get_cpu_capability().startswith("AVX512") else torch.float32


def approximate_scores(packed: Sequence[PackedRows], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute MaxSim of all pages of several `PackedRows` on the CPU, in their types.

    Parameters
    ----------
    packed
        The pages.
    query
        float32 of shape (m, dim).

    Returns
    -------
    NDArray
        float32 of shape (pages,), in the order of `packed` and of their `ids`.
    """
    query_rows = torch.from_numpy(query)

    def means(run: Sequence[PackedChunk]) -> list[torch.Tensor]:
        return [chunk.best_products(query_rows.to(chunk.rows.dtype)).float().mean(0) for chunk in run]

    chunks = [chunk for each in packed for chunk in each.chunks]
    scores: NDArray[np.float32] = torch.cat([mean for run in parallel_map(means, chunks) for mean in run]).numpy()
    return scores


class PackedRows:
    """The rows of many pages in chunks, with bounds on the error of rounding them. Immutable.

    Parameters
    ----------
    pages
        Matrices of shape (n, dim) by id.
    dtype
        Type of the packed copy.
    device
        Device of the packed copy.

    Attributes
    ----------
    ids
        Ids of the pages in the order in which `chunks` hold them.
    chunks
        The packed rows.
    """

    def __init__(
        self,
        pages: Pages,
        dtype: torch.dtype = torch.float32,
        device: torch.device = torch.device("cpu"),  # noqa: B008 - a constant
    ) -> None:
        self._dtype, self._device = dtype, device
        # Neighbours in this order have similar lengths, so little padding is needed.
        self.ids = sorted(pages, key=lambda node_id: (len(pages[node_id]), node_id))
        chunk_rows = ROWS_PER_CHUNK if device.type == "cpu" else ROWS_PER_CHUNK_ON_GPU
        self.chunks: list[PackedChunk] = []
        norms, rounding = [], []
        for members in _runs_by_rows(self.ids, lambda node_id: len(pages[node_id]), chunk_rows):
            exact = _padded([pages[node_id] for node_id in members])
            rounded = exact.to(dtype)
            shape = (len(members), -1)
            norms.append(torch.linalg.vector_norm(exact, dim=1).view(shape).amax(1))
            rounding.append(torch.linalg.vector_norm(exact - rounded.float(), dim=1).view(shape).amax(1))
            self.chunks.append(PackedChunk(rounded.to(device), len(members), len(exact) // len(members)))
        #: For each page the norm of its longest row, and of the largest difference between a row and its rounded copy.
        self._norms = torch.cat(norms).double().numpy() if norms else np.zeros(0)
        self._rounding = torch.cat(rounding).double().numpy() if rounding else np.zeros(0)

    def top_k(self, query: NDArray[np.float32], k: int, pages: Pages) -> list[ScoredNode]:
        """Find the k best pages, exactly as float64 ranks them.

        Parameters
        ----------
        query
            float32 of shape (m, dim).
        k
            Number of pages.
        pages
            The original rows of the packed pages.

        Returns
        -------
        list of ScoredNode
            Best first, ties by id.
        """
        scores, errors = self.scan(query)
        if np.isfinite(scores).all():
            possible = _possible_winners(scores, errors, min(k, len(scores)))
        else:
            possible = np.arange(len(scores))  # after an overflow in half precision no score can be trusted
        if len(possible) > 4 * k and self._dtype != torch.float32:
            possible = self._narrowed(query, possible, k, pages)
        exact = self._exact_scores(query, possible, pages)
        return top_k(((self.ids[i], score) for i, score in zip(possible.tolist(), exact, strict=True)), k)

    def _exact_scores(self, query: NDArray[np.float32], chosen: NDArray[np.intp], pages: Pages) -> list[float]:
        # Not `maxsim`: NumPy's threads and torch's threads would compete for the CPUs.
        rows = torch.from_numpy(query).double()

        def scores(run: Sequence[int]) -> list[float]:
            originals = (torch.from_numpy(pages[self.ids[i]]).double() for i in run)
            return [float((rows @ page.t()).amax(1).mean()) for page in originals]

        return [score for run in parallel_map(scores, chosen.tolist()) for score in run]

    def _narrowed(
        self, query: NDArray[np.float32], possible: NDArray[np.intp], k: int, pages: Pages
    ) -> NDArray[np.intp]:
        """Return those of many possible winners that a scan in float32 leaves."""
        subset = {self.ids[i]: pages[self.ids[i]] for i in possible.tolist()}
        finer = PackedRows(subset, torch.float32, torch.device("cpu"))
        position = {self.ids[i]: i for i in possible.tolist()}
        scores, errors = finer.scan(query)
        return np.array([position[finer.ids[i]] for i in _possible_winners(scores, errors, k)])

    def scan(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Score all pages approximately.

        Parameters
        ----------
        query
            float32 of shape (m, dim).

        Returns
        -------
        tuple of NDArray
            For each page, in the order of `ids`, its score and a bound on the error of the score; shape (pages,).
        """
        if not self.chunks:
            return np.zeros(0), np.zeros(0)
        exact = torch.from_numpy(query)
        rounded = exact.to(self._dtype)
        query_rows = rounded.to(self._device)

        def best_products(run: Sequence[PackedChunk]) -> torch.Tensor:
            return torch.cat([chunk.best_products(query_rows) for chunk in run], dim=1)

        on_cpu = self._device.type == "cpu"
        best = torch.cat(parallel_map(best_products, self.chunks), dim=1) if on_cpu else best_products(self.chunks)
        values = best.to("cpu", torch.float64).numpy()
        scores = values.mean(axis=0)
        query_norm = torch.linalg.vector_norm(exact.double(), dim=1).mean().item()
        query_rounding = torch.linalg.vector_norm(exact.double() - rounded.double(), dim=1).mean().item()
        # Cauchy-Schwarz bounds the effect of rounding on either side; then follow the error of a float32 sum and the
        # rounding of the result.
        unit = torch.finfo(self._dtype).eps
        summing = query.shape[1] * torch.finfo(torch.float32).eps * 2
        if not on_cpu:
            summing += 4 * unit  # GPUs may sum in the type of the operands
        result_rounding = unit * np.abs(values).mean(axis=0)
        errors = (
            query_rounding * self._norms
            + (query_norm + query_rounding) * self._rounding
            + summing * query_norm * self._norms
            + result_rounding
        )
        return scores, errors


def _possible_winners(scores: NDArray[np.float64], errors: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the indices of all scores that may be among the k best within their error bounds."""
    certain = np.sort(scores - errors)[::-1][:k]
    # Scores that agree in all relevant decimals are ties, which ids decide.
    least = certain[-1] - 10.0**-SCORE_DECIMALS if len(certain) else 0.0
    return np.flatnonzero(scores + errors >= least)


def _runs_by_rows(items: Sequence[K], rows_of: Callable[[K], int], most: int) -> Iterator[Sequence[K]]:
    """Split pages into runs of at most `most` rows after padding to the run's longest page. One page may exceed it."""
    start = 0
    while start < len(items):
        end, longest = start, 0
        while end < len(items) and (end == start or (end - start + 1) * max(longest, rows_of(items[end])) <= most):
            longest = max(longest, rows_of(items[end]))
            end += 1
        yield items[start:end]
        start = end


def _padded(pages: list[NDArray[np.floating]]) -> torch.Tensor:
    length = max(map(len, pages))
    rows = np.empty((len(pages), length, pages[0].shape[1]), np.float32)
    for target, page in zip(rows, pages, strict=True):
        target[: len(page)] = page
        target[len(page) :] = page[-1]
    return torch.from_numpy(rows.reshape(-1, rows.shape[2]))


def _compact_original(page: NDArray[np.floating]) -> NDArray[np.floating]:
    # The store holds float16; keeping that takes half the memory and is exact.
    if page.dtype == np.float16:
        return page
    half = page.astype(np.float16)
    return half if np.array_equal(half, page) else page.astype(np.float32)
