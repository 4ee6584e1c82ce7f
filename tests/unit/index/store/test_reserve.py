"""A garbage collection makes room on a disk that is full to the last block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.day.faults import full_disk, small_disk
from tests.stores import SITE, age, draft
from waygraph.index.store import Store
from waygraph.index.store.layout import RESERVE_FILE
from waygraph.index.store.upkeep.checks import verify
from waygraph.index.store.upkeep.gc import collect_garbage
from waygraph.index.store.upkeep.reserve import RESERVE_BYTES

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    with small_disk(folder, 8):
        yield folder


@needs_root
def test_versions_are_removed_from_a_full_disk(disk: Path) -> None:
    store = Store.open(str(disk), create=True)
    for marker in "abcd":
        store.publish(draft(store, marker=marker))
    assert collect_garbage(store).versions == {}
    age(store)
    with full_disk(disk):
        assert collect_garbage(store, keep=1).versions == {SITE: [1, 2, 3]}
        assert store.versions(SITE) == [4]
    assert verify(store).problems == []


def test_collection_keeps_the_reserve_and_a_dry_run_does_not_touch_it(store: Store) -> None:
    reserve = Path(store.location) / RESERVE_FILE
    collect_garbage(store, dry_run=True)
    assert not reserve.exists()
    collect_garbage(store)
    assert reserve.stat().st_size == RESERVE_BYTES
