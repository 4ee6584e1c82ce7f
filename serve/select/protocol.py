"""What is a selector? The seam between retrieving candidates and teleporting to one (WebNavigator's "reason")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from waygraph.schemas import Hit, SelectorName, UsageModel


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent looks for (`query`), and what it wants there (`intent`, may be empty)."""

    query: str
    intent: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A state that retrieval found, with what a selector may look at.

    Attributes
    ----------
    texts : what the state says, in the order of the page. Untrusted: any website may write anything.
    screenshot : reads the image of the state; nothing when it was recorded without one.
    cost_ms : finds what the way there costs from where the agent is; nothing when no way is known.
    """

    hit: Hit
    texts: tuple[str, ...]
    screenshot: Callable[[], bytes | None]
    cost_ms: Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which candidate it is (an index; nothing: none of them), who decided that, and why.

    Attributes
    ----------
    notes : what a caller should know about how it was decided, such as that the language model did not answer.
    """

    index: int | None
    selector: SelectorName
    reason: str
    notes: tuple[str, ...] = ()
    usage: UsageModel | None = None


class Selector(Protocol):
    """Chooses among candidates. Thread-safe."""

    def choose(self, question: Question, candidates: Sequence[Candidate]) -> Choice:
        """Choose one of the candidates (at least one), which come best first as retrieval ranked them."""
        ...
