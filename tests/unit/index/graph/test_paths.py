import heapq
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waygraph.core.errors import NoPath, NotFound
from waygraph.index.graph import Action, BlockedRequest, Edge, InteractionGraph, Node
from waygraph.index.graph.path_costs import (
    DEFAULT_EDGE_MS,
    DEFAULT_LOAD_MS,
    DOUBTFUL_PENALTY_MS,
    INHERITED_PENALTY_MS,
    edge_cost_ms,
    goto_cost_ms,
)
from waygraph.index.graph.paths import PathFinder


def node(name: str, *, addressable: bool = False, load_ms: float = 0.0) -> Node:
    return Node(name, f"http://site/{name}", name, (), 0, addressable, load_ms)


def click(source: str, target: str, cost_ms: float = 100.0, name: str = "", **more) -> Edge:
    return Edge(source, target, Action("click", role="link", name=name or f"to {target}"), cost_ms, **more)


@st.composite
def graphs(draw: st.DrawFn) -> InteractionGraph:
    size = draw(st.integers(1, 12))
    names = [f"n{i}" for i in range(size)]
    # Few different costs, so that ties are common; 0 means not measured.
    cost = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 700.0, 1500.0, 0.001])
    nodes = [node(name, addressable=draw(st.booleans()), load_ms=draw(cost)) for name in names]
    ends = st.sampled_from(names)
    edges = draw(
        st.lists(
            st.builds(
                lambda s, t, c, n, kind, inherited, blocked: Edge(
                    s,
                    t,
                    Action(kind, name=str(n)),
                    c,
                    inherited=inherited,
                    blocked=(BlockedRequest("POST", "http://site/buy"),) if blocked else (),
                ),
                ends,
                ends,
                cost,
                st.integers(0, 2),
                st.sampled_from(["click", "click", "click", "goto"]),
                st.sampled_from([False, False, True]),
                st.sampled_from([False, False, False, True]),
            ),
            max_size=40,
        )
    )
    return InteractionGraph(nodes, edges)


def brute_force(graph: InteractionGraph, *, goto: bool, avoid: frozenset[Edge] = frozenset()) -> dict:
    """Costs in whole microseconds between all states, and from None, by relaxing every edge until nothing changes."""
    ways: list[tuple[str | None, str, int]] = []
    for edge in graph.edges:
        usable = not edge.blocked and edge not in avoid and (goto or edge.action.kind != "goto")
        if usable:
            ways.append((edge.source, edge.target, round(edge_cost_ms(edge) * 1000)))
    if goto:
        for target in graph.nodes.values():
            if target.addressable:
                cost = round(goto_cost_ms(target.load_ms) * 1000)
                ways += [(source, target.id, cost) for source in [None, *graph.nodes]]
    best: dict[tuple[str | None, str | None], int] = {(name, name): 0 for name in [None, *graph.nodes]}
    changed = True
    while changed:
        changed = False
        for ((origin, here), known), (source, target, cost) in itertools.product(list(best.items()), ways):
            if source == here and known + cost < best.get((origin, target), 10**18):
                best[origin, target] = known + cost
                changed = True
    return best


def check_walkable(graph: InteractionGraph, path, *, goto: bool, avoid=frozenset()) -> None:
    here = path.source
    total = 0
    for step in path.steps:
        total += round(step.cost_ms * 1000)
        reached = graph.nodes[step.expected_node_id]
        assert step.expected_url == reached.url
        if step.action == Action("goto", url=reached.url) and reached.addressable:
            assert goto
            assert step.cost_ms == goto_cost_ms(reached.load_ms)
        else:
            matching = [e for e in graph.edges_from(here) if e.target == reached.id and e.action == step.action]
            assert any(
                edge_cost_ms(e) == step.cost_ms and not e.blocked and e not in avoid and e.inherited == step.inherited
                for e in matching
            )
        here = reached.id
    assert here == path.target
    assert round(path.cost_ms * 1000) == total


