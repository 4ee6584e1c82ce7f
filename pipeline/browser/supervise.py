"""How does exploring go on when a browser crashes, hangs or grows? A pool that watches browsers and replaces them.

    async with BrowserPool(lambda: launch(settings.browser)) as pool, pool.lease() as lease:
        page = await lease.browser.new_page()
        ...
        if lease.is_stale:                  # lost, or due for recycling: ask between levels and after failures
            browser = await lease.renew()   # pages of the browser before are gone

Each browser has a driver of its own, since a driver takes all its browsers with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from playwright.async_api import Browser

from pipeline.browser.processes import Process, machine_memory_bytes, memory_bytes
from pipeline.browser.rig import Launcher, Rig
from waygraph.errors import BrowserFailure, BrowserMissing

log = logging.getLogger(__name__)

#: Memory is measured every so many probes: walking the page tables of a large process takes milliseconds.
_PROBES_PER_MEASUREMENT = 5
#: At this multiple of the limit a browser is not waited for any more.
_FAR_TOO_MUCH = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """When a browser is no longer trusted.

    Attributes
    ----------
    probe_s : so often it is asked whether it is alive.
    patience_s : without an answer for so long it hangs. A busy machine needs some.
    memory_bytes : driver and browser together; beyond it, the browser is replaced as soon as nobody is in the middle of
        something, and at twice as much at once. None: half of what the machine has.
    age_s : after this time it is replaced when nobody is in the middle of something.

    """

    probe_s: float = 2.0
    patience_s: float = 10.0
    memory_bytes: int | None = None
    age_s: float = 3_600.0


class BrowserPool:
    """Up to `browsers` browsers, shared by explorations. Use it in one event loop.

    Parameters
    ----------
    launcher : starts a browser with a driver of its own, and closes both on exit.

    """

    def __init__(self, launcher: Launcher, *, browsers: int = 1, limits: Limits = Limits()) -> None:
        self._launcher = launcher
        self._most = max(1, browsers)
        self._limits = limits
        self._memory = limits.memory_bytes or machine_memory_bytes() // 2 // self._most
        self._rigs: list[Rig] = []
        self._starting = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    def lease(self, counters: Counter[str] | None = None) -> BrowserLease:
        """The right to use one browser, to be used with `async with`: one for each exploration.

        Parameters
        ----------
        counters : `browser/lost` and `browser/recycled` are counted here.

        """
        return BrowserLease(self, Counter() if counters is None else counters)

    def processes(self) -> frozenset[Process]:
        """Drivers and browsers of the pool, with all their processes."""
        return frozenset().union(*(rig.look() for rig in self._rigs))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for rig in list(self._rigs):
            self._close_soon(rig)
        if self._closing:
            await asyncio.wait(self._closing)

    async def take(self) -> Rig:
        """A browser that is alive and young: the one with the fewest explorations, or a new one.

        Raises
        ------
        BrowserMissing, BrowserFailure
            When none can be started.

        """
        async with self._starting:
            fit = [rig for rig in self._rigs if rig.is_fit]
            rig = min(fit, key=lambda rig: rig.leases, default=None)
            if rig is None or (rig.leases and len(fit) < self._most):
                rig = await self._start()
            rig.leases += 1
            return rig

    def give_back(self, rig: Rig) -> None:
        """An exploration needs this browser no more."""
        rig.leases -= 1
        if rig.is_retired and not rig.leases:
            self._close_soon(rig)

    async def check(self, rig: Rig) -> None:
        """Ask a browser whether it is alive; it is given up when it is not."""
        if not await rig.answers(self._limits.patience_s):
            self._lose(rig, "it gives no answer")

    async def _start(self) -> Rig:
        try:
            rig = await Rig.start(self._launcher)
        except BrowserMissing:
            raise
        except BrowserFailure as error:
            log.warning("browser/not_started, tried once more: %s", error.message)
            rig = await Rig.start(self._launcher)
        self._rigs.append(rig)
        rig.watching = asyncio.ensure_future(self._watch(rig))
        return rig

    async def _watch(self, rig: Rig) -> None:
        """Probe a browser until it is lost."""
        probes = 0
        while not await rig.is_lost_within(self._limits.probe_s):
            await self.check(rig)
            rig.look()
            if rig.age > self._limits.age_s:
                self._retire(rig, f"{rig.age:.0f} s old")
            if probes % _PROBES_PER_MEASUREMENT == 0:
                self._weigh(rig, await asyncio.to_thread(memory_bytes, rig.look()))
            probes += 1
        self._lose(rig, "its process ended")

    def _weigh(self, rig: Rig, used: int) -> None:
        if used > _FAR_TOO_MUCH * self._memory:
            self._lose(rig, f"it takes {used >> 20} MiB")
        elif used > self._memory:
            self._retire(rig, f"it takes {used >> 20} MiB")

    def _retire(self, rig: Rig, reason: str) -> None:
        """Let nobody begin with a browser any more; it ends when the last exploration gives it back."""
        if not rig.is_retired:
            log.info("browser/retired after %.0f s: %s", rig.age, reason)
            rig.is_retired = True
        if not rig.leases:
            self._close_soon(rig)

    def _lose(self, rig: Rig, reason: str) -> None:
        """Give a browser up: whoever is in the middle of something with it gets an error."""
        if rig in self._rigs:
            log.warning("browser/lost after %.0f s: %s", rig.age, reason)
        rig.lose()
        self._close_soon(rig)

    def _close_soon(self, rig: Rig) -> None:
        if rig in self._rigs:
            self._rigs.remove(rig)
            task = asyncio.ensure_future(rig.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


class BrowserLease:
    """One exploration's browser. Ask `is_stale` from time to time; `renew` when it is, with all its pages given up."""

    def __init__(self, pool: BrowserPool, counters: Counter[str]) -> None:
        self._pool = pool
        self.counters = counters
        self._rig: Rig | None = None
        self._renewing = asyncio.Lock()

    @property
    def browser(self) -> Browser:
        """The browser to use now."""
        if self._rig is None:
            raise BrowserFailure("No browser is leased.")
        return self._rig.browser

    @property
    def is_stale(self) -> bool:
        """Whether the browser is lost, hangs, or should be replaced for its size or age."""
        return self._rig is None or not self._rig.is_fit

    async def renew(self, *, suspect: bool = False) -> Browser:
        """The same browser when there is nothing wrong with it, otherwise another one.

        Any number of tasks may ask at once.

        Parameters
        ----------
        suspect : a call has just failed in a way that a dead browser would explain, so ask the browser first.

        Raises
        ------
        BrowserMissing, BrowserFailure
            When none can be started.

        """
        async with self._renewing:
            rig = self._rig
            if rig is not None and rig.is_fit and suspect:
                await self._pool.check(rig)
            if self.is_stale:
                self._rig = None
                if rig is not None:
                    if rig.is_alive:
                        self.counters["browser/recycled"] += 1
                    else:
                        self.counters["browser/lost"] += 1
                    self._pool.give_back(rig)
                self._rig = await self._pool.take()
            return self.browser

    async def __aenter__(self) -> Self:
        self._rig = await self._pool.take()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        rig, self._rig = self._rig, None
        if rig is not None:
            self._pool.give_back(rig)
