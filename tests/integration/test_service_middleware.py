"""Middleware of the service: sites of a key, rate limits, limits of waiting requests, caching, response headers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.small_map import SmallMap
from waygraph.client.service import ServiceMap
from waygraph.core.errors import RateLimited
from waygraph.core.key_file import KeyFile
from waygraph.core.schemas import problem_slug
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

TEA, BANK = SmallMap("tea.example"), SmallMap("bank.example")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return create_encoder(Settings().encode)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Path:
    opened = Store.open(str(tmp_path_factory.mktemp("gate") / "maps"), create=True)
    for site in (TEA, BANK):
        opened.publish(site.draft(encoder, opened.blobs))
    return Path(opened.location)


@asynccontextmanager
async def service(store: Path, maps: Maps | None = None, **serve) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(store=str(store), serve=serve)
    with maps or Maps(settings) as served:
        served.open()
        transport = httpx.ASGITransport(create_api(settings, served))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


@pytest.fixture
def tea_key(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    kept, key = KeyFile().with_key("agent", ("tea.example",), 0)
    kept.write(tmp_path / "keys.json")
    return tmp_path / "keys.json", {"authorization": f"Bearer {key}"}


async def test_key_gets_its_sites_and_no_information_about_others(store, tea_key):
    path, headers = tea_key
    async with service(store, keys_file=path) as http:
        assert [site["site"] for site in (await http.get("/v1/sites", headers=headers)).json()] == ["tea.example"]
        assert [card["site"] for card in (await http.get("/v1/cards", headers=headers)).json()] == ["tea.example"]
        found = (await http.post("/v1/search", json={"query": "cards", "k": 50}, headers=headers)).json()
        assert {hit["site"] for hit in found["hits"]} == {"tea.example"}
        assert found["skipped"] == {}
        batch = {"searches": [{"query": "cards"}]}
        answers = (await http.post("/v1/search/batch", json=batch, headers=headers)).json()["answers"]
        assert {hit["site"] for hit in answers[0]["hits"]} == {"tea.example"}
        calls = {
            "/v1/sites/{}": None,
            "/v1/sites/{}/search": {"query": "cards"},
            "/v1/sites/{}/locate": {"url": "http://x/"},
            "/v1/sites/{}/path": {"to": TEA.id("cards")},
            "/v1/sites/{}/feedback": {"walked": [_walked()]},
            f"/v1/sites/{{}}/nodes/{TEA.id('home')}": None,
            f"/v1/sites/{{}}/nodes/{TEA.id('home')}/screenshot": None,
            f"/v1/sites/{{}}/nodes/{TEA.id('home')}/elements": None,
            "/v1/sites/{}/graph": None,
        }
        for call, body in calls.items():
            answered = []
            for site in ("tea.example", "bank.example", "nowhere.example"):
                method = "GET" if body is None else "POST"
                answer = await http.request(method, call.format(site), json=body, headers=headers)
                answered.append((answer.status_code, answer.content.replace(site.encode(), b"SITE")))
            assert answered[0][0] < 300, (call, answered[0])
            assert answered[1] == answered[2], call  # a site of others is a site that is not there
            assert answered[1][0] == 404
        for body in ({"site": "bank.example", "query": "x"}, {"site": "bank.example", **batch}):
            call = "/v1/navigate" if "query" in body else "/v1/search/batch"
            assert (await http.post(call, json=body, headers=headers)).status_code == 404


def _walked() -> dict[str, object]:
    (edge,) = [edge for edge in TEA.edges if edge.action.name == "Cards"]
    return {"source": edge.source, "target": edge.target, "action": edge.action.to_json(), "outcome": "ok"}


async def test_rate_limited_caller_gets_retry_after(store):
    async with service(store, rate_per_second=0.5) as http:
        statuses = [(await http.get("/v1/sites")).status_code for _ in range(3)]
        refused = await http.get("/v1/sites")
        assert statuses == [200, 429, 429]
        assert problem_slug(refused.json()["type"]) == "rate-limited"
        assert int(refused.headers["retry-after"]) in {1, 2}
        assert (await http.get("/healthz")).status_code == 200


class SlowMaps(Maps):
    """Blocks every listing of sites until it is released."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.release = threading.Event()

    def sites(self):
        self.release.wait(20)
        return super().sites()


