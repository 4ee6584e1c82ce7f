"""Match explored states to states of the hand-written truth, by URL, title and visible texts."""

from collections import Counter

from tests.ground_truth.demo_shop import TrueState, Truth
from waygraph.index.graph import HIDDEN_ROLE, InteractionGraph, Observation


def _looks_like(state: TrueState, url: str, observation: Observation, base: str) -> bool:
    said = " | ".join(segment.text for segment in observation.segments if segment.role != HIDDEN_ROLE)
    return (
        url == base + state.path
        and observation.title == state.title
        and all(text in said for text in state.shows)
        and not any(text in said for text in state.hides)
    )


def match_states(
    truth: Truth, graph: InteractionGraph, observations: dict[str, Observation], base: str
) -> dict[str, list[str]]:
    """Return the keys of the matching true states for every explored node id: one each for a correct map."""
    return {
        node.id: [
            key for key, state in truth.states.items() if _looks_like(state, node.url, observations[node.id], base)
        ]
        for node in graph.nodes.values()
    }


def true_edges(truth: Truth) -> Counter[tuple[object, ...]]:
    """Edges of the truth as comparable tuples, with their multiplicity."""
    return Counter((e.source, e.kind, e.role, e.name, e.target, e.opens_tab, e.blocked) for e in truth.edges)


def explored_edges(graph: InteractionGraph, keys: dict[str, str], base: str) -> Counter[tuple[object, ...]]:
    """Walked edges of an explored graph in the same form."""
    return Counter(
        (
            keys[edge.source],
            edge.action.kind,
            edge.action.role,
            edge.action.name,
            keys[edge.target],
            edge.opens_tab,
            (edge.blocked[0].method, edge.blocked[0].url.removeprefix(base)) if edge.blocked else None,
        )
        for edge in graph.edges
        if not edge.inherited
    )
