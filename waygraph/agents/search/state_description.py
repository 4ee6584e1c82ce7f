"""A state as texts, whether it was visited or only the map knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from waygraph.agents.observation.page_observation import PageObservation
from waygraph.core.schemas import NodeAnswer

#: Characters of a state that models are shown.
_MAX_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class StateDescription:
    """What a state shows.

    Attributes
    ----------
    url
        Its URL.
    title
        Title of the document.
    heading
        The first heading; empty: there is none.
    texts
        Its visible texts.
    text
        The state as one text, for models.
    node_id
        Its id in the map; empty: the map does not know it, or there is none.
    """

    url: str
    title: str
    heading: str
    texts: tuple[str, ...]
    text: str
    node_id: str = ""

    @classmethod
    def of_page(cls, observation: PageObservation, node_id: str = "") -> StateDescription:
        """Return the texts of an observed page, which shows this state of a map."""
        segments = [(each.role, each.text) for each in observation.snapshot.segments]
        return cls._of(observation.url, observation.title, segments, observation.full_text, node_id)

    @classmethod
    def of_map(cls, node: NodeAnswer) -> StateDescription:
        """Return the texts of a state as a map has it."""
        segments = [(each.role, each.text) for each in node.segments]
        text = "\n".join(f"{role} '{text}'" for role, text in segments)
        return cls._of(node.url, node.title, segments, text, node.node_id)

    @classmethod
    def _of(
        cls, url: str, title: str, segments: Sequence[tuple[str, str]], text: str, node_id: str
    ) -> StateDescription:
        heading = next((text for role, text in segments if role == "heading"), "")
        texts = tuple(text for _, text in segments)
        return cls(url, title, heading, texts, text[:_MAX_CHARS], node_id)
