"""One browser with its own Playwright driver: its state, its processes and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import psutil
from playwright.async_api import Browser, CDPSession
from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure
from waygraph.pipeline.browser.process.process_tree import (
    children,
    command_line,
    descendants,
    is_alive,
    kill,
    reap,
)

log = logging.getLogger(__name__)

#: Starts a browser with its own driver, and closes both on exit.
Launcher = Callable[[], AbstractAsyncContextManager[Browser]]

#: Argument in the command line of Playwright's driver.
_DRIVER_ARGUMENT = "run-driver"
#: Time that a browser may take to close; then it is killed.
_CLOSE_TIMEOUT_S = 3.0


class BrowserProcess:
    """A browser and its driver.

    Parameters
    ----------
    browser
        The running browser.
    session
        A DevTools session with the browser.
    stack
        Closes browser and driver.
    drivers
        Processes of the driver.
    """

    def __init__(
        self, browser: Browser, session: CDPSession, stack: AsyncExitStack, drivers: frozenset[psutil.Process]
    ) -> None:
        self.browser = browser
        self.leases = 0
        self.is_retired = False
        self.watch_task: asyncio.Future[None] | None = None
        """Cancelled by `close`."""
        self._session = session
        self._stack = stack
        self._drivers = drivers
        self._processes = drivers
        self._started_at = time.monotonic()
        self._ended = asyncio.Event()
        self._pidfds = [fd for driver in drivers if (fd := _open_pidfd(driver)) is not None]
        browser.on("disconnected", lambda _: self._ended.set())
        for fd in self._pidfds:
            asyncio.get_running_loop().add_reader(fd, self._ended.set)
        self._profiles = {folder for process in self.update_processes() if (folder := _profile(process)) is not None}

    @classmethod
    async def start(cls, launcher: Launcher) -> BrowserProcess:
        """Start a driver and a browser.

        Parameters
        ----------
        launcher
            Starts both, and closes them on exit.

        Returns
        -------
        BrowserProcess
            The running browser.

        Raises
        ------
        BrowserFailure
            If the browser ends while it starts.
        """
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
        started = children(os.getpid()) - before
        drivers = frozenset(process for process in started if _DRIVER_ARGUMENT in command_line(process))
        return cls(browser, session, stack, drivers)

    @property
    def age_s(self) -> float:
        """Time since the start, in seconds."""
        return time.monotonic() - self._started_at

    @property
    def is_alive(self) -> bool:
        """Whether the browser is connected and not marked as lost."""
        return not self._ended.is_set() and self.browser.is_connected()

    @property
    def is_usable(self) -> bool:
        """Whether new work may start with the browser."""
        return self.is_alive and not self.is_retired

    def update_processes(self) -> frozenset[psutil.Process]:
        """Find all processes of the browser and return them.

        Processes that were found before are kept until they are gone, because orphans cannot be found again.
        """
        current = descendants(driver for driver in self._drivers if is_alive(driver))
        self._processes = frozenset(process for process in self._processes if process.is_running()) | current
        return self._processes

    async def ends_within(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end of the browser, and return whether it ended."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def responds(self, timeout_s: float) -> bool:
        """Whether the browser responds to a command within `timeout_s` seconds."""
        if not self.is_alive:
            return False
        try:
            await asyncio.wait_for(self._session.send("Browser.getVersion"), timeout_s)
        except (TimeoutError, PlaywrightError) as error:
            log.warning("browser/no_answer: %s", str(error).partition("\n")[0] or f"for {timeout_s:g} s")
            return False
        return True

    def mark_lost(self) -> None:
        """Mark the browser as lost; `close` then kills it."""
        self._ended.set()

    async def close(self) -> None:
        """End the browser: normally while it is alive, because it then removes its profile; by SIGKILL otherwise."""
        if self.watch_task is not None and self.watch_task is not asyncio.current_task():
            self.watch_task.cancel()
        loop = asyncio.get_running_loop()
        for fd in self._pidfds:
            loop.remove_reader(fd)
            os.close(fd)
        self.update_processes()
        if not self.is_alive:
            await kill(self._processes - self._drivers)
        closing = asyncio.ensure_future(self._stack.aclose())
        await asyncio.wait({closing}, timeout=_CLOSE_TIMEOUT_S)
        processes = self._processes  # found before closing: without their driver they cannot be found
        await kill(processes)
        # Only after the driver was killed does a hanging driver release the task that closes it.
        await asyncio.wait({closing}, timeout=_CLOSE_TIMEOUT_S)
        if not closing.cancel() and (error := closing.exception()) is not None:
            log.info("browser/not_closed: %s", error)
        await reap(processes - self._drivers)
        for folder in self._profiles:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _open_pidfd(driver: psutil.Process) -> int | None:
    """Open a file descriptor that becomes readable when the process ends."""
    try:
        return os.pidfd_open(driver.pid)
    except OSError as error:  # it has ended, or the kernel is older than 5.3: the probes notice the end
        log.info("browser/no_pidfd: %s", error)
        return None


def _profile(process: psutil.Process) -> Path | None:
    """Return the temporary profile folder that the driver made for a browser process."""
    for argument in command_line(process):
        name, _, value = argument.partition("=")
        if name == "--user-data-dir" and Path(value).name.startswith("playwright_"):
            return Path(value)
    return None
