"""How is a site that is asked a lot searched exactly, on a CPU or a GPU? All its rows packed into a few large matrices.

One matrix product per chunk scores thousands of rows at once. What the product's type cannot decide is decided in
float64: every approximate score comes with a bound on its error, and all states that the bounds leave in the running
are scored again from the original rows. So the ranking is that of `index.vectors.exact.maxsim`, whatever the type.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from index.vectors.checks import SCORE_DECIMALS, checked_k, checked_page, checked_query, ranked
from index.vectors.protocol import ScoredNode
from index.vectors.workers import spread
from waygraph.errors import InvalidInput

#: Rows of one product. With 20 to 120 query rows it then stays in the CPU's second-level cache, mostly.
ROWS_PER_CHUNK = 3_000
#: A GPU wants larger bites.
ROWS_PER_CHUNK_ON_GPU = 262_144

K = TypeVar("K")
Pages = Mapping[str, NDArray[np.floating]]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class PackedIndex:
    """A `VectorIndex` in memory that ranks as float64 would, scanning in a smaller type. Threads may search at once.

    Matrices of float16 are kept as they are given, without a copy: do not change them.

    Parameters
    ----------
    dim : number of columns of every multi-vector.
    dtype : what the scan computes in: `float32`, `bfloat16`, `float16`. Half precision halves the scan's memory; on
        CPUs bfloat16 is fast when states differ clearly, and float16 has no fast kernels.
        Empty: `float32` on a CPU, `bfloat16` on a GPU.
    device : where the packed rows lie, as torch names it. The original rows stay in the CPU's memory.

    """

    def __init__(self, dim: int, *, dtype: str = "", device: str = "cpu") -> None:
        chosen = dtype or ("float32" if device == "cpu" else "bfloat16")
        if chosen not in DTYPES:
            raise InvalidInput(f"There is no scan in '{chosen}'.", hint=f"Known types: {', '.join(DTYPES)}.")
        self.dim = dim
        self._dtype, self._device = DTYPES[chosen], torch.device(device)
        self._pages: dict[str, NDArray[np.floating]] = {}
        self._packed: PackedRows | None = None
        self._lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. Nothing is added when one of them is refused."""
        pages = {node_id: _original(checked_page(node_id, page, self.dim)) for node_id, page in items}
        with self._lock:
            self._pages = self._pages | pages
            self._packed = None

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states, see `VectorIndex.search`; exactly those that float64 finds, in its order."""
        rows, limit = checked_query(query, self.dim), checked_k(k)
        with self._lock:
            if self._packed is None:
                self._packed = PackedRows(self._pages, self._dtype, self._device)
            packed, pages = self._packed, self._pages
        return packed.best(rows, limit, pages)

    def compact(self) -> None:
        """Nothing to do: there are no files."""

    def __len__(self) -> int:
        return len(self._pages)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._pages, self._packed = {}, None


def scored(query: NDArray[np.float32], pages: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """MaxSim of some pages in float32, shape (pages,); for a few that are scored once, packing would cost more."""
    asked = torch.from_numpy(query)

    def best_rows(mine: Sequence[NDArray[np.floating]]) -> list[torch.Tensor]:
        best: list[torch.Tensor] = []
        room = asked.new_empty((0, asked.shape[1]))
        # A few pages at a time, widened into one place: what is written there is still in the cache for the product.
        for few in _by_rows(mine, len, ROWS_PER_CHUNK):
            lengths = [len(page) for page in few]
            if len(room) < sum(lengths):
                room = asked.new_empty((sum(lengths), asked.shape[1]))
            rows = room[: sum(lengths)]
            for place, page in zip(torch.split(rows, lengths), few, strict=True):
                place.copy_(torch.from_numpy(page))
            best += [products.amax(1) for products in torch.split(asked @ rows.t(), lengths, dim=1)]
        return best

    best = [products for share in spread(best_rows, pages) for products in share]
    means: NDArray[np.float64] = torch.stack(best).double().mean(1).numpy()
    return means


@dataclass(frozen=True, slots=True)
class Chunk:
    """Pages of about the same length, each filled up to the longest by repeating its last row: no maximum changes."""

    rows: torch.Tensor  # (pages * length, dim)
    pages: int
    length: int

    def best_rows(self, asked: torch.Tensor) -> torch.Tensor:
        """For each row of a question (m, dim) and each page the largest product, shape (m, pages)."""
        # A row of products for each row of the query, so that what a maximum is taken of lies side by side.
        return (asked @ self.rows.t()).view(len(asked), self.pages, self.length).amax(2)


def fastest_dtype() -> torch.dtype:
    """What a scan on this machine's CPU is fastest in, when how exact it is does not matter."""
    return torch.bfloat16 if torch.backends.cpu.get_cpu_capability().startswith("AVX512") else torch.float32


