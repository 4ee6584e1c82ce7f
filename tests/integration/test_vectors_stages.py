"""Stages, quantization and storage of the embedded Qdrant engine: fidelity of the results and bytes on disk."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import qdrant_edge

from waygraph.core.errors import StoreError
from waygraph.index.vectors import EdgeIndex, maxsim
from waygraph.index.vectors.options import IndexOptions
from waygraph.index.vectors.validation import top_k

DIM = 64
ROWS = 40
STATES = 400


@pytest.fixture(scope="module")
def pages() -> dict[str, np.ndarray]:
    """Near-duplicates: families of pages that share most rows."""
    rng = np.random.default_rng(8)
    families = rng.normal(size=(20, ROWS, DIM))
    made = {}
    for number in range(STATES):
        rows = families[number % 20] + 0.2 * rng.normal(size=(ROWS, DIM))
        rows[number % ROWS] = rng.normal(size=DIM)
        made[f"n{number:03}"] = unit(rows).astype(np.float16)
    return made


@pytest.fixture(scope="module")
def queries(pages) -> list[np.ndarray]:
    rng = np.random.default_rng(9)
    wanted = [pages[f"n{i:03}"][rng.integers(ROWS, size=10)].astype(np.float32) for i in range(0, STATES, 16)]
    # Edge compares in the type that it stores: the query is rounded to float16 too.
    return [unit(rows + 0.1 * rng.normal(size=rows.shape)).astype(np.float16).astype(np.float32) for rows in wanted]


def unit(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)


def filled(pages, options: IndexOptions, **more) -> EdgeIndex:
    index = EdgeIndex(DIM, options=options, **more)
    index.add(pages.items())
    index.compact()
    return index


def recall(index, pages, queries, k: int = 10) -> float:
    found = 0
    for query in queries:
        exact = {h.node_id for h in top_k(((n, maxsim(query, p)) for n, p in pages.items()), k)}
        found += len(exact & {h.node_id for h in index.search(query, k)})
    return found / (k * len(queries))


@pytest.mark.parametrize("quantization", [None, "scalar", "binary", "turbo"])
def test_without_a_first_stage_codes_change_no_result(pages, queries, quantization):
    index = filled(pages, IndexOptions(quantization=quantization))
    for query in queries:
        exact = top_k(((n, maxsim(query, p)) for n, p in pages.items()), 10)
        found = index.search(query, 10)
        assert [h.node_id for h in found] == [h.node_id for h in exact]
        assert [h.score for h in found] == pytest.approx([h.score for h in exact], abs=1e-3)
    index.close()


@pytest.mark.parametrize(
    ("first_stage", "quantization"), [("codes", "scalar"), ("codes", "turbo"), ("codes", "binary"), ("pooled", None)]
)
def test_two_stages_find_what_exact_scoring_finds(pages, queries, first_stage, quantization):
    index = filled(
        pages, IndexOptions(quantization=quantization, first_stage=first_stage, pooled_rows=10, candidates=100)
    )
    assert recall(index, pages, queries) >= 0.95
    index.close()


def test_the_last_stage_scores_on_originals_and_not_on_codes(pages, queries, monkeypatch):
    options = IndexOptions(quantization="binary", first_stage="codes", candidates=100)
    index = filled(pages, options)
    with_originals = recall(index, pages, queries)
    real = qdrant_edge.QuantizationSearchParams
    monkeypatch.setattr(qdrant_edge, "QuantizationSearchParams", lambda **given: real(**{**given, "ignore": False}))
    on_codes = recall(index, pages, queries)
    index.close()
    assert with_originals >= 0.95
    # The trap: were this equal, the check above would not notice that `ignore` was left out.
    assert on_codes < with_originals - 0.1


@pytest.mark.parametrize(("storage", "share"), [("f16", 1.0), ("int8", 0.5), ("int4", 0.25)])
def test_storage_of_codes_alone_takes_its_share_and_finds_nearly_the_same(pages, queries, storage, share):
    many = {f"{copy}{name}": page for copy in "ab" for name, page in pages.items()}
    index = filled(many, IndexOptions(storage=storage))
    raw = sum(page.nbytes for page in many.values())
    overhead = 400_000  # of the engine's own files, whatever the number of states
    assert index.disk_bytes() <= raw * (share + 0.1) + overhead
    index.close()
    alone = filled(pages, IndexOptions(storage=storage))
    assert recall(alone, pages, queries) >= {"f16": 1.0, "int8": 0.98, "int4": 0.75}[storage]
    alone.close()


def test_compacting_after_a_quantization_leaves_one_copy_of_everything(pages):
    index = EdgeIndex(DIM, options=IndexOptions(quantization="scalar"))
    index.add(pages.items())
    index.compact()
    raw = sum(page.nbytes for page in pages.values())
    assert index.disk_bytes() <= 1.5 * raw + 600_000
    index.close()


def test_full_disk_is_reported_before_anything_is_written(pages, monkeypatch):
    index = EdgeIndex(DIM)
    index.add([("first", pages["n000"])])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    with pytest.raises(StoreError, match="1 MiB are free"):
        index.add(pages.items())
    assert len(index) == 1
    monkeypatch.undo()
    index.add(pages.items())
    assert len(index) == STATES + 1
    index.close()


def test_contradictory_options_are_refused():
    with pytest.raises(ValueError, match="needs a quantization"):
        IndexOptions(first_stage="codes")
    with pytest.raises(ValueError, match="One mean row"):
        IndexOptions(first_stage="pooled", pooled_rows=1)
