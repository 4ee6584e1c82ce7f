"""Selector that asks a language model only in doubt: without a question where the first hit is most likely right."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery, Selector
from waygraph.serve.select.shortlist import is_sure
from waygraph.serve.select.top1 import Top1Selector


class AutoSelector:
    """Chooses the first candidate if that is sure enough, and else lets a language model choose.

    Parameters
    ----------
    llm
        The language model; None: there is none, and the first candidate is chosen in doubt, too.
    """

    def __init__(self, llm: Selector | None) -> None:
        self._llm = llm
        self._first = Top1Selector()

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:
        """Choose one of the candidates, or none of them."""
        if self._llm is None or is_sure(query.confidence, nothing_matches=query.nothing_matches):
            return self._first.choose(query, candidates)
        return self._llm.choose(query, candidates)
