"""Which requests may leave the page? Stops state-changing requests and documents that policy refuses, on the wire."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from index.graph import BlockedRequest

log = logging.getLogger(__name__)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

#: Only what can change something on a server, or show another document; images, styles and scripts pass untouched.
_PATTERNS = [
    {"urlPattern": "*", "resourceType": kind, "requestStage": "Request"}
    for kind in ("Document", "XHR", "Fetch", "Ping", "Other", "CSPViolationReport")
]

#: Says why a document must not be loaded, or nothing when it may.
DocumentPolicy = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class HeldNavigation:
    """A document (GET) that the page wanted to go to and was kept from: it still shows the one before."""

    url: str
    referrer: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a guard stopped.

    Attributes
    ----------
    blocked : requests that could change something at the server.
    refused : documents outside of what may be visited, as (URL, reason).
    held : documents that may be visited, which the guard was told to hold back.
    """

    blocked: tuple[BlockedRequest, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    held: tuple[HeldNavigation, ...] = ()


class NetworkGuard:
    """Watches the requests of one page over the DevTools protocol (`Fetch` domain) and keeps what it stopped.

    With `hold` set, the main frame stays on its document: where it wants to go is told by `take`, so that the caller
    can load it elsewhere and go on with this one.

    Limits: requests of workers in other processes and WebSocket messages are not seen.
    """

    def __init__(self, policy: DocumentPolicy) -> None:
        self._policy = policy
        self.hold = False
        self._blocked: list[BlockedRequest] = []
        self._refused: list[tuple[str, str]] = []
        self._held: list[HeldNavigation] = []
        self._pending: set[asyncio.Task[None]] = set()

    async def attach(self, page: Page) -> CDPSession:
        """Guard `page` from now on; returns the DevTools session, which the caller may use as well."""
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        main_frame: str = tree["frameTree"]["frame"]["id"]

        def on_paused(event: Mapping[str, Any]) -> None:
            task = asyncio.ensure_future(self._decide(session, event, main_frame))
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

        session.on("Fetch.requestPaused", on_paused)
        await session.send("Fetch.enable", {"patterns": _PATTERNS})
        return session

    def take(self) -> Stopped:
        """What was stopped since the last call."""
        taken = Stopped(tuple(self._blocked), tuple(self._refused), tuple(self._held))
        for kept in (self._blocked, self._refused, self._held):
            kept.clear()
        return taken

    def _refusal(self, url: str) -> str | None:
        try:
            return self._policy(url)
        except ValueError:
            log.exception("guard/policy_failed %s", url)
            return "malformed"  # a URL that cannot be judged is not loaded

    async def _decide(self, session: CDPSession, event: Mapping[str, Any], main_frame: str) -> None:
        request = event["request"]
        method, url = request["method"], request["url"]
        verdict = "Fetch.continueRequest"
        details: dict[str, Any] = {"requestId": event["requestId"]}
        if url.startswith(("http:", "https:")):
            document = event["resourceType"] == "Document"
            leaves = document and event["frameId"] == main_frame
            reason = self._refusal(url) if leaves else None
            held = self.hold and leaves and method in SAFE_METHODS and reason is None
            if held:
                self._held.append(HeldNavigation(url, request["headers"].get("Referer", "")))
            if method not in SAFE_METHODS:
                self._blocked.append(BlockedRequest(method, url, event["resourceType"].lower()))
            elif reason is not None:
                self._refused.append((url, reason))
            if held or method not in SAFE_METHODS or reason is not None:
                verdict = "Fetch.failRequest"
                # "Aborted" leaves the current document in place, any other reason replaces it with an error page.
                details["errorReason"] = "Aborted" if document else "BlockedByClient"
        try:
            await session.send(verdict, details)
        except PlaywrightError as error:
            # The page went away meanwhile, and its requests with it.
            log.debug("guard/answer_too_late %s %s: %s", method, url, error)
