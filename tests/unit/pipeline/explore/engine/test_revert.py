"""Order of revert methods: methods that succeeded before come first, methods that failed twice are dropped."""

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.explore.engine.revert import RevertRates

KIND = "click button"
ATTEMPTS = st.lists(
    st.tuples(st.sampled_from([KIND, "click tab"]), st.sampled_from(["toggle", "escape", "back"]), st.booleans())
)


def test_untried_revert_methods_keep_the_given_order():
    assert RevertRates().worth_trying(KIND, ["toggle", "escape"]) == ["toggle", "escape"]


def test_revert_method_is_dropped_after_two_failures():
    rates = RevertRates([(KIND, "toggle", False)] * 2)
    assert rates.worth_trying(KIND, ["toggle", "escape"]) == ["escape"]
    assert rates.worth_trying("click tab", ["toggle"]) == ["toggle"]


def test_revert_methods_are_ordered_by_success_rate():
    rates = RevertRates([(KIND, "escape", True), (KIND, "toggle", True), (KIND, "toggle", False)])
    assert rates.worth_trying(KIND, ["toggle", "escape"]) == ["escape", "toggle"]


def test_copy_of_revert_rates_is_independent():
    rates = RevertRates()
    rates.copy().add([(KIND, "toggle", False)] * 5)
    assert rates.worth_trying(KIND, ["toggle"]) == ["toggle"]


@given(ATTEMPTS, st.randoms())
def test_revert_rates_do_not_depend_on_order_or_checkpoints(attempts, chance):
    shuffled = list(attempts)
    chance.shuffle(shuffled)
    rates, resumed = RevertRates(attempts), RevertRates()
    resumed.load_checkpoint(rates.to_checkpoint())
    assert RevertRates(shuffled).to_checkpoint() == rates.to_checkpoint() == resumed.to_checkpoint()
