"""Every switch of the tree search changes its tree or the prompts; see the settings `agents.search`."""

import pytest

from tests.searching import Scripted, search
from tests.sites.server import FixtureServer, Page
from waygraph.agents.search import SearchLimits, SearchTree

LINKS = "<!doctype html><title>Start</title><h1>Start</h1><a href=/left>Left</a> <a href=/right>Right</a>"
SENDS = """<!doctype html><title>Sends</title><a href=/left>Left</a>
<button onclick="fetch('/trap', {method: 'POST', body: 'x=1'})">Show figures</button>"""


@pytest.fixture
def site():
    pages = {"/": LINKS, "/left": "<title>Left</title><p>one", "/right": "<title>Right</title><p>two", "/sends": SENDS}
    with FixtureServer({**pages, "/trap": "ok", "/gone": Page("<title>x</title>", status=404)}) as server:
        yield server


class Second(Scripted):
    name = "second"


SCRIPT = {"Start": {"Left": 0.9, "Right": 0.5}}


def tree_of(site, tmp_path, generators=SCRIPT, **options):
    search(site, generators, tree_file=tmp_path / "tree.json", **options)
    return SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())


@pytest.mark.parametrize(("backtracking", "visited"), [(True, ["Start", "Left", "Right"]), (False, ["Start", "Left"])])
def test_without_backtracking_only_the_present_state_is_gone_on_from(site, tmp_path, backtracking, visited):
    tree = tree_of(site, tmp_path, limits=SearchLimits(backtracking=backtracking))
    assert [each.state.title for each in tree.nodes] == visited


@pytest.mark.parametrize(("depth", "problem"), [(2, ""), (1, "It is too far from the root.")])
def test_the_search_does_not_go_on_from_states_beyond_the_depth(site, tmp_path, depth, problem):
    script = {"Start": {"Left": 0.9}, "Left": {f"goto {site.at('/right')}": 0.9}}
    tree = tree_of(site, tmp_path, script, limits=SearchLimits(max_depth=depth))
    assert [each.problem for each in tree.nodes] == ["", "", problem]


@pytest.mark.parametrize(("budget", "kept"), [(4, 3), (1, 2)])
def test_a_small_budget_drops_the_lowest_actions_before_others_are_added(site, tmp_path, budget, kept):
    onward = f"goto {site.at('/sends')}"
    script = {"Start": {"Left": 0.9, "Right": 0.5, onward: 0.3}, "Left": {f"goto {site.at('/right')}": 0.1}}
    tree = tree_of(site, tmp_path, script, budget=budget)
    done = [each.text for each in tree.candidates if each.status == "done"]
    assert len([each for each in done if each != f"goto [{site.at('/right')}]"]) == kept


@pytest.mark.parametrize("retries", [0, 2])
def test_a_context_whose_actions_cannot_be_done_is_asked_again(site, tmp_path, retries):
    script = Scripted({"Start": {f"goto {site.at('/gone')}": 0.9}})
    tree_of(site, tmp_path, [script], retries=retries)
    assert len(script.asked) == 1 + retries


@pytest.mark.parametrize(("merging", "scores"), [(True, [1.8, 1.0]), (False, [0.9, 0.5, 0.9, 0.5])])
def test_without_merging_equal_actions_of_two_contexts_are_two(site, tmp_path, merging, scores):
    tree = tree_of(site, tmp_path, [Scripted(SCRIPT), Second(SCRIPT)], merging=merging)
    assert [each.score for each in tree.candidates] == scores


@pytest.mark.parametrize(("speculation", "performed"), [(True, []), (False, ["goto [%s]"])])
def test_without_speculation_an_address_is_not_tried_beside_first(site, tmp_path, speculation, performed):
    gone = site.at("/gone")
    tree = tree_of(site, tmp_path, {"Start": {f"goto {gone}": 0.9}}, speculation=speculation)
    assert [each.action for each in tree.log] == [each % gone for each in performed]


@pytest.mark.parametrize(("begin_anew", "root", "tried"), [(True, 1, 0), (False, 0, 1)])
def test_without_begin_anew_a_change_of_data_leaves_earlier_states_and_actions(site, tmp_path, begin_anew, root, tried):
    script = {"Sends": {"Show figures": 0.9, f"goto {site.at('/right')}": 0.2}}
    tree = tree_of(site, tmp_path, script, path="/sends", limits=SearchLimits(begin_anew=begin_anew))
    assert (tree.changes, tree.root) == (root, root)
    first_goto = next(each for each in tree.candidates if each.text.startswith("goto"))
    assert (first_goto.status == "done") == bool(tried)


@pytest.mark.parametrize(("order", "first"), [("safe_first", "goto"), ("value", "click"), ("paper", "goto")])
def test_by_value_alone_a_change_of_data_does_not_wait_for_what_is_safe(site, tmp_path, order, first):
    site.pages["/form"] = (
        "<!doctype html><title>Form</title><form method=post action=/trap><button>Delete</button></form>"
    )
    script = {"Form": {"Delete": 0.9, f"goto {site.at('/right')}": 0.2}}
    options = {"limits": SearchLimits(order=order), "session_options": {"destructive": "allow"}, "path": "/form"}
    tree = tree_of(site, tmp_path, script, **options)
    assert tree.log[0].action.startswith(first)


def test_what_was_done_before_a_change_of_data_stays_in_the_history(site, tmp_path):
    tree = tree_of(site, tmp_path, {"Start": {f"goto {site.at('/sends')}": 0.9}, "Sends": {"Show figures": 0.9}})
    assert tree.root == 2
    steps = [each.action for each in tree.trajectory(2).history]
    assert steps == [f"goto [{site.at('/sends')}]", 'click button "Show figures"']
