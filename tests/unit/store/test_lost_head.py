"""A site whose `HEAD` is lost is found, and none of its versions is deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from index.store import Store
from index.store.checks import repair, verify
from index.store.gc import collect
from index.store.layout import claim_path, head_path
from index.store.objects import REGISTERS
from tests.stores import SITE, age, draft, flip, path_of
from waygraph.cli.entry import run
from waygraph.errors import NotFound, StoreError


@pytest.fixture(params=["disk", "bucket"])
def any_store(request: pytest.FixtureRequest) -> Store:
    opened: Store = request.getfixturevalue("store" if request.param == "disk" else "bucket")
    return opened


def lose_head(store: Store) -> None:
    """What a backup does that was restored in part."""
    if store.location.startswith("s3://"):
        store.commit.remove_folder(f"{REGISTERS}/{head_path(SITE)}")
    else:
        store.commit.delete([head_path(SITE)])
    assert store.sites() == []


def test_it_is_found_and_written_anew(any_store: Store) -> None:
    for marker in "ab":
        any_store.publish(draft(any_store, marker=marker))
    lose_head(any_store)
    found = verify(any_store)
    assert [(p.site, p.version) for p in found.problems] == [(SITE, None)]
    assert "HEAD of 'shop.example:8000' is missing" in found.problems[0].what
    assert found.sites == 1
    mended = repair(any_store)
    assert [p.remedy for p in mended.problems] == ["written anew from 2 version(s); version 2 is the current one"]
    assert any_store.versions(SITE) == [1, 2]
    assert verify(any_store).problems == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_collection_refuses_to_delete_its_versions(store: Store, *, dry_run: bool) -> None:
    store.publish(draft(store))
    lose_head(store)
    age(store)
    with pytest.raises(StoreError, match="Nothing is deleted") as caught:
        collect(store, dry_run=dry_run)
    assert "store repair" in caught.value.hint
    assert store.numbers(SITE) == [1]
    repair(store, sites=[SITE])
    assert store.read(SITE).manifest.report == {"marker": "a"}


def test_publishing_names_its_versions_again(any_store: Store) -> None:
    for marker in "ab":
        any_store.publish(draft(any_store, marker=marker))
    lose_head(any_store)
    assert any_store.publish(draft(any_store, marker="c")) == 3
    assert any_store.versions(SITE) == any_store.numbers(SITE) == [1, 2, 3]
    assert verify(any_store).problems == []


def test_versions_that_are_not_whole_are_not_named_again(store: Store) -> None:
    for marker in "ab":
        store.publish(draft(store, marker=marker))
    flip(path_of(store, 2, "nodes.parquet"))
    lose_head(store)
    assert run(["store", "repair", SITE, "--store", store.location]) == 0
    assert (store.versions(SITE), store.read_head(SITE)[1].last) == ([1], 2)


def test_a_site_without_a_whole_version_can_be_removed(store: Store) -> None:
    store.publish(draft(store))
    flip(path_of(store, 1, "nodes.parquet"))
    lose_head(store)
    assert [p.remedy for p in repair(store).problems] == [""]
    assert run(["rm", SITE, "--yes", "--store", store.location]) == 0
    assert run(["rm", SITE, "--yes", "--store", store.location]) == 3
    assert collect(store).leftovers == 0
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
def test_what_was_removed_or_never_published_is_not_taken_for_it(
    store: Store, leave: Callable[[Store], None], leftovers: int
) -> None:
    leave(store)
    age(store)
    assert (verify(store).sites, verify(store).problems) == (0, [])
    with pytest.raises(NotFound):
        verify(store, [SITE])
    assert collect(store, dry_run=True).leftovers == collect(store).leftovers == leftovers
    assert store.numbers(SITE) == []
