"""A store in a bucket keeps the promises that a store on a disk keeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import boto3
import numpy as np
import pytest

from index.graph import Observation
from index.store import Store
from index.store.layout import bucket_and_prefix, claim_path, head_path
from index.store.objects import S3Commit
from index.store.places import place_of
from tests.s3_server import BUCKET, S3Server, s3_server
from tests.stores import SITE, draft, same_graph
from waygraph.errors import InvalidInput, NotFound, StoreError


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


def test_what_was_published_is_read_back_equal(store: Store, location: str) -> None:
    published = draft(store)
    assert store.publish(published) == 1
    read = Store.open(location).read(SITE)
    assert same_graph(read.graph, published.graph)
    assert read.observations == published.observations
    assert np.array_equal(read.pages["home-a"].vectors, published.pages["home-a"].vectors)
    assert store.blobs.get(read.observations["home-a"].screenshot) == b"screenshot of a"


def test_versions_follow_one_another_and_a_removed_site_is_gone(store: Store) -> None:
    assert [store.publish(draft(store, marker=marker)) for marker in "abc"] == [1, 2, 3]
    assert store.sites() == [SITE]
    store.remove(SITE)
    assert store.sites() == []
    with pytest.raises(NotFound):
        store.head(SITE)
    assert store.publish(draft(store, marker="d")) == 4
    assert store.versions(SITE) == [4]


def test_a_bucket_that_holds_something_else_is_left_alone(server: S3Server, location: str) -> None:
    client = boto3.client("s3", region_name="us-east-1")
    client.put_object(Bucket=BUCKET, Key=f"{location.removeprefix(f's3://{BUCKET}/')}/thesis.txt", Body=b"precious")
    with pytest.raises(StoreError, match="not empty and not a waygraph store"):
        Store.open(location, create=True)


def test_an_empty_place_is_no_store_until_one_is_made(location: str) -> None:
    with pytest.raises(StoreError, match="There is no store in s3://"):
        Store.open(location)
    Store.open(location, create=True)
    assert Store.open(location).sites() == []


def test_a_missing_bucket_is_named(server: S3Server) -> None:
    with pytest.raises(StoreError, match="There is no bucket 'no-such-bucket'"):
        Store.open("s3://no-such-bucket/maps", create=True)


def test_of_writers_at_once_each_publishes_a_version_of_its_own(store: Store, location: str) -> None:
    others = [Store.open(location) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda each: each.publish(draft(each, marker=str(id(each)))), others))
    assert sorted(store.versions(SITE)) == sorted(set(numbers))
    assert len(numbers) == 4
    for number in numbers:
        store.read(SITE, number)


def test_of_swaps_at_once_one_wins(store: Store) -> None:
    commit = commit_of(store)
    for expected, values in ((None, range(8)), (b"first", range(8, 16))):
        start = threading.Barrier(8)

        def swap(value: int, expected: bytes | None = expected, start: threading.Barrier = start) -> bool:
            start.wait()
            return commit.swap("sites/x.example/HEAD", expected, f"{value}".encode())

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(swap, values)) == 1
        won = commit.register("sites/x.example/HEAD")
        assert won is not None
        assert commit.swap("sites/x.example/HEAD", won, b"first")


def test_a_lost_answer_does_not_make_a_writer_doubt_its_own_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = commit_of(store)
    put = commit._client.put_object

    def put_twice(**arguments: object) -> object:
        put(**arguments)
        return put(**arguments)  # what a client does that got no answer the first time

    monkeypatch.setattr(commit._client, "put_object", put_twice)
    assert commit.create("claims/1", b"mine")
    assert not commit.create("claims/1", b"mine")


def test_a_swap_that_comes_late_does_not_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, path = commit_of(store), "sites/x.example/HEAD"
    assert commit.swap(path, None, b"0")
    create, woken = commit.create, []

    def suspended(key: str, content: bytes) -> bool:
        monkeypatch.setattr(commit, "create", create)
        for value in range(3):  # while this writer sleeps, others go on, for so long that their records are pruned
            assert commit.swap(path, str(value).encode(), str(value + 1).encode())
        assert commit.prune("sites", "HEAD", commit.now() + 10) == 3
        monkeypatch.setattr("index.store.objects.STALE_SECONDS", -10)
        woken.append(create(key, content))
        return True

    monkeypatch.setattr(commit, "create", suspended)
    assert not commit.swap(path, b"0", b"late")
    assert woken == [True]
    assert commit.register(path) == b"3"


def test_records_that_were_replaced_are_pruned_and_the_newest_stays(store: Store) -> None:
    commit = commit_of(store)
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    assert commit.prune("sites", "HEAD", commit.now() - 60) == 0
    assert commit.prune("sites", "HEAD", commit.now() + 60) == 2
    assert store.versions(SITE) == [1, 2, 3]
    assert store.publish(draft(store, marker="d")) == 4


def test_what_a_dead_writer_left_is_deleted_and_its_number_is_used_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = commit_of(store)
    store.publish(draft(store))
    assert commit.create(claim_path(SITE, 2), b"process 1 on a machine that is off")
    commit.put(f"sites/{SITE}/versions/2/nodes.parquet", b"half")
    store.publish(draft(store, marker="b"))
    assert store.numbers(SITE) == [1, 2, 3]  # it may be alive
    monkeypatch.setattr("index.store.objects.STALE_SECONDS", -10)
    _, head = store.read_head(SITE)
    store.drop(SITE, [])
    assert store.numbers(SITE) == [1, 3]
    assert store.read_head(SITE)[1].last == head.last == 3


def test_a_writer_that_was_taken_for_dead_publishes_under_another_number(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(draft(store))
    move = Store._move_head

    def suspended(self: Store, *arguments: object) -> bool:
        with monkeypatch.context() as others:  # ten minutes pass, somebody else clears away what seems left
            others.setattr("index.store.objects.STALE_SECONDS", -10)
            Store.drop(self, SITE, [])
        monkeypatch.setattr(Store, "_move_head", move)
        return move(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "_move_head", suspended)
    assert store.publish(draft(store, marker="b")) == 3
    assert store.versions(SITE) == [1, 3]
    store.read(SITE, 3)


def test_many_blobs_are_looked_for_at_once(store: Store, server: S3Server) -> None:
    digests = list(store.blobs.put_many(f"screenshot {number}".encode() for number in range(60)))
    server.requests.clear()
    server.most_at_once = 0
    assert store.blobs.keep([*digests, "0" * 64]) == ["0" * 64]
    assert server.requests == {"HEAD": 61}
    assert server.most_at_once > 4


def test_watching_many_sites_takes_one_request(store: Store, server: S3Server) -> None:
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


def test_large_objects_are_sent_in_parts(store: Store, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("index.store.objects._MULTIPART_BYTES", 1)
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


def test_what_agents_report_is_kept_in_their_order(store: Store) -> None:
    for outcome in ("ok", "gone"):
        store.feedback.add(SITE, 1, [{"outcome": outcome}, {"outcome": "ok"}])
    assert [line["outcome"] for line in store.feedback.read(SITE)] == ["ok", "ok", "gone", "ok"]
    assert list(store.feedback.read("other.example")) == []


@pytest.mark.parametrize(
    "bad",
    ["s3://", "s3:///x", "s3://UPPER/x", "s3://key:secret@bucket/x", "s3://bucket/a?region=x", "s3://bucket/../x"],
)
def test_urls_that_are_no_bucket_and_prefix_are_refused(bad: str) -> None:
    with pytest.raises(StoreError) as caught:
        place_of(bad)
    assert "secret" not in caught.value.message


def test_other_schemes_are_refused() -> None:
    with pytest.raises(StoreError, match="gs://"):
        place_of("gs://bucket/x")
    assert bucket_and_prefix("s3://bucket/") == ("bucket", "")
    assert head_path(SITE).endswith("/HEAD")


def test_a_file_of_a_run_is_written_as_a_stream_whole_or_not_at_all(store: Store) -> None:
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
