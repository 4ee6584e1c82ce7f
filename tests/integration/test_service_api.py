"""The application of the service, without Ray: which calls need a key, and what is missing until it is ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.forged_stores import FORGERIES, Forger, forged
from tests.small_map import SmallMap
from waygraph.client.service import AsyncServiceMap
from waygraph.core.errors import InvalidInput, StoreError
from waygraph.core.schemas import NotReady, SearchRequest, problem_slug
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

KEY = "a-key-of-these-tests"
MAP = SmallMap("tea.example")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return create_encoder(Settings().encode)


@pytest.fixture
def store(tmp_path: Path, encoder: Encoder) -> Path:
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(MAP.draft(encoder, opened.blobs))
    return tmp_path / "maps"


@pytest.fixture
def locked(store: Path) -> Iterator[httpx.AsyncClient]:
    settings = Settings(store=str(store), serve={"api_keys": [KEY]})
    with Maps(settings) as maps:
        maps.open()
        yield client(settings, maps)


def move(folder: Path, name: str) -> None:
    """Give a folder another name."""
    folder.rename(folder.with_name(name))


def client(settings: Settings, maps: Maps) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(create_api(settings, maps)), base_url="http://localhost")


async def test_with_a_key_set_every_call_below_v1_requires_it(locked: httpx.AsyncClient) -> None:
    described = (await locked.get("/openapi.json")).json()
    asked = 0
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            place = path.format_map({"site": "tea.example", "node_id": MAP.id("home"), "version": 1, "kind": "dom"})
            refused = await locked.request(method, place, json={"query": "x", "url": "x", "to": MAP.id("home")})
            assert (refused.status_code == 401) == path.startswith("/v1") == ("security" in operation)
            if path.startswith("/v1"):
                asked += 1
                answer = await locked.request(method, place, headers={"authorization": f"Bearer {KEY}"})
                assert answer.status_code != 401
    assert asked == 22


async def test_missing_weights_prevent_searches_and_nothing_else(store: Path, tmp_path: Path) -> None:
    settings = Settings(store=str(store), encode={"weights": tmp_path / "nowhere"})
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            refused = await http.post("/v1/sites/tea.example/search", json={"query": "cards"})
            assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "weights-missing")
            told = NotReady.model_validate_json((await http.get("/readyz")).content)
            assert [(part.part, problem_slug(part.type), part.final) for part in told.missing] == [
                ("encoder", "weights-missing", True)
            ]
            assert (await http.get("/healthz")).is_success
            assert (await http.get("/v1/sites/tea.example")).is_success
            assert (await http.post("/v1/sites/tea.example/path", json={"to": MAP.id("cards")})).is_success


async def test_until_the_encoder_is_loaded_the_service_is_not_ready_but_will_be(store: Path) -> None:
    settings = Settings(store=str(store))
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            response = await http.get("/readyz")
            assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
            told = NotReady.model_validate_json(response.content)
            assert [(part.part, part.final) for part in told.missing] == [("encoder", False)]
            maps.search("tea.example", SearchRequest(query="cards"))
            assert (await http.get("/readyz")).json() == {
                "status": "ready",
                "sites": 1,
                "encoder": "text",
                "unopened": {},
            }


async def test_a_damaged_map_is_skipped_and_others_still_answer(store: Path, encoder: Encoder) -> None:
    opened = Store.open(str(store))
    opened.publish(SmallMap("bad.example").draft(encoder, opened.blobs))
    for table in (store / "sites" / "bad.example").rglob("*.parquet"):
        table.write_bytes(b"damaged")
    settings = Settings(store=str(store))
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            refused = await http.post("/v1/sites/bad.example/search", json={"query": "cards"})
            assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "store")
            everywhere = (await http.post("/v1/search", json={"query": "cards"})).json()
            assert {hit["site"] for hit in everywhere["hits"]} == {"tea.example"}
            assert list(everywhere["skipped"]) == ["bad.example"]


async def test_forged_sites_are_counted_by_kind_and_their_requests_are_refused(store: Path, encoder: Encoder) -> None:
    opened = Store.open(str(store))
    forgeries = {each.name: each for each in FORGERIES}
    chosen = {
        "HEAD: a pipe": "unreadable",
        "HEAD: garbage": "head",
        "manifest: a nested report": "manifest",
        "nodes: an id twice": "table",
        "vectors: an undefined value": "table",
    }
    sites = {f"bad-{number}.example": name for number, name in enumerate(chosen)}
    for site, name in sites.items():
        opened.publish(SmallMap(site).draft(encoder, opened.blobs))
        forged(str(store), forgeries[name], site)
    settings = Settings(store=str(store))
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            everywhere = (await http.post("/v1/search", json={"query": "cards"})).json()
            assert {hit["site"] for hit in everywhere["hits"]} == {"tea.example"}
            assert set(everywhere["skipped"]) == set(sites)
            for site in sites:
                state = SmallMap(site).id("home")
                for method, path, body in (
                    ("POST", "search", {"query": "cards"}),
                    ("POST", "path", {"to": state}),
                    ("POST", "locate", {"url": f"http://{site}/"}),
                    ("GET", f"nodes/{state}", None),
                    ("GET", f"nodes/{state}/elements", None),
                    ("GET", "graph", None),
                ):
                    refused = await http.request(method, f"/v1/sites/{site}/{path}", json=body)
                    assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "store")
            listed = {site["site"] for site in (await http.get("/v1/sites")).json()}
            assert listed == {"tea.example", "bad-3.example", "bad-4.example"}  # a list reads no tables
            assert (await http.get("/v1/cards")).is_success
            told = (await http.get("/readyz")).json()
            assert (told["status"], told["sites"]) == ("ready", 6)
            assert told["unopened"] == Counter(chosen.values())
            metrics = (await http.get("/metrics")).text
            for reason, count in Counter(chosen.values()).items():
                assert f'waygraph_unopened_sites{{reason="{reason}"}} {count}.0' in metrics
                assert f'waygraph_unopened_total{{reason="{reason}"}} {count}.0' in metrics
            assert "example" not in metrics


@pytest.mark.parametrize("content", [b"no table", b""])
async def test_forged_table_of_outcomes_is_a_problem_of_the_store(store: Path, content: bytes) -> None:
    fates = {"fates": Store.open(str(store)).blobs.put(content)}
    Forger(str(store), "tea.example").edit_manifest(lambda manifest: manifest["report"].update(fates))
    settings = Settings(store=str(store))
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            for place in ("graph", f"nodes/{MAP.id('home')}/elements"):
                refused = await http.get(f"/v1/sites/tea.example/{place}")
                assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "store")
            assert (await http.post("/v1/sites/tea.example/path", json={"to": MAP.id("cards")})).is_success


async def test_vanished_store_is_not_ready_and_answers_from_what_is_open(store: Path, encoder: Encoder) -> None:
    opened = Store.open(str(store))
    opened.publish(SmallMap("other.example").draft(encoder, opened.blobs))
    settings = Settings(store=str(store))
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            maps.search("tea.example", SearchRequest(query="cards"))
            assert (await http.get("/readyz")).is_success
            move(store, "elsewhere")
            for is_empty in (False, True):  # the folder is gone, or is empty, as where a volume was mounted
                if is_empty:
                    opened.commit.create_root()
                told = NotReady.model_validate_json((await http.get("/readyz")).content)
                assert [part.part for part in told.missing] == ["store"]
                state = MAP.id("home")
                for place in (
                    "",
                    "/other.example",
                    f"/other.example/nodes/{state}",
                    f"/tea.example/nodes/{state}/screenshot",
                ):
                    refused = await http.get(f"/v1/sites{place}")
                    assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "store")
                assert (await http.get(f"/v1/sites/tea.example/nodes/{state}")).is_success
                with pytest.raises(StoreError, match="marker"):
                    maps.refresh()
            move(store, "empty")
            move(store.with_name("elsewhere"), store.name)
            assert (await http.get("/readyz")).is_success
            assert maps.refresh() == []
            assert (await http.post("/v1/sites/other.example/path", json={"to": MAP.id("home")})).status_code == 404
            assert (await http.get("/v1/sites/other.example")).is_success


def test_missing_store_is_served_as_empty_until_it_is_created(tmp_path: Path, encoder: Encoder) -> None:
    for place in (tmp_path / "later", tmp_path):
        with Maps(Settings(store=str(place))) as maps:
            maps.open()
            assert maps.sites() == []
            opened = Store.open(str(place), create=True)
            opened.publish(MAP.draft(encoder, opened.blobs))
            maps.refresh()
            assert [site.site for site in maps.sites()] == ["tea.example"]
        for found in sorted(tmp_path.rglob("*"), reverse=True):
            found.rmdir() if found.is_dir() else found.unlink()


def test_a_folder_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("not a map")
    with Maps(Settings(store=str(tmp_path))) as maps, pytest.raises(StoreError):
        maps.open()


def test_concurrent_queries_get_the_same_answers_as_single_ones(store: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    questions = [f"where is number {number}, and may it be sent back?" for number in range(40)]
    with Maps(Settings(store=str(store))) as maps:
        maps.open()
        with ThreadPoolExecutor(16) as pool:
            together = list(
                pool.map(lambda question: maps.search("tea.example", SearchRequest(query=question, k=4)), questions)
            )
        for question, answer in zip(questions, together, strict=True):
            alone = maps.search("tea.example", SearchRequest(query=question, k=4))
            assert [hit.node_id for hit in answer.hits] == [hit.node_id for hit in alone.hits]
            assert [hit.score for hit in answer.hits] == pytest.approx([hit.score for hit in alone.hits], abs=1e-3)


async def test_tools_are_listed_by_state_and_in_parts_within_limits(tmp_path: Path, encoder: Encoder) -> None:
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(replace(MAP.draft(encoder, opened.blobs), tools=MAP.tools()))
    settings = Settings(store=str(tmp_path / "maps"))
    with Maps(settings) as maps:
        maps.open()
        async with client(settings, maps) as http:
            source = AsyncServiceMap("http://localhost", transport=httpx.ASGITransport(create_api(settings, maps)))
            listed = await source.tools("tea.example", state=MAP.id("cards"), first=1)
            assert ([tool.name for tool in listed.tools], listed.total) == (["add card"], 2)
            assert (await http.get("/v1/sites/tea.example/tools")).json()["total"] == 3
            for query in ("limit=501", "first=-1", "unknown=1", f"tool={'x' * 1001}"):
                assert (await http.get(f"/v1/sites/tea.example/tools?{query}")).status_code == 422
            assert (await http.get("/v1/sites/tea.example/tools?state=0123456789")).status_code == 404
            with pytest.raises(InvalidInput, match="limit"):
                await source.tools("tea.example", limit=0)
