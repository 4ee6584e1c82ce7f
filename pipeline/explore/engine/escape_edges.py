"""Edges out of dialogs that nothing is known to close: the Escape key.

Dialogs close at Escape (WAI-ARIA Authoring Practices, "Dialog (Modal) Pattern"). A dialog of which no element was acted
on has no other edge, so that every walk from it would have to load a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from waygraph.index.graph import Action, Edge, InteractionGraph
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.difference import difference_key
from waygraph.pipeline.explore.records.state import State

_ESCAPE = Action("press", value="Escape")


def escape_edges(
    states: Mapping[str, State],
    performed: Iterable[Edge],
    graph: InteractionGraph,
    snapshot_of: Callable[[str], Snapshot],
) -> Iterator[Edge]:
    """Yield an inherited edge from each dialog without edges to another state, to the state that it was opened on.

    A state counts as a dialog if a click opened it at the same URL, and it covers or removes everything that could be
    acted on before.

    Parameters
    ----------
    states
        States by id.
    performed
        Performed edges.
    graph
        The graph with all other edges.
    snapshot_of
        Returns the snapshot of a state.

    Yields
    ------
    Edge
        Inherited edges with the key as action.
    """
    for edge in performed:
        source, target = states[edge.source], states[edge.target]
        if edge.action.kind != "click" or target.parent != source.id or source.url != target.url or edge.opens_tab:
            continue
        if all(out.target == target.id for out in graph.edges_from(target.id)) and not (
            _usable(snapshot_of(source.id)) & _usable(snapshot_of(target.id))
        ):
            yield Edge(target.id, source.id, _ESCAPE, inherited=True)


def _usable(seen: Snapshot) -> set[object]:
    return {difference_key(candidate, "element") for candidate in seen.candidates if not candidate.covered}
