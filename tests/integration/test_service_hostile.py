"""Requests that are meant to harm the service, or its other callers, without Ray."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.small_map import SmallMap
from waygraph.core.key_file import KeyFile
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

TEA, BANK = SmallMap("tea.example"), SmallMap("bank.example")
SEARCH = f"/v1/sites/{TEA.site}/search"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    opened = Store.open(str(tmp_path_factory.mktemp("hostile") / "maps"), create=True)
    for each in (TEA, BANK):
        opened.publish(each.draft(create_encoder(Settings().encode), opened.blobs))
    return Path(opened.location)


@asynccontextmanager
async def service(store: Path, maps: Maps | None = None, **serve: object) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(store=str(store), serve=serve)
    with maps or Maps(settings) as served:
        served.open()
        # Errors of the application are raised here, not answered with 500.
        transport = httpx.ASGITransport(create_api(settings, served), raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as http:
            yield http


async def test_a_number_that_is_not_finite_leaves_the_answers_of_others_alone(store: Path) -> None:
    asked = {"query": "pay with a card"}
    for number in ("NaN", "Infinity", "-Infinity", "1e999", '"nan"', '"-inf"'):
        async with service(store) as http:
            for path in (SEARCH, "/v1/search"):
                body = f'{{"query": "pay with a card", "min_score": {number}}}'
                refused = await http.post(path, content=body, headers=JSON)
                assert (refused.status_code, "finite number" in refused.text) == (422, True)
            assert (await http.post(SEARCH, json=asked)).json()["hits"]


async def test_answers_of_different_requests_are_cached_separately(store: Path) -> None:
    filters = (
        *({"min_score": score} for score in (0.1, 0.1 + 2**-56, 10.0)),
        *({"k": k} for k in (2, 3)),
        {"url_prefix": f"http://{TEA.site}/account"},
        {"max_depth": 0},
        {"visited_only": True},
        {},
    )
    async with service(store) as cached, service(store, answer_cache_bytes=0) as uncached:
        for _ in range(2):
            for where in filters:
                asked = {"query": "pay with a card", **where}
                assert (await cached.post(SEARCH, json=asked)).json() == (
                    await uncached.post(SEARCH, json=asked)
                ).json()


DEEP = 100_000
NO_REQUESTS = {
    "deep": b"[" * DEEP + b"]" * DEEP,
    "deep and open": b'{"query":' * DEEP,
    "a number of 5,000 digits": b'{"query": "x", "k": ' + b"9" * 5_000 + b"}",
    "a number beyond floats": b'{"query": "x", "k": 1' + b"0" * 400 + b"}",
    "half a character": b'{"query": "\\ud800", "k": 1}',
    "no UTF-8": b'{"query": "\xff"}',
    "a long name": b'{"query": "x", "' + b"y" * 500_000 + b'": 1}',
    "another type": b'{"query": ["' + b"z" * 400_000 + b'"]}',
    "many names": json.dumps({"query": "x", **{f"{number}": number for number in range(40_000)}}).encode(),
    "null": b"null",
    "nothing": b"",
}


async def test_a_body_that_is_no_request_is_refused_with_a_short_answer(store: Path) -> None:
    async with service(store) as http:
        for path in (SEARCH, "/v1/search", "/v1/search/batch", "/v1/navigate"):
            for name, body in NO_REQUESTS.items():
                refused = await http.post(path, content=body, headers=JSON)
                assert refused.status_code in {400, 422}, (path, name)
                assert refused.headers["content-type"] == "application/problem+json", (path, name)
                assert len(refused.content) < 4_000, (path, name)
        for features in ({"a" * 12: 10**30}, {"a" * 12: 2**31}, {"x" * 500_000: 1}, {"a" * 12: -1}):
            asked = {"url": f"http://{TEA.site}/", "features": features}
            refused = await http.post(f"/v1/sites/{TEA.site}/locate", json=asked)
            assert (refused.status_code, len(refused.content) < 4_000) == (422, True)


async def test_a_name_that_is_no_site_reads_no_file(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with service(store) as http:
        monkeypatch.setattr(Store, "heads", lambda *_: pytest.fail("a name was used"))
        for site in ("../../maps", "..", "a/b", "/etc", "tea.example/../bank.example", "\0", "x" * 301):
            assert (await http.get("/v1/cards", params={"site": site})).status_code == 422


async def test_a_site_that_is_not_mapped_leaves_nothing_behind_and_names_nothing(store: Path) -> None:
    maps = Maps(Settings(store=str(store)))
    async with service(store, maps) as http:
        for number in range(3):
            site = f"site{number}.example"
            calls = [
                http.get(f"/v1/sites/{site}"),
                http.get(f"/v1/sites/{site}/graph"),
                http.get(f"/v1/sites/{site}/thumbnail"),
                http.get(f"/v1/sites/{site}/changes"),
                http.post(f"/v1/sites/{site}/search", json={"query": "x"}),
                http.post(f"/v1/sites/{site}/path", json={"to": "abcd"}),
                http.post("/v1/navigate", json={"site": site, "query": "x"}),
            ]
            for call in calls:
                answer = await call
                assert answer.status_code == 404
                assert answer.json()["detail"] == f"'{site}' is not mapped."
                assert TEA.site not in answer.text
                assert str(store) not in answer.text
        assert maps.catalog._site_locks == {}


async def test_a_key_of_a_site_that_is_not_mapped_learns_no_other_names(store: Path, tmp_path: Path) -> None:
    kept, key = KeyFile().with_key("agent", ("later.example",), 0)
    kept.write(tmp_path / "keys.json")
    async with service(store, keys_file=tmp_path / "keys.json") as http:
        answer = await http.get("/v1/sites/later.example", headers={"authorization": f"Bearer {key}"})
        assert (answer.status_code, TEA.site in answer.text) == (404, False)
