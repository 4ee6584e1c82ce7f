"""Exact search by a fused kernel: the same ranking as float64. Here a slow kernel on the CPU takes its place."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ranking import reference, unit
from waygraph.index.vectors import gpu as gpu_rows
from waygraph.index.vectors import maxsim
from waygraph.index.vectors.gpu import GpuRows
from waygraph.index.vectors.packed import PackedIndex

DIM = 16
CPU = torch.device("cpu")


def slow_kernel(query, rows, query_ends, boundaries, longest_query, longest_page):  # noqa: PLR0917 - the library's
    """What `maxsim_varlen` computes: products of float16 numbers, summed in float32."""
    assert query.dtype == rows.dtype == torch.float16
    assert query_ends.tolist() == [0, longest_query]
    assert longest_page == int(boundaries.diff().max())
    products = query.float() @ rows.float().t()
    return torch.stack([part.amax(1).sum() for part in products.split(boundaries.diff().tolist(), dim=1)])[None]


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=40),
    query_rows=st.integers(1, 70),
    seed=st.integers(0, 2**32 - 1),
    shard=st.sampled_from([1, 64 * DIM, 2**31 - 1]),
    at_once=st.sampled_from([1, 40 * DIM * 2, 2**28]),
    spread=st.sampled_from([1e-4, 1e-2, 1.0]),
)
def test_the_ranking_is_that_of_float64_also_among_near_duplicates(  # noqa: PLR0917 - hypothesis passes them by name
    lengths, query_rows, seed, shard, at_once, spread
):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(40, DIM))
    pages = {
        f"n{i:02}": unit(base[:rows] + spread * rng.normal(size=(rows, DIM))).astype(np.float16)
        for i, rows in enumerate(lengths)
    }
    query = unit(rng.normal(size=(query_rows, DIM))).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_rows, "MAX_NUMBERS_PER_SHARD", shard)
        patch.setattr(gpu_rows, "_COPIED_AT_ONCE", at_once)
        patch.setattr(gpu_rows, "_RESCORED_AT_ONCE", at_once)
        rows = GpuRows(pages, CPU, slow_kernel)
        for k in (1, 5, len(pages) + 3):
            assert rows.top_k(query, k) == reference(pages, query, k)


def test_the_error_bound_holds_for_cancelling_products_and_long_vectors():
    rng = np.random.default_rng(4)
    pages = {
        f"n{i:03}": (rng.normal(size=(30, DIM)) * 10.0 ** rng.integers(-3, 4)).astype(np.float16) for i in range(90)
    }
    query = (rng.normal(size=(9, DIM)) * 10.0 ** rng.integers(-3, 3, size=(9, 1))).astype(np.float32)
    rows = GpuRows(pages, CPU, slow_kernel)
    scores, errors = rows.scan(query)
    exact = np.array([maxsim(query, pages[node_id]) for node_id in rows.ids])
    assert (np.abs(scores.numpy() - exact) <= errors.numpy()).all()
    assert rows.top_k(query, 7) == reference(pages, query, 7)


def test_a_query_that_float16_cannot_hold_is_ranked_exactly():
    rng = np.random.default_rng(1)
    pages = {f"n{i}": unit(rng.normal(size=(3, DIM))).astype(np.float16) for i in range(9)}
    query = (unit(rng.normal(size=(2, DIM))) * 1e6).astype(np.float32)
    assert GpuRows(pages, CPU, slow_kernel).top_k(query, 4) == reference(pages, query, 4)


def test_no_pages_give_no_hits():
    assert GpuRows({}, CPU, slow_kernel).top_k(np.ones((1, DIM), np.float32), 3) == []


def test_the_index_uses_the_kernel_for_float16_pages_only():
    rng = np.random.default_rng(2)
    half = {f"n{i}": unit(rng.normal(size=(4, DIM))).astype(np.float16) for i in range(6)}
    query = unit(rng.normal(size=(3, DIM))).astype(np.float32)
    calls = []

    def counting(*arguments):
        calls.append(arguments)
        return slow_kernel(*arguments)

    index = PackedIndex(DIM)
    index._kernel = counting
    index.add(half.items())
    assert index.search(query, 3) == reference(half, query, 3)
    assert len(calls) == 1 + len(gpu_rows.TUNED_ROWS)
    single = {"m": unit(rng.normal(size=(4, DIM))).astype(np.float32)}
    index.add(single.items())
    assert index.search(query, 3) == reference(half | single, query, 3)
    assert len(calls) == 1 + len(gpu_rows.TUNED_ROWS)


def test_a_kernel_that_does_not_run_is_replaced_by_products(caplog):
    def broken(*_):
        raise RuntimeError("no compiler")

    rng = np.random.default_rng(3)
    pages = {f"n{i}": unit(rng.normal(size=(4, DIM))).astype(np.float16) for i in range(6)}
    query = unit(rng.normal(size=(3, DIM))).astype(np.float32)
    index = PackedIndex(DIM)
    index._kernel = broken
    index.add(pages.items())
    index.compact()
    assert "index/no_fused_kernel" in caplog.text
    assert index.search(query, 3) == reference(pages, query, 3)
