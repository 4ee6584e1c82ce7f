"""Alternative paths: the k cheapest paths without loops (Yen, Management Science 17(11), 1971)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from waygraph.core.errors import NoPath
from waygraph.index.graph.model import Edge, Path, PathStep
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.paths import PathFinder


def k_cheapest_paths(
    finder: PathFinder,
    graph: InteractionGraph,
    source: str | None,
    target: str,
    k: int,
    *,
    allow_goto: bool = True,
    avoid: Collection[Edge] = (),
    avoid_gotos: Collection[str] = (),
) -> list[Path]:
    """Find up to `k` paths that visit no state twice.

    Two paths that differ only in which of two links between the same states they use are different paths. Each further
    path leaves a known one at a *spur* state: the steps before it (the *root*) stay, and the rest is the cheapest path
    that uses none of the edges by which known paths with the same root go on.

    Parameters
    ----------
    finder
        Finds the cheapest path in `graph`.
    graph
        The graph.
    source
        Id of the state to start from; None: anywhere.
    target
        Id of the state to reach.
    k
        Maximum number of paths.
    allow_goto
        As in `PathFinder.cheapest_path`.
    avoid
        As in `PathFinder.cheapest_path`.
    avoid_gotos
        As in `PathFinder.cheapest_path`.

    Returns
    -------
    list of Path
        Cheapest first, at equal cost the shorter first.

    Raises
    ------
    NotFound, NoPath
        As `PathFinder.cheapest_path`, if there is not even one path.
    """
    cheapest = finder.cheapest_path(source, target, allow_goto=allow_goto, avoid=avoid, avoid_gotos=avoid_gotos)
    paths, candidates = [cheapest], dict[tuple[PathStep, ...], Path]()
    while len(paths) < k:
        last = paths[-1].steps
        for position in range(len(last)):
            spur = source if position == 0 else last[position - 1].expected_node_id
            root = last[:position]
            used = [p.steps[position] for p in paths if p.steps[:position] == root and len(p.steps) > position]
            closed = {edge for step in used for edge in _matching_edges(graph, spur, step)}
            visited = {source, *(step.expected_node_id for step in root[:-1])} if position else set()
            closed.update(edge for node_id in visited if node_id is not None for edge in graph.edges_from(node_id))
            try:
                rest = finder.cheapest_path(
                    spur,
                    target,
                    # A cheapest path has a goto as its first step or not at all.
                    allow_goto=allow_goto and position == 0,
                    avoid=[*avoid, *closed],
                    avoid_gotos=[*avoid_gotos, *(step.expected_node_id for step in used if step.action.kind == "goto")],
                )
            except NoPath:
                continue
            steps = (*root, *rest.steps)
            if all(path.steps != steps for path in paths):
                candidates[steps] = Path(source, target, steps, round(sum(step.cost_ms for step in steps), 3))
        if not candidates:
            break
        best = min(candidates.values(), key=_rank)
        paths.append(candidates.pop(best.steps))
    return paths


def _matching_edges(graph: InteractionGraph, source: str | None, step: PathStep) -> Iterator[Edge]:
    if source is not None:
        for edge in graph.edges_from(source):
            if edge.target == step.expected_node_id and edge.action == step.action:
                yield edge


def _rank(path: Path) -> tuple[float, int, list[tuple[str, str]]]:
    """Return the sort key of a path: its cost, its length, and a fixed order by node id and action."""
    return path.cost_ms, len(path.steps), [(step.expected_node_id, str(step.action)) for step in path.steps]
