"""Selector that takes the state that retrieval ranked first; an intent decides among those that score nearly alike."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.serve.select.intent import choose_by_intent
from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery


class Top1Selector:
    """Chooses the best score."""

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:
        """Choose the first candidate, or the one nearly as good that shows more of the intent."""
        first = candidates[0].hit
        reason = f"It scores best ({first.score:.3f}) of {len(candidates)}."
        if query.confidence is not None:
            reason += f" With such a lead the first is right {query.confidence:.0%} of the time."
        if first.reranked is not None or not query.intent.strip():  # a cross-encoder's order is not that of the scores
            return Choice(0, "top1", reason)
        index = choose_by_intent(query, candidates, [each.hit.score for each in candidates])
        if index == 0:
            return Choice(0, "top1", reason)
        score = candidates[index].hit.score
        return Choice(
            index, "top1", f"It scores {score:.3f}, the best {first.score:.3f}, and shows more of the intent."
        )
