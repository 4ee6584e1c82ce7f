"""Which elements are left alone because others like them brought nothing?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.graph import Action, Box
from pipeline.browser.snapshot import Candidate
from pipeline.explore.identity.siblings import Siblings

SVG = '/html[1]/body[1]/div[2]/*[name()="svg"][1]'
BUDGET = 5


def point(number=1, series=1, *, name="", target="", kind="hover", icon="bar"):
    path = f'{SVG}/*[name()="g"][{series}]/*[name()="path"][{number}]'
    action = Action(kind, xpath=path, role="", name=name, target=target)
    return Candidate(action, "path", disabled=False, submits="", download=False, box=Box(0, 0, 1, 1), icon=icon)


def after(*tried, budget=BUDGET):
    siblings = Siblings(budget)
    for candidate, brought in tried:
        assert siblings.refuse("state", candidate) is None
        siblings.tried("state", candidate, brought=brought)
    return siblings


IN_VAIN = tuple((point(number), False) for number in range(BUDGET))


def test_after_so_many_in_vain_the_rest_of_a_list_is_left_alone():
    refusal = after(*IN_VAIN).refuse("state", point(99))
    assert refusal is not None
    assert refusal.reason == "alike"
    assert after(*IN_VAIN[1:]).refuse("state", point(99)) is None


@pytest.mark.parametrize(
    "other",
    [
        point(99, 2),
        point(99, name="May"),
        point(99, target="http://x/"),
        point(99, kind="click"),
        point(99, icon="pie"),
    ],
    ids=["another list", "a name", "a target", "another action", "another class"],
)
def test_what_is_told_apart_is_no_sibling(other):
    assert after(*IN_VAIN).refuse("state", other) is None


def test_the_same_list_of_another_state_is_tried():
    assert after(*IN_VAIN).refuse("other", point(99)) is None


def test_columns_are_lists_as_rows_are():
    tried = [(point(3, series), False) for series in range(BUDGET)]
    assert after(*tried).refuse("state", point(3, 99)) is not None
    assert after(*tried).refuse("state", point(4, 99)) is None


def test_a_list_whose_parts_show_something_is_tried_to_its_end():
    after(*((point(number), number % 3 == 0) for number in range(60)))


def test_without_a_budget_nothing_is_left_alone():
    after(*((point(number), False) for number in range(60)), budget=0)


def test_a_level_begins_without_what_was_tried_before():
    siblings = after(*IN_VAIN)
    siblings.begin_level()
    assert siblings.refuse("state", point(99)) is None


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.booleans()), max_size=60))
def test_what_is_left_alone_stays_so_also_in_a_run_that_goes_on(steps):
    siblings, left = Siblings(2), set()
    for number, series, brought in steps:
        for each in left:
            assert siblings.refuse("state", point(*each)) is not None
        if siblings.refuse("state", point(number, series)) is None:
            siblings.tried("state", point(number, series), brought=brought)
        else:
            left.add((number, series))
        memory = json.dumps(siblings.remember())
        siblings = Siblings(2)
        siblings.recall(json.loads(memory))
