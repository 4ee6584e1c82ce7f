"""Egress proxy on loopback that all traffic of one browser goes through.

Example::

    async with EgressProxy(allowed=frozenset({"shop.test"})) as proxy, launch(settings, proxy=proxy.url) as browser:
        ...
        proxy.bytes_received["shop.test:443"]
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.egress.addresses import (
    AddressResolver,
    Destination,
    HostRules,
    NameUnresolved,
    Resolver,
)
from waygraph.pipeline.browser.egress.connection import BrowserConnection, ServerConnection
from waygraph.pipeline.browser.egress.messages import MessageFilter, ProxiedRequest
from waygraph.pipeline.browser.egress.problems import TIMED_OUT, ConnectionProblem
from waygraph.pipeline.browser.egress.upstream import UpstreamProxy
from waygraph.pipeline.browser.guard.outgoing import is_prefetch, websocket_message
from waygraph.pipeline.browser.guard.request_policy import RequestPolicy

log = logging.getLogger(__name__)

_MAX_PROBLEMS = 1_000


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """Timeouts and limits of the proxy.

    Attributes
    ----------
    connect_timeout_s
        Time for resolving a name and connecting, in seconds.
    response_timeout_s
        Time until the first byte of a response, in seconds.
    idle_timeout_s
        Time after which a connection without traffic is closed, in seconds.
    dns_cache_s
        Time that resolved addresses are kept, in seconds.
    max_connections
        Connections of the browser at the same time.
    """

    connect_timeout_s: float = 10.0
    response_timeout_s: float = 60.0
    idle_timeout_s: float = 300.0
    dns_cache_s: float = 60.0
    max_connections: int = 512


@dataclass(slots=True)
class EgressCallbacks:
    """Callbacks of the proxy; None: not called.

    Attributes
    ----------
    on_request
        Called with (method, URL) of each request; `CONNECT` stands for a TLS tunnel.
    on_blocked
        Called with each request or message that the request policy blocked.
    on_refused
        Called with (URL, reason) of each destination whose address is not public.
    """

    on_request: Callable[[str, str], None] | None = None
    on_blocked: Callable[[BlockedRequest], None] | None = None
    on_refused: Callable[[str, str], None] | None = None


class EgressProxy:
    """HTTP proxy for one browser. Enter it, then give its `url` to the browser.

    The proxy resolves every name, checks every address, and connects to the checked address. Therefore a name whose
    address changes in between (DNS rebinding) leads nowhere else. The browser reports a connection that is not allowed,
    or fails, like a host that does not answer; `problem` returns the reason.

    The proxy is also the second line of the network guard: it blocks state-changing plain HTTP requests and WebSocket
    messages (not those inside TLS) that no other part has blocked, whichever target of the browser sent them. It also
    blocks prefetches, which no DevTools session intercepts.

    Parameters
    ----------
    allowed
        Hosts that may have loopback, private or link-local addresses, because the user named them: `host` (ports 80 and
        443), `host:port`, or `.domain` for all hosts under it.
    upstream
        The user's proxy. It resolves the names that this machine cannot resolve.
    request_policy
        Which requests are state-changing; None: the proxy blocks no requests.
    resolver
        Replaces the resolver of the operating system.
    host_rules
        Chromium's host resolver rules, which Chromium does not apply behind a proxy.
    callbacks
        Called for requests, blocked requests and refused destinations.
    limits
        Timeouts and the number of connections.
    """

    def __init__(
        self,
        *,
        allowed: frozenset[str] = frozenset(),
        upstream: UpstreamProxy | None = None,
        request_policy: RequestPolicy | None = None,
        resolver: Resolver | None = None,
        host_rules: HostRules | None = None,
        callbacks: EgressCallbacks | None = None,
        limits: EgressLimits = EgressLimits(),
    ) -> None:
        self._addresses = AddressResolver(
            allowed, resolver=resolver, rules=host_rules or HostRules(), cache_s=limits.dns_cache_s
        )
        self._upstream = upstream
        self.request_policy = request_policy
        self.callbacks = callbacks or EgressCallbacks()
        self._limits = limits
        self._connections: set[BrowserConnection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._problems: dict[str, ConnectionProblem] = {}
        self.bytes_received: Counter[str] = Counter()
        """Bytes received from each `host:port`, TLS and headers included."""

    @property
    def url(self) -> str:
        """URL of the proxy for the browser."""
        if self._server is None:
            raise RuntimeError("The proxy is not running: use it as an async context manager.")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def problem(self, url: str) -> ConnectionProblem | None:
        """Return why the host of `url` could not be connected to the last time; None if that is not known."""
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "ws": 80}.get(parts.scheme, 443)
        return self._problems.get(_key(parts.hostname or "", port))

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: BrowserConnection(self), "127.0.0.1", 0, backlog=256)
        self._sweeper = asyncio.ensure_future(self._sweep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()

    # ---- ProxyHooks, called by connections -------------------------------------------------------------------------

    def add_connection(self, connection: BrowserConnection) -> bool:
        """Register a new connection; False if there are too many."""
        self._connections.add(connection)
        return len(self._connections) <= self._limits.max_connections

    def remove_connection(self, connection: BrowserConnection) -> None:
        """Unregister a closed connection."""
        self._connections.discard(connection)

    def count_received(self, key: str, count: int) -> None:
        """Add `count` bytes to what `key` (`host:port`) sent."""
        self.bytes_received[key] += count

    def report_refused(self, url: str, key: str, reason: str) -> None:
        """Record a destination whose address is not allowed."""
        log.info("egress/refused %s: %s", url, reason)
        self.report_problem(key, ConnectionProblem.not_public(reason))
        if self.callbacks.on_refused is not None:
            self.callbacks.on_refused(url, reason)

    def report_problem(self, key: str, problem: ConnectionProblem) -> None:
        """Record why a destination could not be connected to."""
        log.debug("egress/failed %s: %s", key, problem)
        if key in self._problems or len(self._problems) < _MAX_PROBLEMS:
            self._problems[key] = problem

    def blocks(self, request: ProxiedRequest, url: str) -> bool:
        """Whether the request policy blocks a request."""
        method = request.method.decode("latin-1")
        if self.callbacks.on_request is not None:
            self.callbacks.on_request(method, url)
        if self.request_policy is None:
            return False
        outgoing = request.to_outgoing(url)
        if is_prefetch(outgoing.headers.get("sec-purpose", "")):
            self._block(BlockedRequest(method, url, "prefetch"))
            return True
        if not self.request_policy.is_enforced:
            return False
        # Browsers send this header with navigations. Which documents may be shown is decided by the page's guard.
        is_navigation = "upgrade-insecure-requests" in outgoing.headers
        if not self.request_policy.may_change(outgoing, is_navigation=is_navigation):
            return False
        if self.request_policy.has_passed(outgoing):
            return False
        self._block(BlockedRequest(method, url, "egress"))
        return True

    def message_filter(self, url: str) -> MessageFilter | None:
        """Return the filter of WebSocket messages to `url`, or None if all pass."""
        policy = self.request_policy
        if policy is None or not policy.is_enforced:
            return None

        def may_pass(content: str | bytes) -> bool:
            is_binary = isinstance(content, bytes)
            body = content.decode("latin-1") if isinstance(content, bytes) else content
            message = websocket_message(url, body, is_binary=is_binary)
            if policy.message_may_change(message) and not policy.has_passed(message):
                self._block(BlockedRequest("SEND", url, "websocket"))
                return False
            return True

        return MessageFilter(may_pass)

    def request_head(self, request: ProxiedRequest, url: str, *, tunnel: bool) -> bytes:
        """Serialise the head of a request for the next hop."""
        if self._forwards(tunnel=tunnel) and self._upstream is not None:
            absolute = url.replace("ws://", "http://", 1)
            return request.head(absolute=absolute, extra=self._upstream.authorization)
        return request.head()

    async def connect(
        self, host: str, port: int, factory: Callable[[], ServerConnection], *, tunnel: bool
    ) -> ServerConnection:
        """Connect to a checked address of a host, or through the user's proxy.

        Parameters
        ----------
        host
            Host name or IP address.
        port
            The port.
        factory
            Makes the protocol of the connection.
        tunnel
            Whether the connection becomes a tunnel (`CONNECT`).

        Returns
        -------
        ServerConnection
            The open connection.

        Raises
        ------
        AddressRefused
            If an address of the host is not allowed.
        NameUnresolved
            If the host has no address.
        OSError
            If no connection can be made.
        """
        if tunnel and self.callbacks.on_request is not None:
            self.callbacks.on_request("CONNECT", f"{host}:{port}")
        self._problems.pop(_key(host, port), None)  # it may work this time
        loop = asyncio.get_running_loop()
        timeout_s = self._limits.connect_timeout_s
        async with asyncio.timeout(timeout_s):
            destination = await self._resolve(host, port)
            if self._upstream is None:
                assert destination is not None  # noqa: S101 - only an upstream proxy resolves names for this one
                return await self._connect_to(destination, factory)
            if self._forwards(tunnel=tunnel):
                _, server = await loop.create_connection(factory, self._upstream.host, self._upstream.port)
                return server
            socket = await self._upstream.tunnel(host, port, timeout_s)
            _, server = await loop.create_connection(factory, sock=socket)
            return server

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _forwards(self, *, tunnel: bool) -> bool:
        """Whether requests are forwarded to the user's proxy unchanged, without a tunnel through it."""
        return self._upstream is not None and self._upstream.scheme == "http" and not tunnel

    async def _resolve(self, host: str, port: int) -> Destination | None:
        try:
            return await self._addresses.find(host, port)
        except NameUnresolved:
            if self._upstream is None:
                raise
            return None

    async def _connect_to(self, destination: Destination, factory: Callable[[], ServerConnection]) -> ServerConnection:
        loop = asyncio.get_running_loop()
        last_error: OSError = ConnectionError("no address")
        timeout_s = self._limits.connect_timeout_s / max(1, len(destination.addresses))
        for address in destination.addresses:
            try:
                async with asyncio.timeout(timeout_s):
                    _, server = await loop.create_connection(factory, address, destination.port)
                    return server
            except OSError as error:  # also a timeout: the next address may answer
                last_error = error
        raise last_error

    def _block(self, request: BlockedRequest) -> None:
        log.info("egress/blocked %s %s", request.method, request.url)
        if self.callbacks.on_blocked is not None:
            self.callbacks.on_blocked(request)

    async def _sweep(self) -> None:
        """Close connections without traffic."""
        response_timeout_s, idle_timeout_s = self._limits.response_timeout_s, self._limits.idle_timeout_s
        while True:
            await asyncio.sleep(min(response_timeout_s, idle_timeout_s) / 4)
            now = time.monotonic()
            for connection in list(self._connections):
                timeout_s = response_timeout_s if connection.is_awaiting_response else idle_timeout_s
                if now - connection.last_activity > timeout_s:
                    if connection.is_awaiting_response:
                        self.report_problem(connection.key, TIMED_OUT)
                    connection.abort()


def _key(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
