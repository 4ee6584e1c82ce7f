"""The k cheapest paths equal those of an exhaustive search."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waygraph.core.errors import NoPath, NotFound
from waygraph.index.graph import Action, Edge, InteractionGraph, Node
from waygraph.index.graph.alternatives import k_cheapest_paths
from waygraph.index.graph.path_costs import edge_cost_ms, goto_cost_ms
from waygraph.index.graph.paths import PathFinder


def node(name: str, *, load_ms: float = 0.0) -> Node:
    return Node(name, f"http://site/{name}", name, (), 0, load_ms > 0, load_ms)


def click(source: str, target: str, cost_ms: float, name: str = "") -> Edge:
    return Edge(source, target, Action("click", role="link", name=name or f"to {target}"), cost_ms)


@st.composite
def graphs(draw: st.DrawFn) -> InteractionGraph:
    names = [f"n{i}" for i in range(draw(st.integers(2, 5)))]
    nodes = [node(name, load_ms=draw(st.sampled_from([0.0, 1.0, 4.0, 20.0]))) for name in names]
    ends, costs = st.sampled_from(names), st.sampled_from([1.0, 2.0, 2.5, 7.0])
    edges = draw(st.lists(st.builds(click, ends, ends, costs, st.sampled_from(["", "other"])), max_size=12))
    return InteractionGraph(nodes, edges)


def every_way(graph: InteractionGraph, source: str | None, target: str, *, goto: bool) -> Iterator[tuple[float, int]]:
    """Return cost and number of steps of every loopless path."""

    def on(here: str, visited: frozenset[str], cost: float, steps: int) -> Iterator[tuple[float, int]]:
        if here == target:
            yield round(cost, 3), steps
            return
        for edge in graph.edges_from(here):
            if edge.target not in visited:
                yield from on(edge.target, visited | {edge.target}, cost + edge_cost_ms(edge), steps + 1)

    here = frozenset() if source is None else frozenset({source})
    if source is not None:
        yield from on(source, here, 0.0, 0)
    if goto:
        for there in graph.nodes.values():
            if there.addressable and there.id not in here:
                yield from on(there.id, here | {there.id}, goto_cost_ms(there.load_ms), 1)


@settings(max_examples=300)
@given(graphs(), st.data())
def test_alternatives_are_the_cheapest_loopless_paths(graph, data):
    names = [*graph.nodes]
    source = data.draw(st.sampled_from([None, *names]))
    target = data.draw(st.sampled_from([name for name in names if name != source]))
    goto, most = data.draw(st.booleans()), data.draw(st.integers(1, 6))
    expected = sorted(every_way(graph, source, target, goto=goto))[:most]
    finder = PathFinder(graph)
    if not expected:
        with pytest.raises(NoPath):
            k_cheapest_paths(finder, graph, source, target, most, allow_goto=goto)
        return
    found = k_cheapest_paths(finder, graph, source, target, most, allow_goto=goto)
    assert [path.cost_ms for path in found] == pytest.approx([cost for cost, _ in expected])
    assert len({path.steps for path in found}) == len(found)
    for path in found:
        visited = [step.expected_node_id for step in path.steps]
        assert visited[-1] == target
        assert len({source, *visited}) == len(visited) + 1


def test_two_links_to_the_same_state_are_two_paths():
    graph = InteractionGraph([node("a"), node("b")], [click("a", "b", 1.0, "first"), click("a", "b", 2.0, "second")])
    found = k_cheapest_paths(PathFinder(graph), graph, "a", "b", 5)
    assert [path.steps[0].action.name for path in found] == ["first", "second"]


def test_state_that_must_not_be_loaded_is_reached_by_actions():
    graph = InteractionGraph(
        [node("a", load_ms=5.0), node("b", load_ms=1.0), node("c", load_ms=1.0)], [click("a", "b", 3.0)]
    )
    finder = PathFinder(graph)
    assert [str(step.action) for step in finder.cheapest_path("a", "b").steps] == ["goto http://site/b"]
    walked = finder.cheapest_path("a", "b", avoid_gotos=["b", "not in the graph"])
    assert [step.action.kind for step in walked.steps] == ["click"]
    assert [step.action.kind for step in finder.cheapest_path(None, "b", avoid_gotos=["b"]).steps] == ["goto", "click"]
    with pytest.raises(NoPath, match="avoiding 1 steps"):
        finder.cheapest_path(None, "c", avoid_gotos=["c"])


def test_only_path_to_the_current_state_is_empty():
    graph = InteractionGraph([node("a", load_ms=1.0)])
    (here,) = k_cheapest_paths(PathFinder(graph), graph, "a", "a", 3)
    assert here.steps == ()
    with pytest.raises(NotFound):
        k_cheapest_paths(PathFinder(graph), graph, "a", "nowhere", 3)
