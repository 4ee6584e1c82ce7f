"""Words that candidates show: how much each tells about which of them is meant."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from waygraph.serve.select.protocol import RetrievedState

#: Least number of leading letters that words must share to count as forms of one word ("order", "orders"). Set by hand.
MIN_STEM = 5
#: Trailing letters that forms of one word may differ in. Set by hand.
MAX_ENDING = 2

_WORD = re.compile(r"[^\W_]{2,}")


def shown_words(text: str, candidates: Sequence[RetrievedState], *, without: str = "") -> list[set[str]]:
    """Return which words of a text each candidate shows in texts, title or address; those of `without` do not count."""
    words = stems(text) - stems(without)
    return [stems(" ".join((c.hit.title, c.hit.url, *c.texts))) & words if words else set() for c in candidates]


def word_weights(shown: Sequence[set[str]]) -> dict[str, float]:
    """Return the weight of each word: log(1 + candidates / candidates that show it)."""
    frequency = Counter(word for words in shown for word in words)
    return {word: math.log(1 + len(shown) / count) for word, count in frequency.items()}


def stems(text: str) -> set[str]:
    """Return the words of a text without their endings."""
    return {word[: max(MIN_STEM, len(word) - MAX_ENDING)] for word in _WORD.findall(text.casefold())}
