"""One connection of the browser to the egress proxy: requests are checked and forwarded, TLS passes through tunnels."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from waygraph.pipeline.browser.egress.addresses import AddressRefused, NameUnresolved
from waygraph.pipeline.browser.egress.messages import MalformedTraffic, MessageFilter, ProxiedRequest
from waygraph.pipeline.browser.egress.problems import ConnectionProblem

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 256 << 10
MAX_BODY_BYTES = 64 << 20
_MAX_BUFFERED_BYTES = 1 << 20
_TLS_HANDSHAKE = 0x16


class ProxyHooks(Protocol):
    """Interface of the proxy to its connections."""

    def add_connection(self, connection: BrowserConnection) -> bool:
        """Register a new connection; False if there are too many."""

    def remove_connection(self, connection: BrowserConnection) -> None:
        """Unregister a closed connection."""

    def count_received(self, key: str, count: int) -> None:
        """Add `count` bytes to what `key` (`host:port`) sent."""

    def blocks(self, request: ProxiedRequest, url: str) -> bool:
        """Whether the request policy blocks a request."""

    def message_filter(self, url: str) -> MessageFilter | None:
        """Return the filter of WebSocket messages to `url`, or None if all pass."""

    def report_refused(self, url: str, key: str, reason: str) -> None:
        """Record a destination whose address is not allowed."""

    def report_problem(self, key: str, problem: ConnectionProblem) -> None:
        """Record why a destination could not be connected to."""

    async def connect(
        self, host: str, port: int, factory: Callable[[], ServerConnection], *, tunnel: bool
    ) -> ServerConnection:
        """Connect to a checked address of a host, or through the user's proxy."""

    def request_head(self, request: ProxiedRequest, url: str, *, tunnel: bool) -> bytes:
        """Serialise the head of a request for the next hop."""


