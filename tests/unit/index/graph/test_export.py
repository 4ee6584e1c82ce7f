import io
import itertools
import json
from xml.etree import ElementTree as ET

import pytest

from waygraph.index.graph import Action, BlockedRequest, Edge, InteractionGraph, Node
from waygraph.index.graph.export import to_bytes, to_graphml, to_json

NASTY = "<a & \"b\" 'c'> \x00\x0b\ufffe \ud800 \U0001f600"


def node(name: str, title: str = "") -> Node:
    return Node(name, f"http://site/{name}?x=1&y=2", title or name, ("h1",), 1, addressable=True, load_ms=12.5)


@pytest.fixture
def graph() -> InteractionGraph:
    return InteractionGraph(
        [node("b"), node("a", NASTY), node("c")],
        [
            Edge("b", "a", Action("click", role="link", name="second"), 7.0),
            Edge("b", "a", Action("click", role="link", name="first"), 9.0),
            Edge("a", "c", Action("hover", role="button", name=NASTY), 1.0, opens_tab=True, dialogs=("alert: hi",)),
            Edge(
                "a",
                "a",
                Action("click", name="buy", frame=("/html[1]/iframe[1]",)),
                1.0,
                blocked=(BlockedRequest("POST", "http://site/buy"),),
            ),
            Edge("c", "a", Action("click", name="taken over"), 1.0, inherited=True),
            Edge("c", "b", Action("click", name="entry"), 1.0, inherited=True, openers=(Action("click", name="menu"),)),
        ],
    )


def test_nodes_are_sorted_by_id_and_edges_by_source_target_and_action(graph):
    document = to_json("site", 3, graph)
    assert list(document) == ["site", "version", "nodes", "edges"]
    assert [n["id"] for n in document["nodes"]] == ["a", "b", "c"]
    assert list(document["nodes"][0]) == ["id", "url", "title", "depth", "addressable"]
    assert [(e["source"], e["target"], e["action"]["name"]) for e in document["edges"]] == [
        ("a", "a", "buy"),
        ("a", "c", NASTY),
        ("b", "a", "first"),
        ("b", "a", "second"),
    ]


def test_export_bytes_do_not_depend_on_order_and_durations(graph):
    expected = to_bytes(to_json("site", 1, graph))
    nodes = list(graph.nodes.values())
    edges = [Edge(e.source, e.target, e.action, e.cost_ms * 3, e.inherited, e.opens_tab, e.blocked, e.dialogs,
                  e.openers)
             for e in graph.edges]  # fmt: skip
    for order in itertools.permutations(nodes):
        assert to_bytes(to_json("site", 1, InteractionGraph(order, reversed(edges)))) == expected


def test_openers_are_exported_with_the_edges_that_have_them(graph):
    edges = to_json("site", 1, graph, inherited=True)["edges"]
    assert [[opener["name"] for opener in edge["openers"]] for edge in edges if "openers" in edge] == [["menu"]]


def test_the_bytes_are_json_that_reads_back_as_the_document(graph):
    document = to_json("site", 1, graph, inherited=True)
    assert json.loads(to_bytes(document)) == document


def test_inherited_edges_are_exported_only_when_asked_for_and_then_marked(graph):
    assert "taken over" not in {e["action"]["name"] for e in to_json("site", 1, graph)["edges"]}
    marked = [e for e in to_json("site", 1, graph, inherited=True)["edges"] if e.get("inherited")]
    assert [e["action"]["name"] for e in marked] == ["taken over", "entry"]


def test_empty_fields_of_an_edge_are_omitted(graph):
    by_name = {e["action"]["name"]: e for e in to_json("site", 1, graph)["edges"]}
    assert list(by_name["first"]) == ["source", "target", "action"]
    assert by_name["buy"]["blocked"] == [{"method": "POST", "url": "http://site/buy", "kind": ""}]
    assert by_name[NASTY]["opens_tab"] is True
    assert by_name[NASTY]["dialogs"] == ["alert: hi"]


def test_actions_survive_the_export(graph):
    exported = {Action.from_json(e["action"]) for e in to_json("site", 1, graph, inherited=True)["edges"]}
    assert exported == {e.action for e in graph.edges}


def test_graphml_is_well_formed_and_keeps_parallel_edges_and_escaped_text(graph):
    root = ET.fromstring(to_graphml("site:8000", 1, graph, inherited=True).encode())  # noqa: S314 - our own output
    xml = "{http://graphml.graphdrawing.org/xmlns}"
    assert [n.get("id") for n in root.iter(f"{xml}node")] == ["a", "b", "c"]
    assert len([e for e in root.iter(f"{xml}edge") if e.get("source") == "b"]) == 2
    title = next(d.text for n in root.iter(f"{xml}node") for d in n if d.get("key") == "n_title")
    assert title.startswith("<a & \"b\" 'c'>")
    declared = {k.get("id") for k in root.iter(f"{xml}key")}
    assert {d.get("key") for d in root.iter(f"{xml}data")} <= declared


def test_networkx_reads_the_graphml(graph):
    networkx = pytest.importorskip("networkx")
    read = networkx.read_graphml(io.BytesIO(to_graphml("site", 1, graph).encode()))
    assert read.is_multigraph()
    assert read.is_directed()
    assert sorted(attributes["action_name"] for *_, attributes in read.out_edges("b", data=True)) == ["first", "second"]
    assert read.nodes["b"]["addressable"] is True
    assert read.nodes["b"]["depth"] == 1
