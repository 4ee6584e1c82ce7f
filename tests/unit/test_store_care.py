"""Stores are collected, checked, mended and copied, and nothing that somebody needs is lost."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from index.store import Store
from index.store.checks import repair, verify
from index.store.copying import copy
from index.store.gc import collect
from index.store.layout import GC_CLAIM, claim_path
from index.store.records import Records, prune_records
from pipeline.jobs.run.ledger import Ledger
from pipeline.jobs.run.manifest import ledgers, new_manifest
from pipeline.jobs.sites.site_list import SiteTask
from tests.s3_server import BUCKET, s3_server
from tests.unit.test_index_store import SITE, draft, same_graph
from waygraph.cli.entry import run
from waygraph.errors import InvalidInput, PublishConflict, StoreError
from waygraph.settings import Settings

DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "maps"), create=True)


@pytest.fixture(scope="module")
def _server() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch):
        yield


@pytest.fixture
def bucket(_server: None, request: pytest.FixtureRequest) -> Store:
    return Store.open(f"s3://{BUCKET}/{abs(hash(request.node.name))}", create=True)


def blobs(store: Store) -> set[str]:
    return {path.name for path in (Path(store.location) / "blobs").rglob("*") if path.is_file()}


def age(store: Store, by: timedelta = timedelta(days=10)) -> None:
    """Let everything in a store on the disk be older."""
    then = time.time() - by.total_seconds()
    for path in Path(store.location).rglob("*"):
        os.utime(path, (then, then))


def path_of(store: Store, version: int, name: str) -> Path:
    return Path(store.location) / "sites" / SITE / "versions" / str(version) / name


def blob_of(store: Store, marker: str) -> Path:
    digest = store.read(SITE).observations[f"home-{marker}"].screenshot
    return Path(store.location) / "blobs" / digest[:2] / digest


# -- garbage collection ----------------------------------------------------------------------------------------------


def test_the_current_version_the_newest_and_what_they_name_stay(store: Store) -> None:
    for marker in "abcde":
        store.publish(draft(store, marker=marker))
    other = store.blobs.put(b"nobody names it")
    age(store)
    planned = collect(store, keep=2, dry_run=True)
    assert store.versions(SITE) == [1, 2, 3, 4, 5]
    done = collect(store, keep=2)
    assert (done, done.versions, done.blobs, done.kept_blobs) == (planned, {SITE: [1, 2, 3]}, 4, 2)
    assert store.versions(SITE) == store.numbers(SITE) == [4, 5]
    assert other not in blobs(store)
    assert verify(store).problems == []
    assert collect(store, keep=2).versions == {}


def test_what_is_younger_than_the_grace_stays(store: Store) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    store.blobs.put(b"of a run that has not published yet")
    before = blobs(store)
    assert collect(store, keep=1, grace=DAY).versions == {}
    assert blobs(store) == before


def test_a_version_that_was_replaced_lately_stays_however_old_it_is(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    age(store)
    store.publish(draft(store, marker="b"))
    assert collect(store, keep=1).versions == {}
    age(store)
    assert collect(store, keep=1).versions == {SITE: [1]}


def test_after_a_rollback_the_current_version_stays_though_it_is_not_the_newest(store: Store) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    raw, head = store.read_head(SITE)
    assert store.commit.swap(f"sites/{SITE}/HEAD", raw, head.model_copy(update={"current": 1}).to_bytes())
    age(store)
    assert collect(store, keep=1).versions == {SITE: [2]}
    assert (store.head(SITE), store.versions(SITE)) == (1, [1, 3])


def test_blobs_of_removed_sites_go_and_shared_ones_stay(store: Store) -> None:
    for site in ("one.example", "two.example"):
        store.publish(draft(store, site=site))
    store.publish(draft(store, site="one.example", marker="own"))
    store.remove("one.example")
    age(store)
    done = collect(store)
    assert (done.blobs, done.kept_blobs) == (1, 1)
    assert verify(store).problems == []


def test_the_account_of_elements_that_a_report_names_stays(store: Store) -> None:
    fates = store.blobs.put(b"what became of elements")
    store.publish(draft(store, report={"fates": fates}))
    age(store)
    assert collect(store).blobs == 0
    assert store.blobs.get(fates) == b"what became of elements"


def test_an_old_blob_that_is_stored_again_becomes_young(store: Store) -> None:
    digest = store.blobs.put(b"seen again")
    age(store)
    assert store.blobs.put(b"seen again") == digest
    assert collect(store).blobs == 0
    age(store)
    assert store.blobs.keep([digest]) == []
    assert collect(store).blobs == 0


def test_a_blob_that_is_collected_while_it_is_stored_again_is_there_afterwards(store: Store) -> None:
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
    collect(store)
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
            collect(store, keep=1, grace=timedelta(minutes=1))

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
    with pytest.raises(StoreError, match="Nobody can tell which blobs version 1"):
        collect(store)
    assert len(blobs(store)) == 2


def test_what_crashed_writers_left_goes(store: Store) -> None:
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
    collect(store)
    assert [path for path in leftovers if path.exists()] == []
    assert store.publish(draft(store, marker="b")) == 10  # a number never means two things


def test_two_collections_at_once_are_refused(store: Store) -> None:
    lease = store.commit.claim(GC_CLAIM)
    store.blobs.put(b"nobody names it")
    age(store)
    with pytest.raises(StoreError, match="Another garbage collection"):
        collect(store)
    assert lease is not None
    lease.release()
    collect(store)


OLD, YOUNG = "20260101-000000-0a1b2c", "20260102-000000-0a1b2c"


def leave_records(store: Store) -> None:
    """What two runs and an agent leave, and something beside it."""
    for run_id in (OLD, YOUNG):
        store.write_run(run_id, "manifest.json", b"{}")
        store.write_run(run_id, "report.json", b"{}")
    store.feedback.add(SITE, 1, [{"ok": False}])
    store.write_run("notes", "mine.txt", b"not of a run")


def test_records_go_by_the_age_of_what_was_added_last(store: Store) -> None:
    leave_records(store)
    age(store, timedelta(days=100))
    store.write_run(YOUNG, "report.html", b"again")
    planned = prune_records(store, dry_run=True)
    assert (planned.runs, planned.feedback) == ((OLD,), 1)
    assert planned.bytes > 4
    assert prune_records(store, older_than=timedelta(days=101)).runs == ()
    assert prune_records(store, spare={OLD}, dry_run=True).runs == ()
    assert store.runs() == [OLD, YOUNG, "feedback", "notes"]
    assert prune_records(store) == planned
    assert store.runs() == [YOUNG, "feedback", "notes"]
    assert list(store.feedback.read(SITE)) == []
    assert prune_records(store) == Records()


def test_records_in_a_bucket_go_by_the_clock_of_the_storage(bucket: Store) -> None:
    leave_records(bucket)
    bucket.feedback.add(SITE, 1, [{"ok": True}])
    assert prune_records(bucket) == Records()  # long ago by their names alone
    commit = bucket.commit
    with pytest.MonkeyPatch.context() as later:
        then = commit.now() + timedelta(days=91).total_seconds()
        later.setattr(commit, "now", lambda: then)
        done = prune_records(bucket)
    assert (done.runs, done.feedback) == ((OLD, YOUNG), 2)
    assert bucket.runs() == ["notes"]
    assert list(bucket.feedback.read(SITE)) == []


def test_gc_prunes_records_but_not_of_a_run_that_can_be_gone_on_with(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_records(store)
    task = SiteTask(SITE, f"http://{SITE}/")
    manifest = new_manifest([task], Settings(store=store.location), "index").model_copy(update={"run_id": OLD})
    ledger = Ledger.open(ledgers(store.location), manifest, [task])
    ledger.tell({}, now=True)
    ledger.close(finished=False)
    age(store, timedelta(days=100))
    assert run(["gc", "--store", store.location, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"]["runs"] == [YOUNG]
    assert run(["gc", "--store", store.location, "--keep-records", "101d"]) == 0
    assert OLD in store.runs()
    assert YOUNG in store.runs()
    assert run(["gc", "--store", store.location]) == 0
    assert "records of 1 run(s) and 1 file(s) of feedback" in capsys.readouterr().out
    assert store.runs() == [OLD, "feedback", "ledgers", "notes"]


@pytest.mark.parametrize(
    "words", [("--keep", "0"), ("--grace", "1h"), ("--grace", "soon"), ("--keep-records", "6d"), ("--keep-records", "")]
)
def test_what_would_not_be_safe_is_refused(store: Store, words: tuple[str, ...]) -> None:
    assert run(["gc", "--store", store.location, *words]) == 2


def test_gc_in_a_bucket(bucket: Store) -> None:
    for marker in "abc":
        bucket.publish(draft(bucket, marker=marker))
    assert collect(bucket, keep=1, grace=DAY).blobs == 0
    commit = bucket.commit
    with pytest.MonkeyPatch.context() as later:
        then = commit.now() + timedelta(days=8).total_seconds()
        later.setattr(commit, "now", lambda: then)
        done = collect(bucket, keep=1)
    assert (done.versions, done.blobs, done.kept_blobs) == ({SITE: [1, 2]}, 2, 1)
    assert bucket.versions(SITE) == bucket.numbers(SITE) == [3]
    assert verify(bucket).problems == []


def test_a_machine_whose_clock_is_a_month_off_takes_nothing_in_a_bucket_for_old(bucket: Store) -> None:
    bucket.publish(draft(bucket, marker="a"))
    bucket.publish(draft(bucket, marker="b"))
    lease = bucket.commit.claim(claim_path(SITE, 3))
    assert lease is not None
    code = """if True:
        import sys, time
        from index.store import Store
        from index.store.gc import collect
        from index.store.layout import claim_path
        from tests.unit.test_index_store import SITE, draft

        clock, store = time.time, Store.open(sys.argv[1])
        for days in (-30, 30):
            time.time = lambda: clock() + days * 86_400
            assert store.commit.take_over(claim_path(SITE, 3)) is None
            done = collect(store, keep=1)
            assert (done.versions, done.blobs) == ({}, 0)
            store.publish(draft(store, marker=f"c{days}"))
    """
    done = subprocess.run([sys.executable, "-c", code, bucket.location], check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0
    lease.release()
    assert bucket.versions(SITE) == [1, 2, 4, 5]
    assert verify(bucket).problems == []


# -- verifying and mending -------------------------------------------------------------------------------------------


def test_a_whole_store_has_no_problems(store: Store) -> None:
    store.publish(draft(store))
    checked = verify(store)
    assert (checked.sites, checked.versions, checked.blobs, checked.problems) == (1, 1, 1, [])
    assert run(["store", "verify", "--store", store.location]) == 0


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet", "vectors.parquet", "manifest.json"])
def test_one_bit_in_any_file_is_found_and_the_version_withdrawn(store: Store, name: str) -> None:
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    flip(path_of(store, 2, name))
    assert [(p.site, p.version) for p in verify(store).problems] == [(SITE, 2)]
    assert run(["store", "verify", "--store", store.location]) == 7
    assert [p.remedy for p in repair(store).problems] == ["withdrawn; version 1 is the current one"]
    assert verify(store).problems == []
    assert store.read(SITE).manifest.report == {"marker": "a"}


def test_the_only_version_is_not_withdrawn(store: Store) -> None:
    store.publish(draft(store))
    flip(path_of(store, 1, "edges.parquet"))
    assert [p.remedy for p in repair(store).problems] == [""]
    assert store.head(SITE) == 1
    assert run(["store", "repair", "--store", store.location]) == 7


def test_what_is_damaged_is_taken_from_a_copy(store: Store, tmp_path: Path) -> None:
    published = draft(store)
    store.publish(published)
    other = Store.open(str(tmp_path / "copy"), create=True)
    copy(store, other)
    flip(path_of(store, 1, "edges.parquet"))
    flip(blob_of(other, "a"))
    broken = repair(store, other)
    assert [p.remedy for p in broken.problems] == ["taken from the other store"]
    assert same_graph(store.read(SITE).graph, published.graph)
    repair(other, store)
    assert verify(other).problems == []


def test_damaged_and_missing_blobs_are_found(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    screenshot = blob_of(store, "a")
    flip(screenshot)
    assert verify(store, contents=False).problems == []
    assert [p.remedy for p in repair(store).problems] == ["deleted; index the site again"]
    assert not screenshot.exists()
    assert [p.path for p in verify(store, contents=False).problems] == [
        f"blobs/{screenshot.name[:2]}/{screenshot.name}"
    ]
    store.publish(draft(store, marker="a"))
    assert verify(store).problems == []


def test_a_bucket_is_mended_from_a_copy_on_a_disk(store: Store, bucket: Store) -> None:
    published = draft(store)
    store.publish(published)
    copy(store, bucket)
    digest = published.observations["home-a"].screenshot
    damaged = [f"blobs/{digest[:2]}/{digest}", f"sites/{SITE}/versions/1/vectors.parquet"]
    for path in damaged:
        content = bucket.read_file(path)
        assert content is not None
        bucket.commit.put(path, content[:-1] + b"?")
    assert [p.remedy for p in repair(bucket, store).problems] == ["taken from the other store"]
    assert [p.remedy for p in repair(bucket, store).problems] == ["taken from the other store"]  # which can be read now
    assert verify(bucket).problems == []


def test_a_damaged_head_is_written_anew_from_what_is_whole(store: Store) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    flip(path_of(store, 3, "nodes.parquet"))
    (Path(store.location) / "sites" / SITE / "HEAD").write_text("{")
    assert [p.version for p in verify(store).problems] == [None]
    repair(store)
    assert (store.head(SITE), store.versions(SITE)) == (2, [1, 2])
    assert store.publish(draft(store, marker="d")) == 4


# -- copying ---------------------------------------------------------------------------------------------------------


def contents(store: Store) -> dict[tuple[str, int], tuple[dict[str, bytes], dict[str, bytes]]]:
    return {
        (site, version): (
            store.version_files(site, version),
            {digest: store.blobs.get(digest) for digest in store.blobs_of(site, version)},
        )
        for site in store.sites()
        for version in store.versions(site)
    }


def test_a_copy_to_a_bucket_and_back_is_the_same(store: Store, bucket: Store, tmp_path: Path) -> None:
    for site in (SITE, "two.example"):
        for marker in "ab":
            store.publish(draft(store, site=site, marker=marker))
    back = Store.open(str(tmp_path / "back"), create=True)
    done = copy(store, bucket)
    assert (done.versions, done.blobs) == ({SITE: [1, 2], "two.example": [1, 2]}, 2)
    copy(bucket, back)
    assert contents(back) == contents(bucket) == contents(store)
    assert back.heads() == bucket.heads() == store.heads() == {SITE: 2, "two.example": 2}


def test_a_copy_that_was_stopped_is_gone_on_with(
    store: Store, bucket: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    write, written = Store.write_version_files, []

    def stopping(self: Store, site: str, version: int, files: dict[str, bytes]) -> None:
        if version == 2:
            self.commit.put(f"sites/{site}/versions/2/nodes.parquet", b"half")
            raise KeyboardInterrupt
        written.append(version)
        write(self, site, version, files)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write_version_files", stopping)
        with pytest.raises(KeyboardInterrupt):
            copy(store, bucket)
    assert bucket.versions(SITE) == [1]
    done = copy(store, bucket)
    assert (done.versions, done.versions_there, done.blobs_there) == ({SITE: [2, 3]}, 1, 1)
    assert contents(bucket) == contents(store)
    assert copy(store, bucket).versions == {}


def test_a_copy_does_not_overwrite_another_history(store: Store, tmp_path: Path) -> None:
    other = Store.open(str(tmp_path / "other"), create=True)
    store.publish(draft(store, marker="a"))
    other.publish(draft(other, marker="b"))
    with pytest.raises(PublishConflict, match="another one"):
        copy(store, other)
    assert other.read(SITE).manifest.report == {"marker": "b"}
    copied = Store.open(str(tmp_path / "copied"), create=True)
    copy(store, copied)
    copied.publish(draft(copied, marker="c"))
    with pytest.raises(PublishConflict, match="since it was copied"):
        copy(store, copied)


def test_a_rollback_is_copied(store: Store, tmp_path: Path) -> None:
    for marker in "ab":
        store.publish(draft(store, marker=marker))
    raw, head = store.read_head(SITE)
    assert store.commit.swap(f"sites/{SITE}/HEAD", raw, head.model_copy(update={"current": 1}).to_bytes())
    other = Store.open(str(tmp_path / "other"), create=True)
    copy(store, other)
    assert (other.head(SITE), other.versions(SITE)) == (1, [1, 2])


def test_damage_is_not_copied(store: Store, tmp_path: Path) -> None:
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    flip(path_of(store, 2, "vectors.parquet"))
    other = Store.open(str(tmp_path / "other"), create=True)
    with pytest.raises(StoreError, match="does not match its hash"):
        copy(store, other)
    assert other.versions(SITE) == [1]
    assert verify(other).problems == []


def test_one_site_and_its_newest_version_alone_can_be_copied(store: Store, tmp_path: Path) -> None:
    for site in ("one.example", "two.example"):
        for marker in "ab":
            store.publish(draft(store, site=site, marker=marker))
    target = str(tmp_path / "other")
    assert run(["store", "copy", store.location, target, "--site", "one.example", "--newest", "--json"]) == 0
    other = Store.open(target)
    assert (other.sites(), other.versions("one.example")) == (["one.example"], [2])
    assert run(["store", "copy", store.location, target, "--site", "three.example"]) == 3
    assert run(["store", "copy", store.location, store.location]) == 2


# -- bad days --------------------------------------------------------------------------------------------------------


def test_a_full_disk_in_the_middle_of_publishing_loses_nothing(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    code = """if True:
        import resource, sys
        import numpy as np
        from index.store import Store
        from index.vectors import EncodedPage
        from tests.unit.test_index_store import DIM, SITE, draft
        from waygraph.errors import StoreError

        store = Store.open(sys.argv[1])
        many = np.random.default_rng(0).normal(size=(40_000, DIM)).astype(np.float32)
        page = EncodedPage(many, ("row",) * len(many), ((),) * len(many))
        newer = draft(store, marker="b", pages={"home-b": page})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            store.publish(newer)
        except StoreError as error:
            print("refused:", error.message)
        assert store.head(SITE) == 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert store.publish(newer) > 1
    """
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", code, store.location],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert f"refused: Cannot publish '{SITE}'" in done.stdout
    assert "File too large" in done.stdout
    assert verify(store).problems == []
    assert store.numbers(SITE) == store.versions(SITE)


def test_a_store_from_a_newer_schema_is_refused_and_left_alone(store: Store, tmp_path: Path) -> None:
    store.publish(draft(store))
    marker = Path(store.location) / "store.json"
    marker.write_text(marker.read_text().replace('"schema": 1', '"schema": 99'))
    for words in (["gc"], ["store", "verify"], ["store", "repair"], ["sites"]):
        assert run([*words, "--store", store.location]) == 7
    assert run(["store", "copy", store.location, str(tmp_path / "copy")]) == 7
    assert not (tmp_path / "copy").exists()


def test_a_version_from_a_newer_schema_is_not_taken_for_damage(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    head = Path(store.location) / "sites" / SITE / "HEAD"
    head.write_text(head.read_text().replace('"schema": 1', '"schema": 99'))
    with pytest.raises(StoreError, match="schema 99"):
        repair(store)
    assert '"schema": 99' in head.read_text()
    with pytest.raises(StoreError, match="schema 99"):
        collect(store)
