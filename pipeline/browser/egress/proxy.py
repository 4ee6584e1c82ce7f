"""Who watches what leaves the machine? A proxy on loopback that all traffic of one browser goes through.

async with EgressProxy(allowed=frozenset({"127.0.0.1:8000"})) as proxy, launch(settings, proxy=proxy.url) as browser:
    ...
    proxy.bytes_received["127.0.0.1:8000"]
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from index.graph import BlockedRequest
from pipeline.browser.egress.addresses import AddressBook, Destination, HostRules, Resolver, Unresolved
from pipeline.browser.egress.connection import BrowserConnection, ServerConnection
from pipeline.browser.egress.messages import MessageFilter, Request
from pipeline.browser.egress.upstream import UpstreamProxy
from pipeline.browser.guard.judge import Judge

log = logging.getLogger(__name__)

_MOST_PROBLEMS = 1_000


class EgressProxy:
    """An HTTP proxy for one browser. Enter it, give its `url` to the browser.

    Every name is resolved here, every address is checked, and the connection goes to the address that was checked: a
    name that changes its address in between leads nowhere else. What may not be connected to, or cannot, fails in the
    browser like any host that does not answer; `problem` says why.

    It is the guard's second wall as well: plain HTTP requests and WebSocket messages (not those inside TLS) that may
    change something are stopped here when no other part did, whichever target of the browser sent them.

    Parameters
    ----------
    allowed : hosts that may be at loopback, private or link-local addresses, since the user named them: `host` (ports
        80 and 443), `host:port`, or `.domain` for all hosts under it.
    upstream : the user's proxy. Names that this machine cannot resolve are then left to it.
    judge : what may change something; nothing: there is no second wall.
    resolver : in place of the machine's.
    host_rules : Chromium's host resolver rules, which it does not apply behind a proxy.
    cache_s : how long what a name resolved to is kept, in seconds.
    on_request : called with (method, URL) of each request; `CONNECT` stands for what is inside TLS.
    on_blocked : called with what the second wall stopped.
    on_refused : called with (URL, reason) of destinations that are not public.
    """

    def __init__(
        self,
        *,
        allowed: frozenset[str] = frozenset(),
        upstream: UpstreamProxy | None = None,
        judge: Judge | None = None,
        resolver: Resolver | None = None,
        host_rules: HostRules | None = None,
        on_request: Callable[[str, str], None] | None = None,
        on_blocked: Callable[[BlockedRequest], None] | None = None,
        on_refused: Callable[[str, str], None] | None = None,
        connect_timeout_s: float = 10.0,
        cache_s: float = 60.0,
        answer_timeout_s: float = 60.0,
        idle_timeout_s: float = 300.0,
        most_connections: int = 512,
    ) -> None:
        self._book = AddressBook(allowed, resolver=resolver, rules=host_rules or HostRules(), cache_s=cache_s)
        self._upstream = upstream
        self.judge = judge
        self.on_request = on_request
        self.on_blocked = on_blocked
        self.on_refused = on_refused
        self._connect_timeout_s = connect_timeout_s
        self._answer_timeout_s = answer_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._most_connections = most_connections
        self._connections: set[BrowserConnection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._problems: dict[str, str] = {}
        self.bytes_received: Counter[str] = Counter()
        """Bytes that came from each `host:port`, TLS and headers included."""

    @property
    def url(self) -> str:
        """Where the browser finds it."""
        if self._server is None:
            raise RuntimeError("The proxy is not running: use it as an async context manager.")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def problem(self, url: str) -> str:
        """Why the host of `url` could not be connected to the last time, empty when that is not known."""
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "ws": 80}.get(parts.scheme, 443)
        return self._problems.get(_key(parts.hostname or "", port), "")

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

    # ---- asked by connections --------------------------------------------------------------------------------------

    def opened(self, connection: BrowserConnection) -> bool:
        """A connection was made; whether there is room for it."""
        self._connections.add(connection)
        return len(self._connections) <= self._most_connections

    def closed(self, connection: BrowserConnection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)

    def received(self, key: str, count: int) -> None:
        """So many bytes came from a host."""
        self.bytes_received[key] += count

    def refused(self, url: str, key: str, reason: str) -> None:
        """A destination is not to be connected to."""
        log.info("egress/refused %s: %s", url, reason)
        self.failed(key, f"{reason}, which may only be visited when you name the host")
        if self.on_refused is not None:
            self.on_refused(url, reason)

    def failed(self, key: str, reason: str) -> None:
        """A destination could not be connected to."""
        log.debug("egress/failed %s: %s", key, reason)
        if key in self._problems or len(self._problems) < _MOST_PROBLEMS:
            self._problems[key] = reason

    def stops(self, request: Request, url: str) -> bool:
        """Whether the second wall stops a request."""
        method = request.method.decode("latin-1")
        if self.on_request is not None:
            self.on_request(method, url)
        if self.judge is None or not self.judge.stops:
            return False
        sent = request.sent(url)
        # Browsers ask for documents like this; which of them may be shown is not decided here.
        if not self.judge.may_change(sent, shown="upgrade-insecure-requests" in sent.headers):
            return False
        self._block(BlockedRequest(method, url, "egress"))
        return True

    def message_filter(self, url: str) -> MessageFilter | None:
        """What judges WebSocket messages to `url`."""
        judge = self.judge
        if judge is None or not judge.stops:
            return None

        def may_pass(text: str | None) -> bool:
            if judge.message_may_change(url, text):
                self._block(BlockedRequest("SEND", url, "websocket"))
                return False
            return True

        return MessageFilter(may_pass)

    def head(self, request: Request, url: str, *, tunnel: bool) -> bytes:
        """Head of a request as the next hop wants it."""
        if self._forwards(tunnel=tunnel) and self._upstream is not None:
            absolute = url.replace("ws://", "http://", 1)
            return request.head(absolute=absolute, extra=self._upstream.authorization)
        return request.head()

    async def connect(
        self, host: str, port: int, factory: Callable[[], ServerConnection], *, tunnel: bool
    ) -> ServerConnection:
        """Connect to a checked address of a host, or through the user's proxy.

        Raises
        ------
        Refused, Unresolved, OSError
            When that may not or cannot be.
        """
        if tunnel and self.on_request is not None:
            self.on_request("CONNECT", f"{host}:{port}")
        self._problems.pop(_key(host, port), None)  # it may work this time
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._connect_timeout_s):
            found = await self._find(host, port)
            if self._upstream is None:
                assert found is not None  # noqa: S101 - only an upstream proxy resolves names for us
                return await self._connect_to(found, factory)
            if self._forwards(tunnel=tunnel):
                _, server = await loop.create_connection(factory, self._upstream.host, self._upstream.port)
                return server
            socket = await self._upstream.tunnel(host, port, self._connect_timeout_s)
            _, server = await loop.create_connection(factory, sock=socket)
            return server

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _forwards(self, *, tunnel: bool) -> bool:
        """Whether requests are handed to the user's proxy as they are, not sent through a tunnel of its."""
        return self._upstream is not None and self._upstream.scheme == "http" and not tunnel

    async def _find(self, host: str, port: int) -> Destination | None:
        try:
            return await self._book.find(host, port)
        except Unresolved:
            if self._upstream is None:
                raise
            return None

    async def _connect_to(self, found: Destination, factory: Callable[[], ServerConnection]) -> ServerConnection:
        loop = asyncio.get_running_loop()
        problem: OSError = ConnectionError("no address")
        each = self._connect_timeout_s / max(1, len(found.addresses))
        for address in found.addresses:
            try:
                async with asyncio.timeout(each):
                    _, server = await loop.create_connection(factory, address, found.port)
                    return server
            except OSError as error:  # also a timeout: the next address may answer
                problem = error
        raise problem

    def _block(self, request: BlockedRequest) -> None:
        log.info("egress/blocked %s %s", request.method, request.url)
        if self.on_blocked is not None:
            self.on_blocked(request)

    async def _sweep(self) -> None:
        """Give up connections on which nothing happens."""
        every = min(self._answer_timeout_s, self._idle_timeout_s) / 4
        while True:
            await asyncio.sleep(every)
            now = time.monotonic()
            for connection in list(self._connections):
                limit = self._answer_timeout_s if connection.outstanding else self._idle_timeout_s
                if now - connection.seen > limit:
                    if connection.outstanding:
                        self.failed(connection.key, "it does not answer")
                    connection.abort()


def _key(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
