"""How is a page asked something without waiting for ever? It may hang, crash, or go away while it is asked."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec
from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from pipeline.browser.closed_roots import disclose
from waygraph.errors import BrowserFailure
from waygraph.settings import BrowserSettings

log = logging.getLogger(__name__)
T = TypeVar("T")

#: What Playwright says when a document goes away while it is being asked something.
NAVIGATED = (
    "Execution context was destroyed", "Cannot find context", "Cannot find default execution context",
    "frame was detached", "Frame was detached", "Promise was collected", "Inspected target navigated",
)  # fmt: skip


def read_answer(raw: str) -> Any:  # noqa: ANN401 - JSON
    """What the in-page script answers, from its JSON."""
    try:
        return msgspec.json.decode(raw)  # takes a third of the time
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(raw)  # half a character, which only scripts can write


class NoAnswer(BrowserFailure):
    """The page did not answer in time."""


class Asker:
    """Asks the main document of one page.

    Parameters
    ----------
    own : whether the page is ours: asked over the DevTools protocol then, without functions of the page.
    """

    def __init__(self, page: Page, settings: BrowserSettings, *, own: bool) -> None:
        self._page = page
        self._own = own
        self._devtools: CDPSession | None = None
        self._crashed = False
        self._limits: set[asyncio.Timeout] = set()
        """Of the calls that are under way."""
        self.patience_s = (settings.navigation_timeout_ms + settings.settle_cap_ms) / 1000
        """So long a call is waited for unless another limit is given, in seconds."""
        page.on("crash", self._on_crash)

    def detach(self) -> None:
        """Stop listening to the page."""
        self._page.remove_listener("crash", self._on_crash)

    async def ask(self, expression: str, argument: object, patience_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """What a function expression, called with `argument` in the page, returns: plain JSON."""
        if not self._own:
            return await self.within(self._page.evaluate(expression, argument), patience_s)
        return await self.within(self._evaluate(f"({expression})({json.dumps(argument)})"), patience_s)

    async def _evaluate(self, code: str) -> Any:  # noqa: ANN401 - whatever the page returns
        # Playwright's own way needs functions of the page, which a page may have replaced.
        devtools = await self._session()
        answer = await devtools.send(
            "Runtime.evaluate",
            {"expression": code, "awaitPromise": True, "returnByValue": True, "userGesture": True},
        )
        if "exceptionDetails" in answer:
            problem = answer["exceptionDetails"]
            said = problem.get("exception", {}).get("description", problem["text"])
            raise BrowserFailure(f"{self._page.url}: {said}")
        return answer["result"].get("value")

    async def collect_garbage(self) -> None:
        """Have the process of the page free the documents that were left; it keeps hundreds of megabytes of them."""
        await self.within((await self._session()).send("HeapProfiler.collectGarbage"))

    async def disclose_roots(self) -> None:
        """Hand the closed shadow roots that were written into a page of ours to its script, see `closed_roots`."""
        try:
            found = await self.within(disclose(await self._session()))
            log.debug("roots/disclosed %d %s", found, self._page.url)
        except PlaywrightError as error:
            # The document or a part of it went away; whatever takes its place tells of its own.
            log.info("roots/not_disclosed %s: %s", self._page.url, error)

    async def _session(self) -> CDPSession:
        if self._devtools is None:
            self._devtools = await self._page.context.new_cdp_session(self._page)
        return self._devtools

    async def within(self, call: Awaitable[T], patience_s: float = 0.0) -> T:
        """Await a browser call, but not for ever: a page in an endless loop answers nothing (NoAnswer).

        A page whose process crashed answers nothing either, and is not waited for (BrowserFailure).
        """
        patience_s = patience_s or self.patience_s
        limit = asyncio.timeout(0 if self._crashed else patience_s)
        self._limits.add(limit)
        try:
            async with limit:
                return await call
        except TimeoutError as error:
            if self._crashed:
                raise BrowserFailure(f"{self._page.url}: the process of the page crashed.") from error
            raise NoAnswer(f"{self._page.url} gave no answer for {patience_s:.0f} s.") from error
        finally:
            self._limits.discard(limit)

    def _on_crash(self, _: Page) -> None:
        self._crashed = True
        for limit in self._limits:
            limit.reschedule(asyncio.get_running_loop().time())
