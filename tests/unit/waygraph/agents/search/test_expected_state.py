"""What a page must show to count as a visited state, and which differences come by themselves."""

import pytest

from tests.unit.waygraph.agents.search.trees import grown, step
from waygraph.agents.search.expected_state import ExpectedState
from waygraph.agents.search.recorded_states import note_unstable, record_state, same_page
from waygraph.index.graph import Box, Segment
from waygraph.pipeline.browser.page.snapshot import Snapshot

URL = "http://a.example/"
PAGE = ("Shelves", "Oak", "Ash", "Elm", "Birch")
PANEL = tuple(f"Row {letter}" for letter in "abcdefghij")


def page(*texts, url=URL):
    """Return a page with these texts, in elements that are always the same."""
    segments = tuple(Segment(text, "text", Box(0, 0, 1, 1)) for text in texts)
    return Snapshot("id " + url, url, url, "Shop", "text/html", 200, ("e",), (), segments, capped=False, opened=0)


def opened(before, after):
    """Return a tree whose second node was made from the page of the first one by a click."""
    tree = grown()
    tree.nodes[0].state = record_state(before)
    step(tree, 0, "Open", record_state(after))
    return tree


def shows(tree, node, *texts):
    return ExpectedState(tree, tree.nodes[node]).is_shown(page(*texts))


def test_a_state_must_show_what_its_action_added_and_the_page_before_must_not():
    tree = opened(page(*PAGE), page(*PAGE, "Made of oak"))
    assert [shows(tree, node, *PAGE, "Made of oak") for node in (0, 1)] == [False, True]
    assert [shows(tree, node, *PAGE) for node in (0, 1)] == [True, False]


def test_what_the_page_changed_by_itself_before_an_action_is_not_what_the_action_changed():
    tree = opened(page(*PAGE, "Cut in spring"), page(*PAGE, "Sow at once", "Made of oak"))
    added = record_state(page("Made of oak")).features
    tree.nodes[1].change = dict(added)  # the second tip was there before the click
    for tip in ("Cut in spring", "Sow at once", "Dig in autumn"):
        assert [shows(tree, node, *PAGE, tip, "Made of oak") for node in (0, 1)] == [False, True]
        assert [shows(tree, node, *PAGE, tip) for node in (0, 1)] == [True, False]


def test_a_panel_that_takes_the_tip_with_it_is_recognised_beside_another_tip():
    tree = opened(page(*PAGE, "Cut in spring"), page(*PAGE, *PANEL))
    assert shows(tree, 0, *PAGE, "Sow at once")
    assert not shows(tree, 0, *PAGE, *PANEL)
    assert shows(tree, 1, *PAGE, *PANEL)
    assert not shows(tree, 1, *PAGE, "Sow at once")


@pytest.mark.parametrize("missing", [1, 2])
def test_a_tenth_of_a_large_change_may_be_missing(missing):
    tree = opened(page(*PAGE), page(*PAGE, *PANEL))
    assert shows(tree, 1, *PAGE, *PANEL[missing:]) is (missing == 1)


def test_what_was_seen_to_come_and_go_by_itself_is_no_part_of_a_change():
    tree = opened(page(*PAGE, "Cut in spring"), page(*PAGE, "Sow at once"))
    assert not shows(tree, 1, *PAGE, "Dig in autumn")
    note_unstable(tree.nodes[0], record_state(page(*PAGE, "Sow at once")))
    assert shows(tree, 1, *PAGE, "Dig in autumn")
    assert shows(tree, 0, *PAGE, "Dig in autumn")


def test_pages_that_differ_in_what_comes_and_goes_by_itself_are_the_same():
    tree = opened(page(*PAGE, "Cut in spring"), page(*PAGE))
    first, second = record_state(page(*PAGE, "Cut in spring")), record_state(page(*PAGE, "Sow at once"))
    assert not same_page(first, second)
    note_unstable(tree.nodes[0], second)
    assert same_page(first, second, tree.nodes[0].unstable)
    assert not same_page(first, record_state(page(*PAGE, "Made of oak")), tree.nodes[0].unstable)


def test_another_page_tells_nothing_of_what_comes_and_goes():
    tree = opened(page(*PAGE), page(*PAGE))
    note_unstable(tree.nodes[0], record_state(page("Elsewhere", url=f"{URL}other")))
    assert tree.nodes[0].unstable == []


def test_the_id_of_what_is_not_saved_yet_is_another_one_after_the_same_clicks():
    tree = opened(page(*PAGE), page(*PAGE, 'Flow "72dbb5ca87aa2a12"'))
    assert shows(tree, 1, *PAGE, 'Flow "238999cb5150dd47"')
    assert not shows(tree, 1, *PAGE)
