"""Multi-vectors of encoded states and queries: matrices with one row per token or text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: A state or a query as a matrix, one row per token or segment: float32 of shape (n, dim).
MultiVector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A state's multi-vector, with the text of each row.

    Attributes
    ----------
    vectors
        float32 of shape (n, dim), n >= 1.
    rows
        For each row the text that it encodes, shown as the explanation of a hit.
    segments
        For each row the indices of the observation's segments from which its text was made; may be empty.
    """

    vectors: MultiVector
    rows: tuple[str, ...]
    segments: tuple[tuple[int, ...], ...]
