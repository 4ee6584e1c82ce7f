"""How does a program ask a running waygraph service? Over HTTP, with the service's errors as typed exceptions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Self, TypeVar

import httpx
from pydantic import ValidationError

from waygraph import calls, schemas
from waygraph.calls import Call
from waygraph.errors import InvalidInput, RateLimited, ServiceError, Unauthorized, WaygraphError, by_slug
from waygraph.schemas import (
    AvoidedStep,
    BatchSearchAnswer,
    FeedbackAnswer,
    Filter,
    LocateAnswer,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    Problem,
    SearchAnswer,
    SiteDetail,
    SiteSummary,
    WalkedStep,
)

T = TypeVar("T")

#: The first question to a site makes the service open its map; after that answers take milliseconds.
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
#: Further tries of a call that found nobody, or a service that is busy; and what the first waits at most, in seconds.
RETRIES, FIRST_WAIT, LONGEST_WAIT = 3, 0.2, 10.0
#: Statuses that ask to come again: too many requests, and what proxies say while a service starts.
_COME_AGAIN = frozenset({429, 502, 504})

#: For problems that say no more than their status, and answers of something in between.
_BY_STATUS: dict[int, type[WaygraphError]] = {401: Unauthorized, 413: InvalidInput, 422: InvalidInput, 429: RateLimited}


class ServiceMap:
    """The maps of a running service. Safe to use from several threads.

    Calls are tried again when nothing answers or the service says to come again, after what its `Retry-After` asks for
    or a growing, random wait. A report (`feedback`) is only sent again when it surely did not arrive.

    Parameters
    ----------
    base_url : where the service answers, for example `http://127.0.0.1:8321`.
    api_key : sent as `Authorization: Bearer`; needed when the service was started with keys.
    retries : further tries; 0 for none.

    """

    def __init__(self, base_url: str, api_key: str | None = None, *, retries: int = RETRIES) -> None:
        self.base_url = _service_url(base_url)
        self._retries = retries
        self._http = httpx.Client(base_url=self.base_url, headers=_headers(api_key), timeout=TIMEOUT)

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        return self._do(calls.sites())

    def site(self, key: str) -> SiteDetail:
        """One site."""
        return self._do(calls.site(key))

    def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all."""
        return self._do(calls.search(site, query, k, where))

    def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """The same for several questions at once."""
        return self._do(calls.search_batch(site, queries, k, where))

    def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        return self._do(calls.locate(site, url, structure, features))

    def path(
        self,
        site: str,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
        others: int = 0,
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL."""
        return self._do(calls.path(site, source, target, allow_goto=allow_goto, avoid=avoid, others=others))

    def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """Find the state that is meant, and the way to it, in one call."""
        return self._do(calls.navigate(wanted))

    def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked."""
        return self._do(calls.feedback(site, walked))

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return self._do(calls.node(site, node_id))

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return self._send("GET", calls.screenshot_path(site, node_id)).content

    def close(self) -> None:
        """Close the connections. Closing twice is allowed."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, call: Call[T]) -> T:
        return _read(call, self._send(call.method, call.path, call.body, repeatable=call.repeatable), self.base_url)

    def _send(self, method: str, path: str, body: object = None, *, repeatable: bool = True) -> httpx.Response:
        tries = _Tries(self.base_url, self._retries, repeatable=repeatable)
        for wait in tries:
            time.sleep(wait)
            try:
                tries.response = self._http.request(method, path, json=body)
            except httpx.HTTPError as error:
                tries.error = error
        return tries.outcome()


class AsyncServiceMap:
    """The same for programs with an event loop; see `ServiceMap`. `transport` sends requests in another way."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = _service_url(base_url)
        self._retries = retries
        self._http = httpx.AsyncClient(
            base_url=self.base_url, headers=_headers(api_key), timeout=TIMEOUT, transport=transport
        )

    async def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        return await self._do(calls.sites())

    async def site(self, key: str) -> SiteDetail:
        """One site."""
        return await self._do(calls.site(key))

    async def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all."""
        return await self._do(calls.search(site, query, k, where))

    async def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """The same for several questions at once."""
        return await self._do(calls.search_batch(site, queries, k, where))

    async def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        return await self._do(calls.locate(site, url, structure, features))

    async def path(
        self,
        site: str,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
        others: int = 0,
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL."""
        return await self._do(calls.path(site, source, target, allow_goto=allow_goto, avoid=avoid, others=others))

    async def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """Find the state that is meant, and the way to it, in one call."""
        return await self._do(calls.navigate(wanted))

    async def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked."""
        return await self._do(calls.feedback(site, walked))

    async def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return await self._do(calls.node(site, node_id))

    async def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return (await self._send("GET", calls.screenshot_path(site, node_id))).content

    async def close(self) -> None:
        """Close the connections. Closing twice is allowed."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _do(self, call: Call[T]) -> T:
        response = await self._send(call.method, call.path, call.body, repeatable=call.repeatable)
        return _read(call, response, self.base_url)

    async def _send(self, method: str, path: str, body: object = None, *, repeatable: bool = True) -> httpx.Response:
        tries = _Tries(self.base_url, self._retries, repeatable=repeatable)
        for wait in tries:
            await asyncio.sleep(wait)
            try:
                tries.response = await self._http.request(method, path, json=body)
            except httpx.HTTPError as error:
                tries.error = error
        return tries.outcome()


class _Tries:
    """When to send a request again, and what came of it in the end. Yields seconds to wait before each try."""

    def __init__(self, base_url: str, retries: int, *, repeatable: bool) -> None:
        self._base_url = base_url
        self._retries = retries
        self._repeatable = repeatable
        self.response: httpx.Response | None = None
        self.error: httpx.HTTPError | None = None

    def __iter__(self) -> Iterator[float]:
        yield 0.0
        for number in range(self._retries):
            wait = self._wait(number)
            if wait is None:
                return
            self.response = self.error = None
            yield wait

    def _wait(self, number: int) -> float | None:
        """Seconds to wait before the next try; nothing when there is to be none."""
        growing = FIRST_WAIT * 2**number * random.uniform(0.5, 1.0)  # noqa: S311 - spreads callers, hides nothing
        if self.response is not None:
            asked = self.response.headers.get("retry-after", "")
            # A 503 that does not say when to come again means something that waiting does not mend.
            if self.response.status_code not in _COME_AGAIN and not (self.response.status_code == 503 and asked):
                return None
            wait = float(asked) if asked.isdecimal() else growing
            return wait if wait <= LONGEST_WAIT else None
        # A connection that could not be made carried nothing; after any other failure the request may have arrived.
        may_repeat = self._repeatable or isinstance(self.error, httpx.ConnectError | httpx.ConnectTimeout)
        # Whoever waited for an answer for as long as is allowed has waited enough.
        return growing if may_repeat and not isinstance(self.error, httpx.ReadTimeout) else None

    def outcome(self) -> httpx.Response:
        """The answer (the typed errors of `waygraph.errors` when it is none)."""
        error, where = self.error, self._base_url
        if self.response is not None:
            if self.response.is_success:
                return self.response
            raise _error(self.response)
        if isinstance(error, httpx.ConnectError):
            raise ServiceError(
                f"Nothing answers at {where} ({error}).", hint="Start it with 'waygraph serve', or check the URL."
            ) from error
        if isinstance(error, httpx.TimeoutException):
            raise ServiceError(
                f"{where} did not answer in time.", hint="Ask /readyz whether it is ready; try again."
            ) from error
        raise ServiceError(f"The connection to {where} failed ({error}).", hint="Try again.") from error


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _read(call: Call[T], response: httpx.Response, base_url: str) -> T:
    try:
        return call.answer.validate_json(response.content)
    except ValidationError as error:
        raise ServiceError(
            f"{base_url} did not answer as a waygraph service ({error.error_count()} differences).",
            hint="Check the address, and that service and client are of the same version.",
        ) from error


def _service_url(text: str) -> str:
    try:
        url = httpx.URL(text.rstrip("/"))
    except httpx.InvalidURL as error:
        raise InvalidInput(f"'{text}' is not a valid URL: {error}.", hint="Example: http://127.0.0.1:8321") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidInput(f"'{text}' is not a service address.", hint="Example: http://127.0.0.1:8321")
    return str(url)


def _error(response: httpx.Response) -> WaygraphError:
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        kind = _BY_STATUS.get(response.status_code, ServiceError)
        where = f"{response.request.method} {response.request.url}"
        return kind(f"{where} answered {response.status_code}.", hint="Is that a waygraph service?")
    kind = by_slug(schemas.problem_slug(problem.type)) or _BY_STATUS.get(problem.status, ServiceError)
    return kind(problem.detail, hint=problem.hint)
