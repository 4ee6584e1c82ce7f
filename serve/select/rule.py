"""The selector by rule: retrieval's score, corrected by which words of the question a state really shows.

A small sentence encoder takes "unpaid orders" and "paid invoices" for much the same. Words tell them apart, weighted by
how few of the candidates show them. At equal evidence the cheaper way wins. Deterministic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from serve.select.protocol import Candidate, Choice, Question

#: How much of a score it is worth to show every word of the question, and to be reached for nothing rather than at all.
WORDS_WEIGHT, COST_WEIGHT = 0.10, 0.01
#: A way that costs this much is half as good as none.
HALF_COST_MS = 3_000.0
#: Letters that words must share at least to count as forms of one word ("order", "orders").
STEM = 5

_WORD = re.compile(r"[^\W_]{2,}")


class Rule:
    """Ranks candidates anew by text evidence and path cost."""

    def choose(self, question: Question, candidates: Sequence[Candidate]) -> Choice:
        """See `Selector.choose`."""
        asked = _stems(question.query)
        shown = [_stems(" ".join((c.hit.title, c.hit.url, *c.texts))) for c in candidates]
        frequency = Counter(word for words in shown for word in words & asked)
        # Words that no candidate shows say nothing; those that all show say next to nothing.
        worth = {word: math.log(1 + len(candidates) / frequency[word]) for word in asked if frequency[word]}
        total = sum(worth.values())

        def evidence(index: int) -> float:
            return sum(worth[word] for word in shown[index] & worth.keys()) / total if total else 0.0

        def rank(index: int) -> tuple[float, int]:
            cost = candidates[index].cost_ms()
            nearness = 0.0 if cost is None else 1 / (1 + cost / HALF_COST_MS)
            return candidates[index].hit.score + WORDS_WEIGHT * evidence(index) + COST_WEIGHT * nearness, -index

        best = max(range(len(candidates)), key=rank)
        words = sorted(shown[best] & worth.keys())
        said = f"shows {', '.join(words)}" if words else "shows none of the words"
        return Choice(best, "rule", f"Rank {best + 1} of {len(candidates)} by score; it {said}.")


def _stems(text: str) -> set[str]:
    """Words, cut to what forms of one word share."""
    return {word[: max(STEM, len(word) - 2)] for word in _WORD.findall(text.casefold())}
