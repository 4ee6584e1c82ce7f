"""Responses of one site that serve all its pages: static files, and answers to scripts, kept in memory for one run.

Browser contexts share no HTTP cache, and many servers send no cache headers. Without this store every page of every
worker requests each file again. The first response to each request is stored; the guard answers later requests of any
page with it, as long as `reuse_seconds` allows.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from waygraph.core.lru_cache import LruCache
from waygraph.pipeline.browser.guard.reuse import FOR_THE_RUN, SCRIPT_TYPES, STATIC_TYPES, varying_names

#: Time that a request waits for the response to the same request of another page, in seconds.
_MAX_WAIT_S = 5.0

#: Limit of the requests that are remembered as not storable.
_MAX_NOT_STORABLE = 10_000

#: Headers that do not apply to a stored response: its body is decoded and complete.
_TRANSFER_HEADERS = frozenset({"connection", "content-encoding", "content-length", "transfer-encoding"})

#: Memory of one header besides its texts.
_HEADER_BYTES = 200

#: Headers that do not apply to a stored file, which is fresh during the run.
_CACHE_HEADERS = frozenset({"age", "cache-control", "expires", "pragma", "vary"})

#: Headers of requests that ask for something else than the stored response.
_OWN_ANSWER = frozenset(
    {"authorization", "cache-control", "cookie", "if-match", "if-modified-since", "if-none-match", "if-range"}
    | {"if-unmodified-since", "pragma", "range"}
)

#: Headers of requests that do not select an answer, or are the same in all pages of a run.
_NO_CHOICE = frozenset({"accept-encoding", "accept-language", "origin", "referer", "user-agent"})

#: Returns the cookies that a page sends with a request.
ReadCookies = Callable[[], Awaitable[str]]


class RequestKey(NamedTuple):
    """Requests with equal keys get the same response, unless a file varies by cookie.

    Attributes
    ----------
    kind
        Resource type.
    url
        URL without fragment.
    origin
        The `Origin` header, which requests in CORS mode have: servers add headers for it.
    headers
        Further headers of a script's request, by which a server may choose an answer.
    """

    kind: str
    url: str
    origin: str
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def is_of_script(self) -> bool:
        """Whether a script reads the response."""
        return self.kind in SCRIPT_TYPES


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A stored response.

    Attributes
    ----------
    headers
        Headers in DevTools form.
    body
        Content in Base64.
    status
        HTTP status.
    stale_at
        Time of `time.monotonic` from which it is not used any more.
    """

    headers: tuple[dict[str, str], ...]
    body: str
    status: int = 200
    stale_at: float = FOR_THE_RUN

    def fulfilment(self, request_id: str) -> dict[str, Any]:
        """Return the parameters of `Fetch.fulfillRequest`."""
        return {
            "requestId": request_id,
            "responseCode": self.status,
            "responseHeaders": list(self.headers),
            "body": self.body,
        }


