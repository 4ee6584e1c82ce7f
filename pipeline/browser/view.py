"""How does waygraph look at a page and act on it? One `PageView` per Playwright page, ours or somebody else's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from playwright.async_api import Dialog, Download, Frame, Page, Request
from playwright.async_api import Error as PlaywrightError

from index.graph import Action, BlockedRequest
from pipeline.browser.asking import NAVIGATED, Asker, NoAnswer
from pipeline.browser.closed_roots import UNDISCLOSED
from pipeline.browser.foreign import ForeignFrames
from pipeline.browser.gestures import PARKED, holds, make_gesture
from pipeline.browser.script import WAYGRAPH, page_script
from pipeline.browser.snapshot import Banner, Lens, Snapshot, parse_snapshot
from waygraph.errors import BrowserFailure, WaygraphError
from waygraph.settings import BrowserSettings

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Some sites ask twice; more is a page that answers a click with another banner.
_MAX_BANNERS = 2
#: A page that is still being loaded at the cap is waited for so many times as long again.
_MORE_WAITS = 2
#: A document is asked for its closed shadow roots once, its successors and what a script writes into it once more each.
_MAX_DISCLOSURES = 4
#: Left documents lie in the memory of the page's process until there are hundreds of megabytes; freeing them costs
#: tens of milliseconds.
DOCUMENTS_PER_COLLECTION = 100


#: What is said of an element when something lies over it.
TAKES_NO_POINTER = "takes no pointer"


class NotActionable(WaygraphError):
    """The recorded element is not there, or something lies over it; nothing was clicked."""

    exit_code, http_status, slug, title = 1, 409, "not-actionable", "Element not actionable"


@dataclass(frozen=True, slots=True)
class Acted:
    """What performing an action brought about.

    Attributes
    ----------
    rung : which rung of the ladder found the element: `exact`, `role`, `xpath`, `css`; `url` for a goto.
    snapshot : what the page (or the new tab) looks like now.
    popup : a view of the new tab, when the action opened one; it is left open.
    opens_tab : the target is meant for a new tab; a guarded page may show it in its own.
    other_tabs : URLs of further tabs that the action asked for; they were not opened.
    dialogs : JavaScript dialogs that were raised, and answered.
    downloads : URLs of downloads that were started, and refused.
    ms : milliseconds from the action until the page had settled.
    stopped : form posts into new tabs that the page did not send.
    banners : cookie banners of a loaded page that were closed before `snapshot` was taken.
    """

    rung: str
    snapshot: Snapshot
    popup: PageView | None
    dialogs: tuple[str, ...]
    downloads: tuple[str, ...]
    ms: float
    opens_tab: bool = False
    other_tabs: tuple[str, ...] = ()
    stopped: tuple[BlockedRequest, ...] = ()
    banners: tuple[Banner, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer to a navigation: seconds until it began, and its `Retry-After` header."""

    seconds: float
    retry_after: str


@dataclass(frozen=True, slots=True)
class Performed:
    """An action that was performed.

    Attributes
    ----------
    rung : which rung of the ladder found the element.
    new_tab : it is a link that is meant for a new tab, which a guarded page shows in its own.
    handled : some script listens for the event, at the element or above; true when that is not known.
    """

    rung: str
    new_tab: bool
    handled: bool = True


@dataclass(frozen=True, slots=True)
class Quiet:
    """A page that has settled.

    Attributes
    ----------
    digest : hash of everything in the document that a person or a script would find again, see `PageView.digest`.
    capped : the page did not settle within the cap.
    tabs, stopped : as in `Snapshot`, since the last look or `settle`.
    look : what the page looks like, if that was asked for; without a digest.
    """

    digest: str
    capped: bool
    tabs: tuple[str, ...]
    stopped: tuple[BlockedRequest, ...]
    look: Snapshot | None = None


