import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors import EdgeIndex, ExactIndex, MapKey, PackedIndex, QdrantClientIndex, VectorIndex
from waygraph.index.vectors.server import connect

DIM = 16
MakeIndex = Callable[[], VectorIndex]


@pytest.fixture(scope="module")
def client() -> Iterator[QdrantClient]:
    """Qdrant's in-process client, or a real server when QDRANT_URL names one."""
    url = os.environ.get("QDRANT_URL")
    client = connect(url, api_key=os.environ.get("QDRANT_API_KEY", "")) if url else QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture(params=["edge", "client", "exact", "packed"])
def make_index(request, client) -> Iterator[MakeIndex]:
    made: list[VectorIndex] = []
    collection = f"test-{uuid.uuid4()}"

    def make() -> VectorIndex:
        if request.param == "edge":
            index: VectorIndex = EdgeIndex(DIM)
        elif request.param == "client":
            index = QdrantClientIndex(client, DIM, MapKey("shop", len(made) + 1, ""), collection=collection)
        elif request.param == "packed":
            index = PackedIndex(DIM)
        else:
            index = ExactIndex(DIM)
        made.append(index)
        return index

    yield make
    for index in made:
        index.close()
    if client.collection_exists(collection):
        client.delete_collection(collection)


def unit_rows(rng: np.random.Generator, rows: int) -> np.ndarray:
    matrix = rng.normal(size=(rows, DIM)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def node_name(number: int) -> str:
    return f"{number:032x}"


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 20), min_size=1, max_size=60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_every_engine_agrees_with_the_reference(make_index, lengths, query_rows, seed):
    rng = np.random.default_rng(seed)
    pages = {node_name(i): unit_rows(rng, rows) for i, rows in enumerate(lengths)}
    query = unit_rows(rng, query_rows)
    reference, index = ExactIndex(DIM), make_index()
    reference.add(pages.items())
    index.add(pages.items())
    exact = {hit.node_id: hit.score for hit in reference.search(query, len(pages))}
    for k in (1, 5, len(pages), len(pages) + 7):
        hits = index.search(query, k)
        assert len(hits) == min(k, len(pages))
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.node_id))
        for rank, hit in enumerate(hits):
            assert hit.score == pytest.approx(exact[hit.node_id], abs=1e-2)
            # The same ranking, but for scores that float16 cannot tell apart.
            assert hit.score == pytest.approx(sorted(exact.values(), reverse=True)[rank], abs=2e-3)
    index.close()


def test_float16_vectors_and_queries_give_the_same_order_as_the_reference(make_index):
    rng = np.random.default_rng(5)
    pages = {node_name(i): unit_rows(rng, 8).astype(np.float16) for i in range(200)}
    # Edge compares in the type that it stores: the query is rounded to float16 too.
    query = unit_rows(rng, 6).astype(np.float16)
    reference, index = ExactIndex(DIM), make_index()
    reference.add(pages.items())
    index.add(pages.items())
    assert [h.node_id for h in index.search(query, 50)] == [h.node_id for h in reference.search(query, 50)]


def test_equal_states_come_in_the_order_of_their_ids_even_at_the_cut(make_index):
    rng = np.random.default_rng(1)
    same = unit_rows(rng, 3)
    index = make_index()
    index.add((node_name(i), same) for i in reversed(range(100)))
    assert [h.node_id for h in index.search(same, 7)] == [node_name(i) for i in range(7)]


def test_a_state_that_is_added_again_is_replaced(make_index):
    rng = np.random.default_rng(2)
    first, second, other = (unit_rows(rng, 1) for _ in range(3))
    index = make_index()
    index.add([("a", first), ("b", other)])
    index.add([("a", second)])
    assert len(index) == 2
    assert index.search(second, 1)[0].score == pytest.approx(1, abs=1e-2)
    assert next(h for h in index.search(first, 2) if h.node_id == "a").score == pytest.approx(
        float((first @ second.T).item()), abs=1e-2
    )


