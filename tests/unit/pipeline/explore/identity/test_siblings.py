"""Budget for unnamed sibling elements: after enough of them brought nothing, the others are skipped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph import Action, Box
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.identity.siblings import SiblingBudget

SVG = '/html[1]/body[1]/div[2]/*[name()="svg"][1]'
BUDGET = 5


def point(number=1, series=1, *, name="", target="", kind="hover", icon="bar"):
    path = f'{SVG}/*[name()="g"][{series}]/*[name()="path"][{number}]'
    action = Action(kind, xpath=path, role="", name=name, target=target)
    return Candidate(action, "path", disabled=False, submits="", download=False, box=Box(0, 0, 1, 1), icon=icon)


def after(*tried, budget=BUDGET):
    siblings = SiblingBudget(budget)
    for candidate, brought in tried:
        assert siblings.refuse("state", candidate) is None
        siblings.record_result("state", candidate, brought=brought)
    return siblings


WITHOUT_RESULT = tuple((point(number), False) for number in range(BUDGET))


def test_after_enough_siblings_without_a_result_the_others_are_refused():
    refusal = after(*WITHOUT_RESULT).refuse("state", point(99))
    assert refusal is not None
    assert refusal.reason == "alike"
    assert after(*WITHOUT_RESULT[1:]).refuse("state", point(99)) is None


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
def test_an_element_that_differs_in_anything_else_is_no_sibling(other):
    assert after(*WITHOUT_RESULT).refuse("state", other) is None


def row(number, *, listener="list", of="tbody"):
    action = Action(
        "click", xpath=f"/html[1]/body[1]/{of}[1]/tr[{number}]", role="row", name=f"Record {number}", target=""
    )
    return Candidate(action, "tr", disabled=False, submits="", download=False, box=Box(0, 0, 1, 1), listener=listener)


def tried(candidates, siblings=None):
    """Return how many of them are tried if none has a result, each in a state of its own."""
    siblings = siblings or SiblingBudget(BUDGET)
    count = 0
    for number, candidate in enumerate(candidates):
        if siblings.refuse(f"state {number}", candidate) is None:
            siblings.record_result(f"state {number}", candidate, brought=False)
            count += 1
    return count


def test_items_that_a_listener_around_them_may_mean_are_siblings_whatever_their_names():
    siblings = after(*((row(number), False) for number in range(BUDGET)))
    assert siblings.refuse("state", row(99)) is not None
    assert siblings.refuse("state", row(99, of="table")) is None
    assert siblings.refuse("other state", row(99)) is None


def test_items_without_a_result_anywhere_are_not_tried_on_further_pages():
    assert tried(row(number) for number in range(99)) == 2 * BUDGET
    assert tried(row(number, listener="page") for number in range(99)) == 3
    lists = (row(number, listener="page", of=of) for of in ("ol", "ul", "dl", "tbody", "menu") for number in range(9))
    assert tried(lists) == 2 * BUDGET


def test_what_was_learned_of_the_site_is_kept_when_states_are_done():
    siblings = SiblingBudget(BUDGET)
    assert tried((row(number, listener="page") for number in range(99)), siblings) == 3
    siblings.keep([])
    resumed = SiblingBudget(BUDGET)
    resumed.load_checkpoint(json.loads(json.dumps(siblings.to_checkpoint())))
    assert resumed.is_exhausted(row(99, listener="page"))
    siblings.record_result("s", row(1, listener="page"), brought=True)
    assert not siblings.is_exhausted(row(99, listener="page"))


PAGE = "http://x/manual"


def link(number, *, part="part", parent="li"):
    path = f"/html[1]/body[1]/ul[{number}]/{parent}[1]/a[1]"
    action = Action(
        "click", xpath=path, role="link", name=f"Part {number}", target=f"{PAGE}#{part and part + str(number)}"
    )
    return Candidate(action, "a", disabled=False, submits="", download=False, box=Box(0, 0, 1, 1))


def after_links(**of):
    siblings = SiblingBudget(BUDGET)
    for number in range(BUDGET):
        siblings.record_result("state", link(number, **of), PAGE, brought=False)
    return siblings


def test_links_to_parts_of_their_page_are_siblings_whatever_their_names():
    siblings = after_links()
    assert siblings.refuse("state", link(99), PAGE) is not None
    assert siblings.refuse("state", link(99, parent="p"), PAGE) is None
    assert siblings.refuse("state", link(99), "http://x/other") is None


def test_routes_and_links_that_are_buttons_are_no_links_to_parts():
    assert after_links(part="/").refuse("state", link(99, part="/"), PAGE) is None
    assert after_links(part="").refuse("state", link(99, part=""), PAGE) is None


def test_the_same_list_of_another_state_is_not_refused():
    assert after(*WITHOUT_RESULT).refuse("other", point(99)) is None


def test_columns_are_siblings_like_rows():
    tried = [(point(3, series), False) for series in range(BUDGET)]
    assert after(*tried).refuse("state", point(3, 99)) is not None
    assert after(*tried).refuse("state", point(4, 99)) is None


def test_a_list_with_regular_results_is_tried_to_its_end():
    after(*((point(number), number % 3 == 0) for number in range(60)))


def test_a_budget_of_zero_refuses_nothing():
    after(*((point(number), False) for number in range(60)), budget=0)


def test_counts_of_a_state_are_kept_while_it_has_pending_elements():
    siblings = after(*WITHOUT_RESULT)
    siblings.keep({"state", "other"})
    assert siblings.refuse("state", point(99)) is not None
    siblings.keep({"other"})
    assert siblings.refuse("state", point(99)) is None


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.booleans()), max_size=60))
def test_a_refused_element_stays_refused_also_in_a_resumed_run(steps):
    siblings, left = SiblingBudget(2), set()
    for number, series, brought in steps:
        for each in left:
            assert siblings.refuse("state", point(*each)) is not None
        if siblings.refuse("state", point(number, series)) is None:
            siblings.record_result("state", point(number, series), brought=brought)
        else:
            left.add((number, series))
        checkpoint = json.dumps(siblings.to_checkpoint())
        siblings = SiblingBudget(2)
        siblings.load_checkpoint(json.loads(checkpoint))
