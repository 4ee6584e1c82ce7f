"""Gate of a browser context: only documents that a policy allows are requested, by whatever shows them.

Scripts, images and data pass; documents of tabs, popups and frames are stopped before they are requested. Two ways of
interception complement each other. Playwright's routes hold the first request of a popup, which no DevTools session of
ours exists for yet, and do not see redirects. DevTools sessions see redirects.

The first request of a popup that a server in the scope redirects out of it is the one that is sent: the popup is then
closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error as PlaywrightError

from waygraph.pipeline.browser.guard.child_targets import ChildSession, DevToolsSession, TargetTree

if TYPE_CHECKING:
    import re

    from playwright.async_api import BrowserContext, Page, Route

log = logging.getLogger(__name__)

_DOCUMENTS = [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]
#: Documents without a server: their content comes from the page that shows them.
_LOCAL_SCHEMES = ("about:", "data:", "blob:")
#: Limit of the documents recorded between two calls of `take_refused`. All are counted.
_MAX_RECORDS = 100


class DocumentGate:
    """Refuses documents in all pages of one context. Attach it before pages load anything.

    Parameters
    ----------
    refuses
        Whether a document at this URL must not be loaded.
    suspects
        Matches at least all URLs of HTTP that `refuses` refuses: only these requests are held for a moment.
    """

    def __init__(self, refuses: Callable[[str], bool], suspects: re.Pattern[str]) -> None:
        self._refuses = refuses
        self._suspects = suspects
        self._context: BrowserContext | None = None
        self._refused: list[str] = []
        self._pending: set[asyncio.Future[None]] = set()
        self.count = 0
        """Number of documents that were refused, in tabs and in frames."""

    async def attach(self, context: BrowserContext) -> None:
        """Watch the pages of `context`, and all that open from now on; `PlaywrightError` if it is gone."""
        self._context = context
        await context.route(self._suspects, self._judge_route)
        context.on("page", self._watch_later)
        for page in context.pages:
            await self._watch(page)

    async def detach(self) -> None:
        """Refuse nothing any longer; the pages stay open."""
        if self._context is not None:
            context, self._context = self._context, None
            context.remove_listener("page", self._watch_later)
            try:
                await context.unroute(self._suspects, self._judge_route)
            except PlaywrightError as error:
                log.debug("gate/gone %s", error)

    async def take_refused(self) -> list[str]:
        """Return the addresses of documents that tabs tried to show since the last call, and may not."""
        await asyncio.gather(*self._pending)  # a popup may just have opened
        refused, self._refused = self._refused, []
        return list(dict.fromkeys(refused))

    def _is_refused(self, url: str) -> bool:
        if self._context is None or url.startswith(_LOCAL_SCHEMES):
            return False
        try:
            return self._refuses(url)
        except ValueError:
            return True  # an address that the policy cannot read is not loaded

    def _record(self, url: str, *, is_tab: bool) -> None:
        log.info("gate/refused %s", url)
        self.count += 1
        if is_tab and len(self._refused) < _MAX_RECORDS:
            self._refused.append(url)

    async def _judge_route(self, route: Route) -> None:
        request = route.request
        if not request.is_navigation_request() or not self._is_refused(request.url):
            await route.fallback()
            return
        try:
            is_tab = request.frame.parent_frame is None
        except PlaywrightError:
            is_tab = True  # the first request of a tab, whose frame Playwright does not know yet
        self._record(request.url, is_tab=is_tab)
        await route.abort("aborted")  # leaves the current document in place

    def _watch_later(self, page: Page) -> None:
        self._spawn(self._watch_popup(page))

    async def _watch_popup(self, page: Page) -> None:
        try:
            await self._watch(page)
            if self._is_refused(page.url):
                self._record(page.url, is_tab=True)
                await page.close()
        except PlaywrightError as error:
            log.debug("gate/popup_gone %s: %s", page.url, error)

    async def _watch(self, page: Page) -> None:
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        main_frame = tree["frameTree"]["frame"]["id"]

        def on_event(source: DevToolsSession, method: str, event: Mapping[str, Any]) -> None:
            if method == "Fetch.requestPaused":
                self._spawn(self._judge(source, event, is_tab=event["frameId"] == main_frame))

        session.on("Fetch.requestPaused", lambda event: on_event(session, "Fetch.requestPaused", event))
        await session.send("Fetch.enable", {"patterns": _DOCUMENTS})
        below = TargetTree(session, prepare=_prepare, may_run=lambda _: False, on_event=on_event, spawn=self._spawn)
        await below.watch()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def _judge(self, source: DevToolsSession, event: Mapping[str, Any], *, is_tab: bool) -> None:
        url = event["request"]["url"]
        command, parameters = "Fetch.continueRequest", {"requestId": event["requestId"]}
        # Playwright's route judges what is no redirect, and would otherwise be told of a failure of its own request.
        if self._is_refused(url):
            command, parameters["errorReason"] = "Fetch.failRequest", "Aborted"
            self._record(url, is_tab=is_tab)
        try:
            await source.send(command, parameters)
        except PlaywrightError as error:
            log.debug("gate/answer_too_late %s: %s", url, error)


async def _prepare(child: ChildSession) -> None:
    if child.kind == "iframe":
        await child.send("Fetch.enable", {"patterns": _DOCUMENTS})
