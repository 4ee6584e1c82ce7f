"""Is a browser alive, and how is it ended with everything it started? One driver with one browser."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from playwright.async_api import Browser, CDPSession
from playwright.async_api import Error as PlaywrightError

from pipeline.browser.processes import Process, children, descendants, kill, reap
from waygraph.errors import BrowserFailure

log = logging.getLogger(__name__)

#: Starts a browser with a driver of its own, and closes both on exit.
Launcher = Callable[[], AbstractAsyncContextManager[Browser]]

#: What the command line of Playwright's driver holds.
_DRIVER = "run-driver"
#: A browser that is told to close may take so long; then it is killed.
_CLOSE_S = 3.0


class Rig:
    """One driver with one browser, and what is known of them."""

    def __init__(
        self, browser: Browser, session: CDPSession, stack: AsyncExitStack, drivers: frozenset[Process]
    ) -> None:
        self.browser = browser
        self.leases = 0
        self.is_retired = False
        self.watching: asyncio.Future[None] | None = None
        """Cancelled when it is closed."""
        self._session = session
        self._stack = stack
        self._drivers = drivers
        self._processes = drivers
        self._began = time.monotonic()
        self._ended = asyncio.Event()
        self._lifelines = [fd for driver in drivers if (fd := _lifeline(driver)) is not None]
        browser.on("disconnected", lambda _: self._ended.set())
        for fd in self._lifelines:
            asyncio.get_running_loop().add_reader(fd, self._ended.set)
        self._profiles = {folder for each in self.look() if (folder := _profile(each)) is not None}

    @classmethod
    async def start(cls, launcher: Launcher) -> Rig:
        """Start a driver and a browser."""
        before = children(os.getpid())
        stack = AsyncExitStack()
        browser = await stack.enter_async_context(launcher())
        try:
            session = await browser.new_browser_cdp_session()
        except BaseException as error:
            await stack.aclose()
            if isinstance(error, PlaywrightError):
                raise BrowserFailure(f"A browser ended when it was started: {str(error).splitlines()[0]}") from error
            raise
        drivers = frozenset(each for each in children(os.getpid()) - before if _DRIVER in each.command)
        return cls(browser, session, stack, drivers)

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._began

    @property
    def is_alive(self) -> bool:
        """Whether it works, as far as is known."""
        return not self._ended.is_set() and self.browser.is_connected()

    @property
    def is_fit(self) -> bool:
        """Whether somebody may begin with it."""
        return self.is_alive and not self.is_retired

    def look(self) -> frozenset[Process]:
        """All its processes; those that were seen before stay known, since orphans cannot be found again."""
        now = descendants(driver for driver in self._drivers if driver.is_running)
        self._processes = frozenset(each for each in self._processes if each.is_there) | now
        return self._processes

    async def is_lost_within(self, seconds: float) -> bool:
        """Wait for its end, at most so long."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def answers(self, patience_s: float) -> bool:
        """Whether the browser answers a question in time."""
        if not self.is_alive:
            return False
        try:
            await asyncio.wait_for(self._session.send("Browser.getVersion"), patience_s)
        except (TimeoutError, PlaywrightError) as error:
            log.warning("browser/no_answer: %s", str(error).partition("\n")[0] or f"for {patience_s:g} s")
            return False
        return True

    def lose(self) -> None:
        """Trust it no more: it will be ended by force."""
        self._ended.set()

    async def close(self) -> None:
        """End it: in order when it works, so that it removes its profile, by force otherwise."""
        if self.watching is not None and self.watching is not asyncio.current_task():
            self.watching.cancel()
        loop = asyncio.get_running_loop()
        for fd in self._lifelines:
            loop.remove_reader(fd)
            os.close(fd)
        self.look()
        if not self.is_alive:
            await kill(self._processes - self._drivers)
        closing = asyncio.ensure_future(self._stack.aclose())
        await asyncio.wait({closing}, timeout=_CLOSE_S)
        rest = self._processes  # from before: who has lost its driver cannot be found any more
        await kill(rest)
        # Only now: a driver that hangs would never let go of who waits for it.
        await asyncio.wait({closing}, timeout=_CLOSE_S)
        if not closing.cancel() and (error := closing.exception()) is not None:
            log.info("browser/not_closed: %s", error)
        await reap(rest - self._drivers)
        for folder in self._profiles:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _lifeline(driver: Process) -> int | None:
    """A file descriptor that becomes readable when the process ends."""
    try:
        return os.pidfd_open(driver.pid)
    except OSError as error:  # gone already, or a kernel before 5.3: probes will tell
        log.info("browser/no_pidfd: %s", error)
        return None


def _profile(each: Process) -> Path | None:
    """The temporary profile folder that the driver made for a browser process."""
    for argument in each.command.split("\0"):
        name, _, value = argument.partition("=")
        if name == "--user-data-dir" and Path(value).name.startswith("playwright_"):
            return Path(value)
    return None
