"""Request bodies: their limits, and the way of short ones from Ray Serve's proxy to a replica, with the request.

The proxy reads a body completely before the request takes a slot there, so that a client that sends slowly, or never
ends, keeps nobody waiting. Ray Serve then passes the head of a request to a replica, which calls back for the body: one
more round trip between two processes. So a short body is put into the request's scope, from where `receive_forwarded`
reads it in the replica. Ray Serve transports longer bodies itself, and all bodies if the proxy lacks our middleware.
"""

from __future__ import annotations

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from waygraph.core.schemas import MAX_BODY_BYTES

#: Longest body that is forwarded. Ray sends arguments of up to 100 KiB with the call itself, including the headers.
MAX_FORWARDED_BYTES = 65_536

#: Key in the scope's `extensions`. Only a proxy can set it: what a client sends becomes headers and body.
_EXTENSION = "waygraph.body"


def body_too_large() -> HTTPException:
    """Return the error of a request whose body is too large."""
    # FastAPI does not catch this type when it is raised while a body is read; any other type becomes a 400.
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request body may have {MAX_BODY_BYTES} bytes; this one is larger."
    )


def check_content_length(headers: Headers) -> None:
    """Refuse a body that is announced to be too large (`body_too_large`), before it is read."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY_BYTES:
        raise body_too_large()


async def read_body(receive: Receive) -> bytearray:
    """Return the whole body of a request.

    Parameters
    ----------
    receive
        The ASGI callable.

    Returns
    -------
    bytearray
        The body.

    Raises
    ------
    HTTPException
        If it is larger than `MAX_BODY_BYTES`.
    ClientDisconnect
        If the client disconnects before its end.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise body_too_large()
        if not message.get("more_body", False):
            return body


def with_body(scope: Scope, receive: Receive, body: bytearray) -> tuple[Scope, Receive]:
    """Return the scope and the `receive` of a request whose body was read: a short one is in the scope."""
    if len(body) <= MAX_FORWARDED_BYTES:
        return {**scope, "extensions": {**(scope.get("extensions") or {}), _EXTENSION: bytes(body)}}, receive
    return scope, _body_first(body, receive)


def without_body(receive: Receive) -> Receive:
    """Return a `receive` of a request whose body, if it has one, is dropped."""

    async def until_disconnect() -> Message:
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return _body_first(b"", until_disconnect)


def receive_forwarded(scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that first returns the body in the scope, if there is one, then what `receive` returns."""
    body: bytes | None = (scope.get("extensions") or {}).get(_EXTENSION)
    return receive if body is None else _body_first(body, receive)


def _body_first(body: bytes | bytearray, receive: Receive) -> Receive:
    was_received = False

    async def receive_body_first() -> Message:
        nonlocal was_received
        if was_received:
            return await receive()
        was_received = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body_first
