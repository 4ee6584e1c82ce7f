"""The order of selection, as docs/search-tree.md has it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.waygraph.agents.search.trees import click, grown, put, state, step, stop
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search.frontier import MAX_REPEATS
from waygraph.agents.search.selection import SearchLimits, Why, select
from waygraph.agents.search.tree import CandidateStatus, StepRecord

LIMITS = SearchLimits(max_steps=10, solutions=2)


def chosen(tree, *, limits=LIMITS, current=0, reachable=True):
    selected = select(tree, limits, current=current, leads_back=lambda _: reachable)
    return (selected.candidate.id if selected.candidate else None), selected.why, selected.end


def spend(tree, steps):
    tree.log += [StepRecord(state="s", url="u", action="a", status="done", message="m")] * steps


def test_the_highest_score_is_performed_and_of_equal_ones_the_first():
    tree = grown()
    put(tree, 0, click("low"), 0.1)
    high = put(tree, 0, click("high"), 0.9)
    put(tree, 0, click("high too"), 0.9)
    assert chosen(tree) == (high.id, Why.BEST, None)


def test_an_answer_waits_until_as_many_answers_are_found_as_are_wanted():
    tree = grown(depth=2)
    low = put(tree, 0, click("low"), 0.1)
    first = put(tree, 0, stop("a"), 0.9)
    assert chosen(tree) == (low.id, Why.BEST, None)
    put(tree, 1, stop("b"), 0.3)
    assert chosen(tree) == (first.id, Why.BEST, AttemptEnd.ANSWERED)


def test_an_answer_that_scores_lower_than_an_action_waits():
    tree = grown(depth=2)
    better = put(tree, 0, click("better"), 0.9)
    put(tree, 0, stop("a"), 0.5)
    put(tree, 1, stop("b"), 0.5)
    assert chosen(tree)[0] == better.id


@pytest.mark.parametrize("cause", ["late", "prunes"])
def test_late_or_after_many_losses_the_first_answer_is_accepted(cause):
    tree = grown()
    put(tree, 0, click("low"), 0.1)
    answer = put(tree, 0, stop("a"), 0.9)
    if cause == "late":
        spend(tree, 8)
    else:
        tree.prunes = LIMITS.max_prunes
    assert chosen(tree) == (answer.id, Why.BEST, AttemptEnd.ANSWERED)


def test_at_the_step_limit_the_best_answer_ends_the_search_else_it_ends_without_one():
    tree = grown(depth=2)
    put(tree, 0, click("high"), 0.9)
    spend(tree, 10)
    assert chosen(tree) == (None, Why.STEP_LIMIT, AttemptEnd.STEP_LIMIT)
    put(tree, 0, stop("a"), 0.2)
    better = put(tree, 1, stop("b"), 0.3)
    assert chosen(tree) == (better.id, Why.STEP_LIMIT, AttemptEnd.ANSWERED)


def test_an_answer_that_all_agreed_on_ends_the_search_at_once():
    tree = grown()
    agreed = put(tree, 0, stop("a"), 0.1)
    put(tree, 0, click("high"), 0.9)
    tree.agreed = agreed.id
    assert chosen(tree) == (agreed.id, Why.ALL_AGREE, AttemptEnd.ANSWERED)


def test_after_a_loss_an_answer_that_no_way_leads_back_to_is_taken_now():
    tree = grown()
    put(tree, 0, click("high"), 0.9)
    answer = put(tree, 0, stop("a"), 0.1)
    assert chosen(tree, reachable=False)[1] is Why.BEST
    tree.changes = 1
    assert chosen(tree, reachable=False) == (answer.id, Why.PATH_LOST, AttemptEnd.ANSWERED)
    assert chosen(tree, reachable=True)[1] is Why.BEST


def test_a_destructive_action_waits_for_everything_safe_whatever_it_promises():
    tree = grown()
    safe = put(tree, 0, click("safe"), 0.01)
    destructive = put(tree, 0, click("Delete", is_destructive=True), 0.99)
    assert chosen(tree)[0] == safe.id
    safe.status = CandidateStatus.DONE
    assert chosen(tree) == (destructive.id, Why.DESTRUCTIVE, None)


def test_a_destructive_action_comes_before_answers_that_promise_less_until_something_was_changed():
    tree = grown(depth=2)
    destructive = put(tree, 0, click("Save", is_destructive=True), 0.9)
    answer = put(tree, 0, stop("a"), 0.5)
    put(tree, 1, stop("b"), 0.4)
    assert chosen(tree) == (destructive.id, Why.DESTRUCTIVE, None)
    tree.changes = 1
    assert chosen(tree) == (answer.id, Why.BEST, AttemptEnd.ANSWERED)


def test_a_destructive_action_that_promises_less_than_an_answer_is_not_performed():
    tree = grown()
    put(tree, 0, click("Delete", is_destructive=True), 0.1)
    answer = put(tree, 0, stop("a"), 0.5)
    assert chosen(tree) == (answer.id, Why.LAST_ANSWER, AttemptEnd.ANSWERED)


def test_an_action_that_was_performed_often_comes_last():
    tree = grown()
    for _ in range(MAX_REPEATS):
        step(tree, 0, "Next", state("s0"))
    again = put(tree, 0, click("Next"), 0.9)
    other = put(tree, 0, click("Other"), 0.1)
    assert chosen(tree)[0] == other.id
    other.status = CandidateStatus.DONE
    assert chosen(tree) == (again.id, Why.REPEATED, None)


def test_an_empty_frontier_ends_the_search():
    assert chosen(grown()) == (None, Why.EXHAUSTED, AttemptEnd.EXHAUSTED)


PAPER = replace(LIMITS, order="paper")
VALUE = replace(LIMITS, order="value")


def test_algorithm_5_performs_the_best_action_of_a_full_frontier_whatever_it_is():
    tree = grown(budget=1)
    put(tree, 0, click("safe"), 0.1)
    destructive = put(tree, 0, click("Delete", is_destructive=True), 0.9)
    assert chosen(tree, limits=PAPER) == (destructive.id, Why.FULL, None)
    tree.budget = 2
    assert chosen(tree, limits=PAPER)[1] is Why.BEST
    assert not tree.candidates[chosen(tree, limits=PAPER)[0]].is_destructive


def test_algorithm_5_holds_one_destructive_action_back_and_not_two():
    tree = grown()
    put(tree, 0, click("safe"), 0.1)
    put(tree, 0, click("Delete", is_destructive=True), 0.8)
    assert chosen(tree, limits=PAPER)[1] is Why.BEST
    second = put(tree, 0, click("Remove", is_destructive=True), 0.9)
    assert chosen(tree, limits=PAPER) == (second.id, Why.FULL, None)


def test_algorithm_5_tries_what_changes_data_before_a_better_answer_if_nothing_safe_is_left():
    tree = grown()
    destructive = put(tree, 0, click("Save", is_destructive=True), 0.1)
    answer = put(tree, 0, stop("a"), 0.9)
    assert chosen(tree, limits=PAPER) == (destructive.id, Why.DESTRUCTIVE, None)
    tree.changes = 1
    assert chosen(tree, limits=PAPER) == (answer.id, Why.LAST_ANSWER, AttemptEnd.ANSWERED)


def test_after_a_loss_algorithm_5_takes_an_answer_in_place_of_what_changes_data():
    tree = grown(budget=1)
    put(tree, 0, click("Delete", is_destructive=True), 0.9)
    answer = put(tree, 0, stop("a"), 0.1)
    tree.changes = 1
    assert chosen(tree, limits=PAPER) == (answer.id, Why.FULL, AttemptEnd.ANSWERED)


def test_by_value_alone_the_highest_score_is_next_whatever_it_is():
    tree = grown()
    put(tree, 0, click("safe"), 0.1)
    destructive = put(tree, 0, click("Delete", is_destructive=True), 0.5)
    assert chosen(tree, limits=VALUE) == (destructive.id, Why.BEST, None)
    answer = put(tree, 0, stop("a"), 0.6)
    assert chosen(tree, limits=VALUE) == (answer.id, Why.BEST, AttemptEnd.ANSWERED)


KINDS = st.sampled_from(["safe", "destructive", "stop"])


@given(
    proposed=st.lists(st.tuples(KINDS, st.floats(0, 1)), max_size=8),
    steps=st.integers(0, 9),
    changes=st.integers(0, 2),
    prunes=st.integers(0, 4),
    reachable=st.booleans(),
)
def test_nothing_destructive_is_selected_while_a_safe_action_is_queued(proposed, steps, changes, prunes, reachable):
    tree = grown()
    for number, (kind, score) in enumerate(proposed):
        if kind == "stop":
            put(tree, 0, stop(str(number)), score)
        else:
            put(tree, 0, click(str(number), is_destructive=kind == "destructive"), score)
    spend(tree, steps)
    tree.changes, tree.prunes = changes, prunes
    selected = select(tree, LIMITS, current=0, leads_back=lambda _: reachable)
    if any(kind == "safe" for kind, _ in proposed):
        assert selected.candidate is not None
        assert not selected.candidate.is_destructive
    if selected.candidate is None:
        assert selected.end is not None
        assert not proposed
    elif selected.end is not None:
        assert selected.candidate.is_stop
