"""A Qdrant server for tests where none can run: the client's own in-process engine behind the HTTP API that we use.

What goes over the wire is what the real client sends. The engine is not Qdrant's, so neither speed nor gRPC are tested.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

#: Called with the number of the write; returns a status to fail with, "drop" to break the connection, or None.
Fault = Callable[[int], int | str | None]


class FakeServer:
    """State of the server: its engine, and the requests that it received."""

    def __init__(self, api_key: str) -> None:
        self.engine = QdrantClient(":memory:")
        self.api_key = api_key
        self.lock = threading.Lock()
        self.writes = 0
        self.indexes: dict[str, dict[str, Any]] = {}
        self.metadata: dict[str, Any] = {}
        self.queries: list[dict[str, Any]] = []
        self.fault: Fault = lambda _: None
        self.url = ""


@contextmanager
def qdrant_over_http(api_key: str = "") -> Iterator[FakeServer]:
    """Start a server on a free port of this machine."""
    fake = FakeServer(api_key)

    class Handler(_Handler):
        server_state = fake

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        fake.engine.close()


class _Handler(BaseHTTPRequestHandler):
    server_state: FakeServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _answer(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if state.api_key and self.headers.get("api-key") != state.api_key:
            self._send(401, {"status": {"error": "Invalid API key"}})
            return
        _, _, name, *rest = self.path.partition("?")[0].split("/")
        with state.lock:
            if self.command == "PUT" and rest == ["points"]:
                state.writes += 1
                if (fault := state.fault(state.writes)) == "drop":
                    self.close_connection = True
                    self.connection.close()
                    return
                if fault is not None:
                    self._send(int(fault), {"status": {"error": "on purpose"}})
                    return
            result = self._result(state, name, rest, body)
        self._send(200, {"result": result, "status": "ok", "time": 0.0})

    def _result(self, state: FakeServer, name: str, rest: list[str], body: dict[str, Any]) -> Any:
        engine = state.engine
        match self.command, rest:
            case "GET", ["exists"]:
                return {"exists": engine.collection_exists(name)}
            case "GET", []:
                info = engine.get_collection(name).model_dump(mode="json")
                info["config"]["metadata"] = state.metadata
                info["payload_schema"] = state.indexes
                return info
            case "PUT", []:
                state.metadata = body.get("metadata") or {}
                vectors = TypeAdapter(models.VectorsConfig).validate_python(body["vectors"])
                return engine.create_collection(name, vectors)
            case "PUT", ["index"]:
                state.indexes[body["field_name"]] = {"data_type": "keyword", "points": 0, "params": _params(body)}
                return _DONE
            case "PUT", ["points"]:
                engine.upsert(name, models.PointsList.model_validate(body).points)
                return _DONE
            case "POST", ["points", "count"]:
                wanted = models.CountRequest.model_validate(body)
                return {"count": engine.count(name, wanted.filter).count}
            case "POST", ["points", "delete"]:
                engine.delete(name, TypeAdapter(models.PointsSelector).validate_python(body))
                return _DONE
            case "POST", ["points", "query"]:
                state.queries.append(body)
                return self._query(engine, name, models.QueryRequest.model_validate(_without_params(body)))
        raise AssertionError(f"not expected: {self.command} {self.path}")

    @staticmethod
    def _query(engine: QdrantClient, name: str, wanted: models.QueryRequest) -> dict[str, Any]:
        found = engine.query_points(
            name,
            query=wanted.query,
            using=wanted.using,
            prefetch=wanted.prefetch,
            query_filter=wanted.filter,
            limit=wanted.limit,
            with_payload=wanted.with_payload,
        )
        return found.model_dump(mode="json")

    def _send(self, status: int, document: dict[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


_DONE = {"operation_id": 0, "status": "completed"}


def _params(body: dict[str, Any]) -> Any:
    schema = body.get("field_schema")
    return schema if isinstance(schema, dict) else None


def _without_params(body: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in body.items() if key != "params"}
    if isinstance(kept.get("prefetch"), dict):
        kept["prefetch"] = {key: value for key, value in kept["prefetch"].items() if key != "params"}
    return kept
