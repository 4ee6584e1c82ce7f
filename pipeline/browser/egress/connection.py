"""What happens to one connection of the browser? Requests are judged and sent on, tunnels are passed through."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from pipeline.browser.egress.addresses import Refused, Unresolved
from pipeline.browser.egress.messages import Malformed, MessageFilter, Request

log = logging.getLogger(__name__)

MOST_HEAD_BYTES = 256 << 10
MOST_BODY_BYTES = 64 << 20
_MOST_WAITING_BYTES = 1 << 20
_TLS_HANDSHAKE = 0x16


class Exits(Protocol):
    """What a connection asks of the proxy that it belongs to."""

    def opened(self, connection: BrowserConnection) -> bool:
        """A connection was made; whether there is room for it."""

    def closed(self, connection: BrowserConnection) -> None:
        """It is gone."""

    def received(self, key: str, count: int) -> None:
        """So many bytes came from a host."""

    def stops(self, request: Request, url: str) -> bool:
        """Whether the guard's second wall stops a request."""

    def message_filter(self, url: str) -> MessageFilter | None:
        """What judges WebSocket messages to `url`; nothing when nothing is to be stopped."""

    def refused(self, url: str, key: str, reason: str) -> None:
        """A destination is not to be connected to."""

    def failed(self, key: str, reason: str) -> None:
        """A destination could not be connected to."""

    async def connect(
        self, host: str, port: int, factory: Callable[[], ServerConnection], *, tunnel: bool
    ) -> ServerConnection:
        """Connect to a host at a checked address, or through the user's proxy."""

    def head(self, request: Request, url: str, *, tunnel: bool) -> bytes:
        """Head of a request as the next hop wants it."""


class ServerConnection(asyncio.Protocol):
    """The other side: what it sends goes to the browser as it is."""

    def __init__(self, browser: BrowserConnection, key: str) -> None:
        self._browser = browser
        self.key = key
        self.transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """Whether something can still be sent."""
        return self.transport is not None and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.Protocol."""
        self.transport = cast("asyncio.Transport", transport)  # what create_connection makes; see below

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        self._browser.from_server(self, data)

    def eof_received(self) -> bool:
        """Part of asyncio.Protocol."""
        return self._browser.server_ended(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Part of asyncio.Protocol."""
        self._browser.server_gone(self)

    def pause_writing(self) -> None:
        """Part of asyncio.Protocol: the server reads more slowly than the browser sends."""
        self._browser.hold_reading(held=True)

    def resume_writing(self) -> None:
        """Part of asyncio.Protocol."""
        self._browser.hold_reading(held=False)


