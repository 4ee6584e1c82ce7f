"""A page that starts from the prepared session of a site, and is brought back to it after each use."""

from __future__ import annotations

from waygraph.pipeline.browser.session import RESTORABLE_AREAS, GuardedPage
from waygraph.pipeline.explore.engine.context import CrawlContext

#: Documents after which a browser context is replaced. Playwright keeps up to 10,000 requests of each kind until then.
LOADS_PER_CONTEXT = 200


class SessionPage:
    """A page in a browser context of its own.

    Parameters
    ----------
    context
        What all pages of the exploration share.

    Attributes
    ----------
    changed
        Storage areas in which the browser context differs from the prepared session.
    requested
        Documents that were requested in the browser context, loaded or held back.
    """

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._page: GuardedPage | None = None
        self.changed: frozenset[str] = frozenset()
        self.requested = 0

    async def open(self) -> GuardedPage:
        """Return the page. If there is none, open one in the prepared session."""
        if self._page is None:
            self._page = await self._context.open_page(self._context.session.storage_state)
            self._context.counters["browser/contexts"] += 1
        return self._page

    async def restore(self) -> None:
        """Restore the prepared session in the page, or close the page if that is not possible."""
        if not self.changed or self._page is None:
            return
        if self.changed <= RESTORABLE_AREAS:
            self._context.counters["session/resets"] += 1
            await self._page.restore(self._context.session, self.changed)
            self.changed = frozenset()
        else:
            self._context.counters["session/renewals"] += 1
            await self.close()

    @property
    def is_worn(self) -> bool:
        """Whether its context requested as many documents as a context may."""
        return self.requested >= LOADS_PER_CONTEXT

    async def close_if_worn(self) -> None:
        """Close the page if its context requested as many documents as a context may."""
        if self.is_worn:
            await self.close()

    async def close(self) -> None:
        """Close the page. The next one starts from the prepared session."""
        page, self._page = self._page, None
        self.changed, self.requested = frozenset(), 0
        if page is not None:
            await page.close()
