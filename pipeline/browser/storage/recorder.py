"""The session of a browser window that a person uses: recorded as it changes, since a closed window cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from waygraph.pipeline.browser.page.evaluate import evaluate_apart
from waygraph.pipeline.browser.storage.contexts import HeldSession, VisitedOrigins, read_session, session_values
from waygraph.pipeline.browser.storage.session_file import SessionState, SignedIn

_TYPED = "waygraphTyped"
#: Reports what is typed into fields for texts, the name of an account among them.
_REPORT_TYPED = f"""addEventListener("change", ({{ target }}) => {{
  if (target.matches?.("input") && ["text", "email", "tel"].includes(target.type)) {_TYPED}(target.value);
}}, true);"""
_LOOK = """() => ({
  text: document.body?.innerText ?? "",
  password: [...document.querySelectorAll("input[type=password]")].some((field) => field.checkVisibility()),
})"""
#: Characters of the shortest text that is taken for the name of an account.
_MIN_NAME = 3


class SessionRecorder:
    """The last readable session of a context.

    Parameters
    ----------
    context
        The context, without pages.
    initial
        The session that it started with.
    """

    def __init__(self, context: BrowserContext, initial: SessionState | None) -> None:
        self._context = context
        self._visited = VisitedOrigins(context)
        self._session_storage = session_values(initial)
        self._typed: list[str] = []
        self._latest = HeldSession({"cookies": [], "origins": []})
        self._signed_in = SignedIn()
        self._recording: set[asyncio.Task[None]] = set()

    async def prepare(self) -> None:
        """Note the names that are typed. Call it before opening pages."""
        await self._context.expose_binding(_TYPED, lambda _, text: self._typed.append(str(text)))
        await self._context.add_init_script(_REPORT_TYPED)

    async def watch(self, page: Page) -> None:
        """Record a page, which has shown no document yet."""
        devtools = await self._context.new_cdp_session(page)
        for event in ("ItemAdded", "ItemUpdated", "ItemRemoved", "ItemsCleared"):
            devtools.on(f"DOMStorage.domStorage{event}", self._note_storage)
        await devtools.send("DOMStorage.enable")
        page.on("load", self._record_soon)
        page.on("close", self._record_soon)

    async def finish(self, page: Page) -> HeldSession:
        """Return the session at the end, or at the last time when it could be read."""
        await asyncio.gather(*self._recording)
        await self._record(page)
        state = {**self._latest.state, "signedIn": self._signed_in.model_dump(by_alias=True)}
        return HeldSession(SessionState(**state), self._latest.lost)  # type: ignore[typeddict-item]

    def _note_storage(self, event: Mapping[str, Any]) -> None:
        about = event["storageId"]
        if about["isLocalStorage"]:
            return
        items = self._session_storage.setdefault(about["storageKey"].removesuffix("/"), {})
        if "newValue" in event:
            items[event["key"]] = event["newValue"]
        elif "key" in event:
            items.pop(event["key"], None)
        else:
            items.clear()

    def _record_soon(self, page: Page) -> None:
        task = asyncio.ensure_future(self._record(page))
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def _record(self, page: Page) -> None:
        try:
            if not page.is_closed():
                self._signed_in = self._recognise(page.url, await evaluate_apart(page, _LOOK))
            self._latest = await read_session(self._context, self._visited.origins, self._session_storage)
        except PlaywrightError:
            return  # the window is closed: keep the last session

    def _recognise(self, url: str, look: Mapping[str, Any]) -> SignedIn:
        """Return what shows that somebody is signed in: the last name that was typed and that the page shows."""
        text = look["text"].casefold()
        names = [name for typed in self._typed for name in (typed.partition("@")[0], typed)]
        shown = [name for name in names if len(name) >= _MIN_NAME and name.casefold() in text]
        return SignedIn(url=url, account=shown[-1] if shown else "", password=look["password"])
