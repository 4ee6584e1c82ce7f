"""A site whose `HEAD` is lost is detected, and none of its versions is deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stores import SITE, age, draft, flip, path_of
from waygraph.cli.entry import run
from waygraph.core.errors import NotFound, StoreError
from waygraph.index.store import Store
from waygraph.index.store.backends.s3 import REGISTERS
from waygraph.index.store.layout import claim_path, head_path
from waygraph.index.store.upkeep.checks import repair, verify
from waygraph.index.store.upkeep.gc import collect_garbage


@pytest.fixture(params=["disk", "bucket"])
def any_store(request: pytest.FixtureRequest) -> Store:
    opened: Store = request.getfixturevalue("store" if request.param == "disk" else "bucket")
    return opened


def lose_head(store: Store) -> None:
    """Delete HEAD, as after a partially restored backup."""
    if store.location.startswith("s3://"):
        store.commit.remove_folder(f"{REGISTERS}/{head_path(SITE)}")
    else:
        store.commit.delete([head_path(SITE)])
    assert store.sites() == []


def test_lost_head_is_found_and_rewritten_by_repair(any_store: Store) -> None:
    for marker in "ab":
        any_store.publish(draft(any_store, marker=marker))
    lose_head(any_store)
    found = verify(any_store)
    assert [(p.site, p.version) for p in found.problems] == [(SITE, None)]
    assert "HEAD of 'shop.example:8000' is missing" in found.problems[0].what
    assert found.sites == 1
    mended = repair(any_store)
    assert [p.remedy for p in mended.problems] == ["rebuilt from 2 version(s); version 2 is the current one"]
    assert any_store.versions(SITE) == [1, 2]
    assert verify(any_store).problems == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_collection_refuses_to_delete_its_versions(store: Store, *, dry_run: bool) -> None:
    store.publish(draft(store))
    lose_head(store)
    age(store)
    with pytest.raises(StoreError, match="Nothing is deleted") as caught:
        collect_garbage(store, dry_run=dry_run)
    assert "store repair" in caught.value.hint
    assert store.numbers(SITE) == [1]
    repair(store, sites=[SITE])
    assert store.read(SITE).manifest.report == {"marker": "a"}


def test_publishing_restores_the_versions_in_a_new_head(any_store: Store) -> None:
    for marker in "ab":
        any_store.publish(draft(any_store, marker=marker))
    lose_head(any_store)
    assert any_store.publish(draft(any_store, marker="c")) == 3
    assert any_store.versions(SITE) == any_store.numbers(SITE) == [1, 2, 3]
    assert verify(any_store).problems == []


def test_incomplete_versions_are_not_restored(store: Store) -> None:
    for marker in "ab":
        store.publish(draft(store, marker=marker))
    flip(path_of(store, 2, "nodes.parquet"))
    lose_head(store)
    assert run(["store", "repair", SITE, "--store", store.location]) == 0
    assert (store.versions(SITE), store.read_head(SITE)[1].last) == ([1], 2)


def test_site_without_a_complete_version_can_be_removed(store: Store) -> None:
    store.publish(draft(store))
    flip(path_of(store, 1, "nodes.parquet"))
    lose_head(store)
    assert [p.remedy for p in repair(store).problems] == [""]
    assert run(["rm", SITE, "--yes", "--store", store.location]) == 0
    assert run(["rm", SITE, "--yes", "--store", store.location]) == 3
    assert collect_garbage(store).leftovers == 0
    assert store.publish(draft(store)) == 2


def removed(store: Store) -> None:
    store.publish(draft(store))
    store.remove(SITE)


def left_by_a_dead_writer(store: Store) -> None:
    store.publish(draft(store))
    store.commit.delete([head_path(SITE)])
    (Path(store.location) / claim_path(SITE, 1)).write_text("a process that died")


def left_by_a_copy_that_was_stopped(store: Store) -> None:
    path_of(store, 1, "nodes.parquet").parent.mkdir(parents=True)
    path_of(store, 1, "nodes.parquet").write_bytes(b"its manifest would have come last")


@pytest.mark.parametrize(
    ("leave", "leftovers"), [(removed, 0), (left_by_a_dead_writer, 1), (left_by_a_copy_that_was_stopped, 1)]
)
def test_removed_and_unpublished_sites_are_not_reported_as_lost_head(
    store: Store, leave: Callable[[Store], None], leftovers: int
) -> None:
    leave(store)
    age(store)
    assert (verify(store).sites, verify(store).problems) == (0, [])
    with pytest.raises(NotFound):
        verify(store, [SITE])
    assert collect_garbage(store, dry_run=True).leftovers == collect_garbage(store).leftovers == leftovers
    assert store.numbers(SITE) == []
