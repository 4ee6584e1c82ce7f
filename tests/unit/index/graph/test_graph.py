from typing import get_args

import pytest

from waygraph.core.schemas import ActionModel
from waygraph.index.graph import Action, ActionKind, Edge, InteractionGraph, Node


def node(name: str) -> Node:
    return Node(name, f"http://x/{name}", name, (), 0, addressable=False)


def click(source: str, target: str, name: str, cost_ms: float = 0.0) -> Edge:
    return Edge(source, target, Action("click", name=name), cost_ms)


def test_every_action_between_two_states_is_an_edge_of_its_own():
    edges = [click("a", "b", "link"), click("a", "b", "button"), click("a", "c", "link"), click("a", "a", "link")]
    graph = InteractionGraph([node("a"), node("b"), node("c")], edges)
    assert list(graph.edges) == edges
    assert graph.edges_from("a") == tuple(edges)


def test_an_edge_to_a_known_state_is_kept():
    graph = InteractionGraph([node("a"), node("b")], [click("a", "b", "next"), click("b", "a", "back")])
    assert [e.target for e in graph.edges] == ["b", "a"]


def test_the_same_action_between_the_same_states_is_one_edge():
    graph = InteractionGraph([node("a"), node("b")], [click("a", "b", "link", 1), click("a", "b", "link", 2)])
    assert [e.cost_ms for e in graph.edges] == [1]


def test_node_added_twice_keeps_its_first_value():
    graph = InteractionGraph([node("a"), node("b")], [click("a", "b", "link")])
    graph.add_node(Node("a", "http://x/other", "other", (), 5, addressable=True))
    assert graph.nodes["a"] == node("a")
    assert len(graph) == 2
    assert len(graph.edges_from("a")) == 1


def test_the_first_node_is_the_start():
    assert InteractionGraph().start is None
    assert InteractionGraph([node("b"), node("a")]).start == "b"


def test_an_edge_needs_both_of_its_ends():
    graph = InteractionGraph([node("a")])
    for edge in (click("a", "x", "link"), click("x", "a", "link")):
        with pytest.raises(KeyError):
            graph.add_edge(edge)
    assert list(graph.edges) == []
    assert graph.edges_from("a") == ()


def test_nodes_cannot_be_changed_from_outside():
    graph = InteractionGraph([node("a")])
    with pytest.raises(TypeError):
        graph.nodes["b"] = node("b")  # type: ignore[index]
    assert "a" in graph
    assert "b" not in graph


def test_actions_of_a_newer_writer_can_be_read():
    action = Action("click", role="link", name="Orders", frame=("/a", "/b"), nth=1, xpath="/x", css="#o", target="/o")
    assert Action.from_json(action.to_json() | {"pressure": 5}) == action
    assert Action.from_json({"kind": "goto", "url": "http://x/"}) == Action("goto", url="http://x/")


def test_the_http_contract_knows_every_kind_of_action_and_every_field():
    assert get_args(ActionModel.model_fields["kind"].annotation) == get_args(ActionKind)
    assert set(ActionModel.model_fields) == set(Action.__struct_fields__)
