"""Damaged files, unknown files and newer schemas are reported by name and affect no other site."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.stores import SITE, draft
from waygraph.cli.entry import run
from waygraph.core.errors import StoreError
from waygraph.index.store import Manifest, Store
from waygraph.index.store.upkeep.checks import repair
from waygraph.index.store.upkeep.gc import collect_garbage


def version_file(store: Store, name: str) -> Path:
    return Path(store.location) / "sites" / SITE / "versions" / "1" / name


def republish_manifest(store: Store, change: dict[str, Any]) -> None:
    """Write a manifest with other content, and a HEAD whose hash fits it."""
    path = version_file(store, "manifest.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    head = Path(store.location) / "sites" / SITE / "HEAD"
    document = json.loads(head.read_text())
    document["versions"]["1"] = hashlib.sha256(path.read_bytes()).hexdigest()
    head.write_text(json.dumps(document))


def test_a_version_of_a_newer_schema_is_refused(store):
    store.publish(draft(store))
    republish_manifest(store, {"schema": 99})
    with pytest.raises(StoreError, match=r"schema 99.*Upgrade"):
        store.read(SITE)


def test_unknown_manifest_fields_of_a_newer_writer_are_ignored(store):
    store.publish(draft(store))
    republish_manifest(store, {"favourite_colour": "blue"})
    assert store.manifest(SITE).version == 1


def test_a_manifest_without_what_a_reader_needs_is_damaged(store):
    store.publish(draft(store))
    republish_manifest(store, {"counts": None})
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        store.manifest(SITE)


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet", "vectors.parquet", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_damaged_file_is_named_with_a_hint(store, name, damage):
    store.publish(draft(store))
    path = version_file(store, name)
    content = bytearray(path.read_bytes())
    if damage == "delete":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(StoreError, match=rf"{name} is damaged.*index it again"):
        store.read(SITE)


def test_damaged_head_affects_no_other_site_and_the_site_can_be_removed(store):
    store.publish(draft(store))
    store.publish(draft(store, site="other.example"))
    (Path(store.location) / "sites" / SITE / "HEAD").write_text("?")
    with pytest.raises(StoreError, match="HEAD is damaged"):
        store.read(SITE)
    assert store.sites() == ["other.example", SITE]
    store.remove(SITE)
    assert store.sites() == ["other.example"]
    assert store.publish(draft(store)) == 2


def test_unknown_folder_among_the_sites_is_not_a_site(store):
    store.publish(draft(store))
    (Path(store.location) / "sites" / ".DS_Store").write_text("")
    (Path(store.location) / "sites" / "empty.example").mkdir()
    assert store.sites() == [SITE]


def test_manifests_name_their_schema_in_json(store):
    store.publish(draft(store))
    document = json.loads(version_file(store, "manifest.json").read_text())
    assert document["schema"] == 1
    assert Manifest.model_validate(document) == store.manifest(SITE)


def test_store_of_a_newer_schema_is_refused_and_unchanged(store: Store, tmp_path: Path) -> None:
    store.publish(draft(store))
    marker = Path(store.location) / "store.json"
    marker.write_text(marker.read_text().replace('"schema": 1', '"schema": 99'))
    for words in (["gc"], ["store", "verify"], ["store", "repair"], ["sites"]):
        assert run([*words, "--store", store.location]) == 7
    assert run(["store", "copy", store.location, str(tmp_path / "copy")]) == 7
    assert not (tmp_path / "copy").exists()


def test_version_of_a_newer_schema_is_not_reported_as_damage(store: Store) -> None:
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    head = Path(store.location) / "sites" / SITE / "HEAD"
    head.write_text(head.read_text().replace('"schema": 1', '"schema": 99'))
    with pytest.raises(StoreError, match="schema 99"):
        repair(store)
    assert '"schema": 99' in head.read_text()
    with pytest.raises(StoreError, match="schema 99"):
        collect_garbage(store)
