"""Merging of equal actions, the frontier's budget, and what is never proposed again."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.waygraph.agents.search.trees import click, grown, link, put, state, step, stop, visit
from waygraph.agents.actions import GotoAction, NavigateAction, StopAction, TypeAction
from waygraph.agents.search.frontier import add, clear, drop_visited, merge, reduce
from waygraph.agents.search.search_actions import merge_key
from waygraph.agents.search.tree import CandidateStatus
from waygraph.index.graph import Action

FIELD = Action(kind="input", role="textbox", name="Name", value="Ann")


def key_of(text, *, enter=False):
    kind = "submit" if enter else "input"
    return merge_key(
        TypeAction(element="4", text=text, press_enter=enter), Action(kind=kind, role="textbox", name="N", value=text)
    )


def test_all_answers_are_one_action():
    assert merge_key(StopAction(answer="a"), None) == merge_key(StopAction(answer="b"), None)


def test_texts_to_type_are_compared_in_lower_case_and_with_what_enter_does():
    assert key_of("Blue Lamp") == key_of("blue lamp") == key_of("blue lamp\u200b")
    assert key_of("blue lamp") != key_of("red lamp")
    assert key_of("blue lamp") != key_of("blue lamp", enter=True)


def test_the_same_click_has_one_key_whatever_the_id_of_its_element():
    assert click("Help").key == click("Help", context="two").key
    assert click("Help").key != click("Help", nth=1).key


def test_a_link_that_acts_by_a_script_is_the_same_on_another_page():
    first, second = (click("Publish", target=f"http://a.example/{page}#") for page in ("", "publish"))
    assert first.key == second.key
    assert first.key != click("Publish", target="http://a.example/publish").key


def test_a_link_that_acts_by_a_script_is_kept_though_its_address_was_visited():
    tree = grown()
    here = tree.nodes[0].state.url
    script, page = (put(tree, 0, click(name, target=here + ending), 0.5) for name, ending in (("a", "#"), ("b", "")))
    drop_visited(tree)
    assert (script.status, page.status) == (CandidateStatus.QUEUED, CandidateStatus.DROPPED)


def test_addresses_and_queries_are_keys():
    first, second = GotoAction(url="http://a.example/x"), GotoAction(url="http://a.example/y")
    assert merge_key(first, None) != merge_key(second, None)
    ask = NavigateAction(site="a.example", query="Returns")
    assert merge_key(ask, None) == merge_key(ask.model_copy(update={"query": "returns"}), None)


def test_equal_proposals_keep_the_best_score_and_all_generators():
    merged = merge([click("x", score=0.2), click("y", score=0.9), click("x", score=0.4, context="two")])
    assert [(each.best.gesture.name, each.best.score, each.contexts) for each in merged] == [
        ("x", 0.4, ("one", "two")),
        ("y", 0.9, ("one",)),
    ]


def test_a_click_replaces_the_walk_to_the_state_that_it_leads_to():
    merged = merge([visit("n1"), click("x", outcome="n1"), visit("n2")])
    assert [each.best.action.action for each in merged] == ["click", "visit"]


def test_the_score_is_the_value_times_the_number_of_generators():
    tree = grown()
    both = merge([click("x"), click("x", context="two")])
    assert add(tree, 0, [(both[0], 0.25)])[0].score == 0.5


def test_two_sources_of_the_same_walk_are_one_map():
    (walk,) = merge([visit("n1"), visit("n1", context="two")])
    (candidate,) = add(grown(), 0, [(walk, 0.25)])
    assert (candidate.score, candidate.contexts) == (0.25, ["one", "two"])


def test_what_changed_data_is_not_proposed_again_on_the_same_page():
    tree = grown(depth=2)
    put(tree, 0, click("Save"), 0.5, status=CandidateStatus.DONE, changed=["POST http://a.example/save"])
    assert put(tree, 0, click("Save"), 0.5).status is CandidateStatus.DROPPED
    assert put(tree, 1, click("Save"), 0.5).status is CandidateStatus.QUEUED


def test_a_destructive_action_that_was_begun_is_not_proposed_again():
    tree = grown()
    put(tree, 0, click("Delete", is_destructive=True), 0.5, status=CandidateStatus.FAILED)
    assert put(tree, 0, click("Delete", is_destructive=True), 0.5).status is CandidateStatus.DROPPED


def test_actions_that_lead_to_visited_states_are_dropped():
    tree = grown(depth=2)
    tree.nodes[1].map_state = "n1"
    by_map, by_url = put(tree, 0, visit("n1"), 0.5), put(tree, 0, click("1", target="http://a.example/1"), 0.5)
    other = put(tree, 0, click("2", target="http://a.example/2"), 0.5)
    drop_visited(tree)
    assert [each.id for each in tree.queued] == [other.id]
    assert by_map.reason != by_url.reason


def test_a_link_to_a_fragment_of_its_own_page_acts_like_a_button():
    tree = grown()
    tab = put(tree, 0, click("Info", target=tree.nodes[0].state.url + "#info"), 0.5)
    step(tree, 0, "Info", state("info", fragment="#info", oak=1))
    drop_visited(tree)
    assert tab.status is CandidateStatus.QUEUED


def test_a_fragment_of_another_page_is_another_page_until_it_was_visited():
    tree = grown(depth=2)
    seen, other = (put(tree, 0, click(name, target=f"http://a.example/1#{name}"), 0.5) for name in ("seen", "other"))
    step(tree, 1, "seen", state("seen", "http://a.example/1", fragment="#seen"))
    drop_visited(tree)
    assert (seen.status, other.status) == (CandidateStatus.DROPPED, CandidateStatus.QUEUED)


def test_a_route_of_the_page_is_dropped_when_it_was_visited():
    tree = grown(depth=2)
    step(tree, 1, "List", state("list", "http://a.example/#/list"))
    route = put(tree, 0, click("List", target="http://a.example/#/list"), 0.5)
    drop_visited(tree)
    assert route.status is CandidateStatus.DROPPED


def test_a_page_that_replaces_its_fragment_is_visited_under_the_address_that_was_loaded():
    tree = grown()
    loaded = put(tree, 0, click("Flows", target="http://a.example/flows"), 0.5, status=CandidateStatus.DONE)
    tree.add_node(state("f", "http://a.example/flows", fragment="#first"), parent=0, candidate=loaded.id)
    again = put(tree, 0, click("All flows", target="http://a.example/flows"), 0.5)
    drop_visited(tree)
    assert again.status is CandidateStatus.DROPPED


def test_within_its_budget_the_frontier_keeps_everything():
    tree = grown(budget=2)
    put(tree, 0, stop("a"), 0.1)
    put(tree, 0, click("x"), 0.2)
    assert reduce(tree, lambda _: False) == 0
    assert tree.prunes == 0


def test_the_frontier_loses_the_unreachable_then_lower_answers_then_duplicates_then_the_lowest():
    tree = grown(budget=3, depth=2)
    lost = put(tree, 1, click("lost"), 0.99)
    low_stop = put(tree, 0, stop("a"), 0.3)
    put(tree, 0, stop("b"), 0.4)
    low_twin = put(tree, 0, click("twin"), 0.5)
    put(tree, 0, click("twin"), 0.6)
    low = put(tree, 0, click("low"), 0.01)
    high = put(tree, 0, click("high"), 0.9)
    reduce(tree, lambda node: node == 0)
    gone = [each.id for each in tree.candidates if each.status is CandidateStatus.DROPPED]
    assert gone == [lost.id, low_stop.id, low_twin.id, low.id]
    assert high.status is CandidateStatus.QUEUED
    assert tree.prunes == 1


def test_clearing_keeps_the_reasons():
    tree = grown()
    gone = put(tree, 0, click("x"), 0.5)
    clear(tree, "data was changed")
    assert (gone.status, gone.reason, tree.queued) == (CandidateStatus.DROPPED, "data was changed", [])


def test_walks_over_the_map_need_no_way_back():
    tree = grown(budget=1)
    put(tree, 0, click("x"), 0.9)
    walk = put(tree, 0, visit("n1"), 0.1)
    reduce(tree, lambda _: False)
    assert [each.id for each in tree.queued] == [walk.id]


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1), st.booleans(), st.booleans()), max_size=12), st.data())
def test_a_reduced_frontier_fits_its_budget_and_keeps_a_best_action(proposed, data):
    tree = grown(budget=data.draw(st.integers(1, 5)))
    for name, score, is_stop, is_destructive in proposed:
        put(tree, 0, stop(str(name)) if is_stop else click(str(name), is_destructive=is_destructive), score)
    before = max((each.score for each in tree.queued), default=None)
    reduce(tree, lambda _: True)
    assert len(tree.queued) <= max(tree.budget, 0) or not proposed
    assert max((each.score for each in tree.queued), default=None) == before


def test_a_link_is_found_as_equal_by_its_target_too():
    assert merge_key(click("x").action, link("x", target="a")) != merge_key(click("x").action, link("x", target="b"))


def test_nodes_above_the_root_are_not_live():
    tree = grown(depth=3)
    tree.root = 1
    assert [each.id for each in tree.live_nodes()] == [1, 2]
    step(tree, 2, "on", state("s3"))
    assert [each.id for each in tree.ancestry(3)] == [3, 2, 1]