@settings(max_examples=200)
@given(graphs(), st.booleans(), st.randoms(use_true_random=False))
def test_cheapest_paths_equal_those_of_brute_force(graph, goto, rng):
    edges = list(graph.edges)
    avoid = frozenset(rng.sample(edges, min(len(edges), rng.choice([0, 0, 1, 3]))))
    finder = PathFinder(graph)
    best = brute_force(graph, goto=goto, avoid=avoid)
    for source, target in itertools.product([None, *graph.nodes], graph.nodes):
        if (source, target) in best:
            path = finder.cheapest_path(source, target, allow_goto=goto, avoid=avoid)
            assert round(path.cost_ms * 1000) == best[source, target]
            check_walkable(graph, path, goto=goto, avoid=avoid)
        else:
            with pytest.raises(NoPath):
                finder.cheapest_path(source, target, allow_goto=goto, avoid=avoid)


def plain_dijkstra(graph: InteractionGraph, source: str, *, goto: bool) -> dict[str, int]:
    costs = {source: 0}
    if goto:
        loads = {n.id: round(goto_cost_ms(n.load_ms) * 1000) for n in graph.nodes.values() if n.addressable}
        costs = loads | costs
    queue = [(cost, name) for name, cost in costs.items()]
    heapq.heapify(queue)
    while queue:
        done, here = heapq.heappop(queue)
        for edge in graph.edges_from(here):
            new = done + round(edge_cost_ms(edge) * 1000)
            if new < costs.get(edge.target, 10**18):
                costs[edge.target] = new
                heapq.heappush(queue, (new, edge.target))
    return costs


@pytest.mark.parametrize("seed", range(5))
def test_paths_of_larger_graphs_cost_what_plain_dijkstra_finds(seed):
    rng = random.Random(seed)
    names = [f"n{i:03}" for i in range(150)]
    nodes = [node(n, addressable=rng.random() < 0.1, load_ms=rng.uniform(100, 900)) for n in names]
    edges = [click(*rng.choices(names, k=2), rng.uniform(1, 500), name=str(i)) for i in range(450)]
    graph = InteractionGraph(nodes, edges)
    finder = PathFinder(graph)
    for goto, source in itertools.product((True, False), rng.sample(names, 10)):
        costs = plain_dijkstra(graph, source, goto=goto)
        for target in names:
            if target in costs:
                path = finder.cheapest_path(source, target, allow_goto=goto)
                assert round(path.cost_ms * 1000) == costs[target]
                check_walkable(graph, path, goto=goto)
            else:
                with pytest.raises(NoPath):
                    finder.cheapest_path(source, target, allow_goto=goto)


@settings(max_examples=50)
@given(graphs(), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_in_which_a_graph_was_built(graph, rng):
    nodes, edges = list(graph.nodes.values()), list(graph.edges)
    rng.shuffle(nodes)
    rng.shuffle(edges)
    one, other = PathFinder(graph), PathFinder(InteractionGraph(nodes, edges))
    for source, target in itertools.product([None, *graph.nodes], graph.nodes):
        try:
            expected = one.cheapest_path(source, target)
        except NoPath:
            continue
        assert other.cheapest_path(source, target) == expected


def test_path_to_the_current_state_has_no_steps():
    path = PathFinder(InteractionGraph([node("a")])).cheapest_path("a", "a", allow_goto=False)
    assert path.steps == ()
    assert path.cost_ms == 0


def test_a_goto_is_taken_when_it_is_cheaper_than_walking():
    graph = InteractionGraph(
        [node("a"), node("b"), node("c", addressable=True, load_ms=150)], [click("a", "b"), click("b", "c")]
    )
    finder = PathFinder(graph)
    (step,) = finder.cheapest_path("a", "c").steps
    assert step.action == Action("goto", url="http://site/c")
    assert step.expected_node_id == "c"
    assert len(finder.cheapest_path("a", "c", allow_goto=False).steps) == 2


def test_from_anywhere_a_path_begins_with_a_goto():
    graph = InteractionGraph([node("a", addressable=True, load_ms=800), node("b")], [click("a", "b", 50)])
    path = PathFinder(graph).cheapest_path(None, "b")
    assert [step.action.kind for step in path.steps] == ["goto", "click"]
    assert path.cost_ms == 850
    assert path.source is None


def test_from_anywhere_without_goto_there_is_no_path():
    with pytest.raises(NoPath, match="unknown state"):
        PathFinder(InteractionGraph([node("a", addressable=True)])).cheapest_path(None, "a", allow_goto=False)


def test_unmeasured_costs_have_documented_defaults():
    graph = InteractionGraph([node("a", addressable=True), node("b")], [click("a", "b", 0)])
    assert PathFinder(graph).cheapest_path(None, "b").cost_ms == DEFAULT_LOAD_MS + DEFAULT_EDGE_MS


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0])
def test_invalid_cost_counts_as_unmeasured(cost):
    assert (
        PathFinder(InteractionGraph([node("a"), node("b")], [click("a", "b", cost)])).cheapest_path("a", "b").cost_ms
        == 500
    )


