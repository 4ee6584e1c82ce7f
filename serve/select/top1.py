"""The selector that needs nothing: what retrieval ranked first."""

from __future__ import annotations

from collections.abc import Sequence

from serve.select.protocol import Candidate, Choice, Question


class Top1:
    """Takes the first candidate."""

    def choose(self, question: Question, candidates: Sequence[Candidate]) -> Choice:  # noqa: ARG002
        """See `Selector.choose`."""
        first = candidates[0].hit
        return Choice(0, "top1", f"It scores best ({first.score:.3f}) of {len(candidates)}.")
