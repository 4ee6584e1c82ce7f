"""A service with API keys and a separate encoder deployment answers like a plain one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.test_mcp import CARDS, KEY, MAP, SITE, read, refusal
from tests.service_process import RunningService
from waygraph import Settings, Waygraph
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder

pytestmark = pytest.mark.extended

HEADERS = {"authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    opened = Store.open(str(tmp_path_factory.mktemp("deployed") / "maps"), create=True)
    opened.publish(MAP.draft(create_encoder(Settings().encode), opened.blobs))
    return Path(opened.location)


@pytest.fixture(scope="module")
def service(store: Path) -> Iterator[RunningService]:
    running = RunningService(store, encoder_replicas=1, api_keys=[KEY])
    yield running
    assert running.stop() == ("ended\n", "")


def test_queries_are_encoded_in_batches_by_another_process(service: RunningService, store: Path) -> None:
    deployments = {name for each in service.family() for name in each.cmdline() if "ServeReplica" in name}
    assert {name.split(":")[-1] for name in deployments} == {"maps", "encoders"}
    questions = {"add a new credit card": "cards", "how long do I have to give an order back": "returns"}
    with httpx.Client(base_url=service.url, headers=HEADERS, timeout=60) as http, ThreadPoolExecutor(8) as pool:
        assert http.get("/readyz").json()["encoder"] == "text"

        def best(number: int) -> tuple[str, str]:
            question, name = list(questions.items())[number % 2]
            asked = {"query": f"{question} {'please ' * number}", "k": 1}
            answer = http.post(f"/v1/sites/{SITE}/search", json=asked)
            return answer.json()["hits"][0]["node_id"], MAP.id(name)

        for found, wanted in pool.map(best, range(16)):
            assert found == wanted
        empty = http.post(f"/v1/sites/{SITE}/search", json={"query": " "})
        assert empty.status_code == 422
    with Waygraph(service.url, api_key=KEY) as remote, Waygraph(store) as local:
        assert remote.search(SITE, "send it back", 3) == local.search(SITE, "send it back", 3)


async def test_a_running_service_answers_mcp_itself_and_through_the_command(service: RunningService) -> None:
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=30) as http,
        Client(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
    ):
        direct = read(await client.call_tool("navigate", {"site": SITE, "query": CARDS}))
    words = ["-m", "waygraph", "mcp", "--url", service.url, "--api-key"]
    command = StdioServerParameters(command=sys.executable, args=[*words, KEY])
    async with Client(stdio_client(command)) as client:
        assert read(await client.call_tool("navigate", {"site": SITE, "query": CARDS})) == direct
    command = StdioServerParameters(command=sys.executable, args=[*words, "wrong"])
    async with Client(stdio_client(command)) as client:
        assert "not valid" in refusal(await client.call_tool("list_sites"))
