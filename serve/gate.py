"""What does a request have to pass before it is looked at? Key, size, and the promise of a proper answer."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.problems import plain_problem, problem, unexpected
from waygraph.errors import Unauthorized

#: Largest request body. A structure of `schemas.MAX_STRUCTURE` hashes fits.
MAX_BODY_BYTES = 1_000_000

#: Everything below is for callers with a key; health and API description are for everybody.
PROTECTED_PREFIX = "/v1"


class ApiKeys:
    """The keys that callers may use. Only digests are kept, and they are compared in constant time."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, authorization: str | None) -> None:
        """Accept `Bearer <key>` with one of the keys, and anything when there are no keys.

        Raises
        ------
        Unauthorized
            When the header is missing, of another scheme, or names no known key.

        """
        if not self._digests:
            return
        if authorization is None:
            raise Unauthorized("This service needs an API key.", hint="Send it as 'Authorization: Bearer <key>'.")
        scheme, _, key = authorization.strip().partition(" ")
        digest = hashlib.sha256(key.strip().encode()).digest()
        # Every key is compared, so that the time taken does not tell which one was close.
        known = sum(hmac.compare_digest(digest, candidate) for candidate in self._digests)
        if scheme.lower() != "bearer" or not known:
            raise Unauthorized("The API key is not valid.", hint="Send a known key as 'Authorization: Bearer <key>'.")


class Gate:
    """Outermost ASGI layer: checks the key and the size of the body, and answers when the application fails."""

    def __init__(self, app: ASGIApp, *, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        headers = Headers(scope=scope)
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message.setdefault("headers", []).append((b"x-content-type-options", b"nosniff"))
            await send(message)

        try:
            if path == PROTECTED_PREFIX or path.startswith(f"{PROTECTED_PREFIX}/"):
                self._keys.check(headers.get("authorization"))
            _check_length(headers.get("content-length", ""))
            await self._app(scope, _limited(receive), send_guarded)
        except Unauthorized as error:
            await problem(error, instance=path)(scope, receive, send_guarded)
        except HTTPException as error:  # only ours: those of the application were answered inside
            await plain_problem(error.status_code, error.detail, instance=path)(scope, receive, send_guarded)
        except Exception as error:
            if started:
                raise
            await unexpected(error, instance=path)(scope, receive, send_guarded)


def _check_length(announced: str) -> None:
    if announced.isdecimal() and int(announced) > MAX_BODY_BYTES:
        raise _too_large()


def _too_large() -> HTTPException:
    # FastAPI lets this kind of exception through when it is raised while a body is read; any other becomes a 400.
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request body may have {MAX_BODY_BYTES} bytes; this one is larger."
    )


def _limited(receive: Receive) -> Receive:
    total = 0

    async def receive_counted() -> Message:
        nonlocal total
        message = await receive()
        if message["type"] == "http.request":
            total += len(message.get("body", b""))
            if total > MAX_BODY_BYTES:
                raise _too_large()
        return message

    return receive_counted
