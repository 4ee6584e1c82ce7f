"""Static files of one site (scripts, style sheets, fonts, images), kept in memory for one run.

Browser contexts share no HTTP cache, and many servers send no cache headers. Without this store every page of every
worker requests each file again. The first response to each request is stored; the guard answers later requests of any
page with it.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from waygraph.core.lru_cache import LruCache

#: Resource types of the DevTools protocol whose responses are stored.
STATIC_TYPES = ("Script", "Stylesheet", "Font", "Image")

#: A larger file is not stored, in bytes.
MAX_FILE_BYTES = 8 << 20

#: Time that a request waits for the response to the same request of another page, in seconds.
_MAX_WAIT_S = 5.0

#: Limit of the requests that are remembered as not storable.
_MAX_NOT_STORABLE = 10_000

#: Headers that browsers send with the same value in every request of one resource type.
_CONSTANT_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})

#: Headers that do not apply to a stored response: its body is decoded and complete, and it is fresh during the run.
_DROPPED_HEADERS = frozenset(
    {"age", "cache-control", "connection", "content-encoding", "content-length", "expires", "pragma"}
    | {"transfer-encoding", "vary"}
)

#: Returns the cookies that a page sends with a request.
ReadCookies = Callable[[], Awaitable[str]]


class RequestKey(NamedTuple):
    """Requests with equal keys get the same response, unless it varies by cookie.

    Attributes
    ----------
    kind
        Resource type.
    url
        URL without fragment.
    origin
        The `Origin` header, which requests in CORS mode have: servers add headers for it.
    """

    kind: str
    url: str
    origin: str


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A stored response with status 200.

    Attributes
    ----------
    headers
        Headers in DevTools form.
    body
        Content in Base64.
    """

    headers: tuple[dict[str, str], ...]
    body: str

    def fulfilment(self, request_id: str) -> dict[str, Any]:
        """Return the parameters of `Fetch.fulfillRequest`."""
        return {
            "requestId": request_id,
            "responseCode": 200,
            "responseHeaders": list(self.headers),
            "body": self.body,
        }


@dataclass(slots=True)
class _Transfer:
    """A request that was sent to the server; others with the same key wait for its response."""

    owner: object
    cookies: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class StaticFiles:
    """Store of the static files of one site. All pages of the site share it.

    Parameters
    ----------
    max_bytes
        Memory for stored files; the least recently used ones are dropped first.
    counters
        Counters `requests/static`, `requests/static_reused`.
    """

    def __init__(self, max_bytes: int, counters: Counter[str]) -> None:
        self._files: LruCache[tuple[RequestKey, str], StaticFile] = LruCache(max_bytes)
        self._counters = counters
        self._by_cookie: set[RequestKey] = set()
        self._not_storable: set[RequestKey] = set()
        self._transfers: dict[RequestKey, _Transfer] = {}

    async def find(self, key: RequestKey, read_cookies: ReadCookies, owner: object) -> StaticFile | None:
        """Return the stored response to a request, after waiting for another page that has sent the same request.

        Parameters
        ----------
        key
            The request.
        read_cookies
            Reads the cookies of the page, for responses that vary by cookie.
        owner
            The page. If it is left before the response to its request arrives, `release` lets others send theirs.

        Returns
        -------
        StaticFile or None
            None: the request has to be sent. `awaits` tells whether its response is wanted then.
        """
        file = await self._stored(key, read_cookies)
        if file is None and (transfer := self._transfers.get(key)) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_MAX_WAIT_S):
                    await transfer.ended.wait()
            file = await self._stored(key, read_cookies)
        if file is not None:
            self._counters["requests/static_reused"] += 1
            return file
        self._counters["requests/static"] += 1
        if key not in self._not_storable and key not in self._transfers:
            self._transfers[key] = transfer = _Transfer(owner)
            transfer.cookies = await read_cookies()
        return None

    def awaits(self, key: RequestKey, owner: object) -> bool:
        """Return whether the response to the request that `owner` sends is to be passed to `add`."""
        transfer = self._transfers.get(key)
        return transfer is not None and transfer.owner is owner

    def add(self, key: RequestKey, headers: Mapping[str, str], body: str, *, is_base64: bool) -> None:
        """Store the response that `awaits` wanted, and let the requests that wait for it proceed.

        Parameters
        ----------
        key
            The request.
        headers
            Headers of the response, by lower-case name; `is_storable` must hold for them.
        body
            The decoded content.
        is_base64
            Whether `body` is in Base64.
        """
        transfer = self._transfers.get(key)
        if transfer is None:
            return
        content = body if is_base64 else base64.b64encode(body.encode()).decode("ascii")
        if _varies_by_cookie(headers):
            self._by_cookie.add(key)
        cookies = transfer.cookies if key in self._by_cookie else ""
        self._files.put((key, cookies), StaticFile(_stored_headers(headers), content), len(content))
        self.end(key)

    def end(self, key: RequestKey, *, is_storable: bool = True) -> None:
        """Let the requests that wait for a response proceed, whether or not it was stored."""
        if not is_storable and len(self._not_storable) < _MAX_NOT_STORABLE:
            self._not_storable.add(key)
        if (transfer := self._transfers.pop(key, None)) is not None:
            transfer.ended.set()

    def release(self, owner: object) -> None:
        """End the transfers of a page that shows another document now, or is closed: the browser cancelled them."""
        for key in [key for key, transfer in self._transfers.items() if transfer.owner is owner]:
            self.end(key)

    async def _stored(self, key: RequestKey, read_cookies: ReadCookies) -> StaticFile | None:
        return self._files.get((key, await read_cookies() if key in self._by_cookie else ""))


