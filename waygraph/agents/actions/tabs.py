"""The tabs of an agent: the page that it was given, and those that opened since."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.agents.actions.dialogs import PageDialogs
from waygraph.agents.observation.page_observation import OpenTab
from waygraph.pipeline.browser.page.failures import PageFailure
from waygraph.pipeline.browser.page.view import PageView

log = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S = 10.0


class SideTab:
    """A tab that was opened beside others, and whether it replaces them."""

    def __init__(self) -> None:
        self.is_kept = False

    def keep(self) -> None:
        """Let the current tab replace all others at the end of the block."""
        self.is_kept = True


class AgentTabs:
    """Open tabs in the order in which they opened, and the current one.

    Parameters
    ----------
    page
        The first tab. New pages of its context become tabs.
    make_view
        Makes the view of a page.
    """

    def __init__(self, page: Page, make_view: Callable[[Page], PageView]) -> None:
        self._context = page.context
        self._make_view = make_view
        self._pages = [page]
        self._views: dict[Page, PageView] = {}
        self._current = page
        self.dialogs = PageDialogs(page)
        """JavaScript dialogs of all tabs."""
        self._context.on("page", self._add)

    def detach(self) -> None:
        """Stop listening to the pages; they stay as they are."""
        self._context.remove_listener("page", self._add)
        self.dialogs.detach()
        for view in self._views.values():
            view.detach()

    @property
    def current(self) -> PageView:
        """View of the current tab; after it was closed, of the last one that is left."""
        if self._current.is_closed():
            self._drop_closed()
            self._current = self._pages[-1] if self._pages else self._current
        if self._current not in self._views:
            self._views[self._current] = self._make_view(self._current)
        return self._views[self._current]

    @property
    def pages(self) -> tuple[Page, ...]:
        """Pages of the open tabs, in their order."""
        self._drop_closed()
        return tuple(self._pages)

    @property
    def count(self) -> int:
        """Number of open tabs."""
        self._drop_closed()
        return len(self._pages)

    def adopt(self, page: Page, view: PageView | None = None) -> None:
        """Make a page the current tab, with this view of it if none exists yet."""
        self._add(page)
        if view is not None:
            known = self._views.setdefault(page, view)
            if known is not view:
                view.detach()
        self._current = page

    def focus(self, number: int) -> bool:
        """Make the tab with this number the current one; return whether there is one."""
        if number >= self.count:
            return False
        self._current = self._pages[number]
        return True

    async def open(self) -> PageView:
        """Open an empty tab and make it the current one; raises `PageFailure` if the browser does not."""
        try:
            self.adopt(await self._context.new_page())
        except PlaywrightError as error:
            raise PageFailure.of(error, "A new tab could not be opened") from error
        return self.current

    async def close_current(self) -> None:
        """Close the current tab, also if it does not respond; the last one that is left becomes the current one."""
        await self._close(self._current)
        self._drop_closed()
        if self._pages:
            self._current = self._pages[-1]

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[SideTab]:
        """Open a tab beside the others for the time of the block, as the current one.

        JavaScript dialogs that open meanwhile are dismissed, since recorded ways are walked there.

        At the end, if the block has called `keep`, the current tab stays and all others are closed. Otherwise all tabs
        that opened in the block are closed, and the tab before it is the current one again.

        Yields
        ------
        SideTab
            Whether the tab is kept.

        Raises
        ------
        PageFailure
            If the browser does not open a tab.
        """
        self._drop_closed()
        before, earlier = self._current, list(self._pages)
        side = SideTab()
        try:
            with self.dialogs.dismissed():
                await self.open()
                yield side
        finally:
            if not side.is_kept:
                self._current = before
            kept = {self._current} if side.is_kept else {*earlier}
            for page in [page for page in self._pages if page not in kept]:
                await self._close(page)
            self._drop_closed()

    async def _close(self, page: Page) -> None:
        try:
            await asyncio.wait_for(page.close(), _CLOSE_TIMEOUT_S)
        except (PlaywrightError, TimeoutError) as error:
            log.info("agent/tab_not_closed %s", error)
            if page in self._pages:
                self._pages.remove(page)

    async def listed(self, *, titles: bool = True) -> tuple[OpenTab, ...]:
        """Return all tabs if there are several; their titles only if wanted, since pages are asked for them."""
        self._drop_closed()
        if len(self._pages) < 2:
            return ()
        return tuple(
            [OpenTab(await _title(page) if titles else "", page.url, page is self._current) for page in self._pages]
        )

    def _add(self, page: Page) -> None:
        if page not in self._pages:
            self._pages.append(page)

    def _drop_closed(self) -> None:
        for page in [page for page in self._pages if page.is_closed()]:
            self._pages.remove(page)
            self.dialogs.forget(page)
            view = self._views.pop(page, None)
            if view is not None:
                view.detach()


async def _title(page: Page) -> str:
    try:
        return await page.title()
    except PlaywrightError:  # it is being replaced, or was closed just now
        return ""
