"""Conversion of an open map to columns, and of one of its states to elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, get_args

from waygraph.core.view_schemas import (
    INHERITED,
    MAX_LEADS,
    MAX_OUTCOMES,
    OPENS_TAB,
    STATE_CHANGING,
    CaptureKind,
    ElementModel,
    ElementOutcomeModel,
    ElementsAnswer,
    GraphAnswer,
    GraphEdges,
    GraphStates,
    LeadSummary,
)
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.graph import Edge, InteractionGraph, Observation, Segment
from waygraph.index.graph.recognition import Recognition
from waygraph.index.store import Manifest
from waygraph.serve.query.answers import SHORT_HASH, action_model, segment_model
from waygraph.serve.views.alike import group_alike
from waygraph.serve.views.element_boxes import ElementBoxes

_SHOWN_STATUSES = get_args(ElementOutcomeModel.model_fields["status"].annotation)
#: What went wrong and what was decided come before what a limit left over.
_ORDER = {"failed": 0, "skipped": 1, "pending": 2}


class MapContents(Protocol):
    """What is shown of a map: an open map, or a version that was read from a store."""

    @property
    def manifest(self) -> Manifest:
        """Manifest of the version."""

    @property
    def graph(self) -> InteractionGraph:
        """States and edges."""

    @property
    def observations(self) -> Mapping[str, Observation]:
        """Observations by node id."""

    @property
    def recognition(self) -> Recognition:
        """Rules by which states are recognised."""


def graph_answer(shown: MapContents, skipped: Mapping[str, int]) -> GraphAnswer:
    """Return all states and edges of a map in columns.

    Parameters
    ----------
    shown
        The map.
    skipped
        Number of skipped elements by state.

    Returns
    -------
    GraphAnswer
        The map.
    """
    graph, stands_for = shown.graph, shown.recognition.stands_for
    nodes = list(graph.nodes.values())
    index = {node.id: number for number, node in enumerate(nodes)}
    edges = list(graph.edges)
    kinds = sorted({edge.action.kind for edge in edges})
    kind_index = {kind: number for number, kind in enumerate(kinds)}
    groups = group_alike(nodes)
    group_index = {node_id: number for number, (_, members) in enumerate(groups) for node_id in members}
    images = ((seen.screenshot if (seen := shown.observations.get(node.id)) else "") for node in nodes)
    return GraphAnswer(
        site=shown.manifest.site,
        version=shown.manifest.version,
        start=index.get(graph.start or "", 0),
        states=GraphStates(
            id=[node.id for node in nodes],
            url=[node.load_url for node in nodes],
            title=[node.title for node in nodes],
            depth=[node.depth for node in nodes],
            addressable=[node.addressable for node in nodes],
            stands_for=[stands_for.get(node.id, 1) for node in nodes],
            screenshot=[image[:SHORT_HASH] for image in images],
            skipped=[skipped.get(node.id, 0) for node in nodes],
            group=[group_index.get(node.id, -1) for node in nodes],
        ),
        groups=[pattern for pattern, _ in groups],
        kinds=list(kinds),
        edges=GraphEdges(
            source=[index[edge.source] for edge in edges],
            target=[index[edge.target] for edge in edges],
            kind=[kind_index[edge.action.kind] for edge in edges],
            flags=[_flags(edge) for edge in edges],
        ),
    )


def elements_answer(opened: OpenMap, node_id: str, outcomes: Iterable[Mapping[str, Any]]) -> ElementsAnswer:
    """Return the elements of one state.

    Parameters
    ----------
    opened
        The map.
    node_id
        Full id of a state, or of a lead, which has no elements.
    outcomes
        Rows of the state in the table of element outcomes (`waygraph.index.store.element_outcomes`).

    Returns
    -------
    ElementsAnswer
        The elements.
    """
    observation = opened.observations.get(node_id)
    boxes = ElementBoxes(observation.segments if observation is not None else ())
    edges = opened.graph.edges_from(node_id) if node_id in opened.graph else ()
    shown = (row for row in outcomes if row.get("status") in _SHOWN_STATUSES)
    kept = [_outcome_model(row) for row in sorted(shown, key=lambda row: _ORDER[row["status"]])]
    leads = [lead for lead in opened.leads.values() if lead.state == node_id]
    return ElementsAnswer(
        site=opened.site,
        version=opened.version,
        node_id=node_id,
        elements=[
            _element_model(opened, edge, boxes)
            for edge in sorted(edges, key=lambda edge: (edge.inherited, edge.action, edge.target))
        ],
        outcomes=kept[:MAX_OUTCOMES],
        outcomes_total=len(kept),
        leads=[
            LeadSummary(node_id=lead.id, url=lead.load_url, title=lead.title, refusal=lead.refusal, hidden=lead.hidden)
            for lead in leads[:MAX_LEADS]
        ],
        leads_total=len(leads),
        captures=[kind for kind in get_args(CaptureKind) if observation is not None and getattr(observation, kind)],
    )


def _flags(edge: Edge) -> int:
    return INHERITED * edge.inherited + OPENS_TAB * edge.opens_tab + STATE_CHANGING * edge.is_state_changing


def _element_model(opened: OpenMap, edge: Edge, boxes: ElementBoxes) -> ElementModel:
    box = boxes.find(next(iter(edge.openers), edge.action))
    return ElementModel(
        action=action_model(edge.action),
        expected_node_id=edge.target,
        expected_url=opened.graph.nodes[edge.target].url,
        cost_ms=edge.cost_ms,
        inherited=edge.inherited,
        openers=[action_model(opener) for opener in edge.openers],
        opens_tab=edge.opens_tab,
        sends=[f"{request.method} {request.url}" for request in edge.state_changing_requests],
        box=segment_model(Segment("", "", box)).box if box is not None else None,
    )


def _outcome_model(row: Mapping[str, Any]) -> ElementOutcomeModel:
    names = ElementOutcomeModel.model_fields
    return ElementOutcomeModel(**{name: str(row.get(name, "")) for name in names})
