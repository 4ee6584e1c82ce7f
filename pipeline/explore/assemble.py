"""How do the states and edges of a finished run become a map? Addressability, inherited edges, observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from index.graph import Action, Edge, InteractionGraph, Node, Observation
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.difference import CHOICES, Mode, difference_key, split_candidates
from pipeline.explore.state import State

Look = Callable[[str], Snapshot]


def build_graph(
    states: Mapping[str, State],
    edges: Sequence[Edge],
    load_ms: Callable[[State], float | None],
    mode: Mode,
    look: Look,
) -> InteractionGraph:
    """The interaction graph: nodes in the order they were found, walked edges first, then inherited ones.

    Parameters
    ----------
    load_ms : how long loading its URL takes for a state that this reproduces; nothing for others.
    look : the look of a state, by id.
    """
    graph = InteractionGraph()
    for node_id, state in states.items():
        ms = load_ms(state)
        graph.add_node(
            Node(
                id=node_id,
                url=state.url,
                title=state.title,
                structure=look(node_id).structure,
                depth=state.depth,
                addressable=ms is not None,
                load_ms=round(ms or 0.0, 1),
            )
        )
    for edge in edges:
        graph.add_edge(edge)
    for edge in _inherited(states, edges, mode, look):
        graph.add_edge(edge)
    return graph


def _inherited(states: Mapping[str, State], edges: Sequence[Edge], mode: Mode, look: Look) -> list[Edge]:
    """Edges of elements that were not activated because the parent had them too (DESIGN, "structural difference").

    An edge that stays on the parent's URL (a menu, a tab) is only inherited by states of that same URL: elsewhere the
    same element opens the same menu of *another* page. What made a state without showing more (it hid something, say)
    is not done again there; a click on it then most likely leads back.
    """
    out: dict[str, list[Edge]] = {}
    for edge in edges:
        out.setdefault(edge.source, []).append(edge)
    inherited: list[Edge] = []
    # In the order of discovery every parent comes before its children, so that what it inherited is there to hand on.
    for node_id, state in states.items():
        if state.parent is None:
            continue
        parent = look(state.parent)
        by_action = {edge.action: edge for edge in reversed(out.get(state.parent, ()))}
        by_key = {difference_key(c, mode): by_action.get(c.action) for c in reversed(parent.candidates)}
        done = {edge.action for edge in out.get(node_id, ())}
        for candidate in split_candidates(look(node_id), parent, mode)[1]:
            if candidate.action in done or candidate.covered:
                continue  # once more what made the state, or out of reach in it
            walked = by_key.get(difference_key(candidate, mode))
            if walked is None or walked.changes_something or walked.source == walked.target:
                continue
            target = walked.target
            if target == node_id:
                if not _is_toggle(candidate.action):
                    continue
                target = state.parent
            leads_away = states[target].url != parent.url
            if leads_away or state.url == parent.url:
                handed_on = replace(walked, source=node_id, target=target, action=candidate.action, inherited=True)
                inherited.append(handed_on)
                out.setdefault(node_id, []).append(handed_on)
    return inherited


def _is_toggle(action: Action) -> bool:
    """Whether doing it twice may take it back."""
    return action.kind == "click" and action.role not in CHOICES and not action.target


def build_observations(
    states: Iterable[str], blobs: Callable[[str], tuple[str, str, str] | None], look: Look
) -> dict[str, Observation]:
    """What each state looked like; `blobs` are the hashes of its screenshot, DOM and accessibility snapshot."""
    observations = {}
    for node_id in states:
        screenshot, dom, aria = blobs(node_id) or ("", "", "")
        seen = look(node_id)
        observations[node_id] = Observation(node_id, seen.url, seen.title, seen.segments, screenshot, dom, aria)
    return observations
