"""Concurrent writers never mix their files, and a crash at any time leaves the previous version current."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyarrow import fs

from tests.stores import SITE, draft
from waygraph.core.errors import NotFound, PublishConflict, StoreError
from waygraph.index.store import LocalCommit, MapDraft, Store, publishing, reading
from waygraph.index.store.backends.commit import Commit, StoreLease
from waygraph.index.store.layout import version_folder
from waygraph.index.store.upkeep.checks import verify


def test_removing_a_site_leaves_the_others_and_never_reuses_its_numbers(store):
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    store.publish(draft(store, site="other.example"))
    store.remove(SITE)
    assert store.sites() == ["other.example"]
    assert store.read("other.example").manifest.version == 1
    with pytest.raises(NotFound):
        store.read(SITE)
    with pytest.raises(NotFound):
        store.remove(SITE)
    assert list((Path(store.location) / "sites" / SITE / "versions").iterdir()) == []
    assert store.publish(draft(store, marker="c")) == 3
    assert store.versions(SITE) == [3]


def test_reader_overtaken_by_a_removal_gets_an_error(store):
    store.publish(draft(store))
    manifest = store.manifest(SITE)
    store.remove(SITE)
    with pytest.raises(NotFound, match="removed meanwhile"):
        reading._read_table(store, manifest, "nodes.parquet")


def claim_and_write(store: Store, made: MapDraft) -> tuple[int, StoreLease]:
    """Do all steps of a writer before it moves HEAD."""
    number, lease = publishing.Publisher(store, store.blobs)._claim_number(made.site)
    publishing.write_version(store.files, store.commit, version_folder(made.site, number), made, number)
    return number, lease


def abandoned_publish(store: Store, site: str = SITE) -> Path:
    """Leave the files of a writer that dies before it moves HEAD: a complete version and an abandoned claim."""
    number, lease = claim_and_write(store, draft(store, site=site))
    os.close(lease._descriptor)  # type: ignore[attr-defined] - what the kernel does when a process dies
    return Path(store.location) / "sites" / site / "versions" / str(number)


def test_files_of_a_dead_writer_are_invisible_and_deleted_by_the_next_one(store):
    store.publish(draft(store, marker="a"))
    left = abandoned_publish(store)
    assert store.versions(SITE) == [1]
    with pytest.raises(NotFound):
        store.read(SITE, 2)
    assert store.publish(draft(store, marker="b")) == 3
    assert not left.exists()
    assert store.versions(SITE) == [1, 3]
    assert list((left.parents[1] / "claims").iterdir()) == []


def test_files_of_a_running_writer_are_not_deleted(store):
    number, lease = claim_and_write(store, draft(store))
    assert store.publish(draft(store, marker="b")) == number + 1
    folder = Path(store.location) / "sites" / SITE / "versions" / str(number)
    assert (folder / "manifest.json").exists()
    store.remove(SITE)
    assert (folder / "manifest.json").exists()
    lease.release()


@pytest.mark.parametrize("kind", ["store", "bucket"])
def test_one_of_two_concurrent_first_versions_is_published(kind, request):
    """Both writers found no version; what the second one wrote is no second version."""
    maps = request.getfixturevalue(kind)
    assert maps.publish(draft(maps, marker="a"), replaces=0) == 1
    with pytest.raises(PublishConflict, match="none"):
        maps.publish(draft(maps, marker="b"), replaces=0)
    assert maps.versions(SITE) == [1]
    maps.remove(SITE)
    assert maps.publish(draft(maps, marker="c"), replaces=0) > 1


def test_overtaken_writer_publishes_the_next_version(store, monkeypatch):
    write = publishing.write_version
    overtaken = []

    def slow(files: fs.FileSystem, commit: Commit, folder: str, late: MapDraft, number: int) -> bytes:
        manifest = write(files, commit, folder, late, number)
        if not overtaken:
            overtaken.append(number)
            assert Store.open(store.location).publish(draft(store, marker="fast")) == 2
        return manifest

    monkeypatch.setattr(publishing, "write_version", slow)
    assert store.publish(draft(store, marker="slow")) == 3
    assert store.versions(SITE) == [2, 3]
    assert store.manifest(SITE).report == {"marker": "slow"}


def test_version_number_published_concurrently_is_not_reused(store, monkeypatch):
    numbers = store._numbers

    def outdated(site: str, folder: str) -> list[int]:
        found = numbers(site, folder)
        if folder == "claims" and not found:
            monkeypatch.undo()
            store.publish(draft(store, marker="fast"))
        return found

    monkeypatch.setattr(store, "_numbers", outdated)
    assert store.publish(draft(store, marker="slow")) == 2
    assert [store.read(SITE, n).manifest.report["marker"] for n in (1, 2)] == ["fast", "slow"]


def test_concurrent_writers_all_publish_without_overwriting(store):
    published: dict[str, int] = {}

    def write(marker: str) -> None:
        mine = Store.open(store.location)
        published[marker] = mine.publish(draft(mine, marker=marker))

    threads = [threading.Thread(target=write, args=(f"w{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(published.values())) == 8
    assert store.versions(SITE) == sorted(published.values())
    for marker, number in published.items():
        assert store.read(SITE, number).manifest.report == {"marker": marker}


def test_a_failed_write_leaves_the_published_version(store, monkeypatch):
    store.publish(draft(store, marker="a"))

    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalCommit, "persist", full)
    with pytest.raises(StoreError, match=r"No space left.*make room"):
        store.publish(draft(store, marker="b"))
    monkeypatch.undo()
    assert store.read(SITE).manifest.report == {"marker": "a"}
    assert store.publish(draft(store, marker="c")) > 1


def test_a_swap_happens_only_from_the_expected_content(tmp_path):
    commit = LocalCommit(tmp_path)
    assert not commit.compare_and_swap("a/HEAD", b"1", b"2")
    assert commit.compare_and_swap("a/HEAD", None, b"1")
    assert not commit.compare_and_swap("a/HEAD", None, b"2")
    assert not commit.compare_and_swap("a/HEAD", b"0", b"2")
    assert commit.compare_and_swap("a/HEAD", b"1", b"2")
    assert (tmp_path / "a" / "HEAD").read_bytes() == b"2"


def test_a_claim_has_one_holder_until_it_is_released(tmp_path):
    commit = LocalCommit(tmp_path)
    lease: StoreLease | None = commit.claim("claims/1")
    assert lease is not None
    assert commit.claim("claims/1") is None
    assert commit.take_over("claims/1") is None
    assert commit.take_over("claims/2") is None
    lease.release()
    again = commit.claim("claims/1")
    assert again is not None
    again.release()
    assert list((tmp_path / "claims").iterdir()) == []


def test_a_full_disk_in_the_middle_of_publishing_loses_nothing(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    code = """if True:
        import resource, sys
        import numpy as np
        from waygraph.index.store import Store
        from waygraph.index.vectors import EncodedPage
        from tests.stores import DIM, SITE, draft
        from waygraph.core.errors import StoreError

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
        cwd=Path(__file__).parents[4],
    )
    assert done.returncode == 0, done.stderr
    assert f"refused: Cannot publish '{SITE}'" in done.stdout
    assert "File too large" in done.stdout
    assert verify(store).problems == []
    assert store.numbers(SITE) == store.versions(SITE)