class BrowserConnection(asyncio.Protocol):
    """One connection of the browser to the proxy.

    Requests are taken in whole (they are small), answers are passed on as they come: where they end is the browser's
    business. A request to another host than the one before gets a new connection.
    """

    def __init__(self, exits: Exits) -> None:
        self._exits = exits
        self._transport: asyncio.Transport | None = None
        self._server: ServerConnection | None = None
        self._parser = HttpRequestParser(self)
        self._requests: deque[Request] = deque()
        self._busy: asyncio.Task[None] | None = None
        self._waiting = bytearray()  # what came while a tunnel was being made
        self._tunnel = ""  # "host:port" once there is one
        self._raw = False  # everything is passed through
        self._filter: MessageFilter | None = None
        self._reset()
        self.seen = time.monotonic()
        self.outstanding = False
        """A request was sent on, and nothing of an answer has come."""

    # ---- asyncio.Protocol, from the browser ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.Protocol."""
        # What create_server makes. That of uvloop, which Ray chooses in its workers, is no subclass.
        self._transport = cast("asyncio.Transport", transport)
        if not self._exits.opened(self):
            log.warning("egress/too_many_connections")
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Part of asyncio.Protocol."""
        self._exits.closed(self)
        self._transport = None
        if self._busy is not None:
            self._busy.cancel()
        self._drop_server()

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        self.seen = time.monotonic()
        try:
            if self._raw:
                self._to_server(data)
            elif self._filter is not None:
                self._to_server(self._filter.feed(data))
            elif self._busy is not None:
                self._keep_waiting(data)
            elif self._tunnel and self._server and not self._parsing and data[0] == _TLS_HANDSHAKE:
                self._raw = True
                self._to_server(data)
            else:
                self._parse(data)
        except Malformed as problem:
            log.info("egress/malformed %s", problem)
            self.close()

    def eof_received(self) -> bool:
        """Part of asyncio.Protocol: a tunnel may be closed on one side, otherwise an answer may still be waited for."""
        if self._raw and self._server and self._server.is_open:
            assert self._server.transport is not None  # noqa: S101 - it is open
            if self._server.transport.can_write_eof():
                self._server.transport.write_eof()
            return True
        return self.outstanding or self._busy is not None

    def pause_writing(self) -> None:
        """Part of asyncio.Protocol: the browser reads more slowly than the server sends."""
        if self._server and self._server.transport:
            self._server.transport.pause_reading()

    def resume_writing(self) -> None:
        """Part of asyncio.Protocol."""
        if self._server and self._server.is_open and self._server.transport:
            self._server.transport.resume_reading()

    # ---- from the server -------------------------------------------------------------------------------------------

    def from_server(self, server: ServerConnection, data: bytes) -> None:
        """Pass on a piece of an answer."""
        self.seen = time.monotonic()
        self.outstanding = False
        self._exits.received(server.key, len(data))
        if server is self._server and self._transport is not None:
            self._transport.write(data)

    def server_ended(self, server: ServerConnection) -> bool:
        """The server sends no more; True keeps the other direction open."""
        if server is not self._server or self._transport is None:
            return False
        if self._raw and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
            return True
        return False

    def server_gone(self, server: ServerConnection) -> None:
        """The connection to the server is closed: so is the browser's, after what is still to be written."""
        if server is self._server:
            self._server = None
            self.close()

    def hold_reading(self, *, held: bool) -> None:
        """Read no more from the browser for now, or go on."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if held else self._transport.resume_reading)()

    def close(self) -> None:
        """Close both sides; without an answer, browsers see a failed request."""
        if self._transport is not None:
            self._transport.close()
        self._drop_server()

    def abort(self) -> None:
        """Close both sides without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()
        if self._server is not None and self._server.transport is not None:
            self._server.transport.abort()

    @property
    def key(self) -> str:
        """`host:port` that it is connected to, empty when it is not."""
        return self._server.key if self._server else ""

    # ---- httptools callbacks ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Part of httptools' protocol."""
        self._reset()
        self._parsing = True

    def on_url(self, url: bytes) -> None:
        """Part of httptools' protocol."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of httptools' protocol."""
        self._size += len(name) + len(value)
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        """Part of httptools' protocol."""
        self._body += body

    def on_message_complete(self) -> None:
        """Part of httptools' protocol."""
        self._requests.append(
            Request(self._parser.get_method(), bytes(self._target), tuple(self._headers), bytes(self._body))
        )
        self._reset()

    def _reset(self) -> None:
        self._target = bytearray()
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._size = 0
        self._parsing = False

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._waiting += data[upgrade.args[0] :]
        except HttpParserError as error:
            raise Malformed(str(error)) from error
        if self._size + len(self._target) > MOST_HEAD_BYTES or len(self._body) > MOST_BODY_BYTES:
            raise Malformed("a request that is too large")
        self._next()

    # ---- requests --------------------------------------------------------------------------------------------------

    def _keep_waiting(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) > _MOST_WAITING_BYTES:
            raise Malformed("more than a request before its answer")

    def _next(self) -> None:
        """Send the next request on: at once when its server is connected, else as soon as it is."""
        while self._requests and self._busy is None and self._transport is not None:
            request = self._requests.popleft()
            host, port = self._destination(request)
            key = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            url = self._url(request, key)
            if request.method != b"CONNECT" and self._exits.stops(request, url):
                self.close()
            elif request.method != b"CONNECT" and self._server and self._server.is_open and self._server.key == key:
                self._send(request, url)
            elif self._tunnel:
                raise Malformed("a request in a tunnel that is closed")
            else:
                self._busy = asyncio.ensure_future(self._connect(request, host, port, key, url))

    def _destination(self, request: Request) -> tuple[str, int]:
        if self._tunnel:
            host, _, port = self._tunnel.rpartition(":")
            return host.strip("[]"), int(port)
        return request.destination()

    def _url(self, request: Request, key: str) -> str:
        if request.method == b"CONNECT":
            return f"https://{key}/"
        scheme = "ws" if request.opens_websocket else "http"
        return f"{scheme}://{key.removesuffix(':80')}{request.path().decode('latin-1')}"

    async def _connect(self, request: Request, host: str, port: int, key: str, url: str) -> None:
        self._drop_server()
        tunnel = request.method == b"CONNECT"
        try:
            server = await self._exits.connect(host, port, lambda: ServerConnection(self, key), tunnel=tunnel)
        except (Refused, Unresolved, OSError) as error:
            if isinstance(error, Refused):
                self._exits.refused(url, key, str(error))
            else:
                self._exits.failed(key, _in_words(error))
            if tunnel and self._transport is not None:
                self._transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.close()
            return
        finally:
            self._busy = None
        if self._transport is None:
            if server.transport:
                server.transport.abort()
            return
        self._server = server
        try:
            if tunnel:
                self._tunnel = key
                self._parser = HttpRequestParser(self)
                self._transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                self._send(request, url)
            self._go_on()
        except Malformed as problem:
            log.info("egress/malformed %s", problem)
            self.close()

    def _go_on(self) -> None:
        """What came while a connection was being made."""
        waiting = bytes(self._waiting)
        self._waiting.clear()
        if waiting:
            self.data_received(waiting)
        self._next()

    def _send(self, request: Request, url: str) -> None:
        self.outstanding = True
        self._to_server(self._exits.head(request, url, tunnel=bool(self._tunnel)) + request.body)
        if request.opens_websocket:
            self._filter = self._exits.message_filter(url)
            self._raw = self._filter is None

    def _to_server(self, data: bytes) -> None:
        if data and self._server and self._server.is_open and self._server.transport:
            self._server.transport.write(data)

    def _drop_server(self) -> None:
        server, self._server = self._server, None
        if server is not None and server.transport is not None:
            server.transport.close()


def _in_words(error: Exception) -> str:
    if isinstance(error, Unresolved):
        return "its name cannot be resolved (DNS)"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, ConnectionRefusedError):
        return "it refuses the connection"
    return f"it cannot be connected to ({error})"
