"""Batches whose encoder died or ran out of memory are split and retried; small ones are joined. Simulated encoders."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.jobs.encoding.batches import (
    StateBatch,
    batches_to_retry,
    learn_batch_size,
    plan_batches,
    take_batch,
)
from waygraph.pipeline.jobs.failures import WorkerLost, decide_batch_retry, max_losses_in_row


def batches_after_loss(batch: StateBatch, *, alone: bool) -> list[StateBatch]:
    """Return the batches that replace one whose encoder died."""
    decision = decide_batch_retry(WorkerLost("died"), batch.losses, states=len(batch), alone=alone, failed_call=True)
    return batches_to_retry(batch, decision)


def encode_all(items: int, size: int, deadly: Collection[int], *, most_at_once: int | None = None):
    """Encode all items with an encoder that dies of `deadly` items or too large batches; return the outcomes."""
    queue = [StateBatch(tuple(keys)) for keys in plan_batches(range(items), size)]
    done: list[int] = []
    dropped: list[int] = []
    in_a_row = longest = deaths = 0
    while queue:
        batch = take_batch(queue, size)
        if deadly & set(batch.items) or len(batch) > (most_at_once or len(batch)):
            deaths, in_a_row = deaths + 1, in_a_row + 1
            longest = max(longest, in_a_row)
            # The first time another batch was in the encoder, too.
            again = batches_after_loss(batch, alone=batch.alone)
            queue[:0] = again
            if not again:
                dropped += batch.items
        else:
            in_a_row = 0
            done += batch.items
            size = learn_batch_size(batch) or size
    return done, dropped, longest, deaths


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 79))
def test_state_that_kills_encoders_is_isolated_and_all_others_are_encoded(items, size, deadly):
    done, dropped, longest, _ = encode_all(items, size, {deadly})
    assert dropped == [deadly] * (deadly < items)
    assert sorted(done) == [item for item in range(items) if item != deadly]
    assert longest <= max_losses_in_row(size)


def test_two_adjacent_states_that_kill_encoders_are_isolated_within_the_bound():
    done, dropped, longest, _ = encode_all(64, 32, {0, 1})
    assert dropped == [0, 1]
    assert len(done) == 62
    assert longest <= max_losses_in_row(32)


def test_batch_is_split_only_after_two_deaths_alone():
    batch = StateBatch(tuple("abcd"))
    (again,) = batches_after_loss(batch, alone=False)
    assert (again.items, again.alone, again.losses.alone) == (batch.items, True, 0)
    (again,) = batches_after_loss(again, alone=True)
    assert (again.items, again.losses.alone) == (batch.items, 1)
    first, second = batches_after_loss(again, alone=True)
    assert (first.items, second.items) == (("a", "b"), ("c", "d"))


def test_batches_too_large_for_memory_shrink_permanently():
    done, dropped, _, deaths = encode_all(64, 16, set(), most_at_once=5)
    assert sorted(done) == list(range(64))
    assert dropped == []
    assert deaths == 4  # 16 together with others, 16 twice alone, 8; and never again


def test_single_states_of_equal_context_are_joined_into_batches():
    queue = [StateBatch((key,), {"a": 1}, joinable=True) for key in "abc"] + [
        StateBatch(("d",), {"a": 2}, joinable=True)
    ]
    assert [take_batch(queue, 2).items for _ in range(3)] == [("a", "b"), ("c",), ("d",)]
    assert queue == []


def test_planned_batches_are_not_joined_and_too_large_ones_are_split():
    queue = [StateBatch(tuple("abc")), StateBatch(tuple("d"))]
    assert [take_batch(queue, 2).items for _ in range(3)] == [("a", "b"), ("c",), ("d",)]
