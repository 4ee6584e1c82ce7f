"""Selector by rule: retrieval's score, corrected by the query words that a state shows and by the cost of its path.

A small sentence encoder gives "unpaid orders" and "paid invoices" similar vectors. Words distinguish them; each is
weighted by how few of the candidates show it. At equal evidence the cheaper path wins. Deterministic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery

#: Weights of the rule on the scale of MaxSim scores (0 to 1). The best of a grid on the dev questions of
#: `bench/retrieval`: R@1 +.018 [-.018, .055] and MRR +.012 [-.005, .030] over `text` alone (109 questions), both within
#: chance, so `top1` is the default selector. See "Query rewriting and selectors" in docs/retrieval.md;
#: `python -m bench.retrieval.reasoning` tries others.
WORDS_WEIGHT = 0.05
COST_WEIGHT = 0.03

#: Path cost that earns half of `COST_WEIGHT`. Set by hand; the benchmark does not vary it.
HALF_COST_MS = 3_000.0
#: Least number of leading letters that words must share to count as forms of one word ("order", "orders"). Set by hand.
MIN_STEM = 5
#: Trailing letters that forms of one word may differ in. Set by hand.
MAX_ENDING = 2

_WORD = re.compile(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class RuleWeights:
    """Score that evidence besides the vectors is worth.

    Attributes
    ----------
    words
        Worth of showing every word of the query in texts, title or address.
    cost
        Worth of a path that costs nothing.
    """

    words: float = WORDS_WEIGHT
    cost: float = COST_WEIGHT


class RuleSelector:
    """Ranks the candidates again, by score, words and path cost.

    Parameters
    ----------
    weights
        Worth of words and cost; None uses the defaults.
    """

    def __init__(self, weights: RuleWeights | None = None) -> None:
        self._weights = weights or RuleWeights()

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:
        """Choose the candidate that ranks first."""
        shown, word_weights = _word_evidence(query, candidates)
        best = self._ranked(candidates, shown, word_weights)[0]
        words = sorted(shown[best] & word_weights.keys())
        evidence = f"shows {', '.join(words)}" if words else "shows none of the words"
        return Choice(best, "rule", f"Rank {best + 1} of {len(candidates)} by score; it {evidence}.")

    def rank(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> list[int]:
        """Return the indices of the candidates, best first."""
        return self._ranked(candidates, *_word_evidence(query, candidates))

    def _ranked(
        self, candidates: Sequence[RetrievedState], shown: Sequence[set[str]], word_weights: dict[str, float]
    ) -> list[int]:
        total = sum(word_weights.values())

        def value(index: int) -> float:
            # Sorted: the sum of floats must not depend on the order of a set.
            weight = sum(word_weights[word] for word in sorted(shown[index] & word_weights.keys()))
            evidence = weight / total if total else 0.0
            cost = candidates[index].cost_ms()
            nearness = 0.0 if cost is None else 1 / (1 + cost / HALF_COST_MS)
            return candidates[index].hit.score + self._weights.words * evidence + self._weights.cost * nearness

        return sorted(range(len(candidates)), key=lambda index: (-value(index), index))


def _word_evidence(
    query: SelectionQuery, candidates: Sequence[RetrievedState]
) -> tuple[list[set[str]], dict[str, float]]:
    """Return the query words that each candidate shows, and the weight of each word.

    A word's weight is log(1 + candidates / candidates that show it). Words that no candidate shows have none.
    """
    query_words = _stems(query.query)
    shown = [_stems(" ".join((c.hit.title, c.hit.url, *c.texts))) & query_words for c in candidates]
    frequency = Counter(word for words in shown for word in words)
    return shown, {word: math.log(1 + len(candidates) / count) for word, count in frequency.items()}


def _stems(text: str) -> set[str]:
    """Return the words of a text without their endings."""
    return {word[: max(MIN_STEM, len(word) - MAX_ENDING)] for word in _WORD.findall(text.casefold())}
