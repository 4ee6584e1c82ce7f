"""JavaScript dialogs of an agent's pages: which wait for an answer, and how they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from playwright.async_api import Error as PlaywrightError

from waygraph.agents.observation.open_dialog import OpenDialog
from waygraph.pipeline.browser.page.background import BackgroundCalls
from waygraph.pipeline.browser.page.failures import PageFailure

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Page

T = TypeVar("T")

#: Answered dialogs that are kept between two reports: a page may raise them in an endless loop.
_MAX_ANSWERED = 20
_TEXTS = {"beforeunload": "the page asked whether to leave it (left)"}


class DialogOpened(Exception):
    """A dialog opened during a call, which was cancelled: the page does not respond until the dialog is answered."""


class PageDialogs:
    """Listens to all pages of a context.

    An alert is acknowledged, and a page that asks whether to leave it is left, since an action of the agent leads away
    from it. A confirm or a prompt waits for `answer`, and blocks its page until then.

    Parameters
    ----------
    page
        A page of the context.
    """

    def __init__(self, page: Page) -> None:
        self._context = page.context
        self._background = BackgroundCalls(page)
        self._waiting: list[Dialog] = []
        self._opened = asyncio.Event()
        self._answered: list[str] = []
        self._asks = True
        self._context.on("dialog", self._on_dialog)

    def detach(self) -> None:
        """Stop listening."""
        self._context.remove_listener("dialog", self._on_dialog)

    @property
    def waiting(self) -> OpenDialog | None:
        """The dialog that waits for an answer, the oldest of several."""
        return _described(self._waiting[0]) if self._waiting else None

    @property
    def page(self) -> Page | None:
        """The page of the dialog that waits for an answer; None without one, and if it belongs to no known page."""
        return self._waiting[0].page if self._waiting else None

    def take_answered(self) -> list[str]:
        """Return the dialogs that were answered since the last call, with their answers."""
        answered, self._answered = self._answered, []
        return answered

    async def interruptible(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call to pages, which would hang while a dialog is open.

        Parameters
        ----------
        call
            The call.

        Returns
        -------
        T
            Its result.

        Raises
        ------
        DialogOpened
            If a dialog waits for an answer; the call was cancelled.
        """
        if self._waiting:
            call.close()
            raise DialogOpened
        work, opened = asyncio.ensure_future(call), asyncio.ensure_future(self._opened.wait())
        try:
            await asyncio.wait({work, opened}, return_when=asyncio.FIRST_COMPLETED)
            if self._waiting:
                raise DialogOpened
            return work.result()
        finally:
            work.cancel()
            opened.cancel()
            await asyncio.gather(work, opened, return_exceptions=True)

    async def answer(self, *, accepts: bool, text: str | None = None) -> str:
        """Answer the dialog that waits.

        Parameters
        ----------
        accepts
            Whether to accept it; otherwise it is dismissed.
        text
            Text for a prompt that is accepted; None: the one that it proposes.

        Returns
        -------
        str
            Which dialog it was.

        Raises
        ------
        PageFailure
            If its page has gone away.
        """
        dialog = self._waiting.pop(0)
        if not self._waiting:
            self._opened.clear()
        try:
            await (dialog.accept(dialog.default_value if text is None else text) if accepts else dialog.dismiss())
        except PlaywrightError as error:
            raise PageFailure.of(error, "The dialog could not be answered") from error
        return str(_described(dialog))

    @contextmanager
    def dismissed(self) -> Iterator[None]:
        """Dismiss all dialogs that open in the block: a recorded way is walked, on which nobody decides."""
        before, self._asks = self._asks, False
        try:
            yield
        finally:
            self._asks = before

    async def end(self) -> None:
        """Dismiss what is open, and whatever opens from now on: the agent has ended."""
        self._asks = False
        while self._waiting:
            try:
                await self.answer(accepts=False)
            except PageFailure:  # it closed with its page
                continue

    def forget(self, page: Page) -> None:
        """Forget the dialogs of a page that was closed."""
        self._waiting = [dialog for dialog in self._waiting if dialog.page is not page]
        if not self._waiting:
            self._opened.clear()

    def _on_dialog(self, dialog: Dialog) -> None:
        if self._asks and dialog.type in {"confirm", "prompt"}:
            self._waiting.append(dialog)
            self._opened.set()
            return
        accepts = dialog.type in {"alert", "beforeunload"}
        if len(self._answered) < _MAX_ANSWERED:
            done = "acknowledged" if accepts else "dismissed"
            self._answered.append(_TEXTS.get(dialog.type) or f"{_described(dialog)} ({done})")
        # Dismissing a `beforeunload` dialog would make every later navigation fail.
        self._background.start(dialog.accept() if accepts else dialog.dismiss())


def _described(dialog: Dialog) -> OpenDialog:
    return OpenDialog.of(dialog.type, dialog.message, dialog.default_value)
