"""What other states call a state: names of the edges that lead to it, and the words beside them."""

import random
from dataclasses import replace

from index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Segment
from pipeline.encode.called import BESIDE_WORDS, MAX_NAMES, by_node, with_names
from pipeline.encode.protocol import content_key

BOX = Box(0, 0, 10, 10)


def node(name: str) -> Node:
    return Node(name, f"http://x/{name}", name, (), 0, True)


def seen(name: str, *segments: tuple[str, str]) -> Observation:
    return Observation(name, f"http://x/{name}", name, tuple(Segment(text, role, BOX) for role, text in segments))


def edge(source: str, target: str, name: str, kind: str = "click", **rest) -> Edge:
    return Edge(source, target, Action(kind, role="link", name=name, **rest))


def called(observations: list[Observation], edges: list[Edge]) -> dict[str, tuple[str, ...]]:
    graph = InteractionGraph((node(o.node_id) for o in observations), edges)
    return {o.node_id: o.called for o in with_names(graph, observations)}


def test_a_state_is_called_what_the_links_to_it_are_named():
    names = called([seen("home"), seen("cart")], [edge("home", "cart", " Your \n basket ")])
    assert names == {"home": (), "cart": ("Your basket",)}


def test_the_words_behind_a_link_come_along_until_something_else_starts():
    table = seen(
        "index",
        ("link", "csv"), ("cell", "Write and read tabular data."), ("cell", "Since 2.3"),
        ("link", "json"), ("cell", "Encode objects."), ("heading", "More"), ("text", "not beside"),
    )  # fmt: skip
    names = called([table, seen("csv"), seen("json")], [edge("index", "csv", "csv"), edge("index", "json", "json")])
    assert names["csv"] == ("csv: Write and read tabular data. Since 2.3",)
    assert names["json"] == ("json: Encode objects.",)


def test_words_beside_are_those_that_most_sources_show():
    sources = [seen(f"s{i}", ("link", "Orders"), ("text", "paid" if i else "unpaid")) for i in range(3)]
    names = called([*sources, seen("orders")], [edge(s.node_id, "orders", "Orders") for s in sources])
    assert names["orders"] == ("Orders: paid",)


def test_words_beside_are_cut():
    source = seen("home", ("link", "Story"), ("text", "word " * 50))
    (name,) = called([source, seen("story")], [edge("home", "story", "Story")])["story"]
    assert name == "Story: " + " ".join(["word"] * BESIDE_WORDS)


def test_loops_gotos_and_names_without_words_say_nothing():
    edges = [
        edge("a", "a", "Stay"),
        Edge("a", "b", Action("goto", url="http://x/b")),
        edge("a", "b", "2"),
        edge("a", "b", "\u00bb"),
    ]
    assert called([seen("a"), seen("b")], edges) == {"a": (), "b": ()}


def test_a_name_that_leads_nearly_everywhere_is_left_out():
    states = [seen("home"), *(seen(f"s{i}") for i in range(20))]
    edges = [edge("home", f"s{i}", "Edit") for i in range(20)] + [edge("home", "s0", "Edit the front page", nth=1)]
    assert called(states, edges)["s0"] == ("Edit the front page",)


def test_rare_names_come_first_and_only_so_many_and_once_however_they_are_written():
    edges = [edge("a", "b", f"Name {chr(97 + i)}{chr(97 + i)}") for i in range(2 * MAX_NAMES)]
    edges += [edge("a", "b", "name aa"), edge("a", "c", "Name bb")]
    names = called([seen("a"), seen("b"), seen("c")], edges)["b"]
    assert len(names) == MAX_NAMES
    assert len({name.casefold() for name in names}) == MAX_NAMES
    assert "Name bb" not in names


def test_order_of_edges_and_observations_does_not_matter():
    states = [seen("home", ("link", "B"), ("text", "to b")), *(seen(name) for name in "abcdef")]
    edges = [edge("home", name, f"To {other}") for name in "abcdef" for other in "abc"]
    chance = random.Random(1)
    for _ in range(5):
        mixed, mixed_edges = states[:], edges[:]
        chance.shuffle(mixed)
        chance.shuffle(mixed_edges)
        assert called(mixed, mixed_edges) == called(states, edges)


def test_a_new_name_is_a_new_content_and_no_name_keeps_the_old_one():
    graph = InteractionGraph([node("a"), node("b")], [edge("a", "b", "Basket")])
    plain = [seen("a"), seen("b")]
    named = with_names(graph, plain)
    assert named[0].content_hash == plain[0].content_hash
    assert named[1].content_hash != plain[1].content_hash


def test_a_state_that_is_called_otherwise_is_encoded_anew_by_who_reads_and_not_by_who_sees():
    def key(name: str, reads: str) -> str:
        observations = [seen("home"), replace(seen("cart"), screenshot="picture")]
        graph = InteractionGraph((node(o.node_id) for o in observations), [edge("home", "cart", name)])
        return content_key(by_node(graph, observations)["cart"], reads)

    assert key("Basket", "text") != key("Trolley", "text")
    assert key("Basket", "screenshot") == key("Trolley", "screenshot")
