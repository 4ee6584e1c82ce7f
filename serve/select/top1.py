"""Selector that takes the state that retrieval ranked first."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery


class Top1Selector:
    """Chooses the first candidate."""

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:  # noqa: ARG002
        """Choose the first candidate."""
        first = candidates[0].hit
        return Choice(0, "top1", f"It scores best ({first.score:.3f}) of {len(candidates)}.")
