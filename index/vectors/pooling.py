"""Deterministic pooling of a page's hundreds of vectors into a few that still find it.

One mean per page finds too little among pages that resemble each other, so at least a few rows stay. The rows of a page
are in reading order (patches row by row, texts from top to bottom), and neighbouring rows are mostly similar.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from waygraph.index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR

Rows = NDArray[np.float32]

#: Name and version of the method of `pool_windows`. Stored rows that were pooled by another one are not searched.
POOLING = "windows/1"

#: In one round of `merge_neighbours` at most every fourth row is merged.
_MERGE_EVERY = 4
#: A mean shorter than this share of its rows' length has no direction.
_CANCELLED = 1e-6


def merge_to_fit(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return `rows` if an engine can hold them as one multi-vector, else as many `merge_neighbours` as it can hold."""
    most = (MAX_VALUES_PER_MULTIVECTOR - 1) // rows.shape[1]
    return rows if len(rows) <= most else merge_neighbours(rows, most)


def pool_windows(rows: NDArray[np.floating], count: int) -> Rows:
    """Average `count` windows of consecutive rows, of (nearly) equal size; for patches these are about the grid's rows.

    The first search stage compares these few rows. The mean of rows that differ is shorter than they are, and would
    lose against a page of similar rows. Each mean is therefore scaled to the mean length of its rows.

    Parameters
    ----------
    rows
        Shape (n, dim).
    count
        Number of rows wanted; at most n are made.

    Returns
    -------
    Rows
        float32 of shape (min(count, n), dim).
    """
    full = np.asarray(rows, dtype=np.float32)
    ends = np.linspace(0, len(full), min(count, len(full)) + 1).round().astype(np.intp)
    sizes: Rows = np.diff(ends).astype(np.float32)[:, None]
    sums: Rows = np.add.reduceat(full, ends[:-1], axis=0)
    lengths: Rows = np.add.reduceat(_lengths(full), ends[:-1], axis=0)
    return _rescaled(sums / sizes, lengths / sizes)


def merge_neighbours(rows: NDArray[np.floating], count: int) -> Rows:
    """Average `count` runs of consecutive rows, cut where neighbours differ: flat areas shrink, details stay.

    Runs are merged in rounds. In each round those pairs of neighbours are merged that raise the within-run variance
    least (Ward's criterion, restricted to neighbours); ties go to the first pair.

    Parameters
    ----------
    rows
        Shape (n, dim).
    count
        Number of rows wanted; at most n are made.

    Returns
    -------
    Rows
        float32 of shape (min(count, n), dim).
    """
    means = np.array(rows, dtype=np.float32)
    lengths = _lengths(means)
    sizes = np.ones(len(means), dtype=np.float32)
    while len(means) > count:
        weight = sizes[:-1] * sizes[1:] / (sizes[:-1] + sizes[1:])
        cost = weight * np.square(means[1:] - means[:-1]).sum(axis=1)
        merges = min(len(means) - count, max(1, len(means) // _MERGE_EVERY))
        first = _disjoint_pairs(np.argsort(cost, kind="stable"), merges)
        share = (sizes[first] / (sizes[first] + sizes[first + 1]))[:, None]
        means[first] = share * means[first] + (1 - share) * means[first + 1]
        lengths[first] = share * lengths[first] + (1 - share) * lengths[first + 1]
        sizes[first] += sizes[first + 1]
        keep = np.ones(len(means), dtype=bool)
        keep[first + 1] = False
        means, lengths, sizes = means[keep], lengths[keep], sizes[keep]
    return _rescaled(means, lengths)


def _disjoint_pairs(order: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return up to `most` pairs of `order` that share no row with a pair before them, ascending."""
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


def _rescaled(means: Rows, lengths: Rows) -> Rows:
    # Rows that cancel each other have no direction; what is left of them stays as it is.
    now = _lengths(means)
    return means * np.divide(lengths, now, out=np.ones_like(now), where=now > _CANCELLED * lengths)
