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


def token_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices grouped so that a batch, padded to its longest member, has at most `budget` tokens.

    Longest first: a budget that is too large for memory shows in the first batch, not in the last. A member that is
    longer than the budget is a batch of its own. Members of a batch are padded by less than an eighth of their length.

    >>> token_batches([700, 746, 20, 746, 19], budget=1600)
    [[1, 3], [0], [2, 4]]
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batches:
            longest = lengths[batches[-1][0]]
            if longest * (len(batches[-1]) + 1) <= budget and longest * 8 < lengths[index] * 9:
                batches[-1].append(index)
                continue
        batches.append([index])
    return batches
