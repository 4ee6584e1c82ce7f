"""Which ways to take a change back are tried? What worked before, and not for long what did not."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.explore.undo import Rates

KIND = "click button"
ATTEMPTS = st.lists(
    st.tuples(st.sampled_from([KIND, "click tab"]), st.sampled_from(["toggle", "escape", "back"]), st.booleans())
)


def test_what_was_never_tried_is_tried_in_the_order_given():
    assert Rates().worth_trying(KIND, ["toggle", "escape"]) == ["toggle", "escape"]


def test_what_does_not_work_is_tried_twice_and_then_left():
    rates = Rates([(KIND, "toggle", False)] * 2)
    assert rates.worth_trying(KIND, ["toggle", "escape"]) == ["escape"]
    assert rates.worth_trying("click tab", ["toggle"]) == ["toggle"]


def test_what_worked_more_often_comes_first():
    rates = Rates([(KIND, "escape", True), (KIND, "toggle", True), (KIND, "toggle", False)])
    assert rates.worth_trying(KIND, ["toggle", "escape"]) == ["escape", "toggle"]


def test_a_copy_learns_on_its_own():
    rates = Rates()
    rates.copy().add([(KIND, "toggle", False)] * 5)
    assert rates.worth_trying(KIND, ["toggle"]) == ["toggle"]


@given(ATTEMPTS, st.randoms())
def test_the_order_in_which_tries_are_learned_does_not_matter_nor_does_a_resume(attempts, chance):
    shuffled = list(attempts)
    chance.shuffle(shuffled)
    rates, resumed = Rates(attempts), Rates()
    resumed.recall(rates.remember())
    assert Rates(shuffled).remember() == rates.remember() == resumed.remember()
