"""Ways back to visited states."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.waygraph.agents.search.trees import grown, put, state, step, visit
from waygraph.agents.search.checkpoints import is_reachable, ways_back
from waygraph.agents.search.tree import CandidateStatus

MENU = "http://a.example/1"


def ways(tree, node, *, with_map=True):
    return [(str(way), [each.id for each in way.replayed]) for way in ways_back(tree, node, with_map=with_map)]


def with_menu():
    """Return a tree in which node 2 is a menu that was opened on the page of node 1."""
    tree = grown(depth=2)
    step(tree, 1, "Menu", state("menu", MENU, entry=1))
    return tree


def test_a_state_with_an_address_of_its_own_is_loaded():
    assert ways(grown(depth=2), 1)[0] == ("url:1", [])


def test_a_state_without_one_is_reached_by_its_action_from_the_page_before():
    assert ways(with_menu(), 2) == [("url:1", [2]), ("url:0", [1, 2])]


def test_another_fragment_is_an_address_of_its_own():
    tree = grown(depth=2)
    step(tree, 1, "Info", state("info", MENU, fragment="#info"))
    assert ways(tree, 2) == [("url:2", []), ("url:1", [2]), ("url:0", [1, 2])]


def test_a_state_that_the_map_knows_needs_no_replay_although_it_has_no_address():
    tree = with_menu()
    tree.nodes[2].map_state = "n2"
    assert ways(tree, 2)[0] == ("map:2", [])
    assert ways(tree, 2, with_map=False)[0] == ("url:1", [2])


def test_a_walk_does_not_lead_to_what_the_map_takes_for_the_page_before():
    tree = with_menu()
    tree.nodes[1].map_state = tree.nodes[2].map_state = "n1"
    assert ways(tree, 2) == [("map:1", [2]), ("url:1", [2]), ("url:0", [1, 2])]
    tree.nodes[1].state.url = "http://a.example/elsewhere"
    assert ways(tree, 2)[0] == ("map:2", [])


def test_a_url_that_showed_something_else_is_no_checkpoint():
    tree = with_menu()
    tree.nodes[1].loads = "no"
    assert ways(tree, 2) == [("url:0", [1, 2])]


def test_a_url_that_showed_its_state_before_is_tried_once_more_after_a_failure():
    tree = with_menu()
    for shows_state, has_way in ((True, True), (False, True), (False, False)):
        tree.nodes[1].note_load(shows_state=shows_state)
        assert (("url:1", [2]) in ways(tree, 2)) is has_way


def test_no_way_repeats_what_may_change_data():
    for changes in ({"is_destructive": True}, {"changed": ["POST http://a.example/"]}):
        tree = grown()
        step(tree, 0, "Save", state("saved"), **changes)
        assert ways(tree, 1) == []
        assert not is_reachable(tree, 1, with_map=True)


def test_no_way_leads_over_the_root_whose_url_is_a_checkpoint():
    tree = with_menu()
    tree.root = 2
    assert ways(tree, 2) == [("url:2", [])]
    assert not is_reachable(tree, 1, with_map=True)


def test_a_walk_over_the_map_is_not_replayed():
    tree = grown()
    done = put(tree, 0, visit("n1"), 0.5, status=CandidateStatus.DONE)
    tree.add_node(state("s1"), parent=0, candidate=done.id)
    assert ways(tree, 1) == []


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6))
def test_every_way_ends_at_its_target_and_passes_each_node_below_its_checkpoint_once(chain):
    tree = grown()
    for number, (own_url, known, destructive) in enumerate(chain, start=1):
        url = f"http://a.example/{number}" if own_url else tree.nodes[-1].state.url
        node = step(tree, number - 1, str(number), state(f"s{number}", url), is_destructive=destructive)
        node.map_state = "known" if known else ""
    target = len(tree.nodes) - 1
    for way in ways_back(tree, target, with_map=True):
        assert [way.checkpoint.id, *(each.id for each in way.replayed)] == list(range(way.checkpoint.id, target + 1))
        assert not any(tree.candidates[each.candidate].is_destructive for each in way.replayed)
