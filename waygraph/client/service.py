"""Client of a running waygraph service over HTTP, with retries and with the service's errors as typed exceptions."""

from __future__ import annotations

import asyncio
import random
import time
from abc import ABC, abstractmethod
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from waygraph.client.blocking import run_to_completion
from waygraph.client.map_source import AsyncMapSource, MapSource
from waygraph.client.requests import MapRequest
from waygraph.core import schemas
from waygraph.core.errors import InvalidInput, RateLimited, ServiceError, Unauthorized, WaygraphError, error_class_for
from waygraph.core.schemas import Problem

T = TypeVar("T")

#: The first request about a site makes the service open its map; after that answers take milliseconds.
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
#: Further attempts after one that failed to connect, or found the service busy.
RETRIES = 3
#: Longest wait before the first retry, in seconds. It doubles with each further retry.
FIRST_BACKOFF = 0.2
#: Longest `Retry-After` that is respected, in seconds; after a longer one the request fails at once.
LONGEST_WAIT = 10.0
#: Statuses that request a retry: too many requests, and the answers of proxies while a service starts.
_RETRY_STATUSES = frozenset({429, 502, 504})

#: Error classes for problems without a known type, and for answers that are not problems.
_ERROR_BY_STATUS: dict[int, type[WaygraphError]] = {
    401: Unauthorized, 413: InvalidInput, 422: InvalidInput, 429: RateLimited,
}  # fmt: skip


class _HttpExchange(ABC):
    """Sends requests to a service, repeats those that may be repeated, and reads the answers.

    Subclasses send one HTTP request and wait, either suspending or blocking.

    Parameters
    ----------
    base_url
        URL of the service.
    retries
        Further attempts per request.
    """

    def __init__(self, base_url: str, retries: int) -> None:
        self.base_url = base_url
        self._retries = retries

    @abstractmethod
    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response: ...

    @abstractmethod
    async def _sleep(self, seconds: float) -> None: ...

    async def _exchange(self, request: MapRequest[T]) -> T:
        endpoint, path, body = request.endpoint, request.http_path(), request.http_body()
        retries_left = self._retries
        longest_backoff = FIRST_BACKOFF
        while True:
            try:
                response = await self._request(endpoint.method, path, body)
            except httpx.HTTPError as error:
                may_retry = _may_retry_after(error, repeatable=endpoint.repeatable)
                retry_after = None
                if not (retries_left and may_retry):
                    raise _connection_error(error, self.base_url) from error
            else:
                may_retry, retry_after = _retry_requested_by(response)
                if not (retries_left and may_retry):
                    return self._parse(request, response)
            # The random part keeps clients that failed together from retrying together.
            backoff = longest_backoff * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
            await self._sleep(backoff if retry_after is None else retry_after)
            retries_left -= 1
            longest_backoff *= 2

    def _parse(self, request: MapRequest[T], response: httpx.Response) -> T:
        if not response.is_success:
            raise _answered_error(response)
        try:
            return request.endpoint.parse_answer(response.content)
        except ValidationError as error:
            raise ServiceError(
                f"{self.base_url} did not answer as a waygraph service ({error.error_count()} differences).",
                hint="Check the address, and that service and client have the same version.",
            ) from error


class ServiceMap(_HttpExchange, MapSource):
    """The maps of a running service. Thread-safe.

    A request is sent again when the connection fails or the service requests a retry, after the time in its
    `Retry-After` header or a growing, random wait. A report (`feedback`) is sent again only if it certainly did not
    arrive.

    Parameters
    ----------
    base_url
        URL of the service, for example `http://127.0.0.1:8321`.
    api_key
        Sent as `Authorization: Bearer`; required if the service was started with keys.
    retries
        Further attempts per request; 0 disables retries.

    Raises
    ------
    InvalidInput
        If `base_url` is not an http(s) URL.
    """

    def __init__(self, base_url: str, api_key: str | None = None, *, retries: int = RETRIES) -> None:
        super().__init__(_service_url(base_url), retries)
        self._http = httpx.Client(base_url=self.base_url, headers=_headers(api_key), timeout=TIMEOUT)

    def send(self, request: MapRequest[T]) -> T:
        """Answer one request."""
        return run_to_completion(self._exchange(request))

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        return self._http.request(method, path, json=body)

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - runs without an event loop

    def close(self) -> None:
        """Close the connections. Closing twice is allowed."""
        self._http.close()


class AsyncServiceMap(_HttpExchange, AsyncMapSource):
    """The maps of a running service, for programs with an event loop; retries are those of `ServiceMap`.

    Parameters
    ----------
    base_url
        URL of the service, for example `http://127.0.0.1:8321`.
    api_key
        Sent as `Authorization: Bearer`; required if the service was started with keys.
    retries
        Further attempts per request; 0 disables retries.
    transport
        Replaces the network, for example to call an application in this process.

    Raises
    ------
    InvalidInput
        If `base_url` is not an http(s) URL.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(_service_url(base_url), retries)
        self._http = httpx.AsyncClient(
            base_url=self.base_url, headers=_headers(api_key), timeout=TIMEOUT, transport=transport
        )

    async def send(self, request: MapRequest[T]) -> T:
        """Answer one request."""
        return await self._exchange(request)

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        return await self._http.request(method, path, json=body)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connections. Closing twice is allowed."""
        await self._http.aclose()


def _may_retry_after(error: httpx.HTTPError, *, repeatable: bool) -> bool:
    """Whether to send a request again after a failed connection."""
    # A connection that was not established carried nothing; after any other failure the request may have arrived.
    certainly_not_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    # A request that reached its read timeout has used up the time that a caller is made to wait.
    return (repeatable or certainly_not_sent) and not isinstance(error, httpx.ReadTimeout)


def _retry_requested_by(response: httpx.Response) -> tuple[bool, float | None]:
    """Return whether to send a request again after a response, and the seconds to wait if the response names them."""
    header = response.headers.get("retry-after", "")
    retry_after = float(header) if header.isdecimal() else None
    # A 503 without Retry-After has a cause that waiting does not remove.
    is_busy = response.status_code in _RETRY_STATUSES or (response.status_code == 503 and header != "")
    return is_busy and (retry_after is None or retry_after <= LONGEST_WAIT), retry_after


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _service_url(text: str) -> str:
    try:
        url = httpx.URL(text.rstrip("/"))
    except httpx.InvalidURL as error:
        raise InvalidInput(f"'{text}' is not a valid URL: {error}.", hint="Example: http://127.0.0.1:8321") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidInput(f"'{text}' is not a service address.", hint="Example: http://127.0.0.1:8321")
    return str(url)


def _connection_error(error: httpx.HTTPError, base_url: str) -> ServiceError:
    if isinstance(error, httpx.ConnectError):
        return ServiceError(
            f"Nothing answers at {base_url} ({error}).", hint="Start it with 'waygraph serve', or check the URL."
        )
    if isinstance(error, httpx.TimeoutException):
        return ServiceError(
            f"{base_url} did not answer in time.", hint="GET /readyz tells whether it is ready; try again."
        )
    return ServiceError(f"The connection to {base_url} failed ({error}).", hint="Try again.")


def _answered_error(response: httpx.Response) -> WaygraphError:
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        kind = _ERROR_BY_STATUS.get(response.status_code, ServiceError)
        url = f"{response.request.method} {response.request.url}"
        return kind(f"{url} answered {response.status_code}.", hint="Is that a waygraph service?")
    kind = error_class_for(schemas.problem_slug(problem.type)) or _ERROR_BY_STATUS.get(problem.status, ServiceError)
    return kind(problem.detail, hint=problem.hint)