class ServerConnection(asyncio.Protocol):
    """Connection to a server; its bytes go to the browser unchanged.

    Parameters
    ----------
    browser
        The connection that the bytes go to.
    key
        `host:port` of the server.
    """

    def __init__(self, browser: BrowserConnection, key: str) -> None:
        self._browser = browser
        self.key = key
        self.transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """Whether bytes can still be sent."""
        return self.transport is not None and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Implement asyncio.Protocol."""
        # create_connection makes a Transport; uvloop's is no subclass, see BrowserConnection.connection_made.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Implement asyncio.Protocol."""
        self._browser.on_server_data(self, data)

    def eof_received(self) -> bool:
        """Implement asyncio.Protocol."""
        return self._browser.on_server_eof(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Implement asyncio.Protocol."""
        self._browser.on_server_closed(self)

    def pause_writing(self) -> None:
        """Implement asyncio.Protocol: the server reads more slowly than the browser sends."""
        self._browser.pause_reading(paused=True)

    def resume_writing(self) -> None:
        """Implement asyncio.Protocol."""
        self._browser.pause_reading(paused=False)


class BrowserConnection(asyncio.Protocol):
    """Connection of the browser to the proxy.

    Requests are read completely before they are forwarded (they are small). Responses are forwarded as they arrive; the
    browser finds their ends. A request to another host than the one before gets a new server connection.

    Parameters
    ----------
    hooks
        The proxy that the connection belongs to.
    """

    def __init__(self, hooks: ProxyHooks) -> None:
        self._hooks = hooks
        self._transport: asyncio.Transport | None = None
        self._server: ServerConnection | None = None
        self._parser = HttpRequestParser(self)
        self._requests: deque[ProxiedRequest] = deque()
        self._connecting: asyncio.Task[None] | None = None
        self._buffered = bytearray()
        """Bytes that arrived while a connection was being made."""
        self._tunnel = ""
        """`host:port` of the open tunnel."""
        self._is_passthrough = False
        """Bytes of the browser are forwarded unread."""
        self._filter: MessageFilter | None = None
        self._reset()
        self.last_activity = time.monotonic()
        self.is_awaiting_response = False
        """A request was forwarded, and no byte of the response has arrived."""

    # ---- asyncio.Protocol, browser side ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Implement asyncio.Protocol."""
        # create_server makes a Transport. That of uvloop, which Ray uses in its workers, is no subclass.
        self._transport = cast("asyncio.Transport", transport)
        if not self._hooks.add_connection(self):
            log.warning("egress/too_many_connections")
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Implement asyncio.Protocol."""
        self._hooks.remove_connection(self)
        self._transport = None
        if self._connecting is not None:
            self._connecting.cancel()
        self._drop_server()

    def data_received(self, data: bytes) -> None:
        """Implement asyncio.Protocol."""
        self.last_activity = time.monotonic()
        try:
            if self._is_passthrough:
                self._write_to_server(data)
            elif self._filter is not None:
                self._write_to_server(self._filter.feed(data))
            elif self._connecting is not None:
                self._buffer(data)
            elif self._tunnel and self._server and not self._parsing and data[0] == _TLS_HANDSHAKE:
                self._is_passthrough = True
                self._write_to_server(data)
            else:
                self._parse(data)
        except MalformedTraffic as error:
            log.info("egress/malformed %s", error)
            self.close()

    def eof_received(self) -> bool:
        """Implement asyncio.Protocol: a tunnel may be half-closed; otherwise a response may still be outstanding."""
        if self._is_passthrough and self._server and self._server.is_open:
            assert self._server.transport is not None  # noqa: S101 - it is open
            if self._server.transport.can_write_eof():
                self._server.transport.write_eof()
            return True
        return self.is_awaiting_response or self._connecting is not None

    def pause_writing(self) -> None:
        """Implement asyncio.Protocol: the browser reads more slowly than the server sends."""
        if self._server and self._server.transport:
            self._server.transport.pause_reading()

    def resume_writing(self) -> None:
        """Implement asyncio.Protocol."""
        if self._server and self._server.is_open and self._server.transport:
            self._server.transport.resume_reading()

    # ---- server side -----------------------------------------------------------------------------------------------

    def on_server_data(self, server: ServerConnection, data: bytes) -> None:
        """Forward a part of a response to the browser."""
        self.last_activity = time.monotonic()
        self.is_awaiting_response = False
        self._hooks.count_received(server.key, len(data))
        if server is self._server and self._transport is not None:
            self._transport.write(data)

    def on_server_eof(self, server: ServerConnection) -> bool:
        """Handle the end of what the server sends; True keeps the other direction open."""
        if server is not self._server or self._transport is None:
            return False
        if self._is_passthrough and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
            return True
        return False

    def on_server_closed(self, server: ServerConnection) -> None:
        """Close the browser's side, after what is still buffered for it, when the server connection is closed."""
        if server is self._server:
            self._server = None
            self.close()

    def pause_reading(self, *, paused: bool) -> None:
        """Stop reading from the browser, or resume."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if paused else self._transport.resume_reading)()

    def close(self) -> None:
        """Close both sides; the browser reports a failed request if it got no response."""
        if self._transport is not None:
            self._transport.close()
        self._drop_server()

    def abort(self) -> None:
        """Close both sides at once, without sending what is buffered."""
        if self._transport is not None:
            self._transport.abort()
        if self._server is not None and self._server.transport is not None:
            self._server.transport.abort()

    @property
    def key(self) -> str:
        """`host:port` of the connected server, empty without one."""
        return self._server.key if self._server else ""

    # ---- httptools callbacks ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Implement httptools' protocol."""
        self._reset()
        self._parsing = True

    def on_url(self, url: bytes) -> None:
        """Implement httptools' protocol."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Implement httptools' protocol."""
        self._size += len(name) + len(value)
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        """Implement httptools' protocol."""
        self._body += body

    def on_message_complete(self) -> None:
        """Implement httptools' protocol."""
        self._requests.append(
            ProxiedRequest(self._parser.get_method(), bytes(self._target), tuple(self._headers), bytes(self._body))
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
            self._buffered += data[upgrade.args[0] :]
        except HttpParserError as error:
            raise MalformedTraffic(str(error)) from error
        if self._size + len(self._target) > MAX_HEAD_BYTES or len(self._body) > MAX_BODY_BYTES:
            raise MalformedTraffic("a request that is too large")
        self._forward_next()

    # ---- requests --------------------------------------------------------------------------------------------------

    def _buffer(self, data: bytes) -> None:
        self._buffered += data
        if len(self._buffered) > _MAX_BUFFERED_BYTES:
            raise MalformedTraffic("too many bytes after a request that has no response yet")

    def _forward_next(self) -> None:
        """Forward the next request: at once if its server is connected, otherwise after connecting."""
        while self._requests and self._connecting is None and self._transport is not None:
            request = self._requests.popleft()
            host, port = self._destination(request)
            key = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            url = self._url(request, key)
            if request.method != b"CONNECT" and self._hooks.blocks(request, url):
                self.close()
            elif request.method != b"CONNECT" and self._server and self._server.is_open and self._server.key == key:
                self._send(request, url)
            elif self._tunnel:
                raise MalformedTraffic("a request in a tunnel that is closed")
            else:
                self._connecting = asyncio.ensure_future(self._connect(request, host, port, key, url))

    def _destination(self, request: ProxiedRequest) -> tuple[str, int]:
        if self._tunnel:
            host, _, port = self._tunnel.rpartition(":")
            return host.strip("[]"), int(port)
        return request.destination()

    def _url(self, request: ProxiedRequest, key: str) -> str:
        if request.method == b"CONNECT":
            return f"https://{key}/"
        scheme = "ws" if request.opens_websocket else "http"
        return f"{scheme}://{key.removesuffix(':80')}{request.path().decode('latin-1')}"

    async def _connect(self, request: ProxiedRequest, host: str, port: int, key: str, url: str) -> None:
        self._drop_server()
        tunnel = request.method == b"CONNECT"
        try:
            server = await self._hooks.connect(host, port, lambda: ServerConnection(self, key), tunnel=tunnel)
        except (AddressRefused, NameUnresolved, OSError) as error:
            if isinstance(error, AddressRefused):
                self._hooks.report_refused(url, key, str(error))
            else:
                self._hooks.report_problem(key, ConnectionProblem.of(error))
            if tunnel and self._transport is not None:
                self._transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.close()
            return
        finally:
            self._connecting = None
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
            self._process_buffered()
        except MalformedTraffic as error:
            log.info("egress/malformed %s", error)
            self.close()

    def _process_buffered(self) -> None:
        """Process the bytes that arrived while the connection was being made."""
        buffered = bytes(self._buffered)
        self._buffered.clear()
        if buffered:
            self.data_received(buffered)
        self._forward_next()

    def _send(self, request: ProxiedRequest, url: str) -> None:
        self.is_awaiting_response = True
        self._write_to_server(self._hooks.request_head(request, url, tunnel=bool(self._tunnel)) + request.body)
        if request.opens_websocket:
            self._filter = self._hooks.message_filter(url)
            self._is_passthrough = self._filter is None

    def _write_to_server(self, data: bytes) -> None:
        if data and self._server and self._server.is_open and self._server.transport:
            self._server.transport.write(data)

    def _drop_server(self) -> None:
        server, self._server = self._server, None
        if server is not None and server.transport is not None:
            server.transport.close()
