"""How does a page of hundreds of vectors become a few that still find it? Deterministic pooling, named and versioned.

One mean per page finds too little among pages that resemble each other, so at least a few rows stay. Rows of a
page are in reading order (patches row by row, texts from top to bottom), and neighbours mostly say the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR

Rows = NDArray[np.float32]

#: Name and version of what `pooled` does. Stored pooled rows of another one are not searched.
POOLING = "windows/1"


def pooled(rows: NDArray[np.floating], count: int) -> Rows:
    """At most `count` rows that stand for a page in a first stage: `windows`, each mean as long as its rows are.

    A mean of rows that differ is shorter than they are, and would lose against a page whose rows are all alike.

    Parameters
    ----------
    rows : shape (n, dim).
    count : rows wanted.

    Returns
    -------
    float32, shape (min(count, n), dim).

    """
    return windows(rows, count)


def fitting(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    """`rows` when they fit into one multi-vector of an engine, else as many `merged_neighbours` as fit."""
    most = (MAX_VALUES_PER_MULTIVECTOR - 1) // rows.shape[1]
    return rows if len(rows) <= most else merged_neighbours(rows, most)


def windows(rows: NDArray[np.floating], count: int) -> Rows:
    """Means of `count` runs of neighbouring rows, runs of (nearly) equal length; of patches about the rows of the grid.

    Each mean is made as long as its rows are on average.

    Parameters
    ----------
    rows : shape (n, dim).
    count : rows wanted, at most n are made.

    Returns
    -------
    float32, shape (min(count, n), dim).

    """
    full = np.asarray(rows, dtype=np.float32)
    ends = np.linspace(0, len(full), min(count, len(full)) + 1).round().astype(np.intp)
    sizes: Rows = np.diff(ends).astype(np.float32)[:, None]
    sums: Rows = np.add.reduceat(full, ends[:-1], axis=0)
    lengths: Rows = np.add.reduceat(_lengths(full), ends[:-1], axis=0)
    return _as_long(sums / sizes, lengths / sizes)


def merged_neighbours(rows: NDArray[np.floating], count: int) -> Rows:
    """Means of `count` runs of neighbouring rows, cut where neighbours differ: flat areas shrink, details stay.

    Runs are merged in rounds. In each round those pairs of neighbours merge that raise the within-run variance least
    (Ward's criterion, restricted to neighbours); ties go to the pair that comes first.

    Parameters
    ----------
    rows : shape (n, dim).
    count : rows wanted, at most n are made.

    Returns
    -------
    float32, shape (min(count, n), dim).

    """
    means = np.array(rows, dtype=np.float32)
    lengths = _lengths(means)
    sizes = np.ones(len(means), dtype=np.float32)
    while len(means) > count:
        weight = sizes[:-1] * sizes[1:] / (sizes[:-1] + sizes[1:])
        cost = weight * np.square(means[1:] - means[:-1]).sum(axis=1)
        first = _apart(np.argsort(cost, kind="stable"), min(len(means) - count, max(1, len(means) // 4)))
        share = (sizes[first] / (sizes[first] + sizes[first + 1]))[:, None]
        means[first] = share * means[first] + (1 - share) * means[first + 1]
        lengths[first] = share * lengths[first] + (1 - share) * lengths[first + 1]
        sizes[first] += sizes[first + 1]
        keep = np.ones(len(means), dtype=bool)
        keep[first + 1] = False
        means, lengths, sizes = means[keep], lengths[keep], sizes[keep]
    return _as_long(means, lengths)


def _apart(order: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """The first `most` of `order` of which none is the neighbour of one before it, ascending."""
    taken = np.zeros(len(order) + 2, dtype=bool)
    chosen = []
    for pair in order.tolist():
        if not (taken[pair] or taken[pair + 1] or taken[pair + 2]):
            taken[pair + 1] = True
            chosen.append(pair)
            if len(chosen) == most:
                break
    return np.sort(np.array(chosen, dtype=np.intp))


def _lengths(rows: Rows) -> Rows:
    lengths: Rows = np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
    return lengths


def _as_long(means: Rows, lengths: Rows) -> Rows:
    # Rows that cancel each other have no direction; what is left of them stays as it is.
    now = _lengths(means)
    return means * np.divide(lengths, now, out=np.ones_like(now), where=now > 1e-6 * lengths)
