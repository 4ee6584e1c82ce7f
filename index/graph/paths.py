"""Cheapest paths between the states of one graph, with or without loading URLs."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from waygraph.core.errors import NoPath, NotFound
from waygraph.index.graph.dijkstra import (
    UNREACHABLE,
    Adjacency,
    CheapestTree,
    cheapest_tree,
    cheapest_walk,
    packed_step,
)
from waygraph.index.graph.model import Action, Edge, Path, PathStep
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.path_costs import edge_cost_ms, edge_cost_us, goto_cost_ms, goto_cost_us, is_doubtful

#: Usable edges by (source, target) number, cheapest first.
_EdgesByPair = dict[tuple[int, int], list[Edge]]


class PathFinder:
    """Cheapest paths over one graph. Prepared once and then immutable, so threads may share it.

    The cost of a path is the sum of `edge_cost_ms` of its edges and `goto_cost_ms` of its gotos, in whole microseconds.
    At equal cost the path with fewer steps wins, then a fixed order by node id and action: the answer depends on the
    content of the graph alone. State-changing edges, and edges that stay in their state, are never used.

    A `goto` costs the same from everywhere, so a cheapest path has at most one, as its first step. The cheapest path
    "from anywhere" to every state (`CheapestTree`) is therefore computed once per graph, by Dijkstra's algorithm from
    all addressable states at once. A query then only finds out whether walking from the source is cheaper: the
    bidirectional search (`cheapest_walk`) gives up every state that a goto reaches as cheaply.

    Parameters
    ----------
    graph
        The graph. Later changes to it are not seen.
    """

    def __init__(self, graph: InteractionGraph) -> None:
        self._nodes = [graph.nodes[node_id] for node_id in sorted(graph.nodes)]
        self._number = {node.id: number for number, node in enumerate(self._nodes)}
        self._edges = self._usable_edges(graph)
        self._sort_by_cost()
        self._adjacency = Adjacency.from_costs(
            len(self._nodes), {pair: self._packed_cost(edges[0]) for pair, edges in self._edges.items()}
        )
        self._without_gotos = CheapestTree([UNREACHABLE] * len(self._nodes), [])
        self._from_gotos = self._goto_tree(self._adjacency)
        self._goto_edges = tuple(edge for edges in self._edges.values() for edge in edges if edge.action.kind == "goto")

    def cheapest_path(
        self,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Collection[Edge] = (),
        avoid_gotos: Collection[str] = (),
    ) -> Path:
        """Find the cheapest path to `target`.

        Parameters
        ----------
        source
            Id of the state to start from; None: anywhere, so that the path begins with a `goto`. If it equals `target`,
            the path has no steps.
        target
            Id of the state to reach.
        allow_goto
            Whether the path may load a URL instead of acting on the page.
        avoid
            Edges not to use (for example because they just failed), matched by source, target and action.
        avoid_gotos
            Ids of states that must not be loaded by their URL.

        Returns
        -------
        Path
            The path.

        Raises
        ------
        NotFound
            If `source` or `target` is not in the graph.
        NoPath
            If the graph has no path under these conditions.
        """
        start, goal = None if source is None else self._number_of(source), self._number_of(target)
        if start == goal:
            return Path(source, target, (), 0.0)
        changed = self._edges_without(avoid, allow_goto=allow_goto)
        adjacency = self._adjacency_with(changed)
        tree = self._tree_with(adjacency, changed, avoid_gotos) if allow_goto else self._without_gotos
        walk = None if start is None else cheapest_walk(start, goal, adjacency, tree.costs)
        steps: list[PathStep] = []
        if walk is None:
            if tree.costs[goal] == UNREACHABLE:
                raise _no_path(source, target, allow_goto=allow_goto, avoided=len(avoid) + len(avoid_gotos))
            walk = tree.walk_to(goal)
            steps.append(self._goto_step(walk[0]))
        steps.extend(self._edge_step((changed.get(pair) or self._edges[pair])[0]) for pair in pairwise(walk))
        return Path(source, target, tuple(steps), round(sum(step.cost_ms for step in steps), 3))

    def is_reachable(self, node_id: str) -> bool:
        """Return whether there is a path to a state from anywhere (NotFound if there is no such state)."""
        return self._from_gotos.costs[self._number_of(node_id)] != UNREACHABLE

    def _number_of(self, node_id: str) -> int:
        number = self._number.get(node_id)
        if number is None:
            raise NotFound(f"The map holds no state '{node_id}'.", hint="Search or export lists the states of a map.")
        return number

    def _edge_step(self, edge: Edge) -> PathStep:
        url = self._nodes[self._number[edge.target]].url
        cost_ms = edge_cost_ms(edge, doubtful=self._is_doubtful(edge))
        return PathStep(edge.action, edge.target, url, cost_ms, edge.inherited, edge.opens_tab, openers=edge.openers)

    def _goto_step(self, number: int) -> PathStep:
        node = self._nodes[number]
        return PathStep(Action(kind="goto", url=node.load_url), node.id, node.url, goto_cost_ms(node.load_ms))

    def _usable_edges(self, graph: InteractionGraph) -> _EdgesByPair:
        usable: _EdgesByPair = {}
        for edge in graph.edges:
            if not edge.is_state_changing and edge.source != edge.target:
                usable.setdefault((self._number[edge.source], self._number[edge.target]), []).append(edge)
        return usable

    def _sort_by_cost(self) -> None:
        for edges in self._edges.values():
            if len(edges) > 1:
                edges.sort(key=lambda edge: (self._cost_us(edge), edge.action))

    def _cost_us(self, edge: Edge) -> int:
        return edge_cost_us(edge, doubtful=self._is_doubtful(edge))

    def _packed_cost(self, edge: Edge) -> int:
        return packed_step(self._cost_us(edge))

    def _is_doubtful(self, edge: Edge) -> bool:
        if not edge.inherited:
            return False
        source, target = self._number[edge.source], self._number[edge.target]
        url = self._nodes[target].url
        same_page = self._nodes[source].url == url
        return is_doubtful(edge, same_page=same_page, target_url=url, edges_back=self._edges.get((target, source), ()))

    def _edges_without(self, avoid: Collection[Edge], *, allow_goto: bool) -> _EdgesByPair:
        """Return, for each pair of states that loses an edge, the edges that are left."""
        avoided = {(edge.source, edge.target, edge.action) for edge in avoid}
        if not allow_goto:
            avoided.update((edge.source, edge.target, edge.action) for edge in self._goto_edges)
        left: _EdgesByPair = {}
        for source, target, _ in avoided:
            pair = (self._number.get(source, -1), self._number.get(target, -1))
            if pair in self._edges:
                left[pair] = [e for e in self._edges[pair] if (e.source, e.target, e.action) not in avoided]
        return left

    def _adjacency_with(self, changed: _EdgesByPair) -> Adjacency:
        if not changed:
            return self._adjacency
        costs = {pair: self._packed_cost(edges[0]) if edges else None for pair, edges in changed.items()}
        return self._adjacency.replace(costs)

    def _tree_with(self, adjacency: Adjacency, changed: _EdgesByPair, avoid_gotos: Collection[str]) -> CheapestTree:
        """Return the tree of this graph, recomputed if one of its paths starts at or passes through what is avoided."""
        previous = self._from_gotos.previous
        avoided = {number for node_id in avoid_gotos if (number := self._number.get(node_id)) is not None}
        if any(previous[n] == n for n in avoided) or any(previous[target] == source for source, target in changed):
            return self._goto_tree(adjacency, avoided)
        return self._from_gotos

    def _goto_tree(self, adjacency: Adjacency, avoided: Collection[int] = ()) -> CheapestTree:
        """Compute the cheapest paths that begin with a goto to an addressable state that is not `avoided`."""
        load_costs = [
            packed_step(goto_cost_us(node.load_ms)) if node.addressable and number not in avoided else UNREACHABLE
            for number, node in enumerate(self._nodes)
        ]
        return cheapest_tree(adjacency.ahead, load_costs)


def _no_path(source: str | None, target: str, *, allow_goto: bool, avoided: int) -> NoPath:
    if source is None and not allow_goto:
        return NoPath(
            f"No path to '{target}' from an unknown state without goto.",
            hint="Say which state to start from, or allow goto.",
        )
    conditions = ("" if allow_goto else " without goto") + (f" avoiding {avoided} steps" if avoided else "")
    return NoPath(
        f"The map holds no path from '{source or 'anywhere'}' to '{target}'{conditions}.",
        hint="Inspect the map with export." if allow_goto else "Allow goto, or start from another state.",
    )
