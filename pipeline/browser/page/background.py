"""Browser calls whose results nothing waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.core.errors import BrowserFailure

log = logging.getLogger(__name__)


class BackgroundCalls:
    """Runs browser calls in the background; a failure means that the page went away, and is logged.

    Parameters
    ----------
    page
        The page that the calls belong to; log messages name it.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call: Coroutine[Any, Any, Any]) -> None:
        """Start a call."""
        task = asyncio.ensure_future(self._run(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, call: Coroutine[Any, Any, Any]) -> None:
        try:
            await call
        except (PlaywrightError, BrowserFailure) as error:
            log.debug("view/answer_too_late %s: %s", self._page.url, error)
