"""Selector by rule: retrieval's score, corrected by the query words that a state shows and by the cost of its path.

A small sentence encoder gives "unpaid orders" and "paid invoices" similar vectors. Words distinguish them; each is
weighted by how few of the candidates show it. At equal evidence the cheaper path wins. Deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from waygraph.serve.select.intent import choose_by_intent
from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery
from waygraph.serve.select.words import shown_words, word_weights

#: Weights of the rule on the scale of MaxSim scores (0 to 1). The best of a grid on the dev questions of
#: `bench/retrieval`: R@1 +.018 [-.018, .055] and MRR +.012 [-.005, .030] over `text` alone (109 questions), both within
#: chance, so it is not the default. See "Query rewriting and selectors" in bench/retrieval/recipes.md;
#: `python -m bench.retrieval.reasoning` tries others.
WORDS_WEIGHT = 0.05
COST_WEIGHT = 0.03

#: Path cost that earns half of `COST_WEIGHT`. Set by hand; the benchmark does not vary it.
HALF_COST_MS = 3_000.0


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
        """Choose the candidate that ranks first; the intent decides among those nearly as good."""
        shown = shown_words(query.query, candidates)
        best = choose_by_intent(query, candidates, self._values(candidates, shown))
        words = sorted(shown[best])
        evidence = f"shows {', '.join(words)}" if words else "shows none of the words"
        return Choice(best, "rule", f"Rank {best + 1} of {len(candidates)} by score; it {evidence}.")

    def rank(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> list[int]:
        """Return the indices of the candidates, best first."""
        values = self._values(candidates, shown_words(query.query, candidates))
        return sorted(range(len(candidates)), key=lambda index: (-values[index], index))

    def _values(self, candidates: Sequence[RetrievedState], shown: Sequence[set[str]]) -> list[float]:
        weights = word_weights(shown)
        total = sum(weights.values())

        def value(candidate: RetrievedState, words: set[str]) -> float:
            # Sorted: the sum of floats must not depend on the order of a set.
            evidence = sum(weights[word] for word in sorted(words)) / total if total else 0.0
            cost = candidate.cost_ms()
            nearness = 0.0 if cost is None else 1 / (1 + cost / HALF_COST_MS)
            return candidate.hit.score + self._weights.words * evidence + self._weights.cost * nearness

        return [value(*each) for each in zip(candidates, shown, strict=True)]