@dataclass(slots=True)
class _Transfer:
    """A request that was sent to the server; others with the same key wait for its response."""

    owner: object
    variant: str = ""
    """Cookies, or for a script how many changing requests were sent before: responses differ by them."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class StaticFiles:
    """Store of the static files of one site, and of answers to its scripts. All pages of the site share it.

    Parameters
    ----------
    max_bytes
        Memory for stored files; the least recently used ones are dropped first.
    counters
        Counters `requests/static`, `requests/static_reused`, `requests/script_reused`.
    """

    def __init__(self, max_bytes: int, counters: Counter[str]) -> None:
        self._files: LruCache[tuple[RequestKey, str], StaticFile] = LruCache(max_bytes)
        self._counters = counters
        self._by_cookie: set[RequestKey] = set()
        self._changing_requests = 0
        self._not_storable: set[RequestKey] = set()
        self._transfers: dict[RequestKey, _Transfer] = {}

    async def find(self, key: RequestKey, read_cookies: ReadCookies, owner: object) -> StaticFile | None:
        """Return the stored response to a request, after waiting for another page that has sent it for a file.

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
        if key.is_of_script:
            # Nobody waits for such an answer: it may be one that the server holds back.
            if file is not None:
                self._counters["requests/script_reused"] += 1
            elif key not in self._not_storable and key not in self._transfers:
                self._transfers[key] = _Transfer(owner, self._variant())
            return file
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
            transfer.variant = await read_cookies()
        return None

    def awaits(self, key: RequestKey, owner: object) -> bool:
        """Return whether the response to the request that `owner` sends is to be passed to `add`."""
        transfer = self._transfers.get(key)
        return transfer is not None and transfer.owner is owner

    def cookies_before(self, key: RequestKey) -> str:
        """Return the cookies of the page when it sent the request that `awaits` tells of; a script's had none."""
        return "" if key.is_of_script else self._transfers[key].variant

    def add(
        self,
        key: RequestKey,
        headers: Mapping[str, str],
        body: str,
        *,
        is_base64: bool,
        status: int = 200,
        seconds: float = FOR_THE_RUN,
    ) -> None:
        """Store the response that `awaits` wanted, and let the requests that wait for it proceed.

        Parameters
        ----------
        key
            The request.
        headers
            Headers of the response, by lower-case name.
        body
            The decoded content.
        is_base64
            Whether `body` is in Base64.
        status
            HTTP status.
        seconds
            For how long the response may be used, see `reuse_seconds`.
        """
        transfer = self._transfers.get(key)
        if transfer is None:
            return
        content = body if is_base64 else base64.b64encode(body.encode()).decode("ascii")
        if _varies_by_cookie(headers):
            self._by_cookie.add(key)
        variant = transfer.variant if key.is_of_script or key in self._by_cookie else ""
        file = StaticFile(_stored_headers(key, headers), content, status, time.monotonic() + seconds)
        headers_size = sum(_HEADER_BYTES + len(header["name"]) + len(header["value"]) for header in file.headers)
        self._files.put((key, variant), file, len(content) + len(key.url) + headers_size)
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

    def expect_changes(self) -> None:
        """Use no answer to a script any more that was requested so far: a request that may change data is sent."""
        self._changing_requests += 1

    def _variant(self) -> str:
        return str(self._changing_requests)

    async def _stored(self, key: RequestKey, read_cookies: ReadCookies) -> StaticFile | None:
        variant = self._variant() if key.is_of_script else await read_cookies() if key in self._by_cookie else ""
        file = self._files.get((key, variant))
        return file if file is not None and file.stale_at > time.monotonic() else None


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
        None for other methods than GET, other schemes than HTTP, requests for a range, and other resource types; for
        scripts that ask the server for a new answer, or log in with a header.
    """
    is_of_script = kind in SCRIPT_TYPES
    is_kept = is_of_script or kind in STATIC_TYPES
    if not is_kept or request["method"] != "GET" or not request["url"].startswith(("http:", "https:")):
        return None
    headers = {name.lower(): value for name, value in request["headers"].items()}
    if "range" in headers or (is_of_script and not _OWN_ANSWER.isdisjoint(headers)):
        return None
    own = ((name, value) for name, value in headers.items() if name not in _NO_CHOICE and not name.startswith("sec-"))
    return RequestKey(
        kind,
        request["url"].partition("#")[0],
        headers.get("origin", ""),
        tuple(sorted(own)) if is_of_script else (),
    )


def _varies_by_cookie(headers: Mapping[str, str]) -> bool:
    return "cookie" in varying_names(headers)


def _stored_headers(key: RequestKey, headers: Mapping[str, str]) -> tuple[dict[str, str], ...]:
    kept = {name: value for name, value in headers.items() if name not in _TRANSFER_HEADERS}
    if not key.is_of_script:
        kept = {name: value for name, value in kept.items() if name not in _CACHE_HEADERS}
        # The renderer then keeps the file in its own memory cache, which compares no cookies.
        kept["cache-control"] = "no-cache" if _varies_by_cookie(headers) else "max-age=86400, immutable"
    return tuple({"name": name, "value": value} for name, value in kept.items())
