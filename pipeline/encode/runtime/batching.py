"""Batches of sequences of similar length."""

from __future__ import annotations

from collections.abc import Sequence

#: Tokens of a batch on a CPU, padding included. Larger batches gain nothing there and need memory in proportion.
BATCH_TOKENS = 2_048


def length_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Group indices into batches of at most `size` members and `BATCH_TOKENS` tokens, shortest first.

    Members of a batch are padded by at most an eighth of their length. A member of more tokens forms its own batch.

    >>> length_batches([9, 1, 8, 1, 1], size=2)
    [[1, 3], [4], [2, 0]]
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        longest = lengths[index]
        fits = bool(batches) and len(batches[-1]) < min(size, BATCH_TOKENS // max(longest, 1))
        if fits and longest * 8 <= lengths[batches[-1][0]] * 9:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def token_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group indices so that a batch, padded to its longest member, has at most `budget` tokens.

    The longest come first, so that a budget that exceeds memory fails in the first batch, not in the last. A member
    longer than the budget forms its own batch. Members of a batch are padded by less than an eighth of their length.

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
