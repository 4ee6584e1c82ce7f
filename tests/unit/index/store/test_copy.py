"""Copies of stores equal the original, between disk and bucket, also after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stores import SITE, draft, flip, path_of
from waygraph.cli.entry import run
from waygraph.core.errors import PublishConflict, StoreError
from waygraph.index.store import Store
from waygraph.index.store.upkeep.checks import verify
from waygraph.index.store.upkeep.copy import copy_maps


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
    done = copy_maps(store, bucket)
    assert (done.versions, done.blobs) == ({SITE: [1, 2], "two.example": [1, 2]}, 2)
    copy_maps(bucket, back)
    assert contents(back) == contents(bucket) == contents(store)
    assert back.heads() == bucket.heads() == store.heads() == {SITE: 2, "two.example": 2}


def test_interrupted_copy_is_resumed(
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
            copy_maps(store, bucket)
    assert bucket.versions(SITE) == [1]
    done = copy_maps(store, bucket)
    assert (done.versions, done.versions_there, done.blobs_there) == ({SITE: [2, 3]}, 1, 1)
    assert contents(bucket) == contents(store)
    assert copy_maps(store, bucket).versions == {}


def test_a_copy_does_not_overwrite_another_history(store: Store, tmp_path: Path) -> None:
    other = Store.open(str(tmp_path / "other"), create=True)
    store.publish(draft(store, marker="a"))
    other.publish(draft(other, marker="b"))
    with pytest.raises(PublishConflict, match="another one"):
        copy_maps(store, other)
    assert other.read(SITE).manifest.report == {"marker": "b"}
    copied = Store.open(str(tmp_path / "copied"), create=True)
    copy_maps(store, copied)
    copied.publish(draft(copied, marker="c"))
    with pytest.raises(PublishConflict, match="since it was copied"):
        copy_maps(store, copied)


def test_a_rollback_is_copied(store: Store, tmp_path: Path) -> None:
    for marker in "ab":
        store.publish(draft(store, marker=marker))
    raw, head = store.read_head(SITE)
    assert store.commit.compare_and_swap(f"sites/{SITE}/HEAD", raw, head.model_copy(update={"current": 1}).to_bytes())
    other = Store.open(str(tmp_path / "other"), create=True)
    copy_maps(store, other)
    assert (other.head(SITE), other.versions(SITE)) == (1, [1, 2])


def test_damage_is_not_copied(store: Store, tmp_path: Path) -> None:
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    flip(path_of(store, 2, "vectors.parquet"))
    other = Store.open(str(tmp_path / "other"), create=True)
    with pytest.raises(StoreError, match="does not match its hash"):
        copy_maps(store, other)
    assert other.versions(SITE) == [1]
    assert verify(other).problems == []


def test_copy_can_be_limited_to_one_site_and_its_newest_version(store: Store, tmp_path: Path) -> None:
    for site in ("one.example", "two.example"):
        for marker in "ab":
            store.publish(draft(store, site=site, marker=marker))
    target = str(tmp_path / "other")
    assert run(["store", "copy", store.location, target, "--site", "one.example", "--newest", "--json"]) == 0
    other = Store.open(target)
    assert (other.sites(), other.versions("one.example")) == (["one.example"], [2])
    assert run(["store", "copy", store.location, target, "--site", "three.example"]) == 3
    assert run(["store", "copy", store.location, store.location]) == 2
