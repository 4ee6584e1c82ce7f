"""Middleware of Ray Serve's proxies: admission control, and forwarding of request bodies.

A request that reaches a replica has cost several milliseconds of CPU, even if the replica refuses it. In a flood of
requests, answers would be seconds late if only replicas refused. Ray Serve's proxies call `middlewares` when they start
if `RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` is `waygraph.serve.runtime.proxy:middlewares`.
"""

from __future__ import annotations

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from waygraph.core.errors import Overloaded
from waygraph.core.settings import Settings
from waygraph.serve.http.problems import problem
from waygraph.serve.http.request_bodies import BodyForwardingMiddleware

#: Paths that are answered during a flood too, for those who operate the service.
ALWAYS_ADMITTED = frozenset({"/healthz", "/readyz", "/metrics", "/-/healthz", "/-/routes"})


def middlewares() -> list[Middleware]:
    """Return the middleware of a proxy, innermost first; its settings come from the proxy's environment."""
    return [
        Middleware(BodyForwardingMiddleware),
        Middleware(AdmissionMiddleware, max_requests=Settings().serve.max_requests),
    ]


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
