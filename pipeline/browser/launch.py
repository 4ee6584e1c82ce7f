"""How is a browser started?"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright
from playwright.async_api import Error as PlaywrightError

from pipeline.browser.find import find_browser
from waygraph.errors import BrowserFailure
from waygraph.settings import BrowserSettings

#: No traffic of the browser's own, no first-run pages, no throttling of pages that are not in front.
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
)

#: For pages that we act on: no tab is opened behind our back, no worker belongs to several pages, and nothing leaves by
#: UDP, which neither the guard nor the egress proxy sees.
GUARDED_ARGUMENTS = (
    "--block-new-web-contents",
    "--disable-shared-workers",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


@asynccontextmanager
async def launch(
    settings: BrowserSettings, *, headed: bool = False, guarded: bool = False, proxy: str = ""
) -> AsyncIterator[Browser]:
    """Start a browser, close it (and its driver) on exit.

    Parameters
    ----------
    guarded : its pages will be acted on by us alone: they cannot open tabs.
    proxy : URL of the egress proxy that everything goes through, loopback included.

    Raises
    ------
    BrowserMissing
        When no browser is installed.
    BrowserFailure
        When it does not start.
    """
    found = find_browser(settings.executable, headed=headed)
    arguments = [*ARGUMENTS, *(GUARDED_ARGUMENTS if guarded else ()), *settings.extra_args]
    # Chromium's sandbox refuses to run as root (in containers, mostly); elsewhere it stays on.
    sandbox = os.geteuid() != 0
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=str(found.path),
                args=arguments,
                headless=not headed,
                chromium_sandbox=sandbox,
                # Browsers go to loopback addresses directly unless told otherwise.
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
