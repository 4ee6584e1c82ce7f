"""Damage is found, and mended as far as it can be."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from index.store import Store, checks
from index.store.checks import Checked, repair, verify
from index.store.copying import copy
from index.store.layout import GC_CLAIM
from tests.stores import SITE, blob_of, draft, flip, path_of, same_graph
from waygraph.cli.entry import run


def test_a_whole_store_has_no_problems(store: Store) -> None:
    store.publish(draft(store))
    checked = verify(store)
    assert (checked.sites, checked.versions, checked.blobs, checked.problems) == (1, 1, 1, [])
    assert run(["store", "verify", "--store", store.location]) == 0


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


def test_a_blob_that_was_stored_anew_since_it_was_found_damaged_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(draft(store))
    flip(blob_of(store, "a"))
    look = checks.verify

    def overtaken(*arguments: Any) -> Checked:
        checked = look(*arguments)
        store.publish(draft(store))
        return checked

    monkeypatch.setattr(checks, "verify", overtaken)
    assert [p.remedy for p in repair(store).problems] == ["stored anew meanwhile"]
    assert verify(store).problems == []


def test_a_damaged_blob_that_is_replaced_while_it_is_deleted_is_there_afterwards(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(draft(store))
    screenshot = blob_of(store, "a")
    flip(screenshot)
    replaced, waits, read = threading.Event(), store.blobs._outwait_collection, store.blobs.get
    writer = threading.Thread(target=draft, args=(store,))

    def noticed() -> None:
        replaced.set()
        waits()

    def overtaken(digest: str) -> bytes:
        try:
            return read(digest)
        finally:
            if store.commit.is_claimed(GC_CLAIM) and not writer.ident:  # the last look, which finds it damaged
                writer.start()
                assert replaced.wait(60)

    monkeypatch.setattr(store.blobs, "_outwait_collection", noticed)
    monkeypatch.setattr(store.blobs, "get", overtaken)
    assert [p.remedy for p in repair(store).problems] == ["deleted; index the site again"]
    writer.join()
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
