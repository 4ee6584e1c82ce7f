"""The service as its callers use it, with Ray Serve and without: a real process, store and encoder."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from openapi_spec_validator import validate

from tests.service_process import RunningService, files_of_services, temporary_folder
from tests.small_map import IMAGE, SmallMap
from waygraph import Settings, Waygraph
from waygraph.client.service import ServiceMap
from waygraph.core.errors import (
    EncoderMismatch,
    InvalidInput,
    NoPath,
    NotFound,
    ServiceError,
    StoreError,
    WaygraphError,
)
from waygraph.core.schemas import AvoidedStep, NodeAnswer, Problem, problem_slug
from waygraph.index.store import Store
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.runtime.app import application, run

MAP = SmallMap("tea.example")
OTHER = SmallMap("127.0.0.1:8000")
LARGE_IMAGE = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 50_000  # 13 MB


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return create_encoder(Settings().encode)


@pytest.fixture(scope="module", params=[False, True], ids=["ray", "local"])
def local(request: pytest.FixtureRequest) -> bool:
    """Whether the service is one process without Ray."""
    return bool(request.param)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, local: bool) -> Path:
    """Path of the store, which does not exist yet when the service starts."""
    return tmp_path_factory.mktemp("local" if local else "ray") / "maps"


@pytest.fixture(scope="module")
def service(store: Path, encoder: Encoder, local: bool) -> Iterator[RunningService]:
    """A running service; SIGTERM must end it without leftovers (`test_service_process` tests other signals)."""
    with temporary_folder() as temporary:
        running = RunningService(store, temporary=str(temporary), local=local)
        try:
            assert (len(running.family()) == 1) == local
            assert files_of_services(temporary)
            assert httpx.get(f"{running.url}/v1/sites").json() == []
            opened = Store.open(str(store), create=True)
            opened.publish(MAP.draft(encoder, opened.blobs))
            other, home = OTHER.draft(encoder, opened.blobs), OTHER.id("home")
            seen = replace(other.observations[home], screenshot=opened.blobs.put(LARGE_IMAGE))
            opened.publish(replace(other, observations={**other.observations, home: seen}))
            with httpx.Client(base_url=running.url) as http:
                wait_for(http, "/v1/sites", lambda sites: len(sites) == 2)
            yield running
        finally:
            family = running.family()
            os.killpg(running.process.pid, signal.SIGTERM)  # as `timeout` sends it
            out, errors = running.process.communicate(timeout=60)
            _, alive = psutil.wait_procs(family, timeout=30)
            assert (out, errors, running.process.returncode, alive) == ("ended\n", "", 0, [])
            assert files_of_services(temporary) == []


def wait_for(http: httpx.Client, path: str, good: Any) -> Any:
    """Repeat the request until the response is as expected; limited by the timeout of pytest."""
    while not good(answer := http.get(path).json()):
        pass
    return answer


@pytest.fixture
def http(service: RunningService) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=30) as client:
        yield client


def problem(response: httpx.Response) -> tuple[int, str]:
    """Check the form of a problem response; return its status and type."""
    assert response.headers["content-type"] == "application/problem+json"
    told = Problem.model_validate_json(response.content)
    assert told.status == response.status_code
    assert told.detail
    return told.status, problem_slug(told.type)


def test_health_and_readiness_are_reported(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/readyz").json() == {"status": "ready", "sites": 2, "encoder": "text", "unopened": {}}


def test_sites_are_listed_and_described(http: httpx.Client) -> None:
    assert [site["site"] for site in http.get("/v1/sites").json()] == ["127.0.0.1:8000", "tea.example"]
    site = http.get("/v1/sites/tea.example").json()
    assert (site["states"], site["edges"], site["depth"], site["partial"]) == (4, 4, 2, False)
    assert site["start_node_id"] == MAP.id("home")
    assert site["encoder"].keys() == {"name", "dim", "fingerprint"}
    assert site["capture"] == {"viewport_width": 1280, "login": ""}


def test_a_state_lists_its_texts_and_actions(http: httpx.Client) -> None:
    node = NodeAnswer.model_validate(http.get(f"/v1/sites/tea.example/nodes/{MAP.id('returns')}").json())
    assert (node.url, node.title, node.addressable) == ("http://tea.example/returns", "Returns and refunds", True)
    assert [segment.role for segment in node.segments] == ["heading", "text"]
    assert [(edge.expected_node_id, edge.inherited) for edge in node.edges] == [(MAP.id("account"), True)]


def test_large_response_is_sent_completely(http: httpx.Client) -> None:
    node = http.get(f"/v1/sites/{OTHER.site}/nodes/{OTHER.id('home')}").json()
    assert http.get(node["screenshot"]).content == LARGE_IMAGE


def test_request_body_is_read_in_one_piece_in_chunks_large_and_late(
    http: httpx.Client, service: RunningService
) -> None:
    """With the request, in chunks, longer than the forwarded limit, and late."""
    body = json.dumps({"url": MAP.nodes["returns"].url}).encode()
    long = json.dumps({"url": MAP.nodes["returns"].url, "structure": ["0" * 32] * 3_000}).encode()
    headers = {"content-type": "application/json"}

    def locate(content: bytes | Iterator[bytes]) -> Any:
        return http.post("/v1/sites/tea.example/locate", content=content, headers=headers).json()

    located = locate(body)
    assert located["node_id"] == MAP.id("returns")
    assert locate(iter([body[:9], body[9:]])) == located
    assert locate(long)["node_id"] == MAP.id("returns")
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as late:
        late.sendall(
            b"POST /v1/sites/tea.example/locate HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        late.sendall(body[:3])
        http.get("/healthz")
        late.sendall(body[3:])
        answer = b"".join(iter(lambda: late.recv(65_536), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == located


@contextmanager
def connected(service: RunningService, sent: bytes, address: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A connection from an address of this machine, over which something was sent."""
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30, source_address=(address, 0)) as client:
        client.sendall(sent)
        yield client


