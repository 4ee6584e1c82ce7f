"""Grouping of texts into batches for the model."""

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.encode.runtime.batching import length_batches

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
