"""What does a request have to pass before it is looked at? Key, size, a time limit, and the promise of an answer."""

from __future__ import annotations

import time
from http import HTTPStatus

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.bodies import carried
from serve.keys import ApiKeys
from serve.metrics import Metrics
from serve.problems import plain_problem, problem, unexpected
from waygraph.errors import Overloaded, RateLimited, Unauthorized
from waygraph.schemas import MAX_BODY_BYTES

#: These and everything below them are for callers with a key; health and API description are for everybody.
PROTECTED = ("/v1", "/mcp")

#: On every answer: it is no page, and what it holds came from pages of others. Nothing in it is to be run or framed.
ANSWER_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"referrer-policy", b"no-referrer"),
)


class Gate:
    """Outermost ASGI layer: checks the key and the size of the body, and answers when the application fails.

    Parameters
    ----------
    request_seconds : what takes longer is cancelled wherever it waits, and answered with 503.

    """

    def __init__(self, app: ASGIApp, *, keys: ApiKeys, metrics: Metrics, request_seconds: float) -> None:
        self._app = app
        self._keys = keys
        self._metrics = metrics
        self._request_seconds = request_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).extend(ANSWER_HEADERS)
            await send(message)

        path: str = scope["path"]
        try:
            with self._metrics.tracing.request(scope["method"], Headers(scope=scope)) as name:
                await self._answer(scope, receive, send_guarded)
                name(_route(scope))
        except Exception as error:
            if status:
                raise
            await unexpected(error, instance=path)(scope, receive, send_guarded)
        finally:
            self._metrics.answered(_route(scope), status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        headers = Headers(scope=scope)
        try:
            if any(path == prefix or path.startswith(f"{prefix}/") for prefix in PROTECTED):
                scope.setdefault("state", {})["caller"] = self._keys.check(headers.get("authorization"))
            _check_length(headers.get("content-length", ""))
            with anyio.move_on_after(self._request_seconds) as limit:
                await self._app(scope, _limited(carried(scope, receive)), send)
            if limit.cancelled_caught:
                self._metrics.refused("time")
                late = f"No answer within {self._request_seconds:g} s."
                late_problem = Overloaded(late, hint="Send it again a little later.")
                await problem(late_problem, instance=path)(scope, receive, send)
        except (Unauthorized, RateLimited) as error:
            await problem(error, instance=path)(scope, receive, send)
        except HTTPException as error:  # only ours: those of the application were answered inside
            await plain_problem(error.status_code, error.detail, instance=path)(scope, receive, send)


def _route(scope: Scope) -> str:
    # The template, which the router leaves behind: callers could make up any number of paths.
    return getattr(scope.get("route"), "path", "") or "other"


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