def status_of(client: socket.socket) -> int:
    return int(client.recv(12).split()[1])


def test_a_caller_whose_bodies_do_not_end_leaves_the_service_to_the_others(
    http: httpx.Client, service: RunningService
) -> None:
    most = Settings().serve.max_requests_per_caller
    # Whatever the caller says about its address.
    head = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: 10.0.0.%d\r\ncontent-length: 9\r\n\r\n{"
    with ExitStack() as stack:
        waiting = [stack.enter_context(connected(service, head % number, "127.0.0.2")) for number in range(most + 16)]
        refused, _, _ = select.select(waiting, [], [], 30)
        while len(refused) < 16:
            refused, _, _ = select.select(waiting, [], [], 30)
        assert {status_of(client) for client in refused} == {429}
        assert len(refused) == 16
        for _ in range(3):
            assert http.post("/v1/sites/tea.example/search", json={"query": "cards", "k": 1}).status_code == 200


def test_heads_and_hosts_are_checked_by_the_service_itself(service: RunningService) -> None:
    with connected(service, b"GET / HTTP/1.1\r\nhost: localhost\r\na: " + b"a" * 70_000) as client:
        assert status_of(client) == 431
    for path in (b"/", b"/v1/sites", b"/v1/sites/", b"/metrics", b"/readyz", b"/openapi.json", b"/mcp", b"/nothing"):
        with connected(service, b"GET %s HTTP/1.1\r\nhost: evil.example\r\n\r\n" % path) as client:
            assert status_of(client) == 421


def test_a_screenshot_is_sent_once(http: httpx.Client) -> None:
    node = http.get(f"/v1/sites/tea.example/nodes/{MAP.id('home')}").json()
    first = http.get(node["screenshot"])
    assert (first.content, first.headers["content-type"]) == (IMAGE, "image/jpeg")
    assert "immutable" in first.headers["cache-control"]
    again = http.get(node["screenshot"], headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    unversioned = http.get(f"/v1/sites/tea.example/nodes/{MAP.id('home')}/screenshot")
    assert "no-cache" in unversioned.headers["cache-control"]
    assert problem(http.get(f"/v1/sites/tea.example/nodes/{MAP.id('cards')}/screenshot")) == (404, "not-found")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("how long do I have to give an order back", "returns"),
        ("add a new credit card to pay with", "cards"),
        ("change where my parcels are delivered to", "account"),
    ],
)
def test_a_query_finds_its_state_and_the_matching_text(http: httpx.Client, query: str, name: str) -> None:
    hits = http.post("/v1/sites/tea.example/search", json={"query": query, "k": 3}).json()["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert hits[0]["node_id"] == MAP.id(name)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert hits[0]["matched"]["text"]
    assert hits[0]["matched"]["segments"]


def test_a_query_on_all_sites_gives_one_ranking(http: httpx.Client) -> None:
    answer = http.post("/v1/search", json={"query": "send an order back", "k": 4}).json()
    assert [(hit["rank"], hit["site"]) for hit in answer["hits"][:2]] == [(1, "127.0.0.1:8000"), (2, "tea.example")]
    assert {hit["node_id"] for hit in answer["hits"][:2]} == {MAP.id("returns"), OTHER.id("returns")}
    assert len(answer["hits"]) == 4
    assert answer["skipped"] == {}


def test_a_page_is_located(http: httpx.Client) -> None:
    def locate(**seen: object) -> tuple[str, str]:
        answer = http.post("/v1/sites/tea.example/locate", json=seen).json()
        return answer["node_id"], answer["rule"]

    cards = MAP.nodes["cards"]
    assert locate(url=cards.url, structure=list(cards.structure)) == (cards.id, "exact")
    assert locate(url=f"{MAP.nodes['returns'].url}?utm_source=mail") == (MAP.id("returns"), "url")
    assert locate(url="http://tea.example/nowhere") == (None, "none")


def test_a_path_is_found(http: httpx.Client) -> None:
    body = {"from": MAP.id("home"), "to": MAP.id("cards"), "allow_goto": False}
    way = http.post("/v1/sites/tea.example/path", json=body).json()
    assert [step["action"]["name"] for step in way["steps"]] == ["Account", "Cards"]
    assert [step["expected_node_id"] for step in way["steps"]] == [MAP.id("account"), MAP.id("cards")]
    from_anywhere = http.post("/v1/sites/tea.example/path", json={"to": MAP.id("cards")}).json()
    assert [step["action"]["kind"] for step in from_anywhere["steps"]] == ["goto", "click"]


def test_a_step_that_failed_can_be_avoided(service: RunningService) -> None:
    with ServiceMap(service.url) as maps:
        first = maps.path(MAP.site, MAP.id("home"), MAP.id("account"), allow_goto=False).steps
        assert [step.action.name for step in first] == ["Account"]
        failed = AvoidedStep(source=MAP.id("home"), action=first[0].action)
        detour = maps.path(MAP.site, MAP.id("home"), MAP.id("account"), allow_goto=False, avoid=[failed]).steps
        assert [(step.action.name, step.inherited) for step in detour] == [("Returns", False), ("Account", True)]


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/v1/nowhere", None, (404, "not-found")),
        ("GET", "/v1/sites/unknown.example", None, (404, "not-found")),
        ("GET", "/v1/sites/%2e%2e", None, (422, "invalid-input")),
        ("GET", "/v1/sites/tea", None, (404, "not-found")),
        ("GET", "/v1/sites/tea.example/nodes/" + "0" * 32, None, (404, "not-found")),
        ("GET", "/v1/sites/tea.example/nodes/..%2f..", None, (404, "not-found")),
        ("GET", "/v1/sites/tea.example/nodes/" + "0" * 65, None, (422, "invalid-input")),
        ("DELETE", "/v1/sites", None, (405, "")),
        ("POST", "/v1/sites/unknown.example/search", {"query": "x"}, (404, "not-found")),
        ("POST", "/v1/sites/tea.example/search", {}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": ""}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": " \n"}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": "x" * 2_001}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": "x", "k": 0}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": "x", "k": 101}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": "x", "unknown": 1}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/search", {"query": "\ud800"}, (422, "invalid-input")),
        ("POST", "/v1/search", {"query": " "}, (422, "invalid-input")),
        ("POST", "/v1/sites/tea.example/locate", {"url": "http://[broken"}, (422, "invalid-input")),
        (
            "POST",
            "/v1/sites/tea.example/locate",
            {"url": "x", "structure": ["no hash"]},
            (422, "invalid-input"),
        ),
        ("POST", "/v1/sites/tea.example/path", {"to": "0" * 32}, (404, "not-found")),
        ("POST", "/v1/sites/tea.example/path", {"from": "0" * 32, "to": MAP.id("home")}, (404, "not-found")),
        (
            "POST",
            "/v1/sites/tea.example/path",
            {"from": MAP.id("account"), "to": MAP.id("home"), "allow_goto": False},
            (404, "no-path"),
        ),
    ],
)
def test_request_that_cannot_be_answered_is_a_problem_response(
    http: httpx.Client, method: str, path: str, body: object, expected: tuple[int, str]
) -> None:
    content = None if body is None else json.dumps(body)
    response = http.request(method, path, content=content, headers={"content-type": "application/json"})
    assert problem(response) == expected


