"""Browsers that the tests of one process share, as the sites of a run share them.

Starting a browser and its driver takes longer than most tests use it. The shared browsers live in an event loop in a
thread of its own, so that they are supervised between tests too, and are closed with the test session.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from playwright.async_api import Browser

from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool

Result = TypeVar("Result")

#: Nothing but this machine can be reached from a browser under test.
LOOPBACK_ONLY = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


class SharedBrowsers:
    """A pool of guarded browsers, as explorations use it, and a plain browser; each starts on first use."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._open = AsyncExitStack()
        self._pool: BrowserPool | None = None
        self._browser: Browser | None = None

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine that uses a shared browser; block the calling thread and return its result."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="browsers", daemon=True)
            self._thread.start()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # a test that took too long goes on no further
            raise

    async def pool(self) -> BrowserPool:
        """Return the pool of guarded browsers. Only within `run`."""
        if self._pool is None:
            start = partial(launch, LOOPBACK_ONLY, guarded=True)
            self._pool = await self._open.enter_async_context(BrowserPool(start))
        return self._pool

    async def browser(self) -> Browser:
        """Return the plain browser, a new one after a crash. Only within `run`."""
        if self._browser is None or not self._browser.is_connected():
            self._browser = await self._open.enter_async_context(launch(LOOPBACK_ONLY))
        return self._browser

    def close(self) -> None:
        """Close all browsers. They start again on the next use."""
        if self._loop is None or self._thread is None:
            return
        self.run(self._open.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = self._pool = self._browser = None


BROWSERS = SharedBrowsers()


@asynccontextmanager
async def shared_browser() -> AsyncIterator[Browser]:
    """Lend the plain browser, and close the contexts that were opened in it. Only within `BROWSERS.run`."""
    browser = await BROWSERS.browser()
    others = set(browser.contexts)
    try:
        yield browser
    finally:
        for context in browser.contexts:
            if context not in others:
                await context.close()
