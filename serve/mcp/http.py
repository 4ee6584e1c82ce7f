"""How do callers of the service reach the tools? By a route that asks `/v1` in the caller's name."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from serve.mcp.server import create_server
from waygraph.client import AsyncServiceMap

PATH = "/mcp"

_HERE = ("127.0.0.1", "localhost", "[::1]")


class McpEndpoint:
    """Streamable HTTP without sessions: every request stands for itself, so any replica can answer it.

    Tools ask the HTTP API inside this process, with what the gate found out about the caller: limits, errors and the
    sites that a key may see are those of `/v1`.

    Parameters
    ----------
    api : the HTTP API as it is behind the gate.
    with_keys : callers need a key. Without, only this machine can reach the service, and requests that a web page
        caused (`Host` or `Origin` of another machine: DNS rebinding) are refused.
    """

    def __init__(self, api: ASGIApp, *, with_keys: bool) -> None:
        self._api = api
        server = create_server(self._source)
        server.streamable_http_app(
            stateless_http=True, json_response=True, transport_security=_everybody() if with_keys else _this_machine()
        )
        self._sessions = server.session_manager
        # GET and DELETE are for sessions and pushed messages, and there are none (405, as the protocol wants it).
        self.route = Route(PATH, endpoint=self._sessions.asgi_app, methods=["POST"])

    def run(self) -> AbstractAsyncContextManager[None]:
        """Answer requests inside this block, which can be entered once."""
        return self._sessions.run()

    def _source(self, context: Context[Any, Any]) -> AsyncServiceMap:
        request: Request | None = context.request_context.request
        if request is None:
            raise RuntimeError("this server is asked over HTTP alone")

        async def as_the_caller(scope: Scope, receive: Receive, send: Send) -> None:
            await self._api({**scope, "state": dict(request.scope.get("state", {}))}, receive, send)

        # Whoever is told to come again decides when: nothing is tried twice here.
        return AsyncServiceMap("http://service", retries=0, transport=httpx.ASGITransport(as_the_caller))


def _everybody() -> TransportSecuritySettings:
    return TransportSecuritySettings(enable_dns_rebinding_protection=False)


def _this_machine() -> TransportSecuritySettings:
    hosts = [*_HERE, *(f"{host}:*" for host in _HERE)]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