@pytest.mark.parametrize("content", [b"", b"{", b'"text"', b"\xff", b"x" * 2_000_000], ids=len)
def test_invalid_body_is_a_problem_response(http: httpx.Client, content: bytes) -> None:
    response = http.post("/v1/search", content=content, headers={"content-type": "application/json"})
    assert problem(response)[0] in {400, 413, 422}
    assert http.get("/healthz").is_success


def test_the_api_description_is_valid_and_names_every_call(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    validate(document)
    assert set(document["paths"]) == {
        "/healthz",
        "/readyz",
        "/v1/fingerprint.js",
        "/v1/navigate",
        "/v1/search/batch",
        "/v1/sites/{site}/feedback",
        "/v1/sites",
        "/v1/sites/{site}",
        "/v1/sites/{site}/nodes/{node_id}",
        "/v1/sites/{site}/nodes/{node_id}/screenshot",
        "/v1/cards",
        "/v1/progress",
        "/v1/sites/{site}/nodes/{node_id}/captures/{kind}",
        "/v1/sites/{site}/graph",
        "/v1/sites/{site}/changes",
        "/v1/sites/{site}/versions/{version}/nodes/{node_id}/screenshot",
        "/v1/sites/{site}/thumbnail",
        "/v1/sites/{site}/nodes/{node_id}/thumbnail",
        "/v1/sites/{site}/nodes/{node_id}/elements",
        "/v1/search",
        "/v1/sites/{site}/search",
        "/v1/sites/{site}/locate",
        "/v1/sites/{site}/path",
        "/v1/sites/{site}/tools",
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]


def test_service_and_store_give_equal_answers(service: RunningService, store: Path) -> None:
    with Waygraph(service.url) as remote, Waygraph(store) as local:
        for ask in (
            lambda maps: maps.sites(),
            lambda maps: maps.site("tea.example"),
            lambda maps: maps.search("tea.example", "where do I add a card", 4),
            lambda maps: maps.search(None, "where do I add a card", 5),
            lambda maps: maps.locate("tea.example", MAP.nodes["cards"].url, list(MAP.nodes["cards"].structure)),
            lambda maps: maps.locate("tea.example", MAP.nodes["account"].url),
            lambda maps: maps.path("tea.example", MAP.id("home"), MAP.id("cards")),
            lambda maps: maps.path("tea.example", None, MAP.id("cards")),
            lambda maps: maps.path("tea.example", MAP.id("home"), MAP.id("cards"), others=2),
            lambda maps: maps.navigate("tea.example", "where do I add a card", select="rule"),
            lambda maps: maps.search_batch("tea.example", ["cards", "send it back"], 2),
            lambda maps: maps.node("tea.example", MAP.id("account")),
            lambda maps: maps.node("tea.example", MAP.id("account")[:12]),
            lambda maps: maps.screenshot("tea.example", MAP.id("home")),
        ):
            assert ask(remote) == ask(local)


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        (NotFound, lambda maps: maps.node("tea.example", "0" * 32)),
        (NotFound, lambda maps: maps.screenshot("tea.example", MAP.id("cards"))),
        (NoPath, lambda maps: maps.path("tea.example", MAP.id("account"), MAP.id("home"), allow_goto=False)),
        (InvalidInput, lambda maps: maps.search("tea.example", " ", 3)),
        (InvalidInput, lambda maps: maps.search("tea.example", "x", 1_000)),
    ],
)
def test_service_and_store_raise_equal_errors(
    service: RunningService, store: Path, kind: type[WaygraphError], ask: Any
) -> None:
    messages = []
    for place in (service.url, store):
        with Waygraph(place) as maps, pytest.raises(kind) as raised:
            ask(maps)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_only_the_store_says_what_else_is_mapped(service: RunningService, store: Path) -> None:
    """A caller of a service may have access to some of its sites."""
    for place in (service.url, store):
        with Waygraph(place) as maps, pytest.raises(NotFound, match=r"unknown\.example") as raised:
            maps.site("unknown.example")
        assert (str(store) in str(raised.value)) == (place == store) == (MAP.site in str(raised.value))


