"""Edges and URLs of a map that a path should not use: which ones a step that failed elsewhere stands for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from waygraph.core.schemas import ActionModel
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.graph import Action, Edge, PathStep
from waygraph.index.graph.lead_paths import lead_edge


@dataclass(frozen=True, slots=True)
class AvoidedParts:
    """Parts of a map that a path should not use.

    Attributes
    ----------
    edges
        Edges of the map, and clicks on the links of leads (`lead_edge`).
    gotos
        States and leads that must not be loaded by their URL.
    """

    edges: tuple[Edge, ...] = ()
    gotos: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.edges or self.gotos)

    def __add__(self, other: AvoidedParts) -> AvoidedParts:
        return AvoidedParts(self.edges + other.edges, self.gotos + other.gotos)

    def contains(self, source: str | None, step: PathStep) -> bool:
        """Whether a step from the state `source` is one of these."""
        if step.action.kind == "goto" and step.expected_node_id in self.gotos:
            return True
        return any(
            (edge.source, edge.target, edge.action) == (source, step.expected_node_id, step.action)
            for edge in self.edges
        )


def parts_of_step(opened: OpenMap, source: str | None, action: Action, target: str | None = None) -> AvoidedParts:
    """Return what a step stands for in a map.

    Parameters
    ----------
    opened
        The map.
    source
        State in which the step was tried; None if that is unknown.
    action
        The action; a `goto` stands for all states that its URL loads.
    target
        State that the step should lead to; None stands for any.

    Returns
    -------
    AvoidedParts
        The edges that the step may be and, for a `goto`, the states and the lead that its URL loads.
    """
    edges = tuple(
        edge
        for edge in _edges_from(opened, source)
        if edge.action == action and target in {None, opened.recognition.canonical(edge.target), edge.target}
    )
    if action.kind != "goto":
        return AvoidedParts(edges)
    leads = (lead.id for lead in opened.leads.values() if action.url in {lead.url, lead.load_url})
    return AvoidedParts(edges, (*opened.states_loaded_by(action.url), *leads))


def parts_of_hidden_elements(opened: OpenMap, actions: Collection[Action]) -> AvoidedParts:
    """Return the edges, from any state, of elements that a browser does not show."""
    if not actions:
        return AvoidedParts()
    hidden = {_element_key(action) for action in actions}
    leads = (lead_edge(lead) for lead in opened.leads.values() if _element_key(lead.action) in hidden)
    return AvoidedParts((*(edge for edge in opened.graph.edges if _element_key(edge.action) in hidden), *leads))


def action_of(model: ActionModel) -> Action:
    """Return the action that a caller sent."""
    return Action.from_json(model.model_dump())


def _element_key(action: Action) -> tuple[str, ...]:
    """Return what identifies an element on every page that has it, such as an entry of the menu."""
    return action.kind, action.role, action.name, action.target, action.value


def _edges_from(opened: OpenMap, source: str | None) -> Iterator[Edge]:
    state = None if source is None else opened.recognition.canonical(source)
    if state is not None and state in opened.graph:
        yield from opened.graph.edges_from(state)
        yield from (lead_edge(lead) for lead in opened.leads.values() if lead.state == state)
