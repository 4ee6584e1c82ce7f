"""A threaded HTTP server on loopback around one `Request -> Response` function."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_BODY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """A request: `target` as sent, `path` decoded and without the query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """The decoded path."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        """Query parameters; the last value wins."""
        return {key: values[-1] for key, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def form(self) -> dict[str, str]:
        """Fields of an URL-encoded body; the last value wins."""
        return {key: values[-1] for key, values in parse_qs(self.body.decode("utf-8", "replace")).items()}


@dataclass(frozen=True, slots=True)
class Response:
    """A response. `drop` closes the connection without an answer."""

    body: str | bytes = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False


class LocalServer:
    """Serve a function on a loopback port, with one thread per connection, until closed. A context manager.

    Parameters
    ----------
    answer
        Returns the response of a request.
    port
        Port to listen on; 0 for any free one.
    host
        Address to listen on.
    """

    def __init__(self, answer: Callable[[Request], Response], *, port: int = 0, host: str = "127.0.0.1") -> None:
        self._answer = answer
        self._address = (host, port)
        self._lock = threading.Lock()
        self._log: list[tuple[str, str]] = []
        self._open: set[socket.socket] = set()
        self._httpd: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """`http://host:port/` of the running server."""
        if self._httpd is None:
            raise RuntimeError("The server is not running: use it as a context manager.")
        host, port = self._httpd.server_address[:2]
        return f"http://{host!s}:{port}/"

    @property
    def requests(self) -> list[tuple[str, str]]:
        """A copy of the log of (method, target)."""
        with self._lock:
            return list(self._log)

    @property
    def mutations(self) -> int:
        """Number of received requests with a state-changing method."""
        return sum(method not in SAFE_METHODS for method, _ in self.requests)

    def start(self) -> Self:
        """Bind and serve in the background. Raise OSError if the port is in use."""
        self._httpd = _Server(self._address, type("Handler", (_Handler,), {"site": self}))
        # With the default poll interval every close takes half a second.
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.02,), name="local-site", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening, close idle keep-alive connections and wait for the handler threads."""
        if self._httpd is None or self._thread is None:
            return
        self._httpd.shutdown()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):  # the client may have closed first
                connection.shutdown(socket.SHUT_RDWR)
        self._httpd.server_close()
        self._thread.join()
        self._httpd = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def respond(self, request: Request) -> Response:
        """Log a request and answer it."""
        with self._lock:
            self._log.append((request.method, request.target))
        return self._answer(request)

    def track(self, connection: socket.socket, *, opened: bool) -> None:
        """Record an opened or closed connection, so that `close` can close the open ones."""
        with self._lock:
            (self._open.add if opened else self._open.discard)(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close() joins the handler threads
    block_on_close = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        # A browser that closes during an answer is not an error of the site.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    site: LocalServer

    def setup(self) -> None:
        super().setup()
        self.site.track(self.connection, opened=True)

    def finish(self) -> None:
        self.site.track(self.connection, opened=False)
        super().finish()

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            response = Response("Too large.", status=413, content_type="text/plain")
            self.close_connection = True
        else:
            body = self.rfile.read(length)
            response = self.site.respond(Request(self.command, self.path, dict(self.headers.items()), body))
        if response.drop:
            self.close_connection = True
        else:
            # A single write: two would wait for each other's acknowledgement.
            self.wfile.write(_encode(response, with_body=self.command != "HEAD"))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Print nothing: requests are recorded in `requests`."""


def _encode(response: Response, *, with_body: bool) -> bytes:
    body = response.body.encode() if isinstance(response.body, str) else response.body
    phrase = HTTPStatus(response.status).phrase if response.status in set(HTTPStatus) else "Unknown"
    headers = {"Content-Type": response.content_type, "Content-Length": str(len(body)), **response.headers}
    if response.status in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
        headers.pop("Content-Length")
        with_body = False
    lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{key}: {value}" for key, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body if with_body else b"")
