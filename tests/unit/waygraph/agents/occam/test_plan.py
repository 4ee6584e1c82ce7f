"""Plans form a tree with one active plan; what was given up never returns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.agents.actions.types import GotoAction, PruneAction
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.occam.decider import OccamDecider
from waygraph.agents.occam.plan import NoSuchPlan, PlanTree


def test_a_new_plan_is_the_active_one():
    tree = PlanTree("task", "http://a.example/")
    assert tree.branch("0", "first", "http://a.example/1") == tree.active == 1
    assert str(tree) == "[0] task\n  [1] first (active)"


def test_pruning_gives_up_what_is_below_and_after_a_plan_and_keeps_what_was_before():
    tree = PlanTree("task", "http://a.example/")
    tree.branch("0", "before", "http://a.example/1")
    tree.branch("0", "resumed", "http://a.example/2")
    tree.branch("2", "below", "http://a.example/3")
    tree.branch("0", "after", "http://a.example/4")
    assert tree.prune("[2]", "wrong way") == "http://a.example/2"
    assert tree.ids() == [0, 1, 2]
    assert str(tree) == "[0] task\n  [1] before\n  [2] resumed (active; resumed: wrong way)"


@pytest.mark.parametrize("number", ["7", "-1", "", "first", "²", "1.0"])
def test_an_id_that_is_no_plan_is_refused(number):
    tree = PlanTree("task", "")
    with pytest.raises(NoSuchPlan):
        tree.branch(number, "x", "")
    with pytest.raises(NoSuchPlan):
        tree.prune(number, "x")
    assert tree.ids() == [0]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=40))
def test_the_active_plan_and_its_ancestors_were_not_given_up(changes):
    tree = PlanTree("task", "0")
    known = {0}
    for adds, number in changes:
        before = set(tree.ids())
        try:
            if adds:
                known.add(tree.branch(str(number), "x", str(number)))
            else:
                tree.prune(str(number), "y")
                assert set(tree.ids()) <= before
        except NoSuchPlan:
            assert number not in before
            assert set(tree.ids()) == before
        plan = tree.find(str(tree.active))
        while plan is not None:
            assert not plan.is_given_up
            plan = plan.parent
        assert set(tree.ids()) <= known
        assert len(str(tree).splitlines()) == len(tree.ids())


def test_a_plan_that_was_made_in_an_empty_tab_is_resumed_where_the_agent_is():
    decider = OccamDecider(ScriptedModel([]))
    decider._plans = PlanTree("task", "http://a.example/")
    decider._plans.branch("0", "first", "about:blank")
    resume_first, resume_task = (PruneAction(plan=plan, reason="r") for plan in ("1", "0"))
    assert decider.page_action(resume_first) == resume_first
    assert decider.page_action(resume_task) == GotoAction(url="http://a.example/")
