"""Launch of a browser."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright
from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.process.find import find_browser

#: Disables the browser's own traffic, first-run pages, and the throttling of pages in the background.
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    # No traffic uses UDP, which neither the guard nor an egress proxy can intercept.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Pages may declare tools. `--enable-features` would replace Playwright's own, as only the last one counts.
    "--enable-blink-features=WebMCP",
)

#: For pages that an exploration acts on: pages open no tabs, and no worker belongs to several pages.
GUARDED_ARGUMENTS = (
    "--block-new-web-contents",
    "--disable-shared-workers",
)


@asynccontextmanager
async def launch(
    settings: BrowserSettings, *, headed: bool = False, guarded: bool = False, proxy: str = ""
) -> AsyncIterator[Browser]:
    """Start a browser, and close it and its driver on exit.

    Parameters
    ----------
    settings
        Executable and additional arguments.
    headed
        Whether to show a window.
    guarded
        Whether to disable what `GuardedPage` cannot control: tabs that pages open, shared workers.
    proxy
        URL of the egress proxy for all traffic, loopback included; empty: none.

    Yields
    ------
    Browser
        The running browser.

    Raises
    ------
    BrowserMissing
        If no browser is installed.
    BrowserFailure
        If the browser does not start.
    """
    found = find_browser(settings.executable, headed=headed)
    arguments = [*ARGUMENTS, *(GUARDED_ARGUMENTS if guarded else ()), *settings.extra_args]
    # Chromium's sandbox does not run as root (mostly in containers); for other users it stays on.
    sandbox = os.geteuid() != 0
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=str(found.path),
                args=arguments,
                headless=not headed,
                chromium_sandbox=sandbox,
                # Browsers bypass the proxy for loopback addresses by default.
                proxy={"server": proxy, "bypass": "<-loopback>"} if proxy else None,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except PlaywrightError as error:
            first_lines = "\n".join(str(error).splitlines()[:12])
            raise BrowserFailure(
                f"'{found.path}' did not start: {first_lines}",
                hint="Run `waygraph doctor`, or choose another browser with WAYGRAPH_BROWSER__EXECUTABLE.",
            ) from error
        try:
            yield browser
        finally:
            await browser.close()
