"""A version that somebody forged is refused with what is wrong; it leads no reader outside, and harms no other site."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.forged_stores import BAD, FORGERIES, GOOD, Forger, Forgery, forged, make_store
from tests.stores import DIM
from waygraph.cli.entry import run
from waygraph.core.errors import InvalidInput, NotFound, StoreError
from waygraph.index.catalog.catalog import Catalog
from waygraph.index.store import MapVersion, Store
from waygraph.index.store.upkeep.checks import repair, verify
from waygraph.index.store.upkeep.copy import copy_maps
from waygraph.index.vectors import ExactIndex

QUERY = np.eye(1, DIM, dtype=np.float32)
#: One forgery of each file and kind of problem, for what takes longer.
EACH_KIND = list({(each.name.partition(":")[0], each.reason): each for each in FORGERIES}.values())
#: Forgeries of what a copy reads, beside the bytes of files.
PATHS = [
    each
    for each in FORGERIES
    if each.name.startswith(("HEAD", "manifest", "nodes")) and ("outside" in each.name or "path" in each.name)
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of two sites, which no test changes."""
    return make_store(str(tmp_path_factory.mktemp("original") / "maps"), BAD, GOOD).location


@pytest.fixture(scope="module")
def newer(original: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same store with a second version of each site."""
    location = str(shutil.copytree(original, tmp_path_factory.mktemp("newer") / "maps"))
    make_store(location, BAD, GOOD)
    return location


@pytest.fixture
def location(original: str, tmp_path: Path) -> str:
    """A copy of the store."""
    return str(shutil.copytree(original, tmp_path / "maps"))


@pytest.fixture
def catalog(location: str) -> Iterator[Catalog]:
    with closing(Catalog(Store.open(location), lambda manifest: ExactIndex(manifest.encoder.dim))) as opened:
        yield opened


def files_outside(folder: Path) -> list[Path]:
    """Files beside the stores in a folder."""
    return [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] not in STORES]


STORES = {"maps", "copy"}
TABLES = (
    *("nodes", "edges", "vectors", "recognition", "lineage", "leads", "lead_vectors", "descriptions"),
    *("tools", "tool_vectors"),
)


def test_there_are_at_least_sixty_forgeries() -> None:
    assert len({each.name for each in FORGERIES}) == len(FORGERIES) >= 60


def test_what_is_forged_below_is_accepted_as_it_was(location: str) -> None:
    forger = Forger(location)
    for name in TABLES:
        forger.edit_rows(name, lambda rows: rows)
    forger.edit_manifest(lambda document: document)
    store = Store.open(location)
    assert store.read(BAD).graph.nodes.keys() == {"home-a", "menu-a"}
    assert verify(store).problems == []


@pytest.mark.parametrize("forgery", FORGERIES, ids=str)
def test_forged_version_is_refused_and_the_other_site_answers(
    location: str, catalog: Catalog, forgery: Forgery, caplog: pytest.LogCaptureFixture
) -> None:
    forged(location, forgery)
    for _ in range(3):
        with pytest.raises(StoreError) as caught:
            catalog.open(BAD)
        assert caught.value.reason == forgery.reason
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert catalog.sites() == [BAD, GOOD]
    found = catalog.search(QUERY, 3, "f1")
    assert {site for site, _ in found.hits} == {GOOD}
    assert set(found.skipped) == {BAD}
    assert {site: error.reason for site, error in catalog.failures.items()} == {BAD: forgery.reason}
    assert catalog.refresh() == []
    if forgery.reason != "newer_schema":  # which is no damage
        assert [problem.site for problem in verify(catalog.store).problems] == [BAD]


@pytest.mark.parametrize("forgery", FORGERIES, ids=str)
def test_forged_new_version_leaves_the_open_one_in_place(
    location: str, newer: str, catalog: Catalog, forgery: Forgery
) -> None:
    for site in (BAD, GOOD):
        catalog.open(site).close()
    shutil.copytree(newer, location, dirs_exist_ok=True)
    forged(location, forgery)
    assert catalog.refresh() == [GOOD]
    assert catalog.refresh() == []
    with catalog.open(BAD) as opened:
        assert opened.version == 1
        assert len(opened.search(QUERY, 3)) == 2
    assert {site: error.reason for site, error in catalog.failures.items()} == {BAD: forgery.reason}


@pytest.mark.parametrize("forgery", PATHS, ids=str)
def test_names_of_a_manifest_lead_no_copy_and_no_repair_outside(
    location: str, tmp_path: Path, forgery: Forgery
) -> None:
    (tmp_path / "outside.parquet").write_text("the file that a manifest names")
    before = files_outside(tmp_path)
    forged(location, forgery)
    source, target = Store.open(location), Store.open(str(tmp_path / "copy"), create=True)
    with pytest.raises(StoreError, match="damaged"):
        copy_maps(source, target, [BAD])
    assert target.sites() == []
    copy_maps(source, target, [GOOD])
    assert files_outside(tmp_path) == before


def test_copy_and_repair_write_no_file_outside_that_an_intact_manifest_names(location: str, tmp_path: Path) -> None:
    content = b"what the manifest names"
    (tmp_path / "outside.parquet").write_bytes(content)
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    name = "../../../../../outside.parquet"
    Forger(location).edit_manifest(lambda document: document["files"].update({name: entry}))
    deeper = tmp_path / "deeper"
    damaged = Store.open(str(shutil.copytree(location, deeper / "damaged")))
    (Path(damaged.location) / "sites" / BAD / "versions" / "1" / "nodes.parquet").write_bytes(b"")
    with pytest.raises(StoreError, match="is not the name of a file of a version"):
        copy_maps(Store.open(location), Store.open(str(deeper / "copy"), create=True), [BAD])
    (problem,) = repair(damaged, Store.open(location), [BAD]).problems
    assert (problem.version, problem.remedy) == (1, "")
    assert "is not the name of a file of a version" in problem.what
    assert sorted(path.name for path in deeper.iterdir()) == ["copy", "damaged"]


@pytest.mark.parametrize("forgery", EACH_KIND, ids=str)
def test_commands_say_what_is_wrong(location: str, forgery: Forgery, capsys: pytest.CaptureFixture[str]) -> None:
    forged(location, forgery)
    # A list of sites and a summary of one read its HEAD and manifest, and no tables.
    seen = forgery.name.startswith(("HEAD", "manifest")) and forgery.reason != "table"
    for words, code in (
        (["store", "verify"], 7),
        (["search", BAD, "menu"], 7),
        (["show", BAD], 7 if seen else 0),
        (["sites"], 7 if seen else 0),
        (["store", "repair"], 0 if forgery.reason == "head" else 7),  # it is rebuilt from the version
    ):
        assert run([*words, "--store", location]) == code, words
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert "Unexpected" not in said.err
        assert GOOD in said.out or words != ["sites"]


def test_list_of_sites_as_json_names_those_that_cannot_be_read(
    location: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Forger(location).write_manifest("")
    assert run(["sites", "--store", location, "--json"]) == 7
    document = json.loads(capsys.readouterr().out)
    assert [site["site"] for site in document["sites"]] == [GOOD]
    assert "manifest.json is damaged" in document["unreadable"][BAD]


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_site_without_permission_is_refused(location: str, catalog: Catalog) -> None:
    Forger(location).head.chmod(0)
    with pytest.raises(StoreError, match="Permission denied"):
        catalog.open(BAD)
    catalog.open(GOOD).close()


def test_version_that_could_not_be_opened_is_not_read_again_at_once(
    location: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    forger = Forger(location)
    intact = forger.head.read_text(), forger.manifest.read_text(), (forger.version / "nodes.parquet").read_bytes()
    forger.write_table("nodes", b"")
    with pytest.raises(StoreError):
        catalog.open(BAD)
    for path, content in zip((forger.head, forger.manifest), intact, strict=False):
        path.write_text(content)
    (forger.version / "nodes.parquet").write_bytes(intact[2])
    with pytest.raises(StoreError):
        catalog.open(BAD)
    monkeypatch.setattr("waygraph.index.catalog.failures.RETRY_SECONDS", 0.0)
    catalog.open(BAD).close()
    assert catalog.failures == {}


def test_site_that_does_not_answer_does_not_stop_the_refresh_of_others(
    location: str, newer: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waygraph.index.catalog.catalog.REFRESH_PATIENCE_SECONDS", 0.01)
    for site in (BAD, GOOD):
        catalog.open(site).close()
    shutil.copytree(newer, location, dirs_exist_ok=True)
    answers, read = threading.Event(), Store.read

    def hanging(store: Store, site: str, version: int | None = None) -> MapVersion:
        if site == BAD:
            answers.wait()
        return read(store, site, version)

    monkeypatch.setattr(Store, "read", hanging)
    while catalog.open(GOOD).version == 1:
        catalog.refresh()
    assert catalog.open(BAD).version == 1
    assert catalog.failures[BAD].reason == "slow"
    (thread,) = (each for each in threading.enumerate() if each.name == f"refresh {BAD}")
    answers.set()
    thread.join()
    catalog.refresh()
    assert (catalog.open(BAD).version, dict(catalog.failures)) == (2, {})


def test_names_of_sites_that_do_not_exist_are_not_kept(catalog: Catalog) -> None:
    for number in range(3):
        with pytest.raises(NotFound):
            catalog.open(f"site-{number}.example")
    with pytest.raises(InvalidInput, match="not a site key"):
        catalog.open("../outside")
    assert len(catalog._site_locks) == 0
    assert catalog.failures == {}
