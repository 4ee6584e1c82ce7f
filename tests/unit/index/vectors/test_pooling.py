import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waygraph.index.vectors.explain import match_rows
from waygraph.index.vectors.pooling import merge_neighbours, merge_to_fit, pool_windows
from waygraph.index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR

DIM = 8
METHODS = (pool_windows, merge_neighbours)


@pytest.mark.parametrize("pool", METHODS)
@settings(max_examples=40)
@given(rows=st.integers(1, 90), count=st.integers(1, 100), seed=st.integers(0, 2**32 - 1))
def test_pooling_makes_as_many_rows_as_asked_for_and_the_same_every_time(pool, rows, count, seed):
    page = np.random.default_rng(seed).normal(size=(rows, DIM)).astype(np.float16)
    few = pool(page, count)
    assert few.shape == (min(rows, count), DIM)
    assert few.dtype == np.float32
    assert np.isfinite(few).all()
    assert np.array_equal(few, pool(page.copy(), count))


@pytest.mark.parametrize("pool", METHODS)
def test_pooled_rows_have_the_norm_of_the_rows_they_represent(pool):
    page = np.random.default_rng(1).normal(size=(60, DIM))
    page *= 3 / np.linalg.norm(page, axis=1, keepdims=True)
    assert np.linalg.norm(pool(page, 7), axis=1) == pytest.approx(3, rel=1e-5)


@pytest.mark.parametrize("pool", METHODS)
def test_rows_that_cancel_or_are_zero_stay_finite(pool):
    page = np.array([[1.0, 0], [-1.0, 0], [0, 0], [0, 0]])
    assert np.isfinite(pool(page, 2)).all()


def test_page_with_fewer_rows_than_the_target_is_not_pooled():
    page = np.random.default_rng(2).normal(size=(5, DIM)).astype(np.float32)
    for pool in METHODS:
        assert pool(page, 9) == pytest.approx(page, rel=1e-5)


def test_similar_neighbours_are_merged():
    flat, detail = np.eye(DIM)[0], np.eye(DIM)[1]
    page = np.stack([flat] * 10 + [detail] + [flat] * 10)
    assert merge_neighbours(page, 3) == pytest.approx(np.stack([flat, detail, flat]))


@pytest.mark.parametrize("dim", [128, 384])
def test_page_of_many_rows_is_pooled_to_the_multi_vector_limit(dim):
    page = np.random.default_rng(3).normal(size=(9_000, dim)).astype(np.float32)
    made = merge_to_fit(page)
    assert made.size < MAX_VALUES_PER_MULTIVECTOR
    assert len(made) == (MAX_VALUES_PER_MULTIVECTOR - 1) // dim
    small = page[:1_000]
    assert merge_to_fit(small) is small


def test_a_match_credits_every_query_row_to_the_first_best_row():
    query = np.eye(3)[[0, 1, 1, 2]]
    page = np.array([[0, 0.5, 0], [0.9, 0, 0], [0, 0.5, 0.1]])
    matches = match_rows(query, page)
    assert [(m.row, m.query_rows) for m in matches] == [(0, (1, 2)), (1, (0,)), (2, (3,))]
    assert [m.score for m in matches] == pytest.approx([0.5, 0.9, 0.1])
    assert [m.credit for m in matches] == pytest.approx([1.0, 0.9, 0.1])


@given(query_rows=st.integers(1, 9), rows=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_the_credits_of_a_match_add_up_to_maxsim(query_rows, rows, seed):
    rng = np.random.default_rng(seed)
    query, page = rng.normal(size=(query_rows, DIM)), rng.normal(size=(rows, DIM))
    matches = match_rows(query, page)
    assert sorted(i for m in matches for i in m.query_rows) == list(range(query_rows))
    assert sum(m.credit for m in matches) == pytest.approx((query @ page.T).max(axis=1).sum(), abs=1e-4)
