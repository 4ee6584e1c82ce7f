"""What becomes of batches whose encoders die? Simulated encoders, real rules."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs.encoding.batches import Batch, after_loss, learned_size, most_losses, planned, take


def work_off(items: int, size: int, deadly: Collection[int], *, most_at_once: int | None = None):
    """Encode all items in one encoder, which dies of some of them, or of too many; returns what became of them."""
    line = [Batch(tuple(keys)) for keys in planned(range(items), size)]
    done: list[int] = []
    given_up: list[int] = []
    in_a_row = longest = deaths = 0
    while line:
        batch = take(line, size)
        if deadly & set(batch.items) or len(batch) > (most_at_once or len(batch)):
            deaths, in_a_row = deaths + 1, in_a_row + 1
            longest = max(longest, in_a_row)
            # The first time another batch was in the encoder, too.
            again = after_loss(batch, was_alone=batch.alone)
            line[:0] = again
            if not again:
                given_up += batch.items
        else:
            in_a_row = 0
            done += batch.items
            size = learned_size(batch) or size
    return done, given_up, longest, deaths


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 79))
def test_a_state_that_kills_encoders_is_found_and_all_others_are_encoded(items, size, deadly):
    done, given_up, longest, _ = work_off(items, size, {deadly})
    assert given_up == [deadly] * (deadly < items)
    assert sorted(done) == [item for item in range(items) if item != deadly]
    assert longest <= most_losses(size)


def test_two_neighbours_that_kill_encoders_are_found_within_the_bound():
    done, given_up, longest, _ = work_off(64, 32, {0, 1})
    assert given_up == [0, 1]
    assert len(done) == 62
    assert longest <= most_losses(32)


def test_one_death_takes_nothing_and_splits_nothing():
    batch = Batch(tuple("abcd"))
    (again,) = after_loss(batch, was_alone=False)
    assert (again.items, again.alone, again.losses) == (batch.items, True, 0)
    (again,) = after_loss(again, was_alone=True)
    assert (again.items, again.losses) == (batch.items, 1)
    first, second = after_loss(again, was_alone=True)
    assert (first.items, second.items) == (("a", "b"), ("c", "d"))


def test_batches_that_are_too_large_for_memory_become_smaller_and_stay_so():
    done, given_up, _, deaths = work_off(64, 16, set(), most_at_once=5)
    assert sorted(done) == list(range(64))
    assert given_up == []
    assert deaths == 4  # 16 together with others, 16 twice alone, 8; and never again


def test_states_that_came_one_by_one_are_encoded_together_when_their_context_is_equal():
    line = [Batch((key,), {"a": 1}, joinable=True) for key in "abc"] + [Batch(("d",), {"a": 2}, joinable=True)]
    assert [take(line, 2).items for _ in range(3)] == [("a", "b"), ("c",), ("d",)]
    assert line == []


def test_planned_batches_are_not_joined_and_too_large_ones_are_cut():
    line = [Batch(tuple("abc")), Batch(tuple("d"))]
    assert [take(line, 2).items for _ in range(3)] == [("a", "b"), ("c",), ("d",)]


@pytest.mark.parametrize("size", [1, 2, 33])
def test_the_bound_on_losses_grows_with_the_logarithm_of_the_batch(size):
    assert most_losses(2 * size) == most_losses(size) + 1
