"""Storage that a tab starts with: given to the first document of each origin, before its scripts run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from playwright.async_api import CDPSession, Frame, Page
from playwright.async_api import Error as PlaywrightError

from waygraph.pipeline.browser.storage.contexts import origin_of

#: Changes local storage; null removes a value.
SET_LOCAL = """(changes) => {
  for (const [name, value] of Object.entries(changes))
    value === null ? localStorage.removeItem(name) : localStorage.setItem(name, value);
}"""
_SET_BEFORE_SCRIPTS = """
if (self.origin === %(origin)s) {
  for (const [name, value] of Object.entries(%(session)s)) sessionStorage.setItem(name, value);
  (%(set_local)s)(%(local)s);
}
"""


@dataclass(frozen=True, slots=True)
class FirstValues:
    """What the first document of an origin finds.

    Attributes
    ----------
    session
        Values of the session storage to set.
    local
        Values of the local storage to set; None: to remove.
    """

    session: Mapping[str, str] = field(default_factory=dict)
    local: Mapping[str, str | None] = field(default_factory=dict)


class FirstDocuments:
    """Gives the first document of each origin in a tab its storage.

    Later documents are not touched: what the site stores then stays stored.

    Parameters
    ----------
    page
        The tab, without a document yet.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._devtools: dict[str, CDPSession] = {}
        self._removals: list[asyncio.Task[None]] = []

    async def prepare(self, origin: str, values: FirstValues) -> None:
        """Set values when the first document of an origin is created, in the tab or in one of its frames."""
        if not (values.session or values.local):
            return
        texts = {"origin": origin, "session": dict(values.session), "local": dict(values.local)}
        encoded = {name: json.dumps(value) for name, value in texts.items()}
        source = _SET_BEFORE_SCRIPTS % {**encoded, "set_local": SET_LOCAL}
        if not self._devtools:
            self._page.on("framenavigated", self._note)
        self._devtools[origin] = devtools = await self._page.context.new_cdp_session(self._page)
        await devtools.send("Page.enable")
        await devtools.send("Page.addScriptToEvaluateOnNewDocument", {"source": source})

    async def forget(self) -> None:
        """Remove what was prepared, if no document has used it."""
        for origin in [*self._devtools]:
            self._remove(origin)
        await asyncio.gather(*self._removals)

    def _note(self, frame: Frame) -> None:
        self._remove(origin_of(frame.url))

    def _remove(self, origin: str) -> None:
        if (devtools := self._devtools.pop(origin, None)) is None:
            return
        self._removals.append(asyncio.create_task(_detach(devtools)))  # the script goes with the session
        if not self._devtools:
            self._page.remove_listener("framenavigated", self._note)


async def _detach(devtools: CDPSession) -> None:
    with suppress(PlaywrightError):  # the tab is closed
        await devtools.detach()


async def start_tab(page: Page, session_storage: Mapping[str, Mapping[str, str]]) -> None:
    """Let a new tab start with the session storage of a session.

    Parameters
    ----------
    page
        The tab, without a document yet.
    session_storage
        Values by origin.
    """
    documents = FirstDocuments(page)
    for origin, values in session_storage.items():
        await documents.prepare(origin, FirstValues(session=values))
