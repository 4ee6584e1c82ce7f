"""The Qdrant server engine: failures of the server, credentials, collections and their indexes, stages of a query."""

import os
import uuid

import numpy as np
import pytest
from qdrant_client import QdrantClient, models

from tests.integration.qdrant_over_http import qdrant_over_http
from waygraph.core.errors import InvalidInput, ServiceError, Unauthorized
from waygraph.index.vectors import MapKey, QdrantClientIndex, collection, maxsim
from waygraph.index.vectors.collection import COLLECTION_METADATA, QdrantCollection
from waygraph.index.vectors.retries import ServerRetries
from waygraph.index.vectors.server import connect
from waygraph.index.vectors.validation import top_k

DIM = 16
QUICK = ServerRetries(attempts=3, first_wait_s=0.01, longest_wait_s=0.05)


@pytest.fixture
def server():
    with qdrant_over_http() as running:
        yield running


@pytest.fixture
def client(server):
    client = connect(server.url, grpc_port=0)
    yield client
    client.close()


def pages(count: int, seed: int = 1, rows: int = 30) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(count, rows, DIM))
    made /= np.linalg.norm(made, axis=2, keepdims=True)
    return {f"n{i:03}": page.astype(np.float16) for i, page in enumerate(made)}


def index_of(client, **more) -> QdrantClientIndex:
    return QdrantClientIndex(client, DIM, MapKey("shop.example", 1, ""), retries=QUICK, **more)


