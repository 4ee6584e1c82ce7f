"""What the service lets in: sites of a key, rates, how many may wait, and what is written on every answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from index.store import Store
from pipeline.encode.protocol import Encoder
from pipeline.encode.registry import create_encoder
from serve.api import create_api
from serve.maps import Maps
from tests.small_map import SmallMap
from waygraph.client import ServiceMap
from waygraph.errors import RateLimited
from waygraph.key_file import KeyFile
from waygraph.schemas import problem_slug
from waygraph.settings import Settings

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
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            yield client


@pytest.fixture
def tea_key(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    kept, key = KeyFile().with_key("agent", ("tea.example",), 0)
    kept.write(tmp_path / "keys.json")
    return tmp_path / "keys.json", {"authorization": f"Bearer {key}"}


async def test_a_key_sees_its_sites_and_no_sign_of_others(store, tea_key):
    path, headers = tea_key
    async with service(store, keys_file=path) as http:
        assert [site["site"] for site in (await http.get("/v1/sites", headers=headers)).json()] == ["tea.example"]
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


async def test_who_asks_too_often_is_told_when_to_come_again(store):
    async with service(store, rate_per_second=0.5) as http:
        statuses = [(await http.get("/v1/sites")).status_code for _ in range(3)]
        refused = await http.get("/v1/sites")
        assert statuses == [200, 429, 429]
        assert problem_slug(refused.json()["type"]) == "rate-limited"
        assert int(refused.headers["retry-after"]) in {1, 2}
        assert (await http.get("/healthz")).status_code == 200


class SlowMaps(Maps):
    """Holds every listing of sites until it is let go."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.release = threading.Event()

    def sites(self):
        self.release.wait(20)
        return super().sites()


async def test_beyond_what_may_wait_requests_are_refused_at_once_and_the_others_answered(store):
    maps = SlowMaps(Settings(store=str(store)))
    async with service(store, maps, max_waiting=3) as http:
        asked = [asyncio.create_task(http.get("/v1/sites")) for _ in range(16 + 3 + 5)]
        done, _ = await asyncio.wait(asked, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        refused = next(iter(done)).result()
        assert (refused.status_code, problem_slug(refused.json()["type"])) == (503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        maps.release.set()
        statuses = sorted([(await each).status_code for each in asked])
        assert statuses == [200] * 19 + [503] * 5
        assert (await http.get("/v1/sites")).status_code == 200


async def test_a_request_that_takes_too_long_is_given_up(store):
    maps = SlowMaps(Settings(store=str(store)))
    async with service(store, maps, request_seconds=0.2) as http:
        late = await http.get("/v1/sites")
        assert (late.status_code, problem_slug(late.json()["type"])) == (503, "overloaded")
        maps.release.set()
        assert (await http.get("/v1/sites")).status_code == 200


async def test_an_answer_is_remembered_until_there_is_a_new_version(tmp_path, encoder):
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
        assert await ask() == first  # nobody has looked for a new version yet
        maps.refresh()
        second = await ask()
        assert (first["version"], second["version"]) == (1, 2)
        assert TEA.id("cards") not in {hit["node_id"] for hit in second["hits"]}


async def test_a_site_that_is_not_there_costs_no_encoding(store):
    async with service(store) as http:
        assert (await http.post("/v1/sites/nowhere.example/search", json={"query": "cards"})).status_code == 404
        assert "waygraph_encode_batch_count 0.0" in (await http.get("/metrics")).text


async def test_every_answer_says_that_it_is_nothing_to_run(store):
    node = TEA.id("home")
    calls = ("/healthz", "/openapi.json", "/v1/sites", "/nowhere", f"/v1/sites/tea.example/nodes/{node}/screenshot")
    async with service(store) as http:
        for call in calls:
            headers = (await http.get(call)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "access-control-allow-origin" not in headers
        image = await http.get(calls[-1], headers={"origin": "https://evil.example"})
        assert image.headers["content-type"] == "image/jpeg"
        assert "access-control-allow-origin" not in image.headers


def test_a_client_waits_as_long_as_it_is_asked_to_and_gives_up_in_the_end(monkeypatch):
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
    assert waits == [0.0, 2.0, 1.0]
    request = httpx.Request("GET", "http://service/v1/sites")
    with ServiceMap("http://service", retries=2) as maps:
        monkeypatch.setattr(maps._http, "request", lambda *_, **__: httpx.Response(429, request=request))
        with pytest.raises(RateLimited):
            maps.sites()
    assert len(waits) == 3 + 3
