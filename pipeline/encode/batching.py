"""In which groups are texts embedded? Equal texts once, texts of similar length together."""

from __future__ import annotations

from collections.abc import Sequence


def length_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Indices grouped into batches of at most `size`, shortest first, so that little padding is computed.

    >>> length_batches([5, 1, 4, 1], size=2)
    [[1, 3], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    return [order[start : start + size] for start in range(0, len(order), size)]