def test_search_on_a_server_agrees_with_the_reference(client):
    known = pages(40)
    index = index_of(client)
    index.add(known.items())
    query = known["n007"][:5].astype(np.float32)
    expected = top_k(((n, maxsim(query, p)) for n, p in known.items()), 10)
    found = index.search(query, 10)
    assert [h.node_id for h in found] == [h.node_id for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


def test_server_failure_between_batches_is_reported_and_a_second_write_neither_loses_nor_duplicates_points(
    server, client, monkeypatch
):
    monkeypatch.setattr(collection, "_VALUES_PER_UPSERT", 10 * 30 * DIM)
    known = pages(40)
    index = index_of(client)
    server.fault = lambda write: "drop" if write > 2 else None
    with pytest.raises(ServiceError, match=r"Writing states 21 to 30 of 'shop.example' version 1.*failed \(3 tries\)"):
        index.add(known.items())
    assert len(index) == 20
    server.fault = lambda _: None
    index.add(known.items())
    assert len(index) == 40
    assert {h.node_id for h in index.search(known["n001"].astype(np.float32), 100)} == set(known)


@pytest.mark.parametrize("failure", ["drop", 503, 429, 500])
def test_transient_failure_is_retried(server, client, failure):
    server.fault = lambda write: failure if write <= 2 else None
    index = index_of(client)
    index.add(pages(3).items())
    assert (len(index), server.writes) == (3, 3)


def test_refused_request_is_not_retried(server, client):
    server.fault = lambda _: 400
    index = index_of(client)
    with pytest.raises(ServiceError, match="on purpose"):
        index.add(pages(3).items())
    assert server.writes == 1


def test_unreachable_server_gives_a_clear_error():
    client = connect("http://127.0.0.1:9", grpc_port=0, timeout_s=1)
    with pytest.raises(ServiceError, match=r"Opening Qdrant collection 'waygraph' failed \(3 tries\)"):
        index_of(client)
    client.close()


def test_unreachable_grpc_server_gives_a_clear_error():
    client = connect("http://127.0.0.1:9", grpc_port=9, timeout_s=1)
    with pytest.raises(ServiceError, match="Opening Qdrant collection"):
        index_of(client)
    client.close()


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")  # it is this machine
def test_wrong_api_key_is_reported():
    with qdrant_over_http(api_key="right") as running:
        wrong, right = (connect(running.url, grpc_port=0, api_key=key) for key in ("wrong", "right"))
        with pytest.raises(Unauthorized, match="refuses the API key"):
            index_of(wrong)
        assert len(index_of(right)) == 0
        wrong.close()
        right.close()


def test_api_key_is_not_sent_unencrypted_to_another_machine():
    with pytest.raises(InvalidInput, match="unencrypted"):
        connect("http://qdrant.example:6333", api_key="secret")
    connect("https://qdrant.example:6333", api_key="secret").close()
    with pytest.warns(UserWarning, match="insecure connection"):
        connect("http://qdrant.example:6333", api_key="secret", key_over_http=True).close()


@pytest.mark.parametrize("url", ["", "qdrant.example", "ftp://qdrant.example"])
def test_invalid_server_url_is_refused(url):
    with pytest.raises(InvalidInput, match="not the URL"):
        connect(url)


def test_new_collection_records_its_pooling_and_indexes_the_site_as_tenant(server, client):
    index_of(client)
    assert server.metadata == COLLECTION_METADATA
    assert set(server.indexes) == {"site", "map", "version"}
    assert server.indexes["site"]["params"]["is_tenant"] is True


def test_missing_payload_indexes_of_an_existing_collection_are_created(server, client):
    index_of(client)
    del server.indexes["map"]
    index_of(client)
    assert "map" in server.indexes


@pytest.mark.parametrize("metadata", [{}, COLLECTION_METADATA | {"pooling": "other/1"}])
def test_a_collection_whose_rows_were_pooled_in_another_way_is_refused(server, client, metadata):
    index_of(client)
    server.metadata = metadata
    with pytest.raises(InvalidInput, match="Choose another collection name"):
        index_of(client)


def test_a_collection_without_pooled_vectors_is_refused(client):
    page = models.VectorParams(
        size=DIM,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
    )
    client.create_collection("old", vectors_config={"page": page})
    with pytest.raises(InvalidInput, match=r"'pooled'.*no such vectors"):
        index_of(client, collection="old")


def test_every_stage_of_a_query_scores_on_originals(server, client):
    known = pages(5)
    index = index_of(client)
    index.add(known.items())
    index.collection.search(known["n001"].astype(np.float32), 3, [index.key], two_stages=True)
    sent = server.queries[-1]
    assert sent["params"]["quantization"]["ignore"] is True
    assert sent["prefetch"]["params"]["quantization"]["ignore"] is True
    assert (sent["using"], sent["prefetch"]["using"]) == ("page", "pooled")


@pytest.fixture(params=["in process", "server"])
def any_client(request):
    """The client's own engine, and a real server when QDRANT_URL names one."""
    url = os.environ.get("QDRANT_URL")
    if request.param == "server" and not url:
        pytest.skip("QDRANT_URL names no server")
    is_server = request.param == "server"
    client = connect(url, api_key=os.environ.get("QDRANT_API_KEY", "")) if is_server else QdrantClient(":memory:")
    yield client
    client.close()


def test_two_stages_over_several_maps_find_what_one_stage_finds(any_client):
    name = f"test-{uuid.uuid4()}"
    shared = QdrantCollection(any_client, DIM, name=name, retries=QUICK)
    maps = [MapKey(f"{host}.example", version, "") for host, version in (("a", 1), ("a", 2), ("b", 1), ("c", 1))]
    known = {key: pages(90, seed) for seed, key in enumerate(maps)}
    for key, states in known.items():
        shared.upsert(key, states.items())
    wanted = [maps[1], maps[2]]
    for node in ("n003", "n050"):
        query = known[maps[2]][node][:6].astype(np.float32)
        one = shared.search(query, 10, wanted, two_stages=False)
        two = shared.search(query, 10, wanted, two_stages=True)
        assert one[0][:2] == ("b.example", node)
        assert {hit[:2] for hit in two} == {hit[:2] for hit in one}
        assert {site for site, *_ in one} <= {key.site for key in wanted}
    shared.drop(maps[1])
    assert (shared.count(maps[1]), shared.count(maps[0])) == (0, 90)
    any_client.delete_collection(name)
