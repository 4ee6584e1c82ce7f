"""ASGI middleware around the whole application: host, API key, body size, time limit, headers, unexpected errors."""

from __future__ import annotations

import time

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waygraph.core.errors import Overloaded, RateLimited, Unauthorized
from waygraph.core.schemas import MAX_BODY_BYTES
from waygraph.core.settings import ServeSettings
from waygraph.serve.http.hosts import HostCheck
from waygraph.serve.http.keys import ApiKeys
from waygraph.serve.http.problems import plain_problem, problem, unexpected
from waygraph.serve.http.request_bodies import body_too_large, check_content_length, receive_forwarded
from waygraph.serve.query.caller_queue import CALLER
from waygraph.serve.telemetry.metrics import Metrics

#: These paths and everything below them need a key; health, metrics and the API description do not.
PROTECTED = ("/v1", "/mcp")

#: Headers of every answer that does not set them itself. Answers are not pages and contain texts of other websites, so
#: a browser must neither run nor frame them; the page of the service (`waygraph.serve.ui`) sets its own policy.
ANSWER_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"referrer-policy", b"no-referrer"),
)


class RequestMiddleware:
    """Outermost ASGI middleware.

    Checks the name of the service, the key and the body size, limits the time, and answers if the application fails.

    Parameters
    ----------
    app
        The application.
    settings
        Names of the service, and `request_seconds`: a request that takes longer is cancelled wherever it waits, and
        answered with 503.
    keys
        The valid API keys.
    metrics
        Records every request.
    """

    def __init__(self, app: ASGIApp, *, settings: ServeSettings, keys: ApiKeys, metrics: Metrics) -> None:
        self._app = app
        self._keys = keys
        self._hosts = HostCheck(settings, with_keys=bool(keys))
        self._metrics = metrics
        self._request_seconds = settings.request_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.setdefault("headers", [])
                own = {name.lower() for name, _ in headers}
                headers.extend(header for header in ANSWER_HEADERS if header[0] not in own)
            await send(message)

        path: str = scope["path"]
        try:
            with self._metrics.tracing.request(scope["method"], Headers(scope=scope)) as set_route:
                await self._answer(scope, receive, send_with_headers)
                set_route(_route(scope))
        except Exception as error:
            if status:  # the answer has begun, so it cannot be replaced by an error
                raise
            await unexpected(error, instance=path)(scope, receive, send_with_headers)
        finally:
            self._metrics.observe_request(_route(scope), status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        headers = Headers(scope=scope)
        if (refusal := self._hosts.refusal(headers, instance=path)) is not None:
            await refusal(scope, receive, send)
            return
        try:
            if is_protected(path):
                caller = self._keys.authenticate(headers.get("authorization"))
                scope.setdefault("state", {})["caller"] = caller
                CALLER.set(caller.identity or address_of(scope))
            check_content_length(headers)
            with anyio.move_on_after(self._request_seconds) as limit:
                await self._app(scope, _limit_body(receive_forwarded(scope, receive)), send)
            if limit.cancelled_caught:
                self._metrics.count_refused("time")
                error = Overloaded(
                    f"No answer within {self._request_seconds:g} s.", hint="Send it again a little later."
                )
                await problem(error, instance=path)(scope, receive, send)
        except (Unauthorized, RateLimited) as error:
            await problem(error, instance=path)(scope, receive, send)
        except HTTPException as error:  # raised by `body_too_large`: the application answers its own
            await plain_problem(error.status_code, error.detail, instance=path)(scope, receive, send)


def is_protected(path: str) -> bool:
    """Whether a path needs a key, if the service has keys."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in PROTECTED)


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from; empty if the server does not say."""
    client = scope.get("client")
    return client[0] if client else ""


def _route(scope: Scope) -> str:
    # The path template that the router stores in the scope: callers can invent any number of paths.
    return getattr(scope.get("route"), "path", "") or "other"


def _limit_body(receive: Receive) -> Receive:
    total = 0

    async def receive_counted() -> Message:
        nonlocal total
        message = await receive()
        if message["type"] == "http.request":
            total += len(message.get("body", b""))
            if total > MAX_BODY_BYTES:
                raise body_too_large()
        return message

    return receive_counted
