"""The `/mcp` route of the service, whose tools call the routes below `/v1` on behalf of the caller."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from waygraph.client.service import AsyncServiceMap
from waygraph.serve.mcp.server import create_server

PATH = "/mcp"


class McpEndpoint:
    """MCP over streamable HTTP, without sessions: every request is independent, so any replica can answer it.

    Tools call the HTTP API inside this process, with the caller that the middleware authenticated: limits, errors and
    the sites that a key may access are those of `/v1`.

    Parameters
    ----------
    api
        The HTTP API without its middleware.
    """

    def __init__(self, api: ASGIApp) -> None:
        self._api = api
        server = create_server(self._source)
        # The middleware has checked the host of every route already.
        any_host = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(stateless_http=True, json_response=True, transport_security=any_host)
        self._sessions = server.session_manager
        # GET and DELETE are for sessions and pushed messages, which do not exist here: 405, as the protocol requires.
        self.route = Route(PATH, endpoint=self._sessions.asgi_app, methods=["POST"])

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that answers requests inside its block. It can be entered once."""
        return self._sessions.run()

    def _source(self, context: Context[Any, Any]) -> AsyncServiceMap:
        request: Request | None = context.request_context.request
        if request is None:
            raise RuntimeError("The request did not arrive over HTTP.")

        async def call_as_caller(scope: Scope, receive: Receive, send: Send) -> None:
            await self._api({**scope, "state": dict(request.scope.get("state", {}))}, receive, send)

        # No retries here: a refused caller decides itself when to retry.
        return AsyncServiceMap("http://service", retries=0, transport=httpx.ASGITransport(call_as_caller))
