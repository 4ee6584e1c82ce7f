"""Why does a state match a question? For every row of the question, the row of the state that earned its score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RowMatch:
    """A row of a state, and the rows of the question that found nothing better in it.

    Attributes
    ----------
    row : its number in the state's multi-vector.
    query_rows : numbers of those rows of the question, ascending.
    score : the best product among them.
    credit : the sum of their products: what the row contributes to MaxSim, times the number of query rows.

    """

    row: int
    query_rows: tuple[int, ...]
    score: float
    credit: float


def matched_rows(query: NDArray[np.floating], page: NDArray[np.floating]) -> list[RowMatch]:
    """Which rows of a page MaxSim is made of, those that contribute most first; every query row is in exactly one.

    Equal products go to the row that comes first, equal contributions likewise.

    Parameters
    ----------
    query : shape (m, dim).
    page : shape (n, dim).

    """
    products = np.asarray(query, dtype=np.float32) @ np.asarray(page, dtype=np.float32).T
    best, values = products.argmax(axis=1), products.max(axis=1)
    found = []
    for row in np.unique(best).tolist():
        whose = np.flatnonzero(best == row)
        found.append(
            RowMatch(row, tuple(whose.tolist()), float(values[whose].max()), float(values[whose].sum(dtype=np.float64)))
        )
    return sorted(found, key=lambda match: (-match.credit, match.row))
