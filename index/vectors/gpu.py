"""Exact search on a GPU: float16 rows of all states, scored by a fused MaxSim kernel, the best rescored in float64.

The kernel (`late-interaction-kernels`) reads every row once and keeps the products in registers, so a scan takes the
time of reading the rows. It adds up in float32. The store keeps vectors in float16, so the rows are exact and only
rounding of the query and of sums can change an order. States for which it could are rescored on the GPU in float64; the
ranking is therefore that of `waygraph.index.vectors.exact.maxsim`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waygraph.index.vectors.protocol import ScoredNode
from waygraph.index.vectors.validation import SCORE_DECIMALS, top_k

#: Sums over query rows of the largest products, float32 of shape (1, pages), of a packed query (m, dim) and packed rows
#: (n, dim), with the boundaries of both as int32, and the lengths of the longest query and page.
MaxSimKernel = Callable[[Tensor, Tensor, Tensor, Tensor, int, int], Tensor]

#: The kernel addresses numbers by int32.
MAX_NUMBERS_PER_SHARD = 2**31 - 1
#: Bytes that are copied to the GPU at once.
_COPIED_AT_ONCE = 2**28
#: Lengths of padded queries for which the kernel is compiled and tuned when a map is packed, which takes seconds.
#: Longer queries are padded to powers of two, as the kernel is tuned, and the first of each length waits for it.
TUNED_ROWS = (32, 128)
#: Held during calls of the kernel: the objects of Triton that tune it are shared by all threads.
_KERNEL_LOCK = threading.Lock()
#: Numbers in float64, of rows and products together, that are rescored at once: 1 GiB.
_RESCORED_AT_ONCE = 2**27


def fused_kernel() -> MaxSimKernel | None:
    """Return the kernel of `late-interaction-kernels`, or None where it is not installed or has no Triton."""
    try:
        import triton  # noqa: F401, PLC0415 - only part of CUDA builds of torch
        from late_interaction_kernels import maxsim_varlen  # noqa: PLC0415 - optional
    except ImportError:
        return None
    kernel: MaxSimKernel = maxsim_varlen
    return kernel


@dataclass(frozen=True, slots=True)
class _Shard:
    """Consecutive pages that one call of the kernel scores.

    Attributes
    ----------
    rows
        float16 of shape (rows, dim).
    boundaries
        int32 of shape (pages + 1,): where each page begins, from 0.
    longest
        Number of rows of the longest page.
    """

    rows: Tensor
    boundaries: Tensor
    longest: int


class GpuRows:
    """The rows of many pages on a GPU. Immutable.

    Parameters
    ----------
    pages
        float16 matrices of shape (n, dim) by id.
    device
        The GPU.
    kernel
        Computes MaxSim.
    """

    def __init__(self, pages: Mapping[str, NDArray[np.float16]], device: torch.device, kernel: MaxSimKernel) -> None:
        self._device, self._kernel = device, kernel
        self.ids = sorted(pages)
        lengths = [len(pages[node_id]) for node_id in self.ids]
        self._starts = [0, *accumulate(lengths)]
        dim = pages[self.ids[0]].shape[1] if self.ids else 1
        self._rows = torch.empty((self._starts[-1], dim), dtype=torch.float16, device=device)
        for first, last in _runs(lengths, _COPIED_AT_ONCE // (2 * dim)):
            together = np.concatenate([pages[node_id] for node_id in self.ids[first:last]])
            self._rows[self._starts[first] : self._starts[last]] = torch.from_numpy(together).to(device)
        self._shards = [
            _Shard(
                self._rows[self._starts[first] : self._starts[last]],
                torch.tensor(
                    [start - self._starts[first] for start in self._starts[first : last + 1]],
                    dtype=torch.int32,
                    device=device,
                ),
                max(lengths[first:last]),
            )
            for first, last in _runs(lengths, MAX_NUMBERS_PER_SHARD // dim)
        ]
        self._norms = self._largest_norms(lengths)
        for rows in TUNED_ROWS if self.ids else ():
            self.scan(np.zeros((rows, dim), np.float32))

    def _largest_norms(self, lengths: Sequence[int]) -> Tensor:
        """Return the norm of the longest row of each page, float64 of shape (pages,)."""
        norms = torch.cat([torch.linalg.vector_norm(part.float(), dim=1) for part in torch.split(self._rows, 2**22)])
        counts = torch.tensor(lengths, device=self._device)
        return torch.segment_reduce(norms, "max", lengths=counts).double() if lengths else norms.double()

    def top_k(self, query: NDArray[np.float32], k: int) -> list[ScoredNode]:
        """Find the k best pages, exactly as float64 ranks them.

        Parameters
        ----------
        query
            float32 of shape (m, dim).
        k
            Number of pages.

        Returns
        -------
        list of ScoredNode
            Best first, ties by id.
        """
        if not self.ids:
            return []
        scores, errors = self.scan(query)
        certain = torch.topk(scores - errors, min(k, len(scores))).values[-1]
        # Scores that agree in all relevant decimals are ties, which ids decide.
        possible = torch.nonzero(scores + errors >= certain - 10.0**-SCORE_DECIMALS).squeeze(1).tolist()
        exact = self._exact_scores(query, possible)
        return top_k(((self.ids[page], score) for page, score in zip(possible, exact, strict=True)), k)

    def scan(self, query: NDArray[np.float32]) -> tuple[Tensor, Tensor]:
        """Score all pages with rounding.

        Parameters
        ----------
        query
            float32 of shape (m, dim).

        Returns
        -------
        tuple of Tensor
            For each page its score and a bound on the error of the score, float64 of shape (pages,), on the GPU. The
            bound is infinite for a query that float16 cannot represent.
        """
        exact = torch.from_numpy(query).to(self._device)
        rounded = exact.half()
        # Rows of zeros add nothing to the sum of largest products: their product with every row is zero.
        padded = torch.nn.functional.pad(rounded, (0, 0, 0, padded_length(len(rounded)) - len(rounded)))
        ends = torch.tensor([0, len(padded)], dtype=torch.int32, device=self._device)
        # Triton uses the current GPU, whichever one the tensors are on.
        on_device = torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()
        with _KERNEL_LOCK, on_device:
            sums = [
                self._kernel(padded, shard.rows, ends, shard.boundaries, len(padded), shard.longest)[0]
                for shard in self._shards
            ]
        scores = torch.cat(sums).double() / len(query)
        # Cauchy-Schwarz bounds the effect of rounding the query; then follow the errors of float32 sums.
        rounding = torch.linalg.vector_norm(exact.double() - rounded.double(), dim=1).mean()
        norm = torch.linalg.vector_norm(exact.double(), dim=1).mean() + rounding
        summing = (query.shape[1] + len(padded)) * torch.finfo(torch.float32).eps * 4
        errors = (rounding + summing * norm) * self._norms
        return torch.nan_to_num(scores), torch.where(errors.isfinite(), errors, torch.inf)

    def _exact_scores(self, query: NDArray[np.float32], chosen: Sequence[int]) -> list[float]:
        rows = torch.from_numpy(query).to(self._device).double()
        lengths = [self._starts[page + 1] - self._starts[page] for page in chosen]
        scores: list[Tensor] = []
        for first, last in _runs(lengths, _RESCORED_AT_ONCE // sum(rows.shape)):
            parts = [self._rows[self._starts[page] : self._starts[page + 1]] for page in chosen[first:last]]
            products = rows @ torch.cat(parts).double().t()
            scores += [best.amax(1).mean() for best in torch.split(products, lengths[first:last], dim=1)]
        found: list[float] = torch.stack(scores).tolist()
        return found


def padded_length(rows: int) -> int:
    """Return the number of rows to which a query is padded.

    >>> padded_length(1), padded_length(33), padded_length(129)
    (32, 128, 256)
    """
    return next((each for each in TUNED_ROWS if rows <= each), 1 << (rows - 1).bit_length())


def _runs(lengths: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Split items into runs with a total length of at most `most`. One item may exceed it.

    >>> list(_runs([2, 2, 5, 1], 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    first, total = 0, 0
    for place, length in enumerate(lengths):
        if place > first and total + length > most:
            yield first, place
            first, total = place, 0
        total += length
    if first < len(lengths):
        yield first, len(lengths)
