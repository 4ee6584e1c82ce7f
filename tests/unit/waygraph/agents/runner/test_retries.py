"""Which failures of an attempt are tried again."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from waygraph.agents.runner.retries import MAX_FAILURES, AttemptFailure, may_try_again


def test_every_failure_has_a_limit():
    assert MAX_FAILURES.keys() == set(AttemptFailure)


@given(st.lists(st.sampled_from(AttemptFailure), max_size=20))
def test_a_task_is_given_up_at_the_limit_of_any_kind_and_never_before(failures):
    counts = Counter()
    for kind in failures:
        counts[kind] += 1
        assert may_try_again(counts) == all(counts[each] < MAX_FAILURES[each] for each in AttemptFailure)
    assert may_try_again(Counter())
