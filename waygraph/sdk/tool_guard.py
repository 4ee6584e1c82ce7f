"""Guard of a caller's page while a tool is called: the network guard, for that time and for the tabs that it opens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error as PlaywrightError

from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.guard import (
    SAFE_METHODS,
    NetworkGuard,
    RequestPolicy,
    StateChangingUrls,
    websocket_message,
)
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.hazard_urls import state_changing_globs

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Route

log = logging.getLogger(__name__)

#: Kinds of stopped requests that a page sends by itself: reports of its use.
_BY_ITSELF = frozenset({"ping", "cspviolationreport", "unguarded"})
#: Most dialogs and WebSockets that are remembered of one call, and characters of a dialog.
_MAX_RECORDS, _MAX_DIALOG_CHARS = 100, 200
#: Operation code of WebSocket frames that hold a text.
_TEXT_FRAME = 1

_HAZARDS = HazardPolicy(follows_items=True)


def names_change(url: str) -> bool:
    """Return whether an address names a change at the server, such as `/logout`, so that loading it may change data."""
    return _HAZARDS.refuse_url(url) is not None


class CallGuard:
    """Guards the page of one call, and the tabs that open meanwhile.

    Stopped are requests that could change something, by their method or by their address, documents included. Service
    workers are bypassed: the page sends its requests itself. Messages over WebSockets are not stopped; those over
    connections that were made during the call are recorded as sent.

    Parameters
    ----------
    page
        The page.
    is_enforced
        Whether such requests are stopped; else they are only recorded.
    """

    def __init__(self, page: Page, *, is_enforced: bool) -> None:
        self._page = page
        self.is_enforced = is_enforced
        policy = RequestPolicy(
            mode="guard" if is_enforced else "observe",
            state_changing_urls=StateChangingUrls(names_change, state_changing_globs()),
        )
        self._policy = policy
        self._guard = NetworkGuard(self._judge_document, request_policy=policy)
        self.end_visit = self._guard.end_visit
        self.stopped: list[BlockedRequest] = []
        """Requests that were stopped, as of the last `take`."""
        self.sent: list[BlockedRequest] = []
        """Requests that could change something and were sent, as of the last `take`."""
        self.dialogs: list[str] = []
        """JavaScript dialogs that the page raised, as "type: message"."""
        self.documents = 0
        """Number of documents that the page has loaded."""
        self._sessions: list[tuple[Page, CDPSession]] = []
        self._attaching: list[asyncio.Future[None]] = []
        self._known: set[Page] = set()
        self._sockets: dict[str, str] = {}

    @property
    def requests(self) -> int:
        """Number of requests of scripts that passed."""
        return self._guard.requests

    async def attach(self) -> None:
        """Start to guard the page."""
        page = self._page
        self._known = set(page.context.pages)
        page.on("popup", self._on_popup)
        await page.context.route("**/*", self._on_route)
        session = await self._guard.attach(page)
        self._sessions.append((page, session))
        session.on("Page.javascriptDialogOpening", self._on_dialog)
        session.on("Page.frameNavigated", self._on_document)
        session.on("Network.webSocketCreated", self._on_socket)
        session.on("Network.webSocketFrameSent", self._on_message)
        await session.send("Page.enable")
        await session.send("Network.enable")
        await session.send("Network.setBypassServiceWorker", {"bypass": True})

    async def detach(self) -> None:
        """Stop guarding."""
        self._page.remove_listener("popup", self._on_popup)
        await asyncio.gather(*self._attaching, return_exceptions=True)
        for guarded, session in self._sessions:
            await self._guard.detach(guarded, session)
        try:
            await self._page.context.unroute("**/*", self._on_route)
        except PlaywrightError as error:
            log.info("use_tool/context_gone %s", error)
        self.take()

    def take(self) -> tuple[BlockedRequest, ...]:
        """Note what was stopped and sent meanwhile, and return what was stopped and is no report of the page's use."""
        taken = self._guard.take_stopped()
        self.stopped += taken.blocked
        self.stopped += (BlockedRequest("GET", url, "document") for url, reason in taken.refused if reason == "hazard")
        self.sent += taken.observed
        return tuple(each for each in self.stopped if each.kind not in _BY_ITSELF)

    def _judge_document(self, url: str) -> str | None:
        return "hazard" if self.is_enforced and names_change(url) else None

    def _on_document(self, event: Mapping[str, Any]) -> None:
        if event["frame"].get("parentId"):
            return
        self.documents += 1
        url = event["frame"]["url"]
        if not self.is_enforced and names_change(url) and all(each.url != url for each in self.sent):
            self.sent.append(BlockedRequest("GET", url, "document"))

    def _on_dialog(self, event: Mapping[str, Any]) -> None:
        if len(self.dialogs) < _MAX_RECORDS:
            self.dialogs.append(f"{event['type']}: {event['message'][:_MAX_DIALOG_CHARS]}")

    def _on_socket(self, event: Mapping[str, Any]) -> None:
        if len(self._sockets) < _MAX_RECORDS:
            self._sockets[event["requestId"]] = event["url"]

    def _on_message(self, event: Mapping[str, Any]) -> None:
        url, frame = self._sockets.get(event["requestId"]), event["response"]
        if url is None or len(self.sent) >= _MAX_RECORDS:
            return
        message = websocket_message(url, frame["payloadData"], is_binary=frame["opcode"] != _TEXT_FRAME)
        if self._policy.message_may_change(message):
            self.sent.append(BlockedRequest("SEND", url, "websocket"))

    def _on_popup(self, tab: Page) -> None:
        self._attaching.append(asyncio.ensure_future(self._guard_tab(tab)))

    async def _guard_tab(self, tab: Page) -> None:
        try:
            self._sessions.append((tab, await self._guard.attach(tab)))
            self._known.add(tab)
        except PlaywrightError as error:
            log.info("use_tool/tab_gone %s: %s", tab.url, error)

    def _on_route(self, route: Route) -> None:
        # No coroutine: the sync API awaits none.
        self._attaching.append(asyncio.ensure_future(self._judge_tab(route)))

    async def _judge_tab(self, route: Route) -> None:
        """Judge the first request of a tab, for which there is no DevTools session of ours yet."""
        request = route.request
        is_change = request.is_navigation_request() and (
            request.method not in SAFE_METHODS or names_change(request.url)
        )
        if is_change and not self._is_known(route):
            self._guard.record(BlockedRequest(request.method, request.url, "document"))
            if self.is_enforced:
                await route.abort("aborted")
                return
        await route.fallback()

    def _is_known(self, route: Route) -> bool:
        try:
            return route.request.frame.page in self._known
        except PlaywrightError:
            return False  # the first request of a tab, whose frame Playwright does not know yet