class PageView:
    """Looks at one page and acts on it. Not safe for use by two tasks at once.

    Parameters
    ----------
    page : the Playwright page; its viewport, cookies and handlers are left as they are.
    own : whether the page is ours, so that its JavaScript dialogs are this view's to answer. In others' pages they are
        where `lens` accepts them: whoever dismisses one gets elsewhere than the map says.
    """

    def __init__(self, page: Page, lens: Lens, settings: BrowserSettings, *, own: bool = True) -> None:
        self.page = page
        self._lens = lens
        self._settings = settings
        self._hovering = False
        self._draws = True
        """Whether there are canvases in the page, as far as that is known."""
        self._documents = 0
        self._popups: asyncio.Queue[Page] = asyncio.Queue()
        self._dialogs: list[str] = []
        self._downloads: list[str] = []
        self._answers: set[asyncio.Task[None]] = set()
        self._own = own
        self._asker = Asker(page, settings, own=own)
        # An answer can get lost with the document that it was asked of: ask again before giving up.
        self._answer_s = (settings.settle_cap_ms + settings.action_timeout_ms) / 1000
        self._frames = ForeignFrames(page, lens.frames, self._asker.within, patience_s=self._answer_s)
        self.turn: Callable[[str], AbstractAsyncContextManager[Callable[[], None]]] = _at_once
        """Entered before a document is asked for; what it gives is called when the answer has begun."""
        self.leave: Callable[[str], Awaitable[None]] | None = None
        """Awaited before an action on a link: what it leads to may have to wait for its host's turn."""
        self.answer = Answer(0.0, "")
        """How the server answered when the last document was loaded."""
        self.held_back_s = 0.0
        """So long the document that is being loaded had to wait on its way, which is not the server's doing."""
        self.open_tab: Callable[[], Awaitable[Page]] | None = None
        """Opens the tabs that the page asks for; set where the page itself may not."""
        page.on("popup", self._popups.put_nowait)
        page.on("requestfailed", self._on_request_failed)
        page.on("download", self._on_download)
        self._answers_dialogs = own or lens.accept_dialogs
        if self._answers_dialogs:
            page.on("dialog", self._on_dialog)

    def detach(self) -> None:
        """Stop listening to the page; it is left as it is."""
        self.page.remove_listener("popup", self._popups.put_nowait)
        self.page.remove_listener("requestfailed", self._on_request_failed)
        self.page.remove_listener("download", self._on_download)
        self._asker.detach()
        if self._answers_dialogs:
            self.page.remove_listener("dialog", self._on_dialog)

    async def observe(self, *, digest: bool = True) -> Snapshot:
        """Wait until the page has settled, then describe it: one round trip, two more in a page that lacks the script.

        Each frame of another origin that belongs to the site costs the same again, and the first time three more.

        Parameters
        ----------
        digest : whether the look's digest will be asked for. It costs a quarter of a look; left out, it is empty.

        Raises
        ------
        BrowserFailure
            When the page does not answer: it hangs, crashed or was closed.
        """
        options = {**self._lens.to_js(hovering=self._hovering), "digest": digest}
        seen = await self._frames.complete(lambda: self._ask_until("observe", options), "observe", options)
        return self._parse(seen)

    def _parse(self, seen: Mapping[str, Any]) -> Snapshot:
        self._draws = seen["draws"]
        snapshot = parse_snapshot(seen, self._lens.url_policy)
        self._dialogs.extend(snapshot.dialogs)
        return snapshot

    async def digest(self) -> str:
        """Hash of everything in the document that a person or a script would find again; one round trip.

        That is its address, elements with their attributes, texts, fields, scrolled boxes, frames of the same origin,
        shadow roots, cookies and storage: not what only a script's variables know, not the focus, and nothing of frames
        of other origins.

        Raises
        ------
        BrowserFailure
            When the page does not answer.
        """
        return await self._ask_until("digest", None)

    async def drawn(self) -> None:
        """Wait until what is drawn on canvases in view stays the same, as charts do after a second; at most 1.5 s.

        A page whose last look found no canvas is not asked.
        """
        if self._draws:
            await self._ask(f"() => {WAYGRAPH}?.drawn()", None)

    async def _ask_until(self, question: str, options: Mapping[str, Any] | None) -> str:
        """Ask the in-page script, and whatever document takes the place of one that goes away meanwhile."""
        deadline = time.monotonic() + self._asker.patience_s
        patience_s = self._answer_s
        waits = _MORE_WAITS
        while True:
            try:
                answer = await self._ask_script(question, _patient(options, waits), patience_s=patience_s)
                if answer:
                    return answer
                if answer is not None:
                    waits -= 1
                    continue
                await self._ask(f"() => {{ {page_script()} }}", None)
            except PlaywrightError as error:
                # The document was replaced while it was being looked at: look at its successor.
                if not any(phrase in str(error) for phrase in NAVIGATED):
                    raise BrowserFailure(f"{self.page.url}: {_first_line(error)}") from error
            except NoAnswer:
                left_s = deadline - time.monotonic()
                if patience_s >= left_s:
                    raise
                log.info("view/asked_again %s", self.page.url)
                patience_s = left_s
            if time.monotonic() > deadline:
                raise BrowserFailure(f"{self.page.url} does not stay long enough to be looked at.")

    async def _ask_script(
        self, question: str, options: Mapping[str, Any] | None, *, patience_s: float = 0.0
    ) -> str | None:
        """Ask the in-page script of the page itself, and tell it before of closed roots that it may not see."""
        call = f"o => {WAYGRAPH}?.{question}(o) ?? null"
        for _ in range(_MAX_DISCLOSURES if self._own and options is not None else 0):
            answer: str | None = await self._ask(call, {**(options or {}), "discloses": True}, patience_s=patience_s)
            if answer != UNDISCLOSED:
                return answer
            await self._asker.disclose_roots()
        last: str | None = await self._ask(call, options, patience_s=patience_s)
        return last

    async def goto(self, url: str, *, referrer: str = "", digest: bool = True) -> Acted:
        """Load `url` as a new document, even when only the fragment differs, and look at it as `observe` does.

        Raises
        ------
        BrowserFailure
            When the document cannot be loaded; `str(error)` holds Chromium's `net::ERR_...`.
        """
        start = time.monotonic()
        was_hovering, self._hovering = self._hovering or not self._own, False
        self._forget()
        self._documents += 1
        try:
            if self._own and self._documents % DOCUMENTS_PER_COLLECTION == 0:
                await self._asker.collect_garbage()
            if was_hovering:
                # The pointer would rest on whatever the next document shows there.
                await self.within(self.page.mouse.move(*PARKED))
            if "#" in url and self.page.url.partition("#")[0] == url.partition("#")[0]:
                await self.within(self.page.goto("about:blank"))
            async with self.turn(url) as over:
                start, self.held_back_s = time.monotonic(), 0.0
                answer = await self.within(
                    self.page.goto(
                        url,
                        wait_until="commit",
                        timeout=self._settings.navigation_timeout_ms,
                        **({"referer": referrer} if referrer else {}),
                    )
                )
                over()
        except PlaywrightError as error:
            raise BrowserFailure(f"{url}: {_first_line(error)}") from error
        seconds = time.monotonic() - start - self.held_back_s
        self.answer = Answer(seconds, answer.headers.get("retry-after", "") if answer else "")
        snapshot, banners = await self._past_banners(await self.observe(digest=digest))
        return Acted("url", snapshot, None, self.dialogs, self.downloads, _ms_since(start), banners=banners)

    async def _past_banners(self, seen: Snapshot) -> tuple[Snapshot, tuple[Banner, ...]]:
        """Close the cookie banners of a page that was just loaded, as a person would, and look again."""
        closed: list[Banner] = []
        while seen.banner and self._lens.banners and len(closed) < _MAX_BANNERS:
            try:
                found, _ = await self._find(seen.banner.action)
                await self._gesture(make_gesture(self.page, seen.banner.action, found["x"], found["y"]))
            except NotActionable as error:
                log.info("view/banner_stays %s", error.message)
                break
            except PlaywrightError as error:
                raise BrowserFailure(f"Cookie banner of {self.page.url}: {_first_line(error)}") from error
            closed.append(seen.banner)
            seen = await self.observe()
        return seen, tuple(closed)

    async def act(self, action: Action) -> Acted:
        """Perform a recorded action and look at what it led to.

        Raises
        ------
        NotActionable
            When the recorded element is not in the page or takes no pointer. Nothing was activated then.
        BrowserFailure
            When the page does not answer.
        """
        if action.kind == "goto":
            return await self.goto(action.url)
        start = time.monotonic()
        before = self.page.url.partition("#")[0]
        performed = await self.perform(action)
        snapshot = await self.observe()
        banners: tuple[Banner, ...] = ()
        if self.page.url.partition("#")[0] != before:
            # Another page; a dialog about cookies that an action opens in place is what that action shows.
            snapshot, banners = await self._past_banners(snapshot)
        popup = await self._new_tab(snapshot)
        shown = await popup.observe() if popup else snapshot
        return Acted(
            rung=performed.rung,
            snapshot=shown,
            popup=popup,
            dialogs=self.dialogs,
            downloads=self.downloads,
            ms=_ms_since(start),
            opens_tab=popup is not None or performed.new_tab,
            other_tabs=snapshot.tabs[1:],
            stopped=snapshot.stopped,
            banners=banners,
        )

    async def perform(self, action: Action) -> Performed:
        """Perform a recorded action, and do not look at what it leads to.

        Raises
        ------
        NotActionable, BrowserFailure
            As `act` does.
        """
        self._forget()
        try:
            found, frame = await self._find(action)
            if frame is not None or self._frames.known:
                await self._frames.acted(self.page.main_frame)
            if self.leave is not None and action.target.startswith(("http:", "https:")):
                await self.leave(action.target)
            self._hovering = holds(action)
            if found.get("draws"):
                self._draws = True
                await self.drawn()  # what a chart answers depends on what it has drawn under the pointer
            if frame is not None and "x" in found:
                await self._frames.point(frame, found["x"], found["y"])
            await self._gesture(make_gesture(self.page, action, found.get("x", 0.0), found.get("y", 0.0)))
            if action.kind == "input":
                await self._tell_changed(frame)
        except PlaywrightError as error:
            raise BrowserFailure(f"{action} on {self.page.url}: {_first_line(error)}") from error
        return Performed(found["rung"], found["newTab"], found.get("handled", True))

    async def _tell_changed(self, frame: Frame | None) -> None:
        if frame is not None:
            await self._frames.ask(frame, "changed")
        else:
            await self._ask(f"() => {WAYGRAPH}?.changed()", None)

    async def settle(self, *, unless: str | None = None) -> Quiet:
        """Wait until the page has settled, then take its digest: one round trip.

        Each frame of another origin that belongs to the site costs another one, and is part of the digest.

        Parameters
        ----------
        unless : look at the page as well when its digest is another one than this. Without it nothing is looked at.

        Raises
        ------
        BrowserFailure
            When the page does not answer. One that was replaced meanwhile has an empty digest, and no look.
        """
        options = self._lens.to_js(hovering=self._hovering)
        asked = options if unless is None else {**options, "unless": unless}
        quiet = await self._frames.complete(lambda: self._ask_quiet(asked), "quiet", options)
        if not quiet:
            return Quiet("", capped=False, tabs=(), stopped=())
        self._dialogs.extend(quiet["dialogs"])
        stopped = tuple(BlockedRequest(method, url, "form") for method, url in quiet["stopped"] if method != "GET")
        digest: str = quiet["digest"]
        look: Snapshot | None = None
        if "look" in quiet:
            look = self._parse(quiet["look"])
        elif unless is not None and digest != unless:
            look = await self.observe(digest=False)  # with what its frames show
        return Quiet(digest, quiet["settled"]["capped"], tuple(quiet["tabs"]), stopped, look)

    async def _ask_quiet(self, options: Mapping[str, Any]) -> str:
        for waits in range(_MORE_WAITS, -1, -1):
            try:
                raw = await self._ask_script("quiet", _patient(options, waits))
            except PlaywrightError as error:
                if any(phrase in str(error) for phrase in NAVIGATED):
                    return ""
                raise BrowserFailure(f"{self.page.url}: {_first_line(error)}") from error
            if raw != "":
                return raw or ""
        return ""

    async def back(self) -> None:
        """Go back in the page's history, within its document."""
        await self._ask("() => history.back()", None)

    async def press(self, key: str) -> None:
        """Press a key, with nothing focused."""
        self._hovering = False
        await self.within(self.page.keyboard.press(key))

    async def release(self) -> None:
        """Take the pointer away from what it was held over."""
        self._hovering = False
        await self.within(self.page.mouse.move(*PARKED))

    @property
    def hovering(self) -> bool:
        """Whether the pointer rests on something that was hovered; any other action takes it away."""
        return self._hovering

    @property
    def dialogs(self) -> tuple[str, ...]:
        """JavaScript dialogs that were raised since the last action began, and answered."""
        return tuple(self._dialogs)

    @property
    def downloads(self) -> tuple[str, ...]:
        """URLs of downloads that were started since the last action began, and refused."""
        return tuple(self._downloads)

    async def _find(self, action: Action) -> tuple[dict[str, Any], Frame | None]:
        """Where to point at the recorded element (`x`, `y`), the `rung` that found it, whether it opens a `newTab`.

        With it comes the frame of another origin that the element is in, if it is in one.
        """
        options = self._lens.to_js(hovering=self._hovering)
        found, frames = await self._frames.find(action, options, self._ask_find)
        if found is None:
            raise BrowserFailure(f"{self.page.url} was replaced before {action} could be performed.")
        if not found.get("rung"):
            raise NotActionable(f"{action} is not on {self.page.url}.")
        if "covered" in found:
            raise NotActionable(f"{action} on {self.page.url} {TAKES_NO_POINTER}: {found['covered']}.")
        return found, frames[-1] if frames else None

    async def _ask_find(self, question: str, *arguments: object) -> str | None:
        raw: str | None = await self._ask(f"given => {WAYGRAPH}?.{question}(...given) ?? null", list(arguments))
        return raw

    async def _new_tab(self, snapshot: Snapshot) -> PageView | None:
        """The tab that the action opened or asked for; none when it may not be loaded."""
        if snapshot.tabs and self.open_tab:
            tab = PageView(await self.open_tab(), self._lens, self._settings, own=self._own)
            try:
                await tab.goto(snapshot.tabs[0])
            except BrowserFailure as error:
                log.info("view/tab_not_loaded %s: %s", snapshot.tabs[0], error.message)
                await tab.page.close()
                return None
            return tab
        if self._popups.empty() and not snapshot.opened:
            return None
        try:
            page = await asyncio.wait_for(self._popups.get(), self._settings.action_timeout_ms / 1000)
        except TimeoutError:
            return None  # asked for, but refused by the browser or the guard
        return PageView(page, self._lens, self._settings, own=self._own)

    def _forget(self) -> None:
        """What earlier actions brought about is not the next one's doing."""
        self._dialogs.clear()
        self._downloads.clear()
        while not self._popups.empty():
            late = self._popups.get_nowait()
            log.info("view/late_tab %s", late.url)
            if self._own:
                self._in_background(late.close())

    async def _ask(self, expression: str, argument: object, *, patience_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        return await self._asker.ask(expression, argument, patience_s)

    async def _gesture(self, gesture: Awaitable[None]) -> None:
        """Make a gesture, and go on when the browser does not say that it arrived.

        It does not when the document goes away under it. Whether the page still answers is found out by looking.
        """
        try:
            await asyncio.wait_for(gesture, self._settings.action_timeout_ms / 1000)
        except TimeoutError:
            log.info("view/gesture_unanswered %s", self.page.url)

    async def within(self, call: Awaitable[T], patience_s: float = 0.0) -> T:
        """Await a browser call, but not for ever, see `Asker.within`."""
        return await self._asker.within(call, patience_s)

    def _on_download(self, download: Download) -> None:
        self._downloads.append(download.url)

    def _on_dialog(self, dialog: Dialog) -> None:
        # Staying on a page that asks whether to leave it would make every way back fail.
        leaving = dialog.type == "beforeunload"
        if not leaving:
            self._dialogs.append(f"{dialog.type}: {dialog.message[:200]}")
        accepted = leaving or self._lens.accept_dialogs
        self._in_background(dialog.accept(dialog.default_value) if accepted else dialog.dismiss())

    def _on_request_failed(self, request: Request) -> None:
        """A navigation that became a download, got no content or was stopped leaves its document waiting for it."""
        if request.is_navigation_request() and request.frame == self.page.main_frame:
            self._in_background(self._ask(f"() => {WAYGRAPH}?.navigationFailed()", None))

    def _in_background(self, call: Coroutine[Any, Any, Any]) -> None:
        async def run() -> None:
            try:
                await call
            except (PlaywrightError, BrowserFailure) as error:
                log.debug("view/answer_too_late %s: %s", self.page.url, error)

        task = asyncio.ensure_future(run())
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)


@asynccontextmanager
async def _at_once(_: str) -> AsyncIterator[Callable[[], None]]:
    yield lambda: None


def _patient(options: Mapping[str, Any] | None, waits: int) -> Mapping[str, Any] | None:
    """The options with which a page that is still being loaded says so, as long as it is waited for once more."""
    return {**options, "patient": waits > 0} if options is not None else None


def _ms_since(start: float) -> float:
    return (time.monotonic() - start) * 1000


def _first_line(error: PlaywrightError) -> str:
    return str(error).splitlines()[0]
