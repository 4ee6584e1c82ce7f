"""What does Ray Serve's proxy do with a request? Refuse it when too many are under way, else pass it on with its body.

A request that gets as far as a replica has cost several milliseconds of CPU, whatever becomes of it: a flood of
strangers would be answered seconds late even if every replica refused it. Ray Serve's proxies call `middlewares` when
they start and `RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` says `serve.proxy:middlewares`.
"""

from __future__ import annotations

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.bodies import Carry
from serve.problems import problem
from waygraph.errors import Overloaded
from waygraph.settings import Settings

#: Whoever looks after the service is answered in a flood, too.
ALWAYS = frozenset({"/healthz", "/readyz", "/metrics", "/-/healthz", "/-/routes"})


def middlewares() -> list[Middleware]:
    """What each proxy wraps around everything it passes on, inner layers first; settings come from its environment."""
    return [Middleware(Carry), Middleware(Admission, most=Settings().serve.max_requests)]


class Admission:
    """Refuses requests beyond a number of them under way.

    Parameters
    ----------
    most : requests of this proxy that may be waiting or being answered at once.

    """

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._most:
            error = Overloaded(f"{self._under_way} requests are under way.", hint="Send it again a little later.")
            await problem(error, instance=scope["path"])(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1
