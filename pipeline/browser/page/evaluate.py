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
from waygraph.pipeline.browser.page.background import BackgroundCalls
from waygraph.pipeline.browser.page.closed_roots import disclose
from waygraph.pipeline.browser.page.failures import FailureKind, PageFailure
from waygraph.pipeline.browser.page.script import REPLACED, WAYGRAPH, page_script

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
    """Evaluates scripts in the main document of one page, over the DevTools protocol.

    Playwright's own way of evaluating uses functions of the page, which the page may have replaced. The in-page script
    keeps the functions that it found when it started, hence it must start before the page's scripts. In a document that
    was there first, and has replaced some, the script runs in an isolated world: a global scope of its own, with the
    browser's functions and the same document.

    Parameters
    ----------
    page
        The page.
    settings
        Timeouts.
    owned
        Whether waygraph owns the page, whose context then adds the in-page script to each document. In other pages the
        first call does, until `detach`.
    """

    def __init__(self, page: Page, settings: BrowserSettings, *, owned: bool) -> None:
        self._page = page
        self._owned = owned
        self._background = BackgroundCalls(page)
        self._devtools: CDPSession | None = None
        self._world: int | None = None
        """The isolated world in which the in-page script of the present document runs."""
        self._has_crashed = False
        self._timeouts: set[asyncio.Timeout] = set()
        """Timeouts of the calls that are under way."""
        self.timeout_s = (settings.navigation_timeout_ms + settings.settle_cap_ms) / 1000
        """Default timeout of a call, in seconds."""
        page.on("crash", self._on_crash)

    def detach(self) -> None:
        """Stop listening to the page; its next documents do not get the in-page script any more."""
        self._page.remove_listener("crash", self._on_crash)
        if self._devtools is not None:
            self._background.start(self._devtools.detach())
            self._devtools = None

    async def evaluate(self, expression: str, argument: object, timeout_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """Call a function expression with `argument` where the in-page script runs, and return its result.

        Parameters
        ----------
        expression
            JavaScript whose value is a function. Its result must be plain JSON; promises are awaited.
        argument
            A JSON value.
        timeout_s
            Timeout in seconds; 0: the default, `timeout_s`.

        Returns
        -------
        Any
            The result of the function.

        Raises
        ------
        PageFailure
            If the script throws, or the page does not respond.
        PlaywrightError
            If the document goes away.
        """
        return await self.with_timeout(self._evaluate(call_text(expression, argument), self._world), timeout_s)

    async def install(self) -> None:
        """Start the in-page script in a document that does not have it."""
        try:
            is_replaced = await self.with_timeout(self._evaluate(page_script())) == REPLACED
        except PageFailure as error:
            if error.kind is not FailureKind.OTHER:
                raise
            is_replaced = True  # not even its first lines can run
        if is_replaced:
            log.info("view/replaced_functions %s", self._page.url)
            self._world = await self.with_timeout(_isolated_world(await self._session()))
            await self.with_timeout(self._evaluate(f"{page_script()}{WAYGRAPH}.isApart = true", self._world))

    async def _evaluate(self, code: str, world: int | None = None) -> Any:  # noqa: ANN401 - the page's value
        try:
            return await _evaluate(await self._session(), code, world)
        except PlaywrightError:
            self._world = None  # it ends with its document
            raise
        except PageFailure as error:
            raise PageFailure(f"{self._page.url}: {error.message}") from error

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
            devtools = await self._page.context.new_cdp_session(self._page)
            if not self._owned:
                await devtools.send("Page.enable")
                await devtools.send("Page.addScriptToEvaluateOnNewDocument", {"source": page_script()})
            self._devtools = devtools
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


def call_text(expression: str, argument: object) -> str:
    """Return the source of a call: Playwright would pass the argument through functions of the page."""
    return f"({expression})({json.dumps(argument)})"


async def evaluate_apart(page: Page, expression: str, argument: object = None) -> Any:  # noqa: ANN401 - JSON
    """Call a function expression in an isolated world of a page, whose functions no script has replaced.

    Parameters
    ----------
    page
        The page.
    expression
        JavaScript whose value is a function. Its result must be plain JSON; promises are awaited.
    argument
        A JSON value.

    Returns
    -------
    Any
        The result of the function.

    Raises
    ------
    PageFailure
        If the script throws.
    PlaywrightError
        If the page or its document goes away.
    """
    devtools = await page.context.new_cdp_session(page)
    try:
        return await _evaluate(devtools, call_text(expression, argument), await _isolated_world(devtools))
    finally:
        await devtools.detach()


async def _isolated_world(devtools: CDPSession) -> int:
    tree = await devtools.send("Page.getFrameTree")
    world = await devtools.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
    number: int = world["executionContextId"]
    return number


async def _evaluate(devtools: CDPSession, code: str, world: int | None) -> Any:  # noqa: ANN401 - the page's value
    place = {} if world is None else {"contextId": world}
    response = await devtools.send(
        "Runtime.evaluate",
        {"expression": code, "awaitPromise": True, "returnByValue": True, "userGesture": True, **place},
    )
    if "exceptionDetails" in response:
        details = response["exceptionDetails"]
        raise PageFailure(details.get("exception", {}).get("description", details["text"]))
    return response["result"].get("value")