def test_node_ids_are_returned_unchanged(make_index):
    rng = np.random.default_rng(3)
    names = ["0" * 32, "f" * 32, "n1", "päge/\n1", "F" * 32]
    index = make_index()
    index.add((name, unit_rows(rng, 2)) for name in names)
    assert {h.node_id for h in index.search(unit_rows(rng, 1), 10)} == set(names)


def test_an_empty_index_has_no_hits(make_index):
    index = make_index()
    assert index.search(np.ones((1, DIM), np.float32), 5) == []
    assert len(index) == 0


@pytest.mark.parametrize("matrix", [np.ones((0, DIM)), np.ones((1, DIM + 1)), np.full((1, DIM), np.inf)])
def test_invalid_matrices_and_queries_are_refused(make_index, matrix):
    index = make_index()
    with pytest.raises(InvalidInput):
        index.add([("a", matrix)])
    with pytest.raises(InvalidInput):
        index.search(matrix, 1)
    assert len(index) == 0


def test_closing_twice_is_allowed(make_index):
    index = make_index()
    index.add([("a", np.ones((1, DIM), np.float32))])
    index.close()
    index.close()


def test_threads_may_search_while_another_adds(make_index):
    rng = np.random.default_rng(4)
    index = make_index()
    if isinstance(index, QdrantClientIndex) and not os.environ.get("QDRANT_URL"):
        pytest.skip("the client's in-process engine is for one thread: a search meets half an addition")
    index.add((node_name(i), unit_rows(rng, 4)) for i in range(50))
    query = unit_rows(rng, 3)
    problems: list[BaseException] = []

    def search() -> None:
        try:
            for _ in range(20):
                hits = index.search(query, 10)
                assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.node_id))
        except BaseException as problem:  # noqa: BLE001 - reported by the test
            problems.append(problem)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    index.add((node_name(i), unit_rows(rng, 4)) for i in range(50, 100))
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(index) == 100


def test_edge_keeps_its_files_to_itself_and_deletes_them(tmp_path):
    first, second = EdgeIndex(DIM, parent=tmp_path), EdgeIndex(DIM, parent=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    first.close()
    assert len(list(tmp_path.iterdir())) == 1
    del second
    assert list(tmp_path.iterdir()) == []


def test_edge_deletes_its_files_when_its_process_ends_without_closing_it(tmp_path):
    code = """if True:
        import pathlib, sys
        from waygraph.index.vectors import EdgeIndex
        left_open = EdgeIndex(4, parent=pathlib.Path(sys.argv[1]))
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
    assert list(tmp_path.iterdir()) == []


def test_maps_in_one_collection_are_never_mixed(client):
    collection = f"test-{uuid.uuid4()}"
    rng = np.random.default_rng(6)
    # The last is the first version of another store, or of this one created again.
    maps = [MapKey("shop", 1, "a"), MapKey("shop", 2, "a"), MapKey("help", 1, "a"), MapKey("shop", 1, "b")]
    indexes = [QdrantClientIndex(client, DIM, key, collection=collection) for key in maps]
    for number, index in enumerate(indexes):
        index.add([(node_name(number * 10 + i), unit_rows(rng, 2)) for i in range(3)] + [("same", unit_rows(rng, 2))])
    for number, index in enumerate(indexes):
        found = {h.node_id for h in index.search(unit_rows(rng, 1), 100)}
        assert found == {"same", *(node_name(number * 10 + i) for i in range(3))}
    indexes[0].drop()
    assert [len(index) for index in indexes] == [0, 4, 4, 4]
    client.delete_collection(collection)


def test_a_collection_of_another_size_is_refused(client):
    collection = f"test-{uuid.uuid4()}"
    QdrantClientIndex(client, DIM, MapKey("shop", 1, ""), collection=collection)
    with pytest.raises(InvalidInput, match="Choose another collection"):
        QdrantClientIndex(client, DIM + 1, MapKey("shop", 1, ""), collection=collection)
    client.delete_collection(collection)
