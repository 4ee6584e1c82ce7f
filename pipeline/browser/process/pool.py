"""Pool of browsers that replaces those that crash, hang or grow too large.

Example::

    async with BrowserPool(lambda: launch(settings.browser)) as pool, pool.lease() as lease:
        page = await lease.browser.new_page()
        ...
        if lease.is_stale:                  # lost, or due for recycling: check between levels and after failures
            browser = await lease.renew()   # the pages of the previous browser are gone

Each browser has its own driver, because a driver that ends takes all its browsers with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil
from playwright.async_api import Browser

from waygraph.core.errors import BrowserFailure, BrowserMissing
from waygraph.pipeline.browser.process.browser_process import BrowserProcess, Launcher
from waygraph.pipeline.browser.process.process_tree import machine_memory_bytes, memory_bytes

log = logging.getLogger(__name__)

#: Memory is measured at every n-th probe: walking the page tables of a large process takes milliseconds.
_PROBES_PER_MEASUREMENT = 5
#: A browser that exceeds this multiple of the memory limit is closed at once.
_HARD_LIMIT_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """Limits beyond which a browser is replaced.

    Attributes
    ----------
    probe_interval_s
        Time between two probes of a browser, in seconds.
    response_timeout_s
        A browser that does not respond for this time hangs, in seconds. A busy machine needs a few seconds.
    memory_bytes
        Memory of driver and browser together. A browser beyond it is replaced when no exploration uses it, and beyond
        twice as much at once. None: half of the machine's memory.
    max_age_s
        Age at which a browser is replaced when no exploration uses it, in seconds.
    """

    probe_interval_s: float = 2.0
    response_timeout_s: float = 10.0
    memory_bytes: int | None = None
    max_age_s: float = 3_600.0


class BrowserPool:
    """Pool of up to `browsers` browsers, shared by explorations. Use it in one event loop.

    Parameters
    ----------
    launcher
        Starts a browser with its own driver, and closes both on exit.
    browsers
        Number of browsers at the same time.
    limits
        When a browser is replaced.
    """

    def __init__(self, launcher: Launcher, *, browsers: int = 1, limits: BrowserLimits = BrowserLimits()) -> None:
        self._launcher = launcher
        self._max_browsers = max(1, browsers)
        self._limits = limits
        self._memory_limit = limits.memory_bytes or machine_memory_bytes() // 2 // self._max_browsers
        self._browsers: list[BrowserProcess] = []
        self._start_lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    def lease(self, counters: Counter[str] | None = None) -> BrowserLease:
        """Lease one browser for one exploration.

        Parameters
        ----------
        counters
            Counts `browser/lost` and `browser/recycled`.

        Returns
        -------
        BrowserLease
            The lease, to be used with `async with`.
        """
        return BrowserLease(self, Counter() if counters is None else counters)

    def processes(self) -> frozenset[psutil.Process]:
        """Return the processes of all drivers and browsers."""
        return frozenset().union(*(browser.update_processes() for browser in self._browsers))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for browser in list(self._browsers):
            self._close_soon(browser)
        if self._closing:
            await asyncio.wait(self._closing)

    async def acquire(self) -> BrowserProcess:
        """Lease a usable browser, and start one if there is none or a free place.

        Returns
        -------
        BrowserProcess
            The usable browser with the fewest leases, or a new one.

        Raises
        ------
        BrowserMissing
            If no browser is installed.
        BrowserFailure
            If none can be started.
        """
        async with self._start_lock:
            usable = [browser for browser in self._browsers if browser.is_usable]
            browser = min(usable, key=lambda browser: browser.leases, default=None)
            if browser is None or (browser.leases and len(usable) < self._max_browsers):
                browser = await self._start()
            browser.leases += 1
            return browser

    def release(self, browser: BrowserProcess) -> None:
        """End one lease of a browser."""
        browser.leases -= 1
        if browser.is_retired and not browser.leases:
            self._close_soon(browser)

    async def check(self, browser: BrowserProcess) -> None:
        """Probe a browser, and close it if it does not respond."""
        if not await browser.responds(self._limits.response_timeout_s):
            self._lose(browser, "it does not respond")

    async def _start(self) -> BrowserProcess:
        try:
            browser = await BrowserProcess.start(self._launcher)
        except BrowserMissing:
            raise
        except BrowserFailure as error:
            log.warning("browser/not_started, trying once more: %s", error.message)
            browser = await BrowserProcess.start(self._launcher)
        self._browsers.append(browser)
        browser.watch_task = asyncio.ensure_future(self._watch(browser))
        return browser

    async def _watch(self, browser: BrowserProcess) -> None:
        """Probe a browser until it ends."""
        probes = 0
        while not await browser.ends_within(self._limits.probe_interval_s):
            await self.check(browser)
            processes = browser.update_processes()
            if browser.age_s > self._limits.max_age_s:
                self._retire(browser, f"{browser.age_s:.0f} s old")
            if probes % _PROBES_PER_MEASUREMENT == 0:
                self._check_memory(browser, await asyncio.to_thread(memory_bytes, processes))
            probes += 1
        self._lose(browser, "its process ended")

    def _check_memory(self, browser: BrowserProcess, used: int) -> None:
        if used > _HARD_LIMIT_FACTOR * self._memory_limit:
            self._lose(browser, f"it uses {used >> 20} MiB")
        elif used > self._memory_limit:
            self._retire(browser, f"it uses {used >> 20} MiB")

    def _retire(self, browser: BrowserProcess, reason: str) -> None:
        """Start no new work with a browser; it is closed when the last lease ends."""
        if not browser.is_retired:
            log.info("browser/retired after %.0f s: %s", browser.age_s, reason)
            browser.is_retired = True
        if not browser.leases:
            self._close_soon(browser)

    def _lose(self, browser: BrowserProcess, reason: str) -> None:
        """Close a browser at once; calls to it that are under way fail."""
        if browser in self._browsers:
            log.warning("browser/lost after %.0f s: %s", browser.age_s, reason)
        browser.mark_lost()
        self._close_soon(browser)

    def _close_soon(self, browser: BrowserProcess) -> None:
        if browser in self._browsers:
            self._browsers.remove(browser)
            task = asyncio.ensure_future(browser.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


class BrowserLease:
    """Lease of one browser for one exploration.

    Check `is_stale` from time to time, and call `renew` when it is true. The pages of a replaced browser are gone.

    Parameters
    ----------
    pool
        The pool that the browser belongs to.
    counters
        Counts `browser/lost` and `browser/recycled`.
    """

    def __init__(self, pool: BrowserPool, counters: Counter[str]) -> None:
        self._pool = pool
        self.counters = counters
        self._browser: BrowserProcess | None = None
        self._renew_lock = asyncio.Lock()

    @property
    def browser(self) -> Browser:
        """The leased browser."""
        if self._browser is None:
            raise BrowserFailure("No browser is leased.")
        return self._browser.browser

    @property
    def is_stale(self) -> bool:
        """Whether the browser is lost, hangs, or must be replaced for its memory or age."""
        return self._browser is None or not self._browser.is_usable

    async def renew(self, *, suspect: bool = False) -> Browser:
        """Replace the browser unless it is usable. Several tasks may call this at once.

        Parameters
        ----------
        suspect
            A call has just failed in a way that a lost browser would explain: probe the browser first.

        Returns
        -------
        Browser
            The same browser, or another one.

        Raises
        ------
        BrowserMissing
            If no browser is installed.
        BrowserFailure
            If none can be started.
        """
        async with self._renew_lock:
            browser = self._browser
            if browser is not None and browser.is_usable and suspect:
                await self._pool.check(browser)
            if self.is_stale:
                self._browser = None
                if browser is not None:
                    if browser.is_alive:
                        self.counters["browser/recycled"] += 1
                    else:
                        self.counters["browser/lost"] += 1
                    self._pool.release(browser)
                self._browser = await self._pool.acquire()
            return self.browser

    async def __aenter__(self) -> Self:
        self._browser = await self._pool.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            self._pool.release(browser)
