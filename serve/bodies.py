"""How does the body of a request get from the proxy to a replica? With the request, when it is short and there.

Ray Serve hands the head of a request to a replica, which calls back for the body: one more way between two processes
before a question can be looked at. What agents ask fits into a few kilobytes, and lies in the proxy before the request
is passed on. So `Carry`, in the proxy, puts it into the request's scope, and `carried`, in the replica, takes it from
there. Bodies that are long, come in chunks or come late go Ray Serve's way, as all do where the proxy lacks `Carry`.
"""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Longest body that is carried. Ray sends arguments of up to 100 KiB with the call itself, and headers are in it too.
MOST_BYTES = 65_536
#: So long a short body is waited for in the proxy, in seconds; the time limit of a request begins in the replica.
PATIENCE_SECONDS = 0.25

#: Where it is in the scope's `extensions`. Only a proxy can put it there: what a client sends becomes headers and body.
_PLACE = "waygraph.body"


class Carry:
    """Puts bodies that are short and there into the scope; an ASGI layer of the proxy."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not _is_short(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        received: deque[asyncio.Future[Message]] = deque()

        async def receive_again() -> Message:
            return await (received.popleft() if received else receive())

        try:
            body = await _whole(receive, received)
            if body is None:
                await self._app(scope, receive_again, send)
            else:
                scope = {**scope, "extensions": {**(scope.get("extensions") or {}), _PLACE: body}}
                await self._app(scope, receive, send)
        finally:
            for each in received:
                each.cancel()


def carried(scope: Scope, receive: Receive) -> Receive:
    """What gives the body that was put into the scope, and after it what `receive` gives."""
    body: bytes | None = (scope.get("extensions") or {}).get(_PLACE)
    if body is None:
        return receive
    is_given = False

    async def receive_carried() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_carried


def _is_short(headers: Headers) -> bool:
    length = headers.get("content-length", "0")
    return "transfer-encoding" not in headers and length.isdecimal() and int(length) <= MOST_BYTES


async def _whole(receive: Receive, received: deque[asyncio.Future[Message]]) -> bytes | None:
    """The body, if all of it comes in time; else what was `received`, or is still being waited for, is to be replayed.

    Nothing is cancelled that might have received something.
    """
    body = b""
    until = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        waiting = asyncio.ensure_future(receive())
        received.append(waiting)
        await asyncio.wait({waiting}, timeout=max(0.0, until - asyncio.get_running_loop().time()))
        if not waiting.done() or waiting.exception() is not None:
            return None
        message = waiting.result()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body
