"""The ranking by float64 that exact engines must give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from waygraph.index.vectors import ScoredNode, maxsim
from waygraph.index.vectors.validation import top_k


def unit(matrix: np.ndarray) -> np.ndarray:
    """Return the rows of a matrix in unit length."""
    return matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)


def reference(pages: Mapping[str, np.ndarray], query: np.ndarray, k: int) -> list[ScoredNode]:
    """Return the k best pages by MaxSim in float64."""
    return top_k(((name, maxsim(query, page)) for name, page in pages.items()), k)
