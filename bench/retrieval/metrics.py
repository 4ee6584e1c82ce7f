"""Metrics of rankings, and tests whether one ranking is better than another."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

RESAMPLES = 10_000
SEED = 2026


def ranks_of(targets: Collection[int], scores: Scores) -> list[float]:
    """Ranks of the targets from 1, best first; states with equal scores share their average rank.

    >>> ranks_of({2}, np.array([3.0, 1.0, 1.0]))
    [2.5]
    """
    ranks = []
    for target in targets:
        better = int((scores > scores[target]).sum())
        equal = int((scores == scores[target]).sum())
        ranks.append(better + (equal + 1) / 2)
    return sorted(ranks)


def reciprocal_rank(ranks: Sequence[float]) -> float:
    """1 over the rank of the best target."""
    return 1 / ranks[0]


def recall_at(k: int) -> Callable[[Sequence[float]], float]:
    """Return whether any acceptable state is among the first `k`."""
    return lambda ranks: float(ranks[0] <= k)


def ndcg_at(k: int) -> Callable[[Sequence[float]], float]:
    """Binary gains, logarithmic discount (Jarvelin and Kekalainen 2002), ideal ranking: all targets first.

    >>> ndcg_at(10)([1.0, 2.0]), round(ndcg_at(10)([2.0]), 3)
    (1.0, 0.631)
    """

    def ndcg(ranks: Sequence[float]) -> float:
        gained = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= k)
        return gained / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(ranks)) + 1))

    return ndcg


METRICS: dict[str, Callable[[Sequence[float]], float]] = {
    "recall@1": recall_at(1),
    "recall@5": recall_at(5),
    "recall@10": recall_at(10),
    "recall@30": recall_at(30),
    "mrr": reciprocal_rank,
    "ndcg@10": ndcg_at(10),
}


def area_under_curve(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Probability that a random positive scores above a random negative, equal scores counting half.

    >>> area_under_curve([2.0, 3.0], [1.0, 2.0])
    0.875
    """
    above = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    return statistics.fmean(above)


def bootstrap(differences: Mapping[str, Sequence[float]]) -> tuple[float, float, float]:
    """Mean paired difference and its 95% interval, questions resampled within their sites.

    Parameters
    ----------
    differences : by site, one system's value minus the other's for every question.
    """
    chance = np.random.default_rng(SEED)
    total = np.zeros(RESAMPLES)
    count = 0
    for site in sorted(differences):
        values = np.asarray(differences[site], np.float64)
        total += values[chance.integers(0, len(values), (RESAMPLES, len(values)))].sum(1)
        count += len(values)
    mean = float(sum(sum(values) for values in differences.values()) / count)
    low, high = np.quantile(total / count, [0.025, 0.975])
    return mean, float(low), float(high)
