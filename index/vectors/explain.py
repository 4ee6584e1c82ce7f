"""Explanation of MaxSim scores: for every query row, the row of the state that earned its score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RowMatch:
    """A row of a state, and the query rows of which it is the best match.

    Attributes
    ----------
    row
        Its index in the state's multi-vector.
    query_rows
        Indices of the query rows, ascending.
    score
        The largest dot product among them.
    credit
        The sum of their dot products: the row's contribution to MaxSim, times the number of query rows.
    """

    row: int
    query_rows: tuple[int, ...]
    score: float
    credit: float


def match_rows(query: NDArray[np.floating], page: NDArray[np.floating]) -> list[RowMatch]:
    """Split a MaxSim score by the rows of the page that earned it; every query row is in exactly one match.

    Parameters
    ----------
    query
        Shape (m, dim).
    page
        Shape (n, dim).

    Returns
    -------
    list of RowMatch
        Largest contribution first. Equal products go to the first row, equal contributions likewise.
    """
    products = np.asarray(query, dtype=np.float32) @ np.asarray(page, dtype=np.float32).T
    best, values = products.argmax(axis=1), products.max(axis=1)
    matches = []
    for row in sorted(set(best.tolist())):
        query_rows = np.flatnonzero(best == row)
        earned = values[query_rows]
        matches.append(
            RowMatch(row, tuple(query_rows.tolist()), float(earned.max()), float(earned.sum(dtype=np.float64)))
        )
    return sorted(matches, key=lambda match: (-match.credit, match.row))
