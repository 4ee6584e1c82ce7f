"""Tabs that a page opens."""

from __future__ import annotations

import asyncio
import logging
import re

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.pipeline.browser.page.background import BackgroundCalls
from waygraph.pipeline.browser.page.failures import first_line

log = logging.getLogger(__name__)

_BLANK = ("", "about:blank")
_ADDRESSED = re.compile("^(?!about:blank$).")


class PopupQueue:
    """Tabs that a page has opened by itself, in the order in which they appeared.

    Parameters
    ----------
    page
        The page.
    background
        Closes late tabs.
    owned
        Whether waygraph owns the page and hence its tabs, so that late ones are closed.
    """

    def __init__(self, page: Page, background: BackgroundCalls, *, owned: bool) -> None:
        self._page = page
        self._background = background
        self._owned = owned
        self._queue: asyncio.Queue[Page] = asyncio.Queue()
        page.on("popup", self._queue.put_nowait)

    def detach(self) -> None:
        """Stop listening to the page."""
        self._page.remove_listener("popup", self._queue.put_nowait)

    def drop_late(self) -> None:
        """Drop tabs that appeared after the action that opened them; the next action did not open them."""
        while not self._queue.empty():
            late = self._queue.get_nowait()
            log.info("view/late_tab %s", late.url)
            if self._owned:
                self._background.start(late.close())

    async def take(self, *, opened: int, timeout_s: float) -> Page | None:
        """Return the next tab.

        Parameters
        ----------
        opened
            Number of tabs that the page opened, as the in-page script counted them; if 0, only a tab that has appeared
            already is returned.
        timeout_s
            Time to wait for the tab, in seconds.

        Returns
        -------
        Page or None
            The tab; None if there is none, or the browser or the guard has refused it.
        """
        if self._queue.empty() and not opened:
            return None
        try:
            page = await asyncio.wait_for(self._queue.get(), timeout_s)
        except TimeoutError:
            return None
        if page.url in _BLANK:
            try:
                # Scripts open a tab during the click, and give it an address when they know it.
                await page.wait_for_url(_ADDRESSED, wait_until="commit", timeout=timeout_s * 1000)
            except PlaywrightError as error:
                log.info("view/blank_tab %s", first_line(error))
        return page
