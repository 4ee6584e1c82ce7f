"""Which other ways are there? The k cheapest paths without loops (Yen, Management Science 17(11), 1971)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from index.graph.model import Edge, Path, PathStep
from index.graph.multigraph import InteractionGraph
from index.graph.paths import Router
from waygraph.errors import NoPath


def alternatives(
    router: Router,
    graph: InteractionGraph,
    source: str | None,
    target: str,
    most: int,
    *,
    allow_goto: bool = True,
    avoid: Collection[Edge] = (),
    avoid_gotos: Collection[str] = (),
) -> list[Path]:
    """Up to `most` paths that visit no state twice, cheapest first, at equal cost the shorter first.

    Two paths that differ only in which of two links between the same states they use are different paths. Conditions
    are those of `Router.route`.

    Raises
    ------
    NotFound, NoPath
        As `Router.route`: when there is not even one.
    """
    first = router.route(source, target, allow_goto=allow_goto, avoid=avoid, avoid_gotos=avoid_gotos)
    found, others = [first], dict[tuple[PathStep, ...], Path]()
    while len(found) < most:
        last = found[-1].steps
        for at in range(len(last)):
            spur = source if at == 0 else last[at - 1].expected_node_id
            root = last[:at]
            taken = [path.steps[at] for path in found if path.steps[:at] == root and len(path.steps) > at]
            edges = {edge for step in taken for edge in _edges(graph, spur, step)}
            passed = {source, *(step.expected_node_id for step in root[:-1])} if at else set()
            edges.update(edge for node_id in passed if node_id is not None for edge in graph.edges_from(node_id))
            try:
                rest = router.route(
                    spur,
                    target,
                    # A cheapest path holds a goto as its first step or not at all.
                    allow_goto=allow_goto and at == 0,
                    avoid=[*avoid, *edges],
                    avoid_gotos=[*avoid_gotos, *(step.expected_node_id for step in taken if _is_goto(step))],
                )
            except NoPath:
                continue
            steps = (*root, *rest.steps)
            if all(path.steps != steps for path in found):
                others[steps] = Path(source, target, steps, round(sum(step.cost_ms for step in steps), 3))
        if not others:
            break
        best = min(others.values(), key=lambda path: (path.cost_ms, len(path.steps), _words(path)))
        found.append(others.pop(best.steps))
    return found


def _edges(graph: InteractionGraph, source: str | None, step: PathStep) -> Iterator[Edge]:
    if source is not None:
        for edge in graph.edges_from(source):
            if edge.target == step.expected_node_id and edge.action == step.action:
                yield edge


def _is_goto(step: PathStep) -> bool:
    return step.action.kind == "goto"


def _words(path: Path) -> list[tuple[str, str]]:
    return [(step.expected_node_id, str(step.action)) for step in path.steps]
