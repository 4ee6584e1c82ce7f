"""Diff of two maps: matching of elements with equal names, such as links "Read more" and buttons "Details"."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Recognition, Segment
from waygraph.index.graph.diff import ComparedMap, diff_maps, element_location
from waygraph.pipeline.browser.page.features import text_features

HOME = Node("home", "http://a.test/", "", ("h",), 0, addressable=True)


def listing(items, *, start=HOME, places=None):
    """A page with a list of elements, each of which leads to a page of its own.

    Parameters
    ----------
    items : page that is led to, name of the element, whether it is a link.
    places : of the elements on the page; else one after the other.
    """
    named, edges = Counter(), []
    for place, (page, name, is_link) in zip(places or range(len(items)), items, strict=True):
        url = f"http://a.test/{page}"
        role, target = ("link", url) if is_link else ("button", "")
        xpath = f"/ul/li[{place}]/{role}"
        action = Action("click", role=role, name=name, nth=named[role, name], xpath=xpath, target=target)
        named[role, name] += 1
        edges.append(Edge(start.id, page, action))
    nodes = [Node(page, f"http://a.test/{page}", "", (page,), 1, addressable=True) for page, _, _ in items]
    return InteractionGraph([start, *nodes], edges)


def side(graph, texts=None):
    seen = {
        name: Observation(name, node.url, "", tuple(Segment(t, "text", Box(0, 0, 9, 9)) for t in (texts or {})[name]))
        for name, node in graph.nodes.items()
        if texts
    }
    return ComparedMap(graph, seen, Recognition(), text_features)


def told(diff):
    """Return the edge verdicts of a diff in a canonical order."""
    return {
        (e.verdict, e.before and (e.before.target, e.before.action), e.after and e.after.action) for e in diff.edges
    }


ITEMS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["Read more", "Details"]), st.booleans()),
    min_size=1,
    unique_by=lambda item: item[0],
)


@given(ITEMS)
def test_a_map_compared_with_itself_matches(items):
    same = listing(items)
    diff = diff_maps(side(same), side(same))
    assert diff.counts() == {"states": {"match": len(items) + 1}, "edges": {"match": len(items)}, "tools": {}}
    assert diff.broken == ()


@given(ITEMS, st.data(), st.booleans())
def test_removed_element_is_the_only_one_reported_as_gone(items, data, is_shifted):
    left = data.draw(st.integers(0, len(items) - 1))
    rest = [place for place in range(len(items)) if place != left]
    new = listing([items[place] for place in rest], places=None if is_shifted else rest)
    diff = diff_maps(side(listing(items)), side(new))
    assert [(e.before.target, e.after) for e in diff.edges if e.verdict == "gone"] == [(items[left][0], None)]
    assert all(e.before.target == e.after.target for e in diff.edges if e.verdict != "gone")
    assert {e.verdict for e in diff.edges} <= {"match", "moved", "gone"}
    assert [node_id for node_id, _ in diff.broken] == [items[left][0]]


@given(ITEMS, st.data(), st.booleans())
def test_replaced_element_of_the_same_name_is_one_removal_and_one_addition(items, data, is_link):
    """Where a list has many of one name, a new one at its end is not the old one from its beginning."""
    items = [(page, "Read more", is_link) for page, _, _ in items] + [("y", "Read more", is_link)]
    diff = diff_maps(side(listing(items)), side(listing([*items[1:], ("z", "Read more", is_link)])))
    gone, added = ([e for e in diff.edges if e.verdict == verdict] for verdict in ("gone", "added"))
    assert [e.before.target for e in gone] == [items[0][0]]
    assert [e.after.target for e in added] == ["z"]
    assert all(e.before.target == e.after.target for e in diff.edges if e not in (*gone, *added))


@given(ITEMS, ITEMS, st.randoms(use_true_random=False))
def test_the_order_of_edges_does_not_matter(items, others, chance):
    old, new = listing(items), listing(others)

    def shuffled(graph):
        edges = list(graph.edges)
        chance.shuffle(edges)
        return InteractionGraph(graph.nodes.values(), edges)

    assert told(diff_maps(side(old), side(new))) == told(diff_maps(side(shuffled(old)), side(shuffled(new))))


def test_element_at_the_same_place_with_another_name_and_target_is_another_element():
    old, new = ([(page, f"Go to {page}", True), ("z", "Go to z", True)] for page in "ab")
    diff = diff_maps(side(listing(old)), side(listing(new)))
    assert diff.counts()["edges"] == {"added": 1, "gone": 1, "match": 1}


@given(ITEMS, st.data())
def test_link_that_was_renamed_and_moved_is_matched(items, data):
    renamed = data.draw(st.integers(0, len(items) - 1))
    old = [(page, name, True) for page, name, _ in items]
    new = [("y", "Brand new", True), *old]
    new[renamed + 1] = (items[renamed][0], "All about it", True)
    diff = diff_maps(side(listing(old)), side(listing(new)))
    assert {e.verdict for e in diff.edges} <= {"added", "changed", "moved"}
    assert all(e.before.target == e.after.target for e in diff.edges if e.before)
    assert [e.after.action.name for e in diff.edges if e.verdict == "changed"] == ["All about it"]


def test_links_of_one_name_with_changed_targets_are_matched_in_any_position():
    """One in the navigation, one below, as many sites have; a new link in front of the navigation shifts the first."""
    team = ("b", "Team", True)
    old = listing([("a", "Guide", True), team, ("a", "Guide", True)], places=[1, 2, 9])
    new = listing([("y", "New", True), ("z", "Guide", True), team, ("z", "Guide", True)], places=[1, 2, 3, 9])
    diff = diff_maps(side(old), side(new))
    assert Counter((e.verdict, (e.before or e.after).action.name) for e in diff.edges) == {
        ("changed", "Guide"): 2, ("moved", "Team"): 1, ("added", "New"): 1
    }  # fmt: skip


@given(ITEMS, st.data())
def test_unstable_element_does_not_affect_others_of_its_name(items, data):
    same = listing([(page, "Details", False) for page, _, _ in items])
    edge = data.draw(st.sampled_from(list(same.edges)))
    name = (edge.source, str(edge.action))
    diff = diff_maps(side(same), side(same), {(*name, element_location(edge.action)): "non_deterministic"})
    assert [e.before for e in diff.edges if e.verdict == "non_deterministic"] == [edge]
    # Older versions say no place: where it could be any of several, nothing is known of any.
    diff = diff_maps(side(same), side(same), {name: "non_deterministic"})
    found = [e.before for e in diff.edges if e.verdict == "non_deterministic"]
    assert found == ([edge] if len(items) == 1 else [])


def test_links_are_matched_by_target_url_and_buttons_by_target_state():
    old = listing(
        [("a", "Read more", True), ("b", "Read more", True), ("c", "Details", False), ("d", "Details", False)]
    )
    there = [edge.target for edge in old.edges]
    swapped = [replace(edge, target=there[i]) for edge, i in zip(old.edges, (1, 0, 3, 2), strict=True)]
    diff = diff_maps(side(old), side(InteractionGraph(old.nodes.values(), swapped)))
    assert [(e.verdict, e.before.action.nth, e.after.action.nth) for e in diff.edges] == [
        ("changed", 0, 0), ("changed", 1, 1), ("moved", 0, 1), ("moved", 1, 0)
    ]  # fmt: skip


def dialogs(names, home):
    """A page whose buttons have one name, each of which opens something in it. Ids change when the page does."""
    states = [
        replace(HOME, id=f"{name}{len(names)}", depth=1, structure=("h", "d"), addressable=False) for name in names
    ]
    edges = [
        Edge(home, state.id, Action("click", role="button", name="Details", nth=nth, xpath=f"/ul/li[{nth}]/button"))
        for nth, state in enumerate(states)
    ]
    return InteractionGraph([replace(HOME, id=home), *states], edges)


@given(st.permutations("abcde"), st.integers(0, 4))
def test_buttons_of_one_name_are_matched_by_the_texts_that_they_open(names, left):
    rest = [name for place, name in enumerate(names) if place != left]
    old, new = dialogs(names, "home"), dialogs(rest, "home2")
    texts = {node_id: ["Our offers", f"All about {node_id[0]}"] for node_id in (*old.nodes, *new.nodes)}
    texts[f"{rest[0]}4"].append("written lately")
    diff = diff_maps(side(old, texts), side(new, texts))
    assert diff.successors == {"home": "home2"} | {f"{name}5": f"{name}4" for name in rest}
    assert [e.before.target[0] for e in diff.edges if e.verdict == "gone"] == [names[left]]
    assert Counter(e.verdict for e in diff.edges) == {"gone": 1, "moved": 4}


def pages_at(urls):
    """A page whose links, all of one name, lead to pages of one template."""
    nodes = [Node(name, url, "", ("t",), 1, addressable=True) for name, url in urls.items()]
    edges = [
        Edge("home", name, Action("click", role="link", name="check-in", nth=nth, xpath=f"/li[{nth}]/a", target=url))
        for nth, (name, url) in enumerate(urls.items())
    ]
    return InteractionGraph([HOME, *nodes], edges)


def test_removed_list_entry_is_not_matched_with_a_new_one():
    commits = {name: f"http://a.test/info/{name * 8}1{name * 8}" for name in "abcd"}
    old, new = pages_at({name: commits[name] for name in "abc"}), pages_at({name: commits[name] for name in "dab"})
    texts = {name: ["Check-in", "Files", f"Fixes {name}"] for name in ("home", *commits)}
    diff = diff_maps(side(old, texts), side(new, texts))
    assert diff.successors == {name: name for name in ("home", "a", "b")}
    assert diff.counts() == {
        "states": {"added": 1, "gone": 1, "match": 3},
        "edges": {"added": 1, "gone": 1, "moved": 2},
        "tools": {},
    }


def test_page_with_a_session_id_in_its_url_is_matched():
    cart = "http://a.test/cart?sid={}0f0f0f1c1c1c1c"
    old, new = pages_at({"then": cart.format("ab")}), pages_at({"now": cart.format("12")})
    diff = diff_maps(side(old), side(new))
    assert diff.successors == {"home": "home", "then": "now"}
    assert diff.counts()["edges"] == {"moved": 1}


def test_moved_page_is_matched_by_its_texts_when_the_map_became_smaller():
    """A text that is rare among twenty pages is frequent among ten, and still identifies the page."""
    pages = [f"p{number}" for number in range(18)]
    texts = {page: [page, "menu"] for page in pages} | {page: [page, "harvest"] for page in pages[:3]}
    texts |= {"home": ["harvest"], "x": ["harvest", "menu"], "moved": ["harvest"]}
    maps = [listing([(page, f"To {page}", True) for page in shown]) for shown in ([*pages, "x"], [*pages[:8], "moved"])]
    diff = diff_maps(*(side(each, texts) for each in maps))
    assert [(state.verdict, state.after) for state in diff.states if state.before == "x"] == [("changed", "moved")]


@pytest.mark.parametrize(
    ("there", "then", "verdict"),
    [
        (["oak", "sturdy"], ["oak", "sturdy", "new"], "changed"),
        (["oak", "sturdy", "old"], ["oak", "sturdy"], "changed"),
        (["oak"], ["oak", "new"], "gone"),
        (["oak", "sturdy"], ["oak", "weak"], "gone"),
    ],
    ids=["something was added", "something was taken away", "one text says too little", "the half is another"],
)
def test_moved_page_with_partial_changes_is_matched(there, then, verdict):
    pages = [f"p{number}" for number in range(8)]
    texts = {page: [page] for page in ["home", *pages]}
    maps = [listing([(page, f"To {page}", True) for page in [*pages, last]]) for last in ("x", "moved")]
    sides = (side(maps[0], {**texts, "x": there}), side(maps[1], {**texts, "moved": then}))
    assert [state.verdict for state in diff_maps(*sides).states if state.before == "x"] == [verdict]
