"""The selector by rule: retrieval's score, corrected by which words of the question a state really shows.

A small sentence encoder takes "unpaid orders" and "paid invoices" for much the same. Words tell them apart, weighted by
how few of the candidates show them. At equal evidence the cheaper way wins. Deterministic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from serve.select.protocol import Candidate, Choice, Question

#: A way that costs this much is half as good as none.
HALF_COST_MS = 3_000.0
#: Letters that words must share at least to count as forms of one word ("order", "orders").
STEM = 5

_WORD = re.compile(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class Weights:
    """How much of a score what else is known of a candidate is worth; `bench/retrieval/reasoning.py` tries others.

    Attributes
    ----------
    words : every word of the question is shown, in texts, title or address.
    cost : it is reached for nothing.
    """

    words: float = 0.05
    cost: float = 0.03


class Rule:
    """Ranks candidates anew by text evidence and path cost."""

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights or Weights()

    def choose(self, question: Question, candidates: Sequence[Candidate]) -> Choice:
        """See `Selector.choose`."""
        shown, worth = _evidence(question, candidates)
        best = self._ranked(candidates, shown, worth)[0]
        words = sorted(shown[best] & worth.keys())
        said = f"shows {', '.join(words)}" if words else "shows none of the words"
        return Choice(best, "rule", f"Rank {best + 1} of {len(candidates)} by score; it {said}.")

    def rank(self, question: Question, candidates: Sequence[Candidate]) -> list[int]:
        """Indices of the candidates, best first."""
        return self._ranked(candidates, *_evidence(question, candidates))

    def _ranked(self, candidates: Sequence[Candidate], shown: Sequence[set[str]], worth: dict[str, float]) -> list[int]:
        total = sum(worth.values())

        def value(index: int) -> float:
            evidence = sum(worth[word] for word in sorted(shown[index] & worth.keys())) / total if total else 0.0
            cost = candidates[index].cost_ms()
            nearness = 0.0 if cost is None else 1 / (1 + cost / HALF_COST_MS)
            return candidates[index].hit.score + self._weights.words * evidence + self._weights.cost * nearness

        return sorted(range(len(candidates)), key=lambda index: (-value(index), index))


def _evidence(question: Question, candidates: Sequence[Candidate]) -> tuple[list[set[str]], dict[str, float]]:
    """Which of the question's words each candidate shows, and what each of them is worth.

    Words that no candidate shows say nothing; those that all show say next to nothing.
    """
    asked = _stems(question.query)
    shown = [_stems(" ".join((c.hit.title, c.hit.url, *c.texts))) & asked for c in candidates]
    frequency = Counter(word for words in shown for word in words)
    return shown, {word: math.log(1 + len(candidates) / count) for word, count in frequency.items()}


def _stems(text: str) -> set[str]:
    """Words, cut to what forms of one word share."""
    return {word[: max(STEM, len(word) - 2)] for word in _WORD.findall(text.casefold())}
