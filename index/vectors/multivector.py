"""What is a page or a query once it is encoded? A matrix with one row per token or text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: A page or a query as a matrix, one row per token or segment: float32 of shape (n, dim).
MultiVector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A state's multi-vector, and what each of its rows stands for.

    Attributes
    ----------
    vectors : float32, shape (n, dim), n >= 1.
    rows : for each row the text it encodes, shown as the explanation of a hit.
    segments : for each row the indices of the observation's segments that its text came from (may be empty).
    """

    vectors: MultiVector
    rows: tuple[str, ...]
    segments: tuple[tuple[int, ...], ...]