def approximate_scores(packed: Sequence[PackedRows], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """MaxSim of all pages of several `PackedRows` on the CPU, as their types round it; one after the other."""
    asked = torch.from_numpy(query)

    def means(mine: Sequence[Chunk]) -> list[torch.Tensor]:
        return [chunk.best_rows(asked.to(chunk.rows.dtype)).float().mean(0) for chunk in mine]

    chunks = [chunk for each in packed for chunk in each.chunks]
    scores: NDArray[np.float32] = torch.cat([mean for share in spread(means, chunks) for mean in share]).numpy()
    return scores


class PackedRows:
    """The rows of many pages in chunks, and what rounding them did. Immutable.

    Parameters
    ----------
    pages : matrices of shape (n, dim) by id.
    dtype, device : of the packed copy.

    Attributes
    ----------
    ids : the pages in the order in which `chunks` hold them.

    """

    def __init__(
        self,
        pages: Pages,
        dtype: torch.dtype = torch.float32,
        device: torch.device = torch.device("cpu"),  # noqa: B008 - a constant
    ) -> None:
        self._dtype, self._device = dtype, device
        # Neighbours in this order are of nearly one length, so that little is filled up.
        self.ids = sorted(pages, key=lambda node_id: (len(pages[node_id]), node_id))
        most = ROWS_PER_CHUNK if device.type == "cpu" else ROWS_PER_CHUNK_ON_GPU
        self.chunks: list[Chunk] = []
        norms, rounded = [], []
        for members in _by_rows(self.ids, lambda node_id: len(pages[node_id]), most):
            exact = _filled_up([pages[node_id] for node_id in members])
            kept = exact.to(dtype)
            shape = (len(members), -1)
            norms.append(torch.linalg.vector_norm(exact, dim=1).view(shape).amax(1))
            rounded.append(torch.linalg.vector_norm(exact - kept.float(), dim=1).view(shape).amax(1))
            self.chunks.append(Chunk(kept.to(device), len(members), len(exact) // len(members)))
        #: For each page its longest row, and the longest difference between a row and what it was rounded to.
        self._norms = torch.cat(norms).double().numpy() if norms else np.zeros(0)
        self._rounded = torch.cat(rounded).double().numpy() if rounded else np.zeros(0)

    def best(self, query: NDArray[np.float32], k: int, pages: Pages) -> list[ScoredNode]:
        """The k best of the pages that were packed, exactly as float64 ranks them."""
        scores, errors = self.scan(query)
        if np.isfinite(scores).all():
            certain = np.sort(scores - errors)[::-1][: min(k, len(scores))]
            # Scores that agree in all decimals that count are ties, and ids decide those.
            least = certain[-1] - 10.0**-SCORE_DECIMALS if len(certain) else 0.0
            running = np.flatnonzero(scores + errors >= least)
        else:
            running = np.arange(len(scores))  # an overflow in half precision says nothing about anyone
        if len(running) > 4 * k and self._dtype != torch.float32:
            running = self._narrowed(query, running, k, pages)
        exact = self._exact(query, running, pages)
        return ranked(((self.ids[i], score) for i, score in zip(running.tolist(), exact, strict=True)), k)

    def _exact(self, query: NDArray[np.float32], chosen: NDArray[np.intp], pages: Pages) -> list[float]:
        # Not `maxsim`: NumPy's threads and torch's would wait for each other's turn on the CPU.
        rows = torch.from_numpy(query).double()

        def scores(mine: Sequence[int]) -> list[float]:
            originals = (torch.from_numpy(pages[self.ids[i]]).double() for i in mine)
            return [float((rows @ page.t()).amax(1).mean()) for page in originals]

        return [score for share in spread(scores, chosen.tolist()) for score in share]

    def _narrowed(
        self, query: NDArray[np.float32], running: NDArray[np.intp], k: int, pages: Pages
    ) -> NDArray[np.intp]:
        """Of many states that half precision left in the running, those that float32 leaves."""
        subset = {self.ids[i]: pages[self.ids[i]] for i in running.tolist()}
        finer = PackedRows(subset, torch.float32, torch.device("cpu"))
        position = {self.ids[i]: i for i in running.tolist()}
        scores, errors = finer.scan(query)
        least = np.sort(scores - errors)[::-1][:k][-1] - 10.0**-SCORE_DECIMALS
        return np.array([position[finer.ids[i]] for i in np.flatnonzero(scores + errors >= least)])

    def scan(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each page, in the order of `ids`, its score and how far that may be from the true one: shape (pages,)."""
        if not self.chunks:
            return np.zeros(0), np.zeros(0)
        exact = torch.from_numpy(query)
        rounded = exact.to(self._dtype)
        asked = rounded.to(self._device)

        def best_rows(mine: Sequence[Chunk]) -> torch.Tensor:
            return torch.cat([chunk.best_rows(asked) for chunk in mine], dim=1)

        on_cpu = self._device.type == "cpu"
        best = torch.cat(spread(best_rows, self.chunks), dim=1) if on_cpu else best_rows(self.chunks)
        values = best.to("cpu", torch.float64).numpy()
        scores = values.mean(axis=0)
        lengths = torch.linalg.vector_norm(exact.double(), dim=1).mean().item()
        lost = torch.linalg.vector_norm(exact.double() - rounded.double(), dim=1).mean().item()
        # Cauchy-Schwarz for what rounding took from either side; a float32 sum's error; rounding of the result.
        unit = torch.finfo(self._dtype).eps
        summing = query.shape[1] * torch.finfo(torch.float32).eps * 2
        if not on_cpu:
            summing += 4 * unit  # GPUs may sum in the type of the operands
        outcome = unit * np.abs(values).mean(axis=0)
        errors = lost * self._norms + (lengths + lost) * self._rounded + summing * lengths * self._norms + outcome
        return scores, errors


def _by_rows(ids: Sequence[K], rows_of: Callable[[K], int], most: int) -> Iterator[Sequence[K]]:
    """Runs of pages which, each filled up to the longest of the run, have at most so many rows (one page has more)."""
    start = 0
    while start < len(ids):
        end, longest = start, 0
        while end < len(ids) and (end == start or (end - start + 1) * max(longest, rows_of(ids[end])) <= most):
            longest = max(longest, rows_of(ids[end]))
            end += 1
        yield ids[start:end]
        start = end


def _filled_up(pages: list[NDArray[np.floating]]) -> torch.Tensor:
    length = max(map(len, pages))
    rows = np.empty((len(pages), length, pages[0].shape[1]), np.float32)
    for filled, page in zip(rows, pages, strict=True):
        filled[: len(page)] = page
        filled[len(page) :] = page[-1]
    return torch.from_numpy(rows.reshape(-1, rows.shape[2]))


def _original(page: NDArray[np.floating]) -> NDArray[np.floating]:
    # What the store holds is float16; keeping it so costs half the memory and nothing else.
    if page.dtype == np.float16:
        return page
    half = page.astype(np.float16)
    return half if np.array_equal(half, page) else page.astype(np.float32)
