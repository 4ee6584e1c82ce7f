"""Which requests may leave the page? Stops state-changing requests and documents that policy refuses, on the wire."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
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


class NetworkGuard:
    """Watches the requests of one page over the DevTools protocol (`Fetch` domain).

    What it stopped since the last `take` is kept: `blocked` are requests that could change something at the server,
    `refused` are documents outside of what may be visited, with the reason.

    Limits: requests of workers in other processes and WebSocket messages are not seen.
    """

    def __init__(self, policy: DocumentPolicy) -> None:
        self._policy = policy
        self._blocked: list[BlockedRequest] = []
        self._refused: list[tuple[str, str]] = []
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

    def take(self) -> tuple[tuple[BlockedRequest, ...], tuple[tuple[str, str], ...]]:
        """What was stopped since the last call, as (blocked, refused)."""
        taken = tuple(self._blocked), tuple(self._refused)
        self._blocked.clear()
        self._refused.clear()
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
            reason = self._refusal(url) if document and event["frameId"] == main_frame else None
            if method not in SAFE_METHODS:
                self._blocked.append(BlockedRequest(method, url, event["resourceType"].lower()))
            elif reason is not None:
                self._refused.append((url, reason))
            if method not in SAFE_METHODS or reason is not None:
                verdict = "Fetch.failRequest"
                # "Aborted" leaves the current document in place, any other reason replaces it with an error page.
                details["errorReason"] = "Aborted" if document else "BlockedByClient"
        try:
            await session.send(verdict, details)
        except PlaywrightError as error:
            # The page went away meanwhile, and its requests with it.
            log.debug("guard/answer_too_late %s %s: %s", method, url, error)
