"""Samples at even distances."""

from __future__ import annotations

from collections.abc import Sequence


def evenly_spaced(positions: Sequence[int], most: int) -> list[int]:
    """Return at most `most` positions at even distances, the first and the last included.

    >>> evenly_spaced(range(10), 4), evenly_spaced(range(2), 4)
    ([0, 3, 6, 9], [0, 1])
    """
    if len(positions) <= most:
        return list(positions)
    return [positions[round(number * (len(positions) - 1) / (most - 1))] for number in range(most)]