def test_a_map_of_another_encoder_is_refused_and_others_still_answer(
    http: httpx.Client, store: Path, encoder: Encoder
) -> None:
    opened = Store.open(str(store))
    strange = SmallMap("strange.example")
    draft = strange.draft(encoder, opened.blobs)
    opened.publish(replace(draft, encoder=replace(draft.encoder, fingerprint="another")))
    try:
        wait_for(http, "/v1/sites", lambda sites: len(sites) == 3)
        response = http.post("/v1/sites/strange.example/search", json={"query": "cards"})
        assert problem(response) == (409, "encoder-mismatch")
        everywhere = http.post("/v1/search", json={"query": "cards", "k": 20}).json()
        assert {hit["site"] for hit in everywhere["hits"]} == {MAP.site, OTHER.site}
        assert list(everywhere["skipped"]) == ["strange.example"]
        with ServiceMap(str(http.base_url)) as maps, pytest.raises(EncoderMismatch):
            maps.search("strange.example", "cards", 3)
    finally:
        opened.remove("strange.example")
    wait_for(http, "/v1/sites", lambda sites: len(sites) == 2)
    assert problem(http.get("/v1/sites/strange.example")) == (404, "not-found")


def test_new_version_is_served_without_a_restart_and_never_mixed_with_the_old_one(
    http: httpx.Client, store: Path, encoder: Encoder
) -> None:
    opened = Store.open(str(store))
    site = "swap.example"
    small = SmallMap(site)
    opened.publish(small.draft(encoder, opened.blobs))
    wait_for(http, "/v1/sites", lambda sites: len(sites) == 3)
    question = {"query": "pay with a credit card", "k": 10}
    try:
        states = {1: set(small.nodes)}
        for without in (("cards",), (), ("cards", "returns")):
            version = opened.publish(small.draft(encoder, opened.blobs, without=without))
            states[version] = set(small.nodes).difference(without)
            answered = 0
            while answered < version:
                answer = http.post(f"/v1/sites/{site}/search", json=question).json()
                answered = answer["version"]
                assert {hit["node_id"] for hit in answer["hits"]} == {small.id(name) for name in states[answered]}
    finally:
        opened.remove(site)


def test_a_second_service_on_the_port_is_refused_before_anything_is_started(
    service: RunningService, store: Path
) -> None:
    port = httpx.URL(service.url).port
    with pytest.raises(ServiceError, match="is in use") as refused:
        run(Settings(store=str(store), serve={"port": port}))
    assert "--port" in refused.value.hint
    assert "ray" not in sys.modules or not sys.modules["ray"].is_initialized()


def test_service_beyond_loopback_requires_a_key(store: Path) -> None:
    with pytest.raises(ServiceError, match="without an API key"):
        run(Settings(store=str(store), serve={"host": "0.0.0.0", "port": 0}))  # noqa: S104
    with pytest.raises(ServiceError, match="without an API key"):
        application({})


def test_folder_that_is_not_a_store_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("not a map")
    with pytest.raises(StoreError):
        run(Settings(store=str(tmp_path), serve={"port": 0}))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
