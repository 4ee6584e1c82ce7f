"""Damage is found by `store verify` and repaired as far as possible."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.stores import SITE, blob_of, draft, flip, path_of, same_graph
from waygraph.cli.entry import run
from waygraph.index.store import Store
from waygraph.index.store.layout import GC_CLAIM
from waygraph.index.store.upkeep import checks
from waygraph.index.store.upkeep.checks import VerifyReport, repair, verify
from waygraph.index.store.upkeep.copy import copy_maps


def test_intact_store_has_no_problems(store: Store) -> None:
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


def test_damaged_files_are_restored_from_a_copy(store: Store, tmp_path: Path) -> None:
    published = draft(store)
    store.publish(published)
    other = Store.open(str(tmp_path / "copy"), create=True)
    copy_maps(store, other)
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


def test_blob_stored_again_since_it_was_found_damaged_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.publish(draft(store))
    flip(blob_of(store, "a"))
    look = checks.verify

    def overtaken(*arguments: Any) -> VerifyReport:
        checked = look(*arguments)
        store.publish(draft(store))
        return checked

    monkeypatch.setattr(checks, "verify", overtaken)
    assert [p.remedy for p in repair(store).problems] == ["stored again meanwhile"]
    assert verify(store).problems == []


def test_damaged_blob_replaced_during_its_deletion_exists_afterwards(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(draft(store))
    screenshot = blob_of(store, "a")
    flip(screenshot)
    replaced, waits, read = threading.Event(), store.blobs._wait_for_collection, store.blobs.get
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

    monkeypatch.setattr(store.blobs, "_wait_for_collection", noticed)
    monkeypatch.setattr(store.blobs, "get", overtaken)
    assert [p.remedy for p in repair(store).problems] == ["deleted; index the site again"]
    writer.join()
    assert verify(store).problems == []


def test_bucket_is_repaired_from_a_copy_on_a_disk(store: Store, bucket: Store) -> None:
    published = draft(store)
    store.publish(published)
    copy_maps(store, bucket)
    digest = published.observations["home-a"].screenshot
    damaged = [f"blobs/{digest[:2]}/{digest}", f"sites/{SITE}/versions/1/vectors.parquet"]
    for path in damaged:
        content = bucket.read_file(path)
        assert content is not None
        bucket.commit.put(path, content[:-1] + b"?")
    assert [p.remedy for p in repair(bucket, store).problems] == ["taken from the other store"]
    assert [p.remedy for p in repair(bucket, store).problems] == ["taken from the other store"]  # which can be read now
    assert verify(bucket).problems == []


def test_damaged_head_is_rewritten_from_intact_versions(store: Store) -> None:
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    flip(path_of(store, 3, "nodes.parquet"))
    (Path(store.location) / "sites" / SITE / "HEAD").write_text("{")
    assert [p.version for p in verify(store).problems] == [None]
    repair(store)
    assert (store.head(SITE), store.versions(SITE)) == (2, [1, 2])
    assert store.publish(draft(store, marker="d")) == 4
