"""Middleware of Ray Serve's proxies: admission control, starting and stopping, and forwarding of request bodies.

A request that reaches a replica has cost several milliseconds of CPU, even if the replica refuses it. In a flood of
requests, answers would be seconds late if only replicas refused. Ray Serve's proxies call `middlewares` when they start
if `RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` is `waygraph.serve.runtime.proxy:middlewares`.
"""

from __future__ import annotations

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waygraph.core.errors import Overloaded
from waygraph.core.settings import Settings
from waygraph.serve.http.middleware import ANSWER_HEADERS
from waygraph.serve.http.problems import problem
from waygraph.serve.http.request_bodies import BodyForwardingMiddleware

#: Paths that are answered during a flood too, for those who operate the service.
ALWAYS_ADMITTED = frozenset({"/healthz", "/readyz", "/metrics", "/-/healthz", "/-/routes"})


def middlewares() -> list[Middleware]:
    """Return the middleware of a proxy, innermost first; its settings come from the proxy's environment."""
    return [
        Middleware(BodyForwardingMiddleware),
        Middleware(NoApplicationMiddleware),
        Middleware(AdmissionMiddleware, max_requests=Settings().serve.max_requests),
    ]


class NoApplicationMiddleware:
    """Answers 503 with `Retry-After` where the proxy itself would answer 404.

    It does so while it knows no application: before the first one is deployed, and after it was removed because the
    service stops. A client would take 404 for the answer that a site or a page does not exist. An answer of the
    application is recognised by the headers that all of them have.

    Parameters
    ----------
    app
        The rest of the proxy.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_ADMITTED:
            await self._app(scope, receive, send)
            return
        is_unrouted = False

        async def send_routed(message: Message) -> None:
            nonlocal is_unrouted
            if message["type"] == "http.response.start" and message["status"] == 404:
                is_unrouted = ANSWER_HEADERS[0] not in [
                    (bytes(name), bytes(value)) for name, value in message["headers"]
                ]
            if not is_unrouted:
                await send(message)

        await self._app(scope, receive, send_routed)
        if is_unrouted:
            error = Overloaded("The service is starting or stopping.", hint="Send the request again a little later.")
            answer = problem(error, instance=scope["path"])
            answer.headers["connection"] = "close"  # the next request may find another replica
            await answer(scope, receive, send)


class AdmissionMiddleware:
    """Refuses requests if too many are in progress.

    Parameters
    ----------
    app
        The rest of the proxy.
    max_requests
        Requests of this proxy that may wait or be answered at once.
    """

    def __init__(self, app: ASGIApp, *, max_requests: int) -> None:
        self._app = app
        self._max_requests = max_requests
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_ADMITTED:
            await self._app(scope, receive, send)
            return
        if self._in_progress >= self._max_requests:
            error = Overloaded(f"{self._in_progress} requests are in progress.", hint="Send it again a little later.")
            await problem(error, instance=scope["path"])(scope, receive, send)
            return
        self._in_progress += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= 1
