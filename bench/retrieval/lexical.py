"""BM25 baseline over all text of a state."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.retrieval.metrics import Scores

_WORD = re.compile(r"[^\W_]+")
#: Words that carry no meaning of their own; with them, long questions would match by grammar.
# fmt: off
_STOP = frozenset({
    "a", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "do", "does", "for", "from", "had", "has",
    "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "one", "or",
    "our", "out", "so", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "up",
    "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "you", "your",
})
# fmt: on


def words(text: str) -> list[str]:
    """Lower-case words without stop words and the commonest English endings.

    >>> words("Where are the unpaid orders?")
    ['unpaid', 'order']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    for ending, least in (("s", 4), ("ing", 6), ("ed", 5), ("e", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word.removesuffix(ending)
    return word


class BM25:
    """Okapi BM25 (Robertson and Zaragoza 2009, eq. 3.15) over one site's states."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        documents = [Counter(words(text)) for text in texts]
        lengths = np.array([sum(document.values()) for document in documents], np.float64)
        norm = k1 * (1 - b + b * lengths / max(lengths.mean(), 1.0))
        seen = Counter(word for document in documents for word in document)
        self._states = len(documents)
        self._weights: dict[str, Scores] = {}
        for word, count in seen.items():
            frequency = np.array([document[word] for document in documents], np.float64)
            idf = math.log(1 + (self._states - count + 0.5) / (count + 0.5))
            self._weights[word] = idf * frequency * (k1 + 1) / (frequency + norm)

    def scores(self, question: str) -> Scores:
        """One score per state, 0 where no word is shared."""
        total = np.zeros(self._states)
        for word in words(question):
            if (weight := self._weights.get(word)) is not None:
                total += weight
        return total
