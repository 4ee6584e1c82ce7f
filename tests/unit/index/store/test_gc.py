"""Garbage collection deletes unreferenced versions and blobs, and nothing that is referenced."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from tests.stores import SITE, age, blob_of, blobs, draft, path_of
from waygraph.cli.entry import run
from waygraph.core.errors import InvalidInput, StoreError
from waygraph.index.store import Store
from waygraph.index.store.layout import GC_CLAIM, claim_path
from waygraph.index.store.upkeep.checks import verify
from waygraph.index.store.upkeep.gc import collect_garbage

DAY = timedelta(days=1)


def test_current_and_newest_versions_and_their_blobs_are_kept(store: Store) -> None:
    for marker in "abcde":
        store.publish(draft(store, marker=marker))
    other = store.blobs.put(b"nobody names it")
    age(store)
    planned = collect_garbage(store, keep=2, dry_run=True)
    assert store.versions(SITE) == [1, 2, 3, 4, 5]
    done = collect_garbage(store, keep=2)
    assert (done, done.versions, done.blobs, done.kept_blobs) == (planned, {SITE: [1, 2, 3]}, 4, 2)
    assert store.versions(SITE) == store.numbers(SITE) == [4, 5]
    assert other not in blobs(store)
    assert verify(store).problems == []
    assert collect_garbage(store, keep=2).versions == {}


def test_files_younger_than_the_grace_period_are_kept(store: Store) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    store.blobs.put(b"of a run that has not published yet")
    before = blobs(store)
    assert collect_garbage(store, keep=1, grace=DAY).versions == {}
    assert blobs(store) == before


def test_recently_replaced_version_is_kept_regardless_of_its_age(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    age(store)
    store.publish(draft(store, marker="b"))
    assert collect_garbage(store, keep=1).versions == {}
    age(store)
    assert collect_garbage(store, keep=1).versions == {SITE: [1]}


def test_current_version_is_kept_after_a_rollback(store: Store) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    raw, head = store.read_head(SITE)
    assert store.commit.compare_and_swap(f"sites/{SITE}/HEAD", raw, head.model_copy(update={"current": 1}).to_bytes())
    age(store)
    assert collect_garbage(store, keep=1).versions == {SITE: [2]}
    assert (store.head(SITE), store.versions(SITE)) == (1, [1, 3])


def test_blobs_of_removed_sites_are_deleted_and_shared_ones_kept(store: Store) -> None:
    for site in ("one.example", "two.example"):
        store.publish(draft(store, site=site))
    store.publish(draft(store, site="one.example", marker="own"))
    store.remove("one.example")
    age(store)
    done = collect_garbage(store)
    assert (done.blobs, done.kept_blobs) == (1, 1)
    assert verify(store).problems == []


def test_sites_are_listed_as_often_for_many_removed_ones_as_for_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        store.publish(draft(store, site=f"s{number}.example"))
        store.remove(f"s{number}.example")
    registers, listed = store.commit.read_registers, []

    def counted(folder: str, name: str, among: Collection[str] | None = None) -> Mapping[str, bytes]:
        listed.append(folder)
        return registers(folder, name, among)

    monkeypatch.setattr(store.commit, "read_registers", counted)
    collect_garbage(store)
    assert listed == ["sites"]


def test_element_outcomes_named_by_a_report_are_kept(store: Store) -> None:
    fates = store.blobs.put(b"what became of elements")
    store.publish(draft(store, report={"fates": fates}))
    age(store)
    assert collect_garbage(store).blobs == 0
    assert store.blobs.get(fates) == b"what became of elements"


def test_old_blob_that_is_stored_again_gets_a_new_age(store: Store) -> None:
    digest = store.blobs.put(b"seen again")
    age(store)
    assert store.blobs.put(b"seen again") == digest
    assert collect_garbage(store).blobs == 0
    age(store)
    assert store.blobs.touch([digest]) == []
    assert collect_garbage(store).blobs == 0


def test_blob_collected_while_it_is_stored_again_exists_afterwards(store: Store) -> None:
    digest = store.blobs.put(b"seen again")
    age(store)
    lease = store.commit.claim(GC_CLAIM)  # a collection has looked at the blob, and finds it old
    assert lease is not None
    stored: list[str] = []
    writer = threading.Thread(target=lambda: stored.append(store.blobs.put(b"seen again")))
    path = Path(store.location) / "blobs" / digest[:2] / digest
    writer.start()
    while time.time() - path.stat().st_mtime > 3600:  # until the writer has made it young
        time.sleep(0.01)
    path.unlink()
    lease.release()
    writer.join()
    assert stored == [digest]
    assert store.blobs.get(digest) == b"seen again"


def test_a_map_is_not_published_with_a_blob_that_was_collected(store: Store) -> None:
    unfinished = draft(store)
    age(store)
    collect_garbage(store)
    with pytest.raises(InvalidInput, match="does not hold") as caught:
        store.publish(unfinished)
    assert "--fresh" in caught.value.hint


def test_jobs_publish_while_garbage_is_collected_all_the_time(store: Store) -> None:
    stop, failures = threading.Event(), []

    def publish(site: str) -> None:
        try:
            for number in range(12):
                store.publish(draft(store, site=site, marker=str(number % 3)))
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    def gather() -> None:
        while not stop.is_set():
            collect_garbage(store, keep=1, grace=timedelta(minutes=1))

    collecting = threading.Thread(target=gather)
    jobs = [threading.Thread(target=publish, args=(f"s{number}.example",)) for number in range(2)]
    for thread in (collecting, *jobs):
        thread.start()
    for thread in jobs:
        thread.join()
    stop.set()
    collecting.join()
    assert failures == []
    assert verify(store).problems == []


def test_a_version_that_cannot_be_read_keeps_all_blobs(store: Store) -> None:
    store.publish(draft(store))
    store.blobs.put(b"nobody names it")
    path_of(store, 1, "nodes.parquet").write_bytes(b"damaged")
    age(store)
    with pytest.raises(StoreError, match="blobs of version 1 "):
        collect_garbage(store)
    assert len(blobs(store)) == 2


def test_files_of_crashed_writers_are_deleted(store: Store) -> None:
    store.publish(draft(store))
    leftovers = [
        Path(store.location) / "sites" / SITE / ".HEAD.0a.tmp",
        blob_of(store, "a").with_name(".b.0a.tmp"),
        path_of(store, 9, "nodes.parquet"),
    ]
    for path in leftovers:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"half")
    age(store)
    collect_garbage(store)
    assert [path for path in leftovers if path.exists()] == []
    assert store.publish(draft(store, marker="b")) == 10  # a number never means two things


def test_unknown_files_among_the_blobs_are_kept_and_named(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.publish(draft(store))
    other = Path(store.location) / "blobs" / store.blobs.put(b"nobody names it")[:2]
    strange = [other / name for name in (".nfs00000000deadbeef", "thumbs.db", "A" * 64)]
    for path in strange:
        path.write_bytes(b"not ours")
    age(store)
    assert run(["gc", "--store", store.location]) == 0
    printed = capsys.readouterr().out
    assert "1 blobs (15 bytes)" in printed
    assert [path for path in strange if not path.exists() or str(path.relative_to(store.location)) not in printed] == []


def test_two_collections_at_once_are_refused(store: Store) -> None:
    lease = store.commit.claim(GC_CLAIM)
    store.blobs.put(b"nobody names it")
    age(store)
    with pytest.raises(StoreError, match="Another garbage collection"):
        collect_garbage(store)
    assert lease is not None
    lease.release()
    collect_garbage(store)


@pytest.mark.parametrize(
    "words", [("--keep", "0"), ("--grace", "1h"), ("--grace", "soon"), ("--keep-records", "6d"), ("--keep-records", "")]
)
def test_unsafe_collections_are_refused(store: Store, words: tuple[str, ...]) -> None:
    assert run(["gc", "--store", store.location, *words]) == 2


def test_gc_in_a_bucket(bucket: Store) -> None:
    for marker in "abc":
        bucket.publish(draft(bucket, marker=marker))
    assert collect_garbage(bucket, keep=1, grace=DAY).blobs == 0
    commit = bucket.commit
    with pytest.MonkeyPatch.context() as later:
        then = commit.now() + timedelta(days=8).total_seconds()
        later.setattr(commit, "now", lambda: then)
        done = collect_garbage(bucket, keep=1)
    assert (done.versions, done.blobs, done.kept_blobs) == ({SITE: [1, 2]}, 2, 1)
    assert bucket.versions(SITE) == bucket.numbers(SITE) == [3]
    assert verify(bucket).problems == []


@pytest.mark.parametrize("days", [-30, 30])
def test_wrong_clock_of_a_machine_deletes_nothing_on_a_disk(
    store: Store, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    for marker in "ab":
        store.publish(draft(store, marker=marker))
    there, clock = blobs(store), time.time
    monkeypatch.setattr(time, "time", lambda: clock() + days * 86_400)
    assert collect_garbage(store, keep=1, grace=DAY).versions == {}
    assert blobs(store) == there
    age(store, timedelta(days=10 + days))  # by the clock of the disk
    assert collect_garbage(store, keep=1, grace=DAY).versions == {SITE: [1]}
    store.publish(draft(store, marker="b"))
    assert collect_garbage(store, keep=3, grace=DAY).blobs == 0


@pytest.mark.extended
def test_wrong_clock_of_a_machine_deletes_nothing_in_a_bucket(bucket: Store) -> None:
    bucket.publish(draft(bucket, marker="a"))
    bucket.publish(draft(bucket, marker="b"))
    lease = bucket.commit.claim(claim_path(SITE, 3))
    assert lease is not None
    code = """if True:
        import sys, time
        from waygraph.index.store import Store
        from waygraph.index.store.upkeep.gc import collect_garbage
        from waygraph.index.store.layout import claim_path
        from tests.stores import SITE, draft

        clock, store = time.time, Store.open(sys.argv[1])
        for days in (-30, 30):
            time.time = lambda: clock() + days * 86_400
            assert store.commit.take_over(claim_path(SITE, 3)) is None
            done = collect_garbage(store, keep=1)
            assert (done.versions, done.blobs) == ({}, 0)
            store.publish(draft(store, marker=f"c{days}"))
    """
    done = subprocess.run([sys.executable, "-c", code, bucket.location], check=False, cwd=Path(__file__).parents[4])
    assert done.returncode == 0
    lease.release()
    assert bucket.versions(SITE) == [1, 2, 4, 5]
    assert verify(bucket).problems == []
