import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ranking import reference, unit
from waygraph.core.errors import InvalidInput
from waygraph.index.vectors import ExactIndex, PackedIndex, packed
from waygraph.index.vectors.validation import MAX_QUERY_ROWS

DIM = 16


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=40),
    query_rows=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(sorted(packed.DTYPES)),
    chunk=st.sampled_from([1, 64, 6_000]),
    spread=st.sampled_from([1e-7, 1e-3, 1.0]),
    half=st.booleans(),
)
def test_every_dtype_ranks_like_float64_also_among_near_duplicates(  # noqa: PLR0917 - hypothesis passes them by name
    lengths, query_rows, seed, dtype, chunk, spread, half
):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(40, DIM))
    pages = {
        f"n{i:02}": unit(base[:rows] + spread * rng.normal(size=(rows, DIM))).astype(np.float16 if half else np.float32)
        for i, rows in enumerate(lengths)
    }
    query = unit(rng.normal(size=(query_rows, DIM))).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "ROWS_PER_CHUNK", chunk)
        index = PackedIndex(DIM, dtype=dtype)
        index.add(pages.items())
        for k in (1, 5, len(pages) + 3):
            assert index.search(query, k) == reference(pages, query, k)


def test_error_bound_holds_for_cancelling_products_and_long_vectors():
    rng = np.random.default_rng(4)
    pages = {
        f"n{i:03}": (rng.normal(size=(30, DIM)) * 10.0 ** rng.integers(-3, 4)).astype(np.float32) for i in range(90)
    }
    for dtype in packed.DTYPES:
        index = PackedIndex(DIM, dtype=dtype)
        index.add(pages.items())
        for scale in (1e-3, 1.0, 1e3):
            query = (scale * rng.normal(size=(7, DIM))).astype(np.float32)
            assert index.search(query, 10) == reference(pages, query, 10)


def test_equal_states_are_ordered_by_their_ids_across_chunks(monkeypatch):
    monkeypatch.setattr(packed, "ROWS_PER_CHUNK", 4)
    page = unit(np.random.default_rng(1).normal(size=(3, DIM))).astype(np.float32)
    index = PackedIndex(DIM, dtype="bfloat16")
    index.add((name, page) for name in "fbdaec")
    assert [hit.node_id for hit in index.search(page, 4)] == ["a", "b", "c", "d"]


def test_states_can_be_added_replaced_and_removed():
    rng = np.random.default_rng(2)
    first, second = (unit(rng.normal(size=(2, DIM))).astype(np.float32) for _ in range(2))
    index = PackedIndex(DIM)
    assert index.search(first, 3) == []
    index.add([("a", first)])
    index.search(first, 1)
    index.add([("a", second), ("b", first)])
    assert len(index) == 2
    assert [hit.node_id for hit in index.search(second, 1)] == ["a"]
    index.close()
    index.close()
    assert index.search(first, 3) == []


def test_nothing_is_added_when_one_state_is_refused():
    index = PackedIndex(DIM)
    with pytest.raises(InvalidInput, match="infinite or undefined"):
        index.add([("a", np.ones((1, DIM))), ("b", np.full((1, DIM), np.nan))])
    assert len(index) == 0


@pytest.mark.parametrize("make", [ExactIndex, PackedIndex])
def test_query_of_ten_thousand_rows_is_refused(make):
    with pytest.raises(InvalidInput, match=f"10000 vectors; at most {MAX_QUERY_ROWS}"):
        make(DIM).search(np.ones((10_000, DIM)), 1)


def test_an_unknown_type_is_refused():
    with pytest.raises(InvalidInput, match="no scan in 'int3'"):
        PackedIndex(DIM, dtype="int3")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", sorted(packed.DTYPES))
def test_gpu_ranks_like_float64(dtype):
    rng = np.random.default_rng(3)
    pages = {f"n{i:04}": unit(rng.normal(size=(200, DIM))).astype(np.float16) for i in range(500)}
    index = PackedIndex(DIM, dtype=dtype, device="cuda")
    index.add(pages.items())
    query = unit(rng.normal(size=(20, DIM))).astype(np.float32)
    assert index.search(query, 20) == reference(pages, query, 20)


def test_importing_the_index_does_not_import_torch():
    code = "import sys, waygraph.index.catalog.catalog, waygraph.index.vectors; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
