"""A store in a bucket gives the same guarantees as a store on a disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import boto3
import numpy as np
import pytest

from tests.s3_server import BUCKET, S3Server, s3_server
from tests.stores import SITE, draft, same_graph
from waygraph.core.errors import InvalidInput, NotFound, StoreError
from waygraph.index.graph import Observation
from waygraph.index.store import Store
from waygraph.index.store.backends.s3 import S3Commit
from waygraph.index.store.backends.storage_location import resolve_location
from waygraph.index.store.backends.storage_urls import bucket_and_prefix
from waygraph.index.store.layout import claim_path, head_path
from waygraph.index.store.publishing import Publisher

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as running:
        yield running


@pytest.fixture
def location(server: S3Server, request: pytest.FixtureRequest) -> Iterator[str]:
    server.requests.clear()
    yield f"s3://{BUCKET}/{abs(hash(request.node.name))}/maps"
    server.refuse = lambda *_: False


@pytest.fixture
def store(location: str) -> Store:
    return Store.open(location, create=True)


def commit_of(store: Store) -> S3Commit:
    commit = store.commit
    assert isinstance(commit, S3Commit)
    return commit


def test_published_map_is_read_back_equal(store: Store, location: str) -> None:
    published = draft(store)
    assert store.publish(published) == 1
    read = Store.open(location).read(SITE)
    assert same_graph(read.graph, published.graph)
    assert read.observations == published.observations
    assert np.array_equal(read.pages["home-a"].vectors, published.pages["home-a"].vectors)
    assert store.blobs.get(read.observations["home-a"].screenshot) == b"screenshot of a"


def test_version_numbers_increase_and_a_removed_site_is_gone(store: Store) -> None:
    assert [store.publish(draft(store, marker=marker)) for marker in "abc"] == [1, 2, 3]
    assert store.sites() == [SITE]
    store.remove(SITE)
    assert store.sites() == []
    with pytest.raises(NotFound):
        store.head(SITE)
    assert store.publish(draft(store, marker="d")) == 4
    assert store.versions(SITE) == [4]


def test_bucket_with_other_objects_is_refused_and_unchanged(server: S3Server, location: str) -> None:
    client = boto3.client("s3", region_name="us-east-1")
    client.put_object(Bucket=BUCKET, Key=f"{location.removeprefix(f's3://{BUCKET}/')}/thesis.txt", Body=b"precious")
    with pytest.raises(StoreError, match="not empty and not a waygraph store"):
        Store.open(location, create=True)


def test_empty_prefix_is_not_a_store_until_one_is_created(location: str) -> None:
    with pytest.raises(StoreError, match="There is no store in s3://"):
        Store.open(location)
    Store.open(location, create=True)
    assert Store.open(location).sites() == []


def test_a_missing_bucket_is_named(server: S3Server) -> None:
    with pytest.raises(StoreError, match="There is no bucket 'no-such-bucket'"):
        Store.open("s3://no-such-bucket/maps", create=True)


def test_concurrent_writers_publish_distinct_versions(store: Store, location: str) -> None:
    others = [Store.open(location) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda each: each.publish(draft(each, marker=str(id(each)))), others))
    assert sorted(store.versions(SITE)) == sorted(set(numbers))
    assert len(numbers) == 4
    for number in numbers:
        store.read(SITE, number)


def test_one_of_concurrent_swaps_succeeds(store: Store) -> None:
    commit = commit_of(store)
    for expected, values in ((None, range(8)), (b"first", range(8, 16))):
        start = threading.Barrier(8)

        def swap(value: int, expected: bytes | None = expected, start: threading.Barrier = start) -> bool:
            start.wait()
            return commit.compare_and_swap("sites/x.example/HEAD", expected, f"{value}".encode())

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(swap, values)) == 1
        won = commit.read_register("sites/x.example/HEAD")
        assert won is not None
        assert commit.compare_and_swap("sites/x.example/HEAD", won, b"first")


def test_writer_recognises_its_own_write_after_a_lost_response(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = commit_of(store)
    put = commit._client.put_object

    def put_twice(**arguments: object) -> object:
        put(**arguments)
        return put(**arguments)  # what a client does that got no answer the first time

    monkeypatch.setattr(commit._client, "put_object", put_twice)
    assert commit.create("claims/1", b"mine")
    assert not commit.create("claims/1", b"mine")


def test_late_swap_is_rejected(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, path = commit_of(store), "sites/x.example/HEAD"
    assert commit.compare_and_swap(path, None, b"0")
    create, woken = commit.create, []

    def suspended(key: str, content: bytes) -> bool:
        monkeypatch.setattr(commit, "create", create)
        for value in range(3):  # while this writer sleeps, others go on, for so long that their records are pruned
            assert commit.compare_and_swap(path, str(value).encode(), str(value + 1).encode())
        assert commit.prune_registers("sites", "HEAD", commit.now() + 10) == 3
        monkeypatch.setattr("waygraph.index.store.backends.s3.STALE_SECONDS", -10)
        woken.append(create(key, content))
        return True

    monkeypatch.setattr(commit, "create", suspended)
    assert not commit.compare_and_swap(path, b"0", b"late")
    assert woken == [True]
    assert commit.read_register(path) == b"3"


def test_replaced_records_are_pruned_and_the_newest_is_kept(store: Store) -> None:
    commit = commit_of(store)
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    assert commit.prune_registers("sites", "HEAD", commit.now() - 60) == 0
    assert commit.prune_registers("sites", "HEAD", commit.now() + 60) == 2
    assert store.versions(SITE) == [1, 2, 3]
    assert store.publish(draft(store, marker="d")) == 4


def test_files_of_a_dead_writer_are_deleted_and_its_number_is_not_reused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = commit_of(store)
    store.publish(draft(store))
    assert commit.create(claim_path(SITE, 2), b"process 1 on a machine that is off")
    commit.put(f"sites/{SITE}/versions/2/nodes.parquet", b"half")
    store.publish(draft(store, marker="b"))
    assert store.numbers(SITE) == [1, 2, 3]  # it may be alive
    monkeypatch.setattr("waygraph.index.store.backends.s3.STALE_SECONDS", -10)
    _, head = store.read_head(SITE)
    store.drop(SITE, [])
    assert store.numbers(SITE) == [1, 3]
    assert store.read_head(SITE)[1].last == head.last == 3


def test_writer_assumed_dead_publishes_under_another_number(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.publish(draft(store))
    move = Publisher._move_head

    def suspended(self: Publisher, *arguments: object) -> bool:
        with monkeypatch.context() as others:  # ten minutes later another process deletes files that seem abandoned
            others.setattr("waygraph.index.store.backends.s3.STALE_SECONDS", -10)
            self.drop(SITE, [])
        monkeypatch.setattr(Publisher, "_move_head", move)
        return move(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Publisher, "_move_head", suspended)
    assert store.publish(draft(store, marker="b")) == 3
    assert store.versions(SITE) == [1, 3]
    store.read(SITE, 3)


def test_existence_of_many_blobs_is_checked_in_parallel(store: Store, server: S3Server) -> None:
    digests = list(store.blobs.put_many(f"screenshot {number}".encode() for number in range(60)))
    server.requests.clear()
    server.most_at_once = 0
    assert store.blobs.touch([*digests, "0" * 64]) == ["0" * 64]
    assert server.requests == {"HEAD": 61}
    assert server.most_at_once > 1


def test_watching_many_sites_needs_one_request(store: Store, server: S3Server) -> None:
    for number in range(5):
        store.publish(draft(store, site=f"s{number}.example"))
    assert len(store.heads()) == 5
    server.requests.clear()
    assert store.heads() == {f"s{number}.example": 1 for number in range(5)}
    assert server.requests == {"GET": 1}
    assert store.heads(["s1.example", "s9.example"]) == {"s1.example": 1}
    assert server.requests == {"GET": 3}


def test_a_store_that_refuses_writes_loses_nothing(store: Store, server: S3Server) -> None:
    store.publish(draft(store))
    newer = draft(store, marker="b")
    for refused in ("/vectors.parquet", "/manifest.json", "/HEAD/"):
        server.refuse = lambda method, path, part=refused: method in {"PUT", "POST"} and part in path
        with pytest.raises(StoreError, match=f"Cannot publish '{SITE}' in s3://") as caught:
            store.publish(newer)
        assert caught.value.hint.startswith("Make room")
        server.refuse = lambda *_: False
        assert store.head(SITE) == 1
        store.read(SITE)
    assert store.read(SITE, store.publish(newer)).manifest.report == {"marker": "b"}
    assert store.numbers(SITE) == store.versions(SITE)


@pytest.mark.parametrize(("condition", "name"), [("IfNoneMatch", "If-None-Match"), ("IfMatch", "If-Match")])
def test_a_server_that_ignores_conditions_is_refused(
    store: Store, location: str, monkeypatch: pytest.MonkeyPatch, condition: str, name: str
) -> None:
    client = commit_of(store)._client
    put = client.put_object

    def ignoring(**arguments: object) -> object:
        return put(**{key: value for key, value in arguments.items() if key != condition})

    monkeypatch.setattr(client, "put_object", ignoring)
    with pytest.raises(StoreError, match=f"ignores '{name}"):
        Store.open(location, create=True)


def test_a_server_that_compares_etags_without_quotes_is_spoken_to_in_its_way(
    store: Store, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = commit_of(Store.open(location, create=True))._client
    put = type(client).put_object

    def bare(self: object, **arguments: str) -> object:
        if arguments.get("IfMatch", "").startswith('"'):
            arguments["IfMatch"] = '"never"'  # not what any object has
        return put(self, **arguments)

    monkeypatch.setattr(type(client), "put_object", bare)
    opened = Store.open(location, create=True)
    monkeypatch.setattr("waygraph.index.store.backends.s3.STALE_SECONDS", -10)
    assert commit_of(opened)._bare_etags
    assert opened.commit.claim("gc.claim") is not None
    assert opened.commit.take_over("gc.claim") is not None


def test_a_server_that_never_fulfils_a_condition_is_refused(
    store: Store, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = commit_of(store)._client
    put = type(client).put_object

    def refusing(self: object, **arguments: str) -> object:
        return put(self, **{**arguments, "IfMatch": '"never"'} if "IfMatch" in arguments else arguments)

    monkeypatch.setattr(type(client), "put_object", refusing)
    with pytest.raises(StoreError, match="never fulfils 'If-Match'"):
        Store.open(location, create=True)


def test_large_objects_are_sent_in_parts(store: Store, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waygraph.index.store.backends.s3._MULTIPART_BYTES", 1)
    content = bytes(range(256)) * (20 * 2**12)
    server.requests.clear()
    commit_of(store).put("runs/run-1/large", content)
    assert server.requests == {"POST": 2, "PUT": 2}  # begin and complete, two parts
    assert store.read_run("run-1", "large") == content


def test_a_damaged_blob_is_not_served(store: Store) -> None:
    digest = store.blobs.put(b"a picture")
    commit_of(store).put(f"blobs/{digest[:2]}/{digest}", b"a pictur3")
    with pytest.raises(StoreError, match="does not match its name"):
        store.blobs.get(digest)


def test_a_draft_that_names_a_missing_blob_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="names blob '000"):
        store.publish(draft(store, observations={"home-a": Observation("home-a", "", "", (), screenshot="0" * 64)}))


def test_feedback_is_kept_in_order(store: Store) -> None:
    for outcome in ("ok", "gone"):
        store.feedback.add(SITE, 1, [{"outcome": outcome}, {"outcome": "ok"}])
    assert [line["outcome"] for line in store.feedback.read(SITE)] == ["ok", "ok", "gone", "ok"]
    assert list(store.feedback.read("other.example")) == []


@pytest.mark.parametrize(
    "bad",
    ["s3://", "s3:///x", "s3://UPPER/x", "s3://key:secret@bucket/x", "s3://bucket/a?region=x", "s3://bucket/../x"],
)
def test_malformed_bucket_urls_are_refused(bad: str) -> None:
    with pytest.raises(StoreError) as caught:
        resolve_location(bad)
    assert "secret" not in caught.value.message


def test_other_schemes_are_refused() -> None:
    with pytest.raises(StoreError, match="gs://"):
        resolve_location("gs://bucket/x")
    assert bucket_and_prefix("s3://bucket/") == ("bucket", "")
    assert head_path(SITE).endswith("/HEAD")


def test_streamed_run_file_is_written_completely_or_not_at_all(store: Store) -> None:
    def chunks(*, fails: bool) -> Iterator[bytes]:
        yield b"first "
        if fails:
            raise ZeroDivisionError
        yield b"second"

    store.write_run_stream("run-1", "report.json", chunks(fails=False))
    with pytest.raises(ZeroDivisionError):
        store.write_run_stream("run-1", "report.json", chunks(fails=True))
    assert b"".join(store.read_run_stream("run-1", "report.json")) == b"first second"
    assert store.runs() == ["run-1"]