def test_inherited_edges_are_a_last_resort():
    verified = [click("a", "b", 400), click("b", "c", 400)]
    shortcut = click("a", "c", 10, inherited=True)
    nodes = [node(n) for n in "abc"]
    assert len(PathFinder(InteractionGraph(nodes, [shortcut, *verified])).cheapest_path("a", "c").steps) == 2
    (step,) = PathFinder(InteractionGraph(nodes, [shortcut])).cheapest_path("a", "c").steps
    assert step.inherited
    assert step.cost_ms == 10 + INHERITED_PENALTY_MS


def test_a_step_through_a_menu_opens_it_first_and_counts_its_actions_as_inherited_steps():
    menu = Action("click", role="button", name="Menu")
    through = Edge("a", "c", Action("click", role="link", name="c"), 10, inherited=True, openers=(menu,))
    finder = PathFinder(InteractionGraph([node(n) for n in "ac"], [through]))
    (step,) = finder.cheapest_path("a", "c", allow_goto=False).steps
    assert (step.openers, step.cost_ms) == ((menu,), 10 + 2 * INHERITED_PENALTY_MS)
    plain = [click("a", "b", 400, inherited=True), click("b", "c", 400)]
    finder = PathFinder(InteractionGraph([node(n) for n in "abc"], [through, *plain]))
    assert [step.openers for step in finder.cheapest_path("a", "c", allow_goto=False).steps] == [(), ()]


def on_one_page(*names: str) -> list[Node]:
    return [Node(name, "http://site/app", name, (), 0, addressable=False, load_ms=0.0) for name in names]


def test_open_panel_is_closed_before_an_inherited_edge_opens_another_one():
    """Two drawers of one page: with one of them open, the other one opens beside it."""
    left, right = (Action("click", role="button", name=name, xpath=f"/body/button[{name}]") for name in ("1", "2"))
    walked = [Edge("start", "one", left, 300), Edge("start", "two", right, 300)]
    # Where it is open, its button is called differently, and so is counted differently.
    close = Action("click", role="button", name="1", nth=3, xpath=left.xpath)
    inherited = [Edge("one", "two", right, 100, inherited=True), Edge("one", "start", close, 300, inherited=True)]
    cheapest_path = PathFinder(InteractionGraph(on_one_page("start", "one", "two"), walked + inherited)).cheapest_path
    assert [step.action for step in cheapest_path("one", "two").steps] == [close, right]
    assert cheapest_path("one", "start").cost_ms == 300 + INHERITED_PENALTY_MS
    # When it does not close, what is left is tried.
    (step,) = cheapest_path("one", "two", avoid=[inherited[1]]).steps
    assert (step.action, step.cost_ms) == (right, 100 + DOUBTFUL_PENALTY_MS)


def test_inherited_edge_to_another_page_can_be_used_with_panels_open():
    leave = click("one", "away", 100, inherited=True)
    (step,) = (
        PathFinder(InteractionGraph([*on_one_page("one"), node("away")], [leave])).cheapest_path("one", "away").steps
    )
    assert step.cost_ms == 100 + INHERITED_PENALTY_MS