def request_key(kind: str, request: Mapping[str, Any]) -> RequestKey | None:
    """Return the key of a request of a page; None if its response cannot be stored.

    Parameters
    ----------
    kind
        Resource type of the DevTools protocol.
    request
        `request` of the event `Fetch.requestPaused`.

    Returns
    -------
    RequestKey or None
        None for other methods than GET, other schemes than HTTP, requests for a range, and other resource types.
    """
    if kind not in STATIC_TYPES or request["method"] != "GET" or not request["url"].startswith(("http:", "https:")):
        return None
    headers = {name.lower(): value for name, value in request["headers"].items()}
    if "range" in headers:
        return None
    return RequestKey(kind, request["url"].partition("#")[0], headers.get("origin", ""))


def is_storable(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a response may answer later requests of the same run.

    Parameters
    ----------
    status
        HTTP status.
    headers
        Headers by lower-case name.

    Returns
    -------
    bool
        False for `no-store`, responses that set cookies or vary by headers which the guard does not see, pages, and
        large files.
    """
    length = headers.get("content-length", "0")
    return (
        status == 200
        and "no-store" not in headers.get("cache-control", "").lower()
        and "set-cookie" not in headers
        and "text/html" not in headers.get("content-type", "").lower()
        and _varying_names(headers) <= _CONSTANT_HEADERS | {"origin", "cookie"}
        and (not length.isdigit() or int(length) <= MAX_FILE_BYTES)
    )


def _varying_names(headers: Mapping[str, str]) -> set[str]:
    return {name.strip().lower() for name in headers.get("vary", "").split(",")} - {""}


def _varies_by_cookie(headers: Mapping[str, str]) -> bool:
    return "cookie" in _varying_names(headers)


def _stored_headers(headers: Mapping[str, str]) -> tuple[dict[str, str], ...]:
    kept = {name: value for name, value in headers.items() if name not in _DROPPED_HEADERS}
    # The renderer then keeps the file in its own memory cache, which compares no cookies.
    kept["cache-control"] = "no-cache" if _varies_by_cookie(headers) else "max-age=86400, immutable"
    return tuple({"name": name, "value": value} for name, value in kept.items())
