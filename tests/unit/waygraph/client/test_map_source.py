"""Each map operation is defined once: its blocking form, a store and a service answer the same requests."""

from __future__ import annotations

import asyncio
import inspect
import re

import httpx
import pytest

from waygraph import AsyncServiceMap, AsyncWaygraph, MapSource, ServiceMap, StoreMap, Waygraph
from waygraph.client import requests
from waygraph.client.blocking import run_to_completion
from waygraph.client.map_source import AsyncMapSource, ThreadedMapSource
from waygraph.client.requests import Endpoint, MapRequest
from waygraph.core.schemas import Filter, SearchAnswer
from waygraph.core.settings import Settings
from waygraph.sdk import local
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

ENDPOINTS = [value for value in vars(requests).values() if isinstance(value, Endpoint)]
OPERATIONS = (
    "sites", "site", "search", "search_batch", "locate", "path", "navigate", "feedback", "node", "screenshot",
)  # fmt: skip


class RecordingMap(MapSource):
    """Answers every request with an empty search, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[MapRequest] = []

    def send(self, request):
        self.requests.append(request)
        return SearchAnswer(hits=[])

    def close(self) -> None:
        pass


def test_a_store_answers_every_endpoint() -> None:
    assert set(local._METHODS) == set(ENDPOINTS)


async def test_every_endpoint_is_in_the_api_description_of_the_service(tmp_path) -> None:
    settings = Settings(store=str(tmp_path / "maps"))
    transport = httpx.ASGITransport(create_api(settings, Maps(settings)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    described = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path)) for path, methods in paths.items() for method in methods
    }
    assert {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS} <= described


@pytest.mark.parametrize(
    ("blocking", "awaited"), [(ServiceMap, AsyncServiceMap), (StoreMap, AsyncMapSource), (Waygraph, AsyncWaygraph)]
)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_blocking_operation_has_the_signature_and_the_description_of_the_awaited_one(blocking, awaited, name) -> None:
    assert inspect.signature(getattr(blocking, name)) == inspect.signature(getattr(awaited, name))
    assert getattr(blocking, name).__doc__ == getattr(awaited, name).__doc__
    assert inspect.iscoroutinefunction(getattr(awaited, name))
    assert not inspect.iscoroutinefunction(getattr(blocking, name))


def test_a_source_needs_only_send_and_close() -> None:
    with RecordingMap() as maps:
        assert maps.search("tea.example", "cards", 3, Filter(max_depth=2)) == SearchAnswer(hits=[])
        asyncio.run(ThreadedMapSource(maps).search(None, "cards"))
    one, everywhere = maps.requests
    assert (one.http_path(), one.http_body()) == (
        "/v1/sites/tea.example/search", {"query": "cards", "k": 3, "max_depth": 2},
    )  # fmt: skip
    assert (everywhere.http_path(), everywhere.http_body()) == ("/v1/search", {"query": "cards"})


def test_a_blocking_call_inside_an_event_loop_starts_none() -> None:
    async def call() -> SearchAnswer:
        return RecordingMap().search(None, "cards")

    assert asyncio.run(call()).hits == []


def test_a_coroutine_that_suspends_cannot_be_run_without_a_loop() -> None:
    with pytest.raises(RuntimeError, match="suspended"):
        run_to_completion(asyncio.sleep(0))
