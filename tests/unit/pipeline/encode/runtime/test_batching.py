"""Grouping of texts into batches for the model."""

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.encode.runtime.batching import BATCH_TOKENS, length_batches

lengths = st.lists(st.integers(1, 256), max_size=200)


@given(lengths, st.integers(1, 64))
def test_every_text_is_in_exactly_one_batch(lengths, size):
    batches = length_batches(lengths, size)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in batches)


@given(lengths, st.integers(1, 64))
def test_no_text_is_shorter_than_one_of_an_earlier_batch(lengths, size):
    order = [lengths[i] for batch in length_batches(lengths, size) for i in batch]
    assert order == sorted(order)


@given(lengths, st.integers(1, 64))
def test_texts_are_padded_by_at_most_an_eighth_and_a_batch_has_a_limit_of_tokens(lengths, size):
    for batch in length_batches(lengths, size):
        padded = len(batch) * max(lengths[i] for i in batch)
        assert padded <= BATCH_TOKENS
        assert all(padded * 8 <= len(batch) * lengths[i] * 9 for i in batch)
