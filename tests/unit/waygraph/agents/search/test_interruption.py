"""What becomes of actions that were being performed when a process ended."""

from tests.unit.waygraph.agents.search.trees import click, grown, put, state, visit
from waygraph.agents.actions import GotoAction
from waygraph.agents.search.frontier import Proposal, add, merge
from waygraph.agents.search.interruption import settle_interrupted
from waygraph.agents.search.tree import CandidateStatus, TreeCandidate

SHELF = "http://a.example/shelf"


def begun(tree, proposal):
    return put(tree, 0, proposal, 0.5, status=CandidateStatus.BEGUN)


def proposed_again(tree, name, **more) -> TreeCandidate:
    """Propose a click on another visit of the page."""
    node = tree.add_node(state("again", tree.nodes[0].state.url, changed=1), parent=0, candidate=None)
    (added,) = add(tree, node.id, [(each, 0.5) for each in merge([click(name, **more)])])
    return added


def test_a_gesture_is_not_repeated_on_its_page_whatever_its_name():
    tree = grown()
    button = begun(tree, click("Figures"))
    assert settle_interrupted(tree) == []
    assert button.status is CandidateStatus.INTERRUPTED
    assert proposed_again(tree, "Figures").status is CandidateStatus.DROPPED
    assert proposed_again(tree, "Others").status is CandidateStatus.QUEUED
    assert [step.status for step in tree.log] == ["failed"]


def test_a_safe_link_is_replaced_by_loading_its_address():
    tree = grown()
    begun(tree, click("Shelf", target=SHELF))
    settle_interrupted(tree)
    assert [(each.action, each.score, each.contexts) for each in tree.queued] == [(GotoAction(url=SHELF), 0.5, ["one"])]


def test_a_link_to_a_fragment_of_its_page_is_not_replaced_since_its_script_may_have_changed_data():
    tree = grown()
    tab = begun(tree, click("Info", target=tree.nodes[0].state.url + "#info"))
    assert settle_interrupted(tree) == []
    assert (tab.status, tree.queued) == (CandidateStatus.INTERRUPTED, [])


def test_what_was_known_to_change_data_is_told_and_not_replaced():
    tree = grown()
    deed = begun(tree, click("Tidy up", target="http://a.example/items/1/delete", is_destructive=True))
    assert settle_interrupted(tree) == [deed]
    assert tree.queued == []


def test_walks_and_loads_of_addresses_wait_again():
    tree = grown()
    walk = begun(tree, visit("n1"))
    load = begun(tree, Proposal(GotoAction(url=SHELF), None, "one"))
    settle_interrupted(tree)
    assert tree.queued == [walk, load]


def test_a_link_that_changed_data_is_not_followed_on_another_page():
    tree = grown(depth=2)
    put(tree, 0, click("Leave", target="http://a.example/logout"), 0.5, status=CandidateStatus.DONE, changed=["GET x"])
    again = put(tree, 1, click("Leave", target="http://a.example/logout"), 0.5)
    assert again.status is CandidateStatus.DROPPED
    assert put(tree, 1, click("Leave"), 0.5).status is CandidateStatus.QUEUED
