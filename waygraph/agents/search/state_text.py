"""A state as texts, whether it was visited or only the map knows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from waygraph.agents.observation.page_observation import PageObservation
from waygraph.core.schemas import NodeAnswer

#: Characters of a state that models are shown.
_MAX_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class StateText:
    """What a state shows.

    Attributes
    ----------
    url
        Its URL.
    title
        Title of the document.
    heading
        The first heading; empty: there is none.
    text
        The state as text.
    """

    url: str
    title: str
    heading: str
    text: str

    @classmethod
    def of_page(cls, observation: PageObservation) -> StateText:
        """Return the texts of an observed page."""
        segments = ((each.role, each.text) for each in observation.snapshot.segments)
        return cls(observation.url, observation.title, _first_heading(segments), observation.text[:_MAX_CHARS])

    @classmethod
    def of_map(cls, node: NodeAnswer) -> StateText:
        """Return the texts of a state as a map has it."""
        segments = [(each.role, each.text) for each in node.segments]
        text = "\n".join(f"{role} '{text}'" for role, text in segments)
        return cls(node.url, node.title, _first_heading(segments), text[:_MAX_CHARS])


def _first_heading(segments: Iterable[tuple[str, str]]) -> str:
    return next((text for role, text in segments if role == "heading"), "")
