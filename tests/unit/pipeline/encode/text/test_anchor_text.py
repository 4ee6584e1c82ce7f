"""Anchor text of a state: names of the edges that lead to it, and the text next to them."""

import random
from dataclasses import replace

from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Segment
from waygraph.pipeline.encode.protocol import content_key
from waygraph.pipeline.encode.text.anchor_text import BESIDE_WORDS, MAX_NAMES, anchored_observations, with_anchor_texts

BOX = Box(0, 0, 10, 10)


def node(name: str) -> Node:
    return Node(name, f"http://x/{name}", name, (), 0, True)


def seen(name: str, *segments: tuple[str, str]) -> Observation:
    return Observation(name, f"http://x/{name}", name, tuple(Segment(text, role, BOX) for role, text in segments))


def edge(source: str, target: str, name: str, kind: str = "click", **rest) -> Edge:
    return Edge(source, target, Action(kind, role="link", name=name, **rest))


def called(observations: list[Observation], edges: list[Edge]) -> dict[str, tuple[str, ...]]:
    graph = InteractionGraph((node(o.node_id) for o in observations), edges)
    return {o.node_id: o.anchor_texts for o in with_anchor_texts(graph, observations)}


def test_anchor_text_is_the_names_of_the_links_to_a_state():
    names = called([seen("home"), seen("cart")], [edge("home", "cart", " Your \n basket ")])
    assert names == {"home": (), "cart": ("Your basket",)}


def test_text_after_a_link_is_included_up_to_the_next_element():
    table = seen(
        "index",
        ("link", "csv"), ("cell", "Write and read tabular data."), ("cell", "Since 2.3"),
        ("link", "json"), ("cell", "Encode objects."), ("heading", "More"), ("text", "not beside"),
    )  # fmt: skip
    names = called([table, seen("csv"), seen("json")], [edge("index", "csv", "csv"), edge("index", "json", "json")])
    assert names["csv"] == ("csv: Write and read tabular data. Since 2.3",)
    assert names["json"] == ("json: Encode objects.",)


def test_adjacent_text_is_the_text_most_sources_show():
    sources = [seen(f"s{i}", ("link", "Orders"), ("text", "paid" if i else "unpaid")) for i in range(3)]
    names = called([*sources, seen("orders")], [edge(s.node_id, "orders", "Orders") for s in sources])
    assert names["orders"] == ("Orders: paid",)


def test_adjacent_text_is_truncated():
    source = seen("home", ("link", "Story"), ("text", "word " * 50))
    (name,) = called([source, seen("story")], [edge("home", "story", "Story")])["story"]
    assert name == "Story: " + " ".join(["word"] * BESIDE_WORDS)


def test_loops_gotos_and_names_without_words_give_no_anchor_text():
    edges = [
        edge("a", "a", "Stay"),
        Edge("a", "b", Action("goto", url="http://x/b")),
        edge("a", "b", "2"),
        edge("a", "b", "\u00bb"),
    ]
    assert called([seen("a"), seen("b")], edges) == {"a": (), "b": ()}


def test_name_that_leads_to_nearly_every_state_is_omitted():
    states = [seen("home"), *(seen(f"s{i}") for i in range(20))]
    edges = [edge("home", f"s{i}", "Edit") for i in range(20)] + [edge("home", "s0", "Edit the front page", nth=1)]
    assert called(states, edges)["s0"] == ("Edit the front page",)


def test_anchor_texts_are_unique_limited_and_ordered_by_rarity():
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


def test_new_anchor_text_changes_the_content_hash_and_none_keeps_it():
    graph = InteractionGraph([node("a"), node("b")], [edge("a", "b", "Basket")])
    plain = [seen("a"), seen("b")]
    named = with_anchor_texts(graph, plain)
    assert named[0].content_hash == plain[0].content_hash
    assert named[1].content_hash != plain[1].content_hash


def test_changed_anchor_text_changes_the_content_key_of_text_encoders_only():
    def key(name: str, reads: str) -> str:
        observations = [seen("home"), replace(seen("cart"), screenshot="picture")]
        graph = InteractionGraph((node(o.node_id) for o in observations), [edge("home", "cart", name)])
        return content_key(anchored_observations(graph, observations)["cart"], reads)

    assert key("Basket", "text") != key("Trolley", "text")
    assert key("Basket", "screenshot") == key("Trolley", "screenshot")
