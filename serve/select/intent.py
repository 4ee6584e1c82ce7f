"""The intent of an agent decides among candidates that score nearly alike, where no language model chooses."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.serve.select.protocol import RetrievedState, SelectionQuery
from waygraph.serve.select.words import shown_words, word_weights

#: Lead over another candidate up to which the intent decides between the two: with a smaller one, the first is right
#: for 39% of questions (`waygraph.serve.select.confidence`). No benchmark has questions with intents.
NEAR = 0.1


def choose_by_intent(query: SelectionQuery, candidates: Sequence[RetrievedState], values: Sequence[float]) -> int:
    """Return the index of the candidate that shows most of the intent, of those with nearly the best value.

    Words of the query do not count: they have decided already.

    Parameters
    ----------
    query
        The search.
    candidates
        The candidates.
    values
        What each is worth without the intent.

    Returns
    -------
    int
        Its index; of equals that of the best value, which also an empty intent returns.
    """
    best = max(values, default=0.0)
    near = [
        index for index in sorted(range(len(values)), key=lambda i: (-values[i], i)) if best - values[index] <= NEAR
    ]
    shown = shown_words(query.intent, [candidates[index] for index in near], without=query.query)
    weights = word_weights(shown)
    evidence = [sum(weights[word] for word in sorted(words)) for words in shown]
    return near[max(range(len(near)), key=lambda i: (evidence[i], -i))]
