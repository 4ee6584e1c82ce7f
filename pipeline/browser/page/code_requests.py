"""Requests for scripts that a page waits for: the page itself cannot see what `import()` loads."""

from __future__ import annotations

import asyncio
import time

from playwright.async_api import Page, Request

#: What the in-page script returns in place of a result, see `isCodeUnconfirmed` in `js/settle.js`.
UNCONFIRMED_CODE = "code"
#: A request that is open for longer is a long poll, as in `js/activity.js`.
_LONG_POLL_S = 3.0


class CodeRequests:
    """Requests for scripts of one page, all its frames included, that have no response yet.

    Chromium reports a request before the result of any later evaluation in the same document. So a page that is quiet
    and has no such request has loaded everything that it has asked for.

    Parameters
    ----------
    page
        The page.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._started: dict[Request, float] = {}
        self._ended = asyncio.Event()
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_ended)
        page.on("requestfailed", self._on_ended)

    def detach(self) -> None:
        """Stop listening to the page."""
        self._page.remove_listener("request", self._on_request)
        self._page.remove_listener("requestfinished", self._on_ended)
        self._page.remove_listener("requestfailed", self._on_ended)

    async def wait(self, timeout_s: float) -> bool:
        """Wait until no request is open.

        Parameters
        ----------
        timeout_s
            Timeout in seconds.

        Returns
        -------
        bool
            Whether there was any open request.
        """
        deadline = time.monotonic() + timeout_s
        waited = False
        while (left_s := min(deadline, self._last_deadline()) - time.monotonic()) > 0 and self._started:
            waited = True
            self._ended.clear()
            try:
                async with asyncio.timeout(left_s):
                    await self._ended.wait()
            except TimeoutError:
                continue
        return waited

    def _last_deadline(self) -> float:
        """Return the time at which the last open request becomes a long poll."""
        return max(self._started.values(), default=0.0) + _LONG_POLL_S

    def _on_request(self, request: Request) -> None:
        if request.resource_type == "script":
            self._started[request] = time.monotonic()

    def _on_ended(self, request: Request) -> None:
        if self._started.pop(request, None) is not None:
            self._ended.set()
