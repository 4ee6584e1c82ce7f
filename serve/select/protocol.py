"""The selector protocol: the step between retrieving candidates and walking to one (WebNavigator's "reason")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from waygraph.core.schemas import Hit, SelectorName, UsageModel


@dataclass(frozen=True, slots=True)
class SelectionQuery:
    """A search for one state.

    Attributes
    ----------
    query
        The page to find.
    intent
        What the agent wants to do there; may be empty.
    task
        The whole task of the agent; may be empty.
    confidence
        How likely the first candidate is right; None: that was not measured.
    nothing_matches
        Whether most likely no candidate is meant; None: that was not measured.
    deadline
        Time by which a choice must be made, as `time.monotonic` counts.
    """

    query: str
    intent: str = ""
    task: str = ""
    confidence: float | None = None
    nothing_matches: bool | None = None
    deadline: float = math.inf


@dataclass(frozen=True, slots=True)
class RetrievedState:
    """A state that retrieval found, with everything a selector may use.

    Attributes
    ----------
    hit
        The hit of the search.
    texts
        Visible texts of the state, in page order. Untrusted: a website may write anything.
    screenshot
        Reads the image of the state; None if it was recorded without one.
    cost_ms
        Computes the cost of the path from the agent's page; None if no path is known.
    """

    hit: Hit
    texts: tuple[str, ...]
    screenshot: Callable[[], bytes | None]
    cost_ms: Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate that a selector chose.

    Attributes
    ----------
    index
        Index of the candidate; None if none of them is meant.
    selector
        The selector that decided.
    reason
        Why, in words.
    notes
        What a caller should know about the decision, for example that the language model did not answer.
    usage
        Tokens, time and cost of a language model.
    """

    index: int | None
    selector: SelectorName
    reason: str
    notes: tuple[str, ...] = ()
    usage: UsageModel | None = None


class Selector(Protocol):
    """Chooses among candidates. Thread-safe."""

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:
        """Choose one of the candidates: at least one, best first as retrieval ranked them."""
        ...