async def test_requests_beyond_the_queue_limit_are_refused_and_the_others_answered(store):
    maps = SlowMaps(Settings(store=str(store)))
    async with service(store, maps, max_waiting=3) as http:
        asked = [asyncio.create_task(http.get("/v1/sites")) for _ in range(16 + 3 + 5)]
        done, _ = await asyncio.wait(asked, timeout=15, return_when=asyncio.FIRST_COMPLETED)
        refused = next(iter(done)).result()
        assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        maps.release.set()
        statuses = sorted([(await each).status_code for each in asked])
        assert statuses == [200] * 19 + [503] * 5
        assert (await http.get("/v1/sites")).status_code == 200


async def test_a_request_beyond_its_time_limit_is_cancelled(store):
    maps = SlowMaps(Settings(store=str(store)))
    async with service(store, maps, request_seconds=0.2) as http:
        late = await http.get("/v1/sites")
        assert (late.status_code, problem_slug(late.json()["type"])) == (503, "overloaded")
        maps.release.set()
        assert (await http.get("/v1/sites")).status_code == 200


async def test_an_answer_is_cached_until_there_is_a_new_version(tmp_path, encoder):
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(TEA.draft(encoder, opened.blobs))
    maps = Maps(Settings(store=opened.location))
    question = {"query": "pay with a credit card", "k": 10}
    async with service(tmp_path / "maps", maps) as http:

        async def ask(**more) -> dict:
            return (await http.post("/v1/sites/tea.example/search", json={**question, **more})).json()

        async def looked_up() -> list[float]:
            page = (await http.get("/metrics")).text.splitlines()
            lines = [f'waygraph_cache_total{{cache="answer",outcome="{outcome}"}} ' for outcome in ("hit", "miss")]
            return [sum(float(each.rpartition(" ")[2]) for each in page if each.startswith(line)) for line in lines]

        first = await ask()
        assert await ask() == await ask(query=" pay  with a credit card") == first
        assert await looked_up() == [2, 1]
        assert len((await ask(k=1))["hits"]) == 1
        assert (await ask(max_depth=1))["hits"] != first["hits"]
        assert await looked_up() == [2, 3]
        opened.publish(TEA.draft(encoder, opened.blobs, without=("cards",)))
        assert await ask() == first  # the service has not checked for a new version yet
        maps.refresh()
        second = await ask()
        assert (first["version"], second["version"]) == (1, 2)
        assert TEA.id("cards") not in {hit["node_id"] for hit in second["hits"]}


async def test_a_query_on_an_unmapped_site_is_not_encoded(store):
    async with service(store) as http:
        assert (await http.post("/v1/sites/nowhere.example/search", json={"query": "cards"})).status_code == 404
        assert "waygraph_encode_batch_count 0.0" in (await http.get("/metrics")).text


async def test_every_response_has_security_headers(store):
    node = TEA.id("home")
    calls = ("/healthz", "/openapi.json", "/v1/sites", "/nowhere", f"/v1/sites/tea.example/nodes/{node}/screenshot")
    async with service(store) as http:
        for call in calls:
            headers = (await http.get(call)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "access-control-allow-origin" not in headers
        for origin in ("https://evil.example", "http://localhost:3000"):
            image = await http.get(calls[-1], headers={"origin": origin})
            assert (image.headers["content-type"] == "image/jpeg") == origin.startswith("http://localhost")
            assert "access-control-allow-origin" not in image.headers


def test_a_client_waits_as_long_as_retry_after_and_stops_after_its_retries(monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    answers = iter(
        [
            httpx.Response(429, headers={"retry-after": "2"}),
            httpx.Response(503, headers={"retry-after": "1"}),
            httpx.Response(200, content=b"[]"),
        ]
    )
    with ServiceMap("http://service") as maps:
        monkeypatch.setattr(maps._http, "request", lambda *_, **__: next(answers))
        assert maps.sites() == []
    assert waits == [2.0, 1.0]
    request = httpx.Request("GET", "http://service/v1/sites")
    with ServiceMap("http://service", retries=2) as maps:
        monkeypatch.setattr(maps._http, "request", lambda *_, **__: httpx.Response(429, request=request))
        with pytest.raises(RateLimited):
            maps.sites()
    assert len(waits) == 2 + 2
