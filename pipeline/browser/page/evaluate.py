"""Evaluation of scripts in a page with a timeout: the page may hang, crash, or go away during the call."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec
from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.page.closed_roots import disclose
from waygraph.pipeline.browser.page.failures import FailureKind, PageFailure

log = logging.getLogger(__name__)
T = TypeVar("T")


def parse_script_result(raw: str) -> Any:  # noqa: ANN401 - JSON
    """Parse the JSON that the in-page script returns."""
    try:
        return msgspec.json.decode(raw)  # takes a third of the time of `json`
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(raw)  # half of a surrogate pair, which only scripts can write


class PageUnresponsive(PageFailure):
    """The page did not respond in time."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.NO_ANSWER, **more: Any) -> None:  # noqa: ANN401
        super().__init__(message, kind, **more)


class PageEvaluator:
    """Evaluates scripts in the main document of one page.

    Parameters
    ----------
    page
        The page.
    settings
        Timeouts.
    owned
        Whether waygraph owns the page: scripts are then evaluated over the DevTools protocol. Playwright's own way uses
        functions of the page, which the page may have replaced.
    """

    def __init__(self, page: Page, settings: BrowserSettings, *, owned: bool) -> None:
        self._page = page
        self._owned = owned
        self._devtools: CDPSession | None = None
        self._has_crashed = False
        self._timeouts: set[asyncio.Timeout] = set()
        """Timeouts of the calls that are under way."""
        self.timeout_s = (settings.navigation_timeout_ms + settings.settle_cap_ms) / 1000
        """Default timeout of a call, in seconds."""
        page.on("crash", self._on_crash)

    def detach(self) -> None:
        """Stop listening to the page."""
        self._page.remove_listener("crash", self._on_crash)

    async def evaluate(self, expression: str, argument: object, timeout_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """Call a function expression with `argument` in the page and return its result, which must be plain JSON.

        Parameters
        ----------
        expression
            JavaScript whose value is a function.
        argument
            A JSON value.
        timeout_s
            Timeout in seconds; 0: the default, `timeout_s`.

        Returns
        -------
        Any
            The result of the function; promises are awaited.

        Raises
        ------
        PageFailure
            If the script throws, or the page does not respond.
        PlaywrightError
            If the document goes away.
        """
        if not self._owned:
            return await self.with_timeout(self._page.evaluate(expression, argument), timeout_s)
        return await self.with_timeout(
            self._evaluate_over_devtools(f"({expression})({json.dumps(argument)})"), timeout_s
        )

    async def _evaluate_over_devtools(self, code: str) -> Any:  # noqa: ANN401 - the page's value
        devtools = await self._session()
        response = await devtools.send(
            "Runtime.evaluate",
            {"expression": code, "awaitPromise": True, "returnByValue": True, "userGesture": True},
        )
        if "exceptionDetails" in response:
            details = response["exceptionDetails"]
            description = details.get("exception", {}).get("description", details["text"])
            raise PageFailure(f"{self._page.url}: {description}")
        return response["result"].get("value")

    async def collect_garbage(self) -> None:
        """Free the documents that the page has left; its process keeps hundreds of megabytes of them otherwise."""
        await self.with_timeout((await self._session()).send("HeapProfiler.collectGarbage"))

    async def disclose_roots(self) -> None:
        """Pass closed shadow roots in the page to the in-page script, see `closed_roots`."""
        try:
            roots = await self.with_timeout(disclose(await self._session()))
            log.debug("roots/disclosed %d %s", roots, self._page.url)
        except PlaywrightError as error:
            # The document or a part of it went away; its successor reports its own suspects.
            log.info("roots/not_disclosed %s: %s", self._page.url, error)

    async def _session(self) -> CDPSession:
        if self._devtools is None:
            self._devtools = await self._page.context.new_cdp_session(self._page)
        return self._devtools

    async def with_timeout(self, call: Awaitable[T], timeout_s: float = 0.0) -> T:
        """Await a browser call with a timeout: a page in an endless loop never responds.

        Parameters
        ----------
        call
            The call.
        timeout_s
            Timeout in seconds; 0: the default, `timeout_s`.

        Returns
        -------
        T
            The result of the call.

        Raises
        ------
        PageUnresponsive
            If the page does not respond in time.
        PageFailure
            If the process of the page has crashed; the call then fails at once.
        """
        timeout_s = timeout_s or self.timeout_s
        timeout = asyncio.timeout(0 if self._has_crashed else timeout_s)
        self._timeouts.add(timeout)
        try:
            async with timeout:
                return await call
        except TimeoutError as error:
            if self._has_crashed:
                message = f"{self._page.url}: the process of the page crashed."
                raise PageFailure(message, FailureKind.PAGE_CRASHED) from error
            raise PageUnresponsive(f"{self._page.url} gave no answer for {timeout_s:.0f} s.") from error
        finally:
            self._timeouts.discard(timeout)

    def _on_crash(self, _: Page) -> None:
        self._has_crashed = True
        for timeout in self._timeouts:
            timeout.reschedule(asyncio.get_running_loop().time())
