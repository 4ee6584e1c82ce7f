"""Middleware of Ray Serve's proxies: admission control, and answers while the service starts and stops.

`waygraph.serve.runtime.one_process` puts the admission control before the application that it runs.

A request that reaches a replica has cost several milliseconds of CPU, even if the replica refuses it. In a flood of
requests, answers would be seconds late if only replicas refused. Ray Serve's proxies call `middlewares` when they start
if `RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` is `waygraph.serve.runtime.proxy:middlewares`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waygraph.core.errors import Overloaded, RateLimited, Unauthorized
from waygraph.core.settings import ServeSettings, Settings
from waygraph.serve.http.keys import ApiKeys
from waygraph.serve.http.middleware import ANSWER_HEADERS, address_of, is_protected
from waygraph.serve.http.problems import plain_problem, problem
from waygraph.serve.http.request_bodies import check_content_length, read_body, with_body, without_body
from waygraph.serve.runtime import http_protocol

#: Paths that are answered during a flood too, for those who operate the service.
ALWAYS_ADMITTED = frozenset({"/healthz", "/readyz", "/metrics", "/-/healthz", "/-/routes"})


def middlewares() -> list[Middleware]:
    """Return the middleware of a proxy, innermost first; its settings come from the proxy's environment.

    The HTTP server of the proxy, which is started after this call, gets its limits too.
    """
    http_protocol.install()
    return [Middleware(NoApplicationMiddleware), Middleware(AdmissionMiddleware, settings=Settings().serve)]


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
    """Lets a limited number of requests pass at once, of each caller and of all.

    A request takes one of the caller's places as soon as its head has arrived, and a slot of the proxy only when its
    body is complete: a client that sends slowly uses up its own places. A caller is an API key, or without keys an
    address. The slot is free again when the answer begins, so that a client that reads slowly keeps none.

    Parameters
    ----------
    app
        The rest of the proxy.
    settings
        Limits, and the API keys, by which callers are told apart.
    """

    def __init__(self, app: ASGIApp, *, settings: ServeSettings) -> None:
        self._app = app
        self._settings = settings
        self._keys = ApiKeys(settings)
        self._in_progress = 0
        self._by_caller: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path in ALWAYS_ADMITTED:
            await self._app(scope, without_body(receive), send)
            return
        try:
            with ExitStack() as place:
                body = await self._admit(scope, receive, place)
                await self._pass_on(*with_body(scope, receive, body), send, place)
        except (Unauthorized, RateLimited, Overloaded) as error:
            await _refuse(problem(error, instance=path), scope, receive, send)
        except HTTPException as error:
            await _refuse(plain_problem(error.status_code, error.detail, instance=path), scope, receive, send)
        except ClientDisconnect:
            pass  # nobody waits for an answer

    async def _admit(self, scope: Scope, receive: Receive, place: ExitStack) -> bytearray:
        """Take a place of the caller, which `place` gives back, and return the body of the request."""
        headers = Headers(scope=scope)
        entry = self._keys.entry_of(headers.get("authorization")) if is_protected(scope["path"]) else None
        caller = entry.sha256 if entry is not None else address_of(scope)
        if (taken := self._by_caller[caller]) >= self._settings.max_requests_per_caller:
            raise RateLimited(
                f"{taken} requests of this caller are in progress.", hint="Wait for their answers.", retry_after_s=1.0
            )
        self._by_caller[caller] += 1
        place.callback(self._leave, caller)
        check_content_length(headers)
        seconds = self._settings.request_seconds
        try:
            async with asyncio.timeout(seconds):
                return await read_body(receive)
        except TimeoutError as error:
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, f"The body did not arrive within {seconds:g} s.") from error

    def _leave(self, caller: str) -> None:
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, place: ExitStack) -> None:
        if self._in_progress >= self._settings.max_requests:
            raise Overloaded(f"{self._in_progress} requests are in progress.", hint="Send it again a little later.")
        with ExitStack() as slot:
            self._in_progress += 1
            slot.callback(self._release)

            async def send_and_release(message: Message) -> None:
                slot.close()
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    place.close()  # before the client has the answer, and sends its next request
                await send(message)

            await self._app(scope, receive, send_and_release)

    def _release(self) -> None:
        self._in_progress -= 1


async def _refuse(answer: JSONResponse, scope: Scope, receive: Receive, send: Send) -> None:
    answer.raw_headers.extend(ANSWER_HEADERS)
    await answer(scope, receive, send)
