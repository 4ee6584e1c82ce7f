"""Dialogs, downloads and failed navigations of a page."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from playwright.async_api import Dialog, Download, Page, Request

from waygraph.pipeline.browser.page.background import BackgroundCalls
from waygraph.pipeline.browser.page.evaluate import PageEvaluator
from waygraph.pipeline.browser.page.script import WAYGRAPH

_MAX_DIALOG_TEXT = 200
_NO_CONTENT = {204, 205}
#: The browser reports a download after the navigation that became one; on a busy machine, much later.
_DOWNLOAD_SECONDS = 2


class PageEvents:
    """Listens to a page, answers its JavaScript dialogs and records downloads.

    Parameters
    ----------
    page
        The page.
    evaluator
        Evaluates scripts in the page.
    background
        Runs the answers to dialogs.
    answers_dialogs
        Whether to answer dialogs. If not, another listener of the page must.
    accepts_dialogs
        Whether to accept dialogs; otherwise they are dismissed.
    """

    def __init__(
        self,
        page: Page,
        evaluator: PageEvaluator,
        background: BackgroundCalls,
        *,
        answers_dialogs: bool,
        accepts_dialogs: bool,
    ) -> None:
        self._page = page
        self._evaluator = evaluator
        self._background = background
        self._answers_dialogs = answers_dialogs
        self._accepts_dialogs = accepts_dialogs
        self.dialogs: list[str] = []
        """Dialogs since the last `clear`, as "type: message"."""
        self.downloads: list[str] = []
        """URLs of the downloads since the last `clear`."""
        self._downloaded = asyncio.Event()
        page.on("requestfailed", self._on_request_failed)
        page.on("download", self._on_download)
        if answers_dialogs:
            page.on("dialog", self._on_dialog)

    def detach(self) -> None:
        """Stop listening to the page."""
        self._page.remove_listener("requestfailed", self._on_request_failed)
        self._page.remove_listener("download", self._on_download)
        if self._answers_dialogs:
            self._page.remove_listener("dialog", self._on_dialog)

    def clear(self) -> None:
        """Forget the dialogs and downloads of earlier actions."""
        self.dialogs.clear()
        self.downloads.clear()

    def _on_download(self, download: Download) -> None:
        self.downloads.append(download.url)
        self._downloaded.set()
        self._background.start(self._end_navigation(download.url))

    def _on_dialog(self, dialog: Dialog) -> None:
        # Dismissing a `beforeunload` dialog would make every later navigation fail.
        is_leaving = dialog.type == "beforeunload"
        if not is_leaving:
            self.dialogs.append(f"{dialog.type}: {dialog.message[:_MAX_DIALOG_TEXT]}")
        is_accepted = is_leaving or self._accepts_dialogs
        self._background.start(dialog.accept(dialog.default_value) if is_accepted else dialog.dismiss())

    def _on_request_failed(self, request: Request) -> None:
        """Tell the document that its navigation ended: it became a download, got no content, or was stopped."""
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self._background.start(self._end_failed_navigation(request))

    async def _end_failed_navigation(self, request: Request) -> None:
        if _may_be_download(request) and request.url not in self.downloads:
            self._downloaded.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._downloaded.wait(), _DOWNLOAD_SECONDS)
        first = request
        while first.redirected_from is not None:
            first = first.redirected_from
        await self._end_navigation(first.url)

    async def _end_navigation(self, url: str) -> None:
        await self._evaluator.evaluate(f"(url) => {WAYGRAPH}?.navigationFailed(url)", url)


def _may_be_download(request: Request) -> bool:
    """Return whether a navigation that failed has an answer that the browser does not show."""
    answer = request.existing_response
    if answer is None or answer.status in _NO_CONTENT:
        return False
    headers = answer.headers
    return "content-disposition" in headers or "html" not in headers.get("content-type", "html")
