"""The choice of the next element: the nearest one that was not tried in this state and leads to a new page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urldefrag

from waygraph.agents.observation.elements import ObservedElement


@dataclass(frozen=True, slots=True)
class ScoredElement:
    """An element and the nearness of its text to the task."""

    element: ObservedElement
    score: float


@dataclass
class GreedyMemory:
    """What was tried in which state, and which pages were seen.

    Attributes
    ----------
    tried
        Elements that were acted on, by state.
    seen
        URLs that were observed, without fragments.
    """

    tried: dict[str, set[tuple[str, str, str, str, int]]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def note_page(self, url: str) -> None:
        """Remember that a page was seen."""
        self.seen.add(urldefrag(url).url)

    def note_tried(self, state: str, element: ObservedElement) -> None:
        """Remember that an element was acted on, or refused, in a state."""
        self.tried.setdefault(state, set()).add(_key(element))

    def is_open(self, state: str, element: ObservedElement) -> bool:
        """Whether an element is worth a try in a state."""
        candidate = element.candidate
        if candidate.disabled or candidate.covered or not element.name or _key(element) in self.tried.get(state, ()):
            return False
        if element.list_ref and not {("selected", "true"), ("disabled", "true")}.isdisjoint(element.states):
            return False
        target = candidate.action.target
        return not target.startswith(("http:", "https:")) or urldefrag(target).url not in self.seen

    def choose(self, state: str, scored: Iterable[ScoredElement]) -> ScoredElement | None:
        """Return the nearest open element; of equally near ones the first. None if none is left."""
        return max((each for each in scored if self.is_open(state, each.element)), key=lambda e: e.score, default=None)


def _key(element: ObservedElement) -> tuple[str, str, str, str, int]:
    action = element.candidate.action
    return action.role, action.name, action.target, action.value, action.nth
