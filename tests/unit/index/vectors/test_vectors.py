import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors import MAX_VALUES_PER_MULTIVECTOR, ExactIndex, ScoredNode, maxsim
from waygraph.index.vectors import exact as exact_module
from waygraph.index.vectors.validation import top_k, top_k_from_engine

DIM = 8


def page(seed: int, rows: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, DIM)).astype(np.float32)


def test_maxsim_is_the_mean_over_query_rows_of_the_best_product():
    query = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert maxsim(query, np.array([[0.5, 0.25], [0.1, 1.0]])) == pytest.approx((0.5 + 2.0) / 2)


@settings(max_examples=50)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=30),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.sampled_from([1, 5, 4096]),
)
def test_packed_index_scores_equal_the_definition_for_any_chunk_size(lengths, query_rows, seed, chunk):
    pages = {f"n{i}": page(seed + i, rows) for i, rows in enumerate(lengths)}
    query = page(seed + 1000, query_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_module, "ROWS_PER_CHUNK", chunk)
        index = ExactIndex(DIM)
        index.add(pages.items())
        hits = index.search(query, len(pages))
    expected = top_k(((name, maxsim(query, rows)) for name, rows in pages.items()), len(pages))
    assert [h.score for h in hits] == pytest.approx([h.score for h in expected], abs=1e-4)
    assert {h.node_id for h in hits} == set(pages)


def test_equal_states_are_ordered_by_node_id():
    index = ExactIndex(DIM)
    index.add((name, page(1)) for name in "dbca")
    assert [h.node_id for h in index.search(page(2), 3)] == ["a", "b", "c"]


def test_a_state_that_is_added_again_is_replaced():
    index = ExactIndex(DIM)
    index.add([("a", page(1)), ("b", page(2))])
    index.search(page(1), 1)
    index.add([("a", page(3))])
    assert len(index) == 2
    assert index.search(page(3), 1)[0] == ScoredNode("a", pytest.approx(maxsim(page(3), page(3)), abs=1e-4))


def test_an_empty_index_has_no_hits():
    index = ExactIndex(DIM)
    assert index.search(page(1), 10) == []
    index.add([])
    assert index.search(page(1), 10) == []


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        (np.zeros((0, DIM), np.float32), "no multi-vector"),
        (np.zeros(DIM, np.float32), "no multi-vector"),
        (np.zeros((2, DIM), np.int64), "no multi-vector"),
        (np.zeros((2, DIM + 1), np.float32), f"{DIM + 1} values"),
        (np.full((2, DIM), np.nan, np.float32), "infinite or undefined"),
        (np.full((2, DIM), np.inf, np.float32), "infinite or undefined"),
        (np.full((2, DIM), 1e5, np.float32), "too large for float16"),
        (np.zeros((MAX_VALUES_PER_MULTIVECTOR // DIM, DIM), np.float32), "at most"),
    ],
)
def test_invalid_matrix_is_refused_before_anything_is_written(matrix, says):
    index = ExactIndex(DIM)
    with pytest.raises(InvalidInput, match=f"State 'bad'.*{says}"):
        index.add([("good", page(1)), ("bad", matrix)])
    assert len(index) == 0


def test_the_largest_multi_vector_is_accepted():
    index = ExactIndex(DIM)
    index.add([("a", np.zeros((MAX_VALUES_PER_MULTIVECTOR // DIM - 1, DIM), np.float32))])
    assert len(index) == 1


@pytest.mark.parametrize("query", [np.zeros((0, DIM)), np.zeros((1, DIM + 1)), np.full((1, DIM), np.nan)])
def test_invalid_query_is_refused(query):
    with pytest.raises(InvalidInput, match="The query"):
        ExactIndex(DIM).search(query, 3)


def test_fewer_than_one_hit_cannot_be_requested():
    with pytest.raises(InvalidInput, match="0 hits"):
        ExactIndex(DIM).search(page(1), 0)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=30), st.integers(1, 12), st.randoms(use_true_random=False))
def test_engine_that_truncates_equal_scores_still_returns_the_smallest_ids(scores, k, rng):
    everything = [(f"n{i:02}", score) for i, score in enumerate(scores)]

    def engine(limit: int) -> list[tuple[str, float]]:
        shuffled = rng.sample(everything, len(everything))
        return sorted(shuffled, key=lambda hit: -hit[1])[:limit]

    assert top_k_from_engine(engine, k, len(everything)) == top_k(everything, k)


def test_importing_the_package_imports_no_engine():
    code = "import sys, waygraph.index.vectors; print([m for m in sys.modules if 'qdrant' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
