"""Assemble the map of a finished run: addressability, inherited edges, observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from waygraph.index.graph import Action, Edge, InteractionGraph, Node, Observation
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.engine.escape_edges import escape_edges
from waygraph.pipeline.explore.engine.menu_edges import menu_edges
from waygraph.pipeline.explore.identity.difference import CHOICE_ROLES, DiffMode, difference_key, split_candidates
from waygraph.pipeline.explore.records.state import State

#: Returns the snapshot of a state by id.
SnapshotOf = Callable[[str], Snapshot]


def build_graph(
    states: Mapping[str, State],
    edges: Sequence[Edge],
    mode: DiffMode,
    snapshot_of: SnapshotOf,
    *,
    depth: Callable[[str], int],
    load_ms: Callable[[State], float | None],
    known_page: Callable[[Candidate, Snapshot], str | None],
    session_of: Callable[[str], str],
) -> InteractionGraph:
    """Return the interaction graph: nodes in the order of discovery, performed edges, then those never performed.

    Parameters
    ----------
    states
        States by id.
    edges
        Performed edges.
    mode
        Structural difference.
    snapshot_of
        Returns the snapshot of a state.
    depth
        Returns the number of actions from the start page to a state.
    load_ms
        Returns the loading time of an addressable state in milliseconds, None for other states.
    known_page
        Returns the addressable state that a link leads to, by its URL; None for other elements, and for those that a
        policy refuses.
    session_of
        Returns the name of the session in which the actions of a state were performed. What was not performed is taken
        over within one session only.

    Returns
    -------
    InteractionGraph
        The graph.
    """
    graph = InteractionGraph()
    for node_id, state in states.items():
        ms = load_ms(state)
        graph.add_node(
            Node(
                id=node_id,
                url=state.url,
                title=state.title,
                structure=snapshot_of(node_id).structure,
                depth=depth(node_id),
                addressable=ms is not None,
                load_ms=round(ms or 0.0, 1),
                address=state.address,
                status=state.status,
                waiting=state.waiting,
            )
        )
    for edge in edges:
        graph.add_edge(edge)

    def is_of_one_session(edge: Edge) -> bool:
        return session_of(edge.source) == session_of(edge.target)

    inherited = list(filter(is_of_one_session, _inherited(states, edges, mode, snapshot_of)))
    for edge in inherited:
        graph.add_edge(edge)
    known = _links_to_known_pages(states, [*edges, *inherited], snapshot_of, load_ms, known_page)
    for edge in filter(is_of_one_session, known):
        graph.add_edge(edge)
    for further in (menu_edges, escape_edges):
        for edge in list(filter(is_of_one_session, further(states, edges, graph, snapshot_of))):
            graph.add_edge(edge)
    return graph


def _links_to_known_pages(
    states: Mapping[str, State],
    edges: Iterable[Edge],
    snapshot_of: SnapshotOf,
    load_ms: Callable[[State], float | None],
    known_page: Callable[[Candidate, Snapshot], str | None],
) -> Iterator[Edge]:
    """Yield an edge for each page that a state links to and has no edge to, by its first link in document order.

    Such links remain where a limit of depth or states ended the run. They are marked as inherited: never performed.
    """
    linked = {(edge.source, edge.target) for edge in edges}
    for node_id in states:
        seen = snapshot_of(node_id)
        for candidate in seen.candidates:
            target = known_page(candidate, seen)
            if target is None or target == node_id or candidate.covered or (node_id, target) in linked:
                continue
            linked.add((node_id, target))
            cost_ms = round(load_ms(states[target]) or 0.0, 1)
            yield Edge(source=node_id, target=target, action=candidate.action, cost_ms=cost_ms, inherited=True)


def _inherited(
    states: Mapping[str, State], edges: Sequence[Edge], mode: DiffMode, snapshot_of: SnapshotOf
) -> list[Edge]:
    """Return the edges of elements that were not activated because the parent state has them too.

    An edge that stays on the parent's URL (a menu, a tab) is inherited by states of the same URL only: elsewhere the
    same element opens the menu of another page. The action that found a state without showing more (it hid something)
    is not repeated there: a click on the same element then most likely leads back to the parent.
    """
    out: dict[str, list[Edge]] = {}
    for edge in edges:
        out.setdefault(edge.source, []).append(edge)
    inherited: list[Edge] = []
    # In the order of discovery parents precede their children, so that inherited edges are inherited further.
    for node_id, state in states.items():
        if state.parent is None:
            continue
        parent = snapshot_of(state.parent)
        by_action = {edge.action: edge for edge in reversed(out.get(state.parent, ()))}
        by_key = {difference_key(c, mode): by_action.get(c.action) for c in reversed(parent.candidates)}
        done = {edge.action for edge in out.get(node_id, ())}
        for candidate in split_candidates(snapshot_of(node_id), parent, mode)[1]:
            if candidate.action in done or candidate.covered:
                continue  # the action that found the state, or an element that is covered in it
            walked = by_key.get(difference_key(candidate, mode))
            if walked is None or walked.is_state_changing or walked.source == walked.target:
                continue
            target = walked.target
            if target == node_id:
                if not _is_toggle(candidate.action):
                    continue
                target = state.parent
            leads_away = states[target].url != parent.url
            if leads_away or state.url == parent.url:
                # Each page has a search word of its own, and only the word that was searched for leads to the target.
                action = structs.replace(candidate.action, value=walked.action.value)
                handed_on = replace(walked, source=node_id, target=target, action=action, inherited=True)
                inherited.append(handed_on)
                out.setdefault(node_id, []).append(handed_on)
    return inherited


def _is_toggle(action: Action) -> bool:
    """Return whether performing the action twice may revert it."""
    return action.kind == "click" and action.role not in CHOICE_ROLES and not action.target


def build_observations(
    states: Iterable[str], blobs: Callable[[str], tuple[str, str, str] | None], snapshot_of: SnapshotOf
) -> dict[str, Observation]:
    """Return the observations of states. `blobs` returns the hashes of screenshot, DOM and accessibility snapshot."""
    observations = {}
    for node_id in states:
        screenshot, dom, aria = blobs(node_id) or ("", "", "")
        seen = snapshot_of(node_id)
        texts = seen.segments + seen.hidden
        observations[node_id] = Observation(node_id, seen.url, seen.title, texts, screenshot, dom, aria)
    return observations