@pytest.mark.parametrize(
    ("query", "steps"), [("q=lamp", ["submit"]), ("id=start&q=lamp", ["click", "submit"]), ("id=&q=lamp", ["submit"])]
)
def test_a_form_that_sends_more_than_the_words_is_used_on_the_page_where_it_was_submitted(query, steps):
    """Other pages send other values along, and their results have other links."""
    search = Action("submit", role="textbox", name="Search", value="lamp")
    found = Node("found", f"http://site/find?{query}", "found", (), 0, addressable=True, load_ms=100.0)
    edges = [
        Edge("start", "found", search, 300.0),
        Edge("page", "found", search, 300.0, inherited=True),
        click("page", "start", 300, inherited=True),
    ]
    finder = PathFinder(InteractionGraph([node("start"), node("page"), found], edges))
    assert [step.action.kind for step in finder.cheapest_path("page", "found", allow_goto=False).steps] == steps
    (step,) = finder.cheapest_path("page", "found", allow_goto=False, avoid=[edges[2]]).steps
    assert step.action == search


def test_edges_whose_requests_were_blocked_are_never_walked():
    blocked = click("a", "b", blocked=(BlockedRequest("POST", "http://site/delete"),))
    with pytest.raises(NoPath):
        PathFinder(InteractionGraph([node("a"), node("b")], [blocked])).cheapest_path("a", "b")


@pytest.mark.parametrize("kind", ["ping", "suggestion"])
def test_edges_that_only_sent_harmless_requests_are_walked(kind):
    sent = BlockedRequest("POST", "http://x/track", kind)
    graph = InteractionGraph([node("a"), node("b")], [click("a", "b", blocked=(sent,))])
    assert len(PathFinder(graph).cheapest_path("a", "b").steps) == 1


def test_parallel_edge_replaces_an_avoided_edge():
    first, second = click("a", "b", 100, name="first"), click("a", "b", 200, name="second")
    finder = PathFinder(InteractionGraph([node("a"), node("b")], [second, first]))
    assert finder.cheapest_path("a", "b").steps[0].action.name == "first"
    assert finder.cheapest_path("a", "b", avoid=[first]).steps[0].action.name == "second"
    with pytest.raises(NoPath):
        finder.cheapest_path("a", "b", avoid=[first, second])
    assert finder.cheapest_path("a", "b").steps[0].action.name == "first"


def test_avoided_edge_also_reroutes_paths_that_start_with_a_goto():
    graph = InteractionGraph(
        [node("a", addressable=True, load_ms=100), node("b", addressable=True, load_ms=900), node("c")],
        [click("a", "c"), click("b", "c")],
    )
    finder = PathFinder(graph)
    assert finder.cheapest_path(None, "c").steps[0].expected_node_id == "a"
    assert finder.cheapest_path(None, "c", avoid=[click("a", "c")]).steps[0].expected_node_id == "b"


def test_recorded_gotos_are_not_used_when_goto_is_not_allowed():
    jump = Edge("a", "b", Action("goto", url="http://site/b"), 10)
    finder = PathFinder(InteractionGraph([node("a"), node("b")], [jump]))
    assert finder.cheapest_path("a", "b").cost_ms == 10
    with pytest.raises(NoPath):
        finder.cheapest_path("a", "b", allow_goto=False)


def test_at_equal_cost_the_path_with_fewer_steps_wins():
    nodes = [node(n) for n in "abcd"]
    edges = [click("a", "b", 100), click("b", "c", 100), click("c", "d", 100), click("a", "d", 300)]
    assert len(PathFinder(InteractionGraph(nodes, edges)).cheapest_path("a", "d").steps) == 1


@pytest.mark.parametrize(("source", "target"), [("a", "x"), ("x", "a"), (None, "x")])
def test_an_unknown_state_is_named(source, target):
    with pytest.raises(NotFound, match="'x'"):
        PathFinder(InteractionGraph([node("a", addressable=True)])).cheapest_path(source, target)


def test_steps_record_that_a_tab_opens():
    finder = PathFinder(InteractionGraph([node("a"), node("b")], [click("a", "b", opens_tab=True)]))
    assert finder.cheapest_path("a", "b").steps[0].opens_tab
