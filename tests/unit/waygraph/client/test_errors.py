"""A service client raises the service's errors as the exceptions that a store raises."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from waygraph.client.service import ServiceMap
from waygraph.core.errors import (
    EncoderMismatch,
    InvalidInput,
    NoPath,
    NotFound,
    ServiceError,
    StoreError,
    Unauthorized,
    WaygraphError,
    WeightsMissing,
)
from waygraph.core.schemas import MAX_BODY_BYTES, MAX_STRUCTURE, Problem, problem_type

SITE = "shop.example:8080"
PROBLEM = "application/problem+json"


class Service(ThreadingHTTPServer):
    """Gives one prepared answer to every request and remembers what was asked."""

    def __init__(self, status: int, body: bytes, content_type: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = (status, body, content_type)
        self.asked: list[tuple[str, str, str, bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((self.command, self.path, self.headers.get("authorization", ""), body))
        status, answer, content_type = self.server.answer
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def service(status: int, body: bytes, content_type: str = "application/json") -> Iterator[Service]:
    with Service(status, body, content_type) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def asking(server: Service, api_key: str | None = None) -> Iterator[ServiceMap]:
    maps = ServiceMap(server.url, api_key)
    try:
        yield maps
    finally:
        maps.close()


@pytest.mark.parametrize(
    "kind", [NotFound, NoPath, EncoderMismatch, StoreError, WeightsMissing, Unauthorized, InvalidInput]
)
def test_a_problem_becomes_the_exception_it_was_made_of(kind: type[WaygraphError]) -> None:
    problem = Problem(
        type=problem_type(kind.slug), title=kind.title, status=kind.http_status, detail="What.", hint="Do."
    )
    with (
        service(kind.http_status, problem.model_dump_json().encode(), PROBLEM) as server,
        asking(server) as maps,
        pytest.raises(kind) as raised,
    ):
        maps.site(SITE)
    assert type(raised.value) is kind
    assert (raised.value.message, raised.value.hint) == ("What.", "Do.")


def test_a_problem_with_only_a_status_is_still_typed() -> None:
    problem = Problem(type="about:blank", title="Content Too Large", status=413, detail="Too large.")
    with (
        service(413, problem.model_dump_json().encode(), PROBLEM) as server,
        asking(server) as maps,
        pytest.raises(InvalidInput),
    ):
        maps.search(SITE, "returns", 3)


@pytest.mark.parametrize("status", [301, 404, 500, 502, 503])
def test_the_answer_of_another_server_is_a_service_error_that_names_the_status(status: int) -> None:
    with (
        service(status, b"<h1>Gateway</h1>", "text/html") as server,
        asking(server) as maps,
        pytest.raises(ServiceError, match=str(status)),
    ):
        maps.sites()


@pytest.mark.parametrize("body", [b"<h1>Hello</h1>", b"{}", b"null", b'[{"site": 1}]'])
def test_a_server_that_is_not_a_waygraph_service_is_a_service_error(body: bytes) -> None:
    with service(200, body) as server, asking(server) as maps:
        with pytest.raises(ServiceError, match="did not answer as a waygraph service"):
            maps.sites()
        with pytest.raises(ServiceError, match="did not answer as a waygraph service"):
            maps.site(SITE)


def test_a_refused_connection_says_how_to_start_the_service() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    maps = ServiceMap(f"http://127.0.0.1:{port}")
    with pytest.raises(ServiceError, match="Nothing answers") as refused:
        maps.sites()
    assert "waygraph serve" in refused.value.hint
    maps.close()


@pytest.mark.parametrize("url", ["maps/", "ftp://host/", "127.0.0.1:8321", "http://", "http://[::1"])
def test_an_address_without_http_is_invalid_input(url: str) -> None:
    with pytest.raises(InvalidInput):
        ServiceMap(url)


def test_an_invalid_request_is_rejected_before_it_is_sent() -> None:
    with service(200, b"{}") as server, asking(server) as maps:
        with pytest.raises(InvalidInput, match="query"):
            maps.search(SITE, "", 3)
        with pytest.raises(InvalidInput, match="k"):
            maps.search(SITE, "returns", 0)
        with pytest.raises(InvalidInput, match="structure"):
            maps.locate(SITE, "http://shop.example/", ["not a hash"])
        for piece in ("..", ".", ""):
            with pytest.raises(InvalidInput):
                maps.site(piece)
    assert server.asked == []


def test_names_are_escaped_in_the_request_path() -> None:
    with service(404, b"") as server, asking(server) as maps, pytest.raises(ServiceError):
        maps.node("a/b?c#d", "../x")
    assert server.asked[0][1] == "/v1/sites/a%2Fb%3Fc%23d/nodes/..%2Fx"


def test_the_key_is_sent_and_requests_have_the_documented_shape() -> None:
    with service(200, b'{"hits": []}') as server, asking(server, "secret") as maps:
        assert maps.search(SITE, "returns", 3).hits == []
        maps.search(None, "returns", 3)
        with pytest.raises(ServiceError):
            maps.path(SITE, None, "b" * 32, allow_goto=False)
    (_, one, key, _), (_, everywhere, _, _), (method, path, _, body) = server.asked
    assert key == "Bearer secret"
    assert (one, everywhere) == (f"/v1/sites/{SITE}/search", "/v1/search")
    assert (method, path) == ("POST", f"/v1/sites/{SITE}/path")
    assert json.loads(body) == {"to": "b" * 32, "allow_goto": False}


def test_a_structure_that_is_too_large_to_send_is_left_out() -> None:
    unknown = b'{"node_id": null, "rule": "none", "confidence": 0, "version": 1}'
    with service(200, unknown) as server, asking(server) as maps:
        maps.locate(SITE, "http://shop.example/", ["0" * 32] * (MAX_STRUCTURE + 1))
    assert json.loads(server.asked[0][3]) == {"url": "http://shop.example/"}


@pytest.mark.parametrize(("hashes", "fits"), [(10_000, True), (20_000, False), (MAX_STRUCTURE, False)])
def test_features_are_sent_only_when_they_fit_into_a_request_with_the_structure(hashes: int, fits: bool) -> None:
    unknown = b'{"node_id": null, "rule": "none", "confidence": 0, "version": 1}'
    structure = [f"{i:032x}" for i in range(hashes)]
    features = {f"{i:012x}": 1 for i in range(hashes)}
    url = "http://shop.example/".ljust(8_192, "\N{SNOWMAN}")
    with service(200, unknown) as server, asking(server) as maps:
        maps.locate(SITE, url, structure, features)
    body = server.asked[0][3]
    assert len(body) <= MAX_BODY_BYTES
    assert json.loads(body) == {"url": url, "structure": structure, **({"features": features} if fits else {})}
