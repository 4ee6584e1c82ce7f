"""The vectors of versions on a Qdrant server are deleted with the versions, and those of others stay."""

import pytest

from tests.integration.qdrant_over_http import qdrant_over_http
from tests.stores import SITE, age, draft, flip, path_of
from waygraph.cli import main
from waygraph.core.settings import VectorSettings
from waygraph.index.catalog.catalog import map_key
from waygraph.index.store import Store
from waygraph.index.vectors.engines import VectorIndexFactory

OTHER = "other.example"


@pytest.fixture
def server(monkeypatch):
    with qdrant_over_http() as running:
        for name, value in {"ENGINE": "qdrant", "URL": running.url, "GRPC_PORT": "0"}.items():
            monkeypatch.setenv(f"WAYGRAPH_VECTORS__{name}", value)
        yield running


@pytest.fixture
def counts(server, tmp_path):
    """Publish two sites, fill the server as a service does; return a function that counts points by version."""
    store = Store.open(str(tmp_path), create=True)
    keys = {}
    factory = VectorIndexFactory(VectorSettings(engine="qdrant", url=server.url, grpc_port=0))
    for site, markers in ((SITE, "abcd"), (OTHER, "a")):
        for marker in markers:
            manifest = store.manifest(site, store.publish(draft(store, site=site, marker=marker)))
            keys[site, manifest.version] = map_key(manifest)
            version = store.read(site, manifest.version)
            factory.create(manifest.encoder.dim, map_key(manifest)).add(
                (name, page.vectors) for name, page in version.pages.items()
            )
    age(store)

    def count():
        return {each: len(factory.create(manifest.encoder.dim, key)) for each, key in keys.items()}

    yield count
    factory.close()


def test_garbage_collection_deletes_them(counts, tmp_path):
    before = counts()
    assert all(before.values())
    assert main(["gc", "--keep", "2", "--grace", "1d", "--dry-run", "--store", str(tmp_path)]) == 0
    assert counts() == before
    assert main(["gc", "--keep", "2", "--grace", "1d", "--store", str(tmp_path)]) == 0
    gone = {(SITE, 1), (SITE, 2)}
    assert counts() == {each: 0 if each in gone else number for each, number in before.items()}


def test_removing_a_site_deletes_them(counts, tmp_path):
    before = counts()
    assert main(["rm", SITE, "--yes", "--store", str(tmp_path)]) == 0
    assert counts() == {each: number if each[0] == OTHER else 0 for each, number in before.items()}


def test_repair_deletes_those_of_a_version_that_it_withdraws(counts, tmp_path):
    before = counts()
    flip(path_of(Store.open(str(tmp_path)), 4, "vectors.parquet"))
    assert main(["store", "repair", "--store", str(tmp_path)]) == 0
    assert counts() == {each: 0 if each == (SITE, 4) else number for each, number in before.items()}


def test_versions_stay_when_the_server_refuses(counts, server, tmp_path, capsys):
    server.api_key = "another"
    for words in (["rm", SITE, "--yes"], ["gc", "--keep", "2", "--grace", "1d"]):
        assert main([*words, "--store", str(tmp_path)]) == 9
        assert "refuses the API key" in capsys.readouterr().err
    assert Store.open(str(tmp_path)).versions(SITE) == [1, 2, 3, 4]
