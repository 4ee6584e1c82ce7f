"""Forwarding of short request bodies from Ray Serve's proxy to a replica, together with the request.

Ray Serve passes the head of a request to a replica, which calls back for the body: one more round trip between two
processes per request. Requests of agents have a few kilobytes and are in the proxy before the request is passed on. So
`BodyForwardingMiddleware`, in the proxy, puts the body into the request's scope, and `receive_forwarded`, in the
replica, reads it from there. Ray Serve transports bodies that are long, chunked or late itself, and all bodies if the
proxy lacks the middleware.
"""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Longest body that is forwarded. Ray sends arguments of up to 100 KiB with the call itself, including the headers.
MAX_BYTES = 65_536
#: Longest time that the proxy waits for a short body, in seconds; a request's time limit begins in the replica.
WAIT_SECONDS = 0.25

#: Key in the scope's `extensions`. Only a proxy can set it: what a client sends becomes headers and body.
_EXTENSION = "waygraph.body"


class BodyForwardingMiddleware:
    """ASGI middleware of the proxy that puts short bodies into the scope.

    Parameters
    ----------
    app
        The rest of the proxy.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not _is_short(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        received: deque[asyncio.Future[Message]] = deque()

        async def replay() -> Message:
            return await (received.popleft() if received else receive())

        try:
            body = await _read_body(receive, received)
            if body is None:
                await self._app(scope, replay, send)
            else:
                scope = {**scope, "extensions": {**(scope.get("extensions") or {}), _EXTENSION: body}}
                await self._app(scope, receive, send)
        finally:
            for each in received:
                each.cancel()


def receive_forwarded(scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that first returns the body in the scope, if there is one, then what `receive` returns."""
    body: bytes | None = (scope.get("extensions") or {}).get(_EXTENSION)
    if body is None:
        return receive
    was_received = False

    async def receive_body_first() -> Message:
        nonlocal was_received
        if was_received:
            return await receive()
        was_received = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body_first


def _is_short(headers: Headers) -> bool:
    length = headers.get("content-length", "0")
    return "transfer-encoding" not in headers and length.isdecimal() and int(length) <= MAX_BYTES


async def _read_body(receive: Receive, received: deque[asyncio.Future[Message]]) -> bytes | None:
    """Return the body if all of it arrives in time, else None.

    Parameters
    ----------
    receive
        The ASGI callable.
    received
        Collects the pending and completed calls of `receive`, to be replayed if the result is None. No call is
        cancelled here, since a cancelled call may have received a message already.

    Returns
    -------
    bytes | None
        The body; None if it was not complete in time.
    """
    body = b""
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
    while True:
        pending = asyncio.ensure_future(receive())
        received.append(pending)
        await asyncio.wait({pending}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
        if not pending.done() or pending.exception() is not None:
            return None
        message = pending.result()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body
