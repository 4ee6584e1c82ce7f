"""View of one Playwright page: load documents, take snapshots, perform recorded actions."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.core.errors import BrowserFailure
from waygraph.core.settings import BrowserSettings
from waygraph.core.urls import normalize_url
from waygraph.index.graph import Action, BlockedRequest
from waygraph.pipeline.browser.page.actor import BeforeLeaving, PageActor, PerformedAction
from waygraph.pipeline.browser.page.background import BackgroundCalls
from waygraph.pipeline.browser.page.cross_origin_frames import CrossOriginFrames
from waygraph.pipeline.browser.page.evaluate import PageEvaluator, parse_script_result
from waygraph.pipeline.browser.page.failures import NotActionable, PageFailure
from waygraph.pipeline.browser.page.observer import PageObserver, SettledPage
from waygraph.pipeline.browser.page.page_events import PageEvents
from waygraph.pipeline.browser.page.popups import PopupQueue
from waygraph.pipeline.browser.page.script import WAYGRAPH
from waygraph.pipeline.browser.page.snapshot import Banner, Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.ways_back import WaysBack

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Some sites show two cookie banners in a row. A page with more answers each click with another banner.
_MAX_BANNERS = 2
#: Documents that were left stay in the memory of the page's process until they take hundreds of megabytes. Freeing them
#: costs tens of milliseconds.
DOCUMENTS_PER_COLLECTION = 100


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of an action.

    Attributes
    ----------
    rung
        Rung of the ladder that found the element: `exact`, `role`, `xpath` or `css`; `url` for a goto.
    snapshot
        Snapshot of the page, or of the new tab, after the action.
    popup
        View of the tab that the action opened, if any; the tab is left open.
    dialogs
        JavaScript dialogs that were raised and answered.
    downloads
        URLs of downloads that were started and refused.
    ms
        Time from the action until the page had settled, in milliseconds.
    opens_tab
        Whether the target is meant for a new tab; a guarded page may load it in its own.
    other_tabs
        URLs of further tabs that the page tried to open; they were not opened.
    stopped
        Form posts into new tabs that the page did not send.
    banners
        Cookie banners of a loaded page that were closed before `snapshot` was taken.
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
class PageMarkup:
    """What is stored of a document besides its snapshot, see `js/markup.js`.

    Attributes
    ----------
    html
        The document with its shadow roots, closed ones included as far as the in-page script knows them.
    aria
        The accessibility snapshot (YAML, as Playwright writes it) of the dialog in front of the page, or of its body.
    """

    html: str
    aria: str


@dataclass(frozen=True, slots=True)
class NavigationResponse:
    """Response of a server to a navigation: seconds until it began, and its headers by lower-case name."""

    seconds: float
    headers: Mapping[str, str]

    @property
    def retry_after(self) -> str:
        """The `Retry-After` header; empty if there is none."""
        return self.headers.get("retry-after", "")


class PageView:
    """Loads, observes and acts on one page. Not safe for concurrent use.

    Parameters
    ----------
    page
        The Playwright page; its viewport, cookies and handlers are not changed.
    options
        What snapshots contain.
    settings
        Timeouts.
    owned
        Whether waygraph owns the page. The view then answers its JavaScript dialogs. In pages of callers it answers
        them only where `options` accepts dialogs: dismissing one there would lead elsewhere than the map says.
    """

    def __init__(
        self,
        page: Page,
        options: SnapshotOptions,
        settings: BrowserSettings,
        *,
        owned: bool = True,
    ) -> None:
        self.page = page
        self._options = options
        self._settings = settings
        self._owned = owned
        self._documents = 0
        self._evaluator = PageEvaluator(page, settings, owned=owned)
        # A response can be lost with the document that it comes from: repeat the call before giving up.
        response_timeout_s = (settings.settle_cap_ms + settings.action_timeout_ms) / 1000
        self._frames = CrossOriginFrames(
            page, options.frames, self._evaluator.with_timeout, timeout_s=response_timeout_s
        )
        self._observer = PageObserver(
            page,
            self._evaluator,
            self._frames,
            options,
            owned=owned,
            response_timeout_s=response_timeout_s,
            code_timeout_s=settings.settle_cap_ms / 1000,
        )
        self._actor = PageActor(page, self._evaluator, self._frames, self._observer, options, settings=settings)
        self.ways_back = WaysBack(self._evaluator, self._actor)
        """Leave what the last action opened, typed or chose."""
        background = BackgroundCalls(page)
        self._popups = PopupQueue(page, background, owned=owned)
        self._events = PageEvents(
            page,
            self._evaluator,
            background,
            answers_dialogs=owned or options.accept_dialogs,
            accepts_dialogs=options.accept_dialogs,
        )
        self.navigation_turn: Callable[[str], AbstractAsyncContextManager[Callable[[], None]]] = _immediate_turn
        """Entered before a document is requested; its value is called when the response has begun."""
        self.before_leaving: BeforeLeaving | None = None
        """Awaited before an action on a link: the target may have to wait for its host's turn."""
        self.response = NavigationResponse(0.0, {})
        """The server's response to the last navigation."""
        self.delayed_s = 0.0
        """Time that the document being loaded was delayed by pacing and not by the server, in seconds."""
        self.open_tab: Callable[[], Awaitable[Page]] | None = None
        """Opens the tabs that the page tries to open; set where the page itself may not."""
        self.on_settled: Callable[[Page, bool], None] = lambda _page, _capped: None
        """Called when the page has settled, or was no longer waited for (capped)."""
        self.on_acting: Callable[[Page], None] = lambda _: None
        """Called when the page is about to be acted on."""

    def detach(self) -> None:
        """Stop listening to the page; the page stays as it is."""
        self._popups.detach()
        self._events.detach()
        self._observer.detach()
        self._evaluator.detach()

    async def observe(self, *, digest: bool = True) -> Snapshot:
        """Wait until the page has settled, then take a snapshot.

        This costs one round trip, and two more in a page without the in-page script. Each cross-origin frame of the
        site costs the same again, and three more the first time.

        Parameters
        ----------
        digest
            Whether to compute the digest, which takes a quarter of the time of a snapshot; if not, it is empty.

        Returns
        -------
        Snapshot
            The snapshot, also if the page did not settle within the cap (`capped`).

        Raises
        ------
        PageFailure
            If the page does not respond: it hangs, crashed or was closed.
        """
        snapshot = await self._observer.observe(hovering=self._actor.is_hovering, digest=digest)
        self.on_settled(self.page, snapshot.capped)
        self._events.dialogs.extend(snapshot.dialogs)
        return snapshot

    async def digest(self) -> str:
        """Return a hash of everything in the document that a person or a script would find again; one round trip.

        Included are the address, elements with their attributes, texts, fields, scrolled boxes, frames of the same
        origin, shadow roots, cookies and storage. Not included are variables of scripts, the focus, and the content of
        cross-origin frames.

        Returns
        -------
        str
            16 hexadecimal digits.

        Raises
        ------
        PageFailure
            If the page does not respond.
        """
        return await self._observer.digest()

    async def settle(self, *, unless_digest: str | None = None) -> SettledPage:
        """Wait until the page has settled, then take its digest.

        This costs one round trip. Each cross-origin frame of the site costs another one and is part of the digest.

        Parameters
        ----------
        unless_digest
            Take a snapshot as well if the digest differs from this one. None: take no snapshot.

        Returns
        -------
        SettledPage
            If the document was replaced meanwhile: with an empty digest and no snapshot.

        Raises
        ------
        PageFailure
            If the page does not respond.
        """
        settled = await self._observer.settle(hovering=self._actor.is_hovering, unless_digest=unless_digest)
        self.on_settled(self.page, settled.capped)
        self._events.dialogs.extend(settled.dialogs)
        if settled.snapshot is not None:
            self._events.dialogs.extend(settled.snapshot.dialogs)
        return settled

    async def markup(self) -> PageMarkup:
        """Return the HTML and the accessibility snapshot of what a person can reach; one round trip."""
        raw = await self._evaluator.evaluate(f"() => {WAYGRAPH}.markup()", None)
        result = parse_script_result(raw)
        return PageMarkup(result["html"], result["aria"])

    async def read_on(self, snapshot: Snapshot) -> tuple[Snapshot, int]:
        """Scroll lists that grow to their ends, within limits, and back. The page is not what it was, and left soon.

        Parameters
        ----------
        snapshot
            Snapshot of the page.

        Returns
        -------
        tuple
            The snapshot with the rows that were found as further candidates or links, and the number of lists of which
            there may be more. Structure and texts stay those of the page at its top.

        Raises
        ------
        PageFailure
            If the page does not respond, or scrolling leads to another document.
        """
        try:
            return await self._observer.read_on(snapshot)
        except PlaywrightError as error:
            raise PageFailure.of(error, self.page.url) from error

    async def wait_until_drawn(self) -> None:
        """Wait until the canvases in view stay the same, as charts do after a second; at most 1.5 s.

        A page whose last snapshot found no canvas costs no round trip.
        """
        await self._observer.wait_until_drawn()

    async def goto(self, url: str, *, referrer: str = "", digest: bool = True) -> ActionResult:
        """Load `url` as a new document, even if only the fragment differs, and take a snapshot as `observe` does.

        Parameters
        ----------
        url
            The URL.
        referrer
            The `Referer` header; empty: none.
        digest
            Whether to compute the digest of the snapshot.

        Returns
        -------
        ActionResult
            The snapshot, taken after cookie banners were closed.

        Raises
        ------
        PageFailure
            If the document cannot be loaded; `net_code` is Chromium's error.
        """
        start = time.monotonic()
        was_hovering, self._actor.is_hovering = self._actor.is_hovering or not self._owned, False
        self.forget_earlier_actions()
        self._documents += 1
        try:
            if self._owned and self._documents % DOCUMENTS_PER_COLLECTION == 0:
                await self._evaluator.collect_garbage()
            if was_hovering:
                # Otherwise the pointer would rest on an element of the next document.
                await self._actor.park_pointer()
            if "#" in url and self.page.url.partition("#")[0] == url.partition("#")[0]:
                await self.with_timeout(self.page.goto("about:blank"))
            async with self.navigation_turn(url) as end_turn:
                start, self.delayed_s = time.monotonic(), 0.0
                response = await self.with_timeout(
                    self.page.goto(
                        url,
                        wait_until="commit",
                        timeout=self._settings.navigation_timeout_ms,
                        **({"referer": referrer} if referrer else {}),
                    )
                )
                end_turn()
        except PlaywrightError as error:
            raise PageFailure.of(error, url) from error
        seconds = time.monotonic() - start - self.delayed_s
        self.response = NavigationResponse(seconds, response.headers if response else {})
        snapshot, banners = await self._close_banners(await self.observe(digest=digest))
        return ActionResult("url", snapshot, None, self.dialogs, self.downloads, _ms_since(start), banners=banners)

    async def act(self, action: Action) -> ActionResult:
        """Perform a recorded action and take a snapshot of the result.

        Parameters
        ----------
        action
            The action; a `goto` loads its URL.

        Returns
        -------
        ActionResult
            What the action brought about.

        Raises
        ------
        NotActionable
            If the recorded element is missing or takes no pointer; nothing was done to the page.
        PageFailure
            If the page does not respond.
        """
        if action.kind == "goto":
            return await self.goto(action.url)
        start = time.monotonic()
        before = self.page.url.partition("#")[0]
        performed = await self.perform(action)
        snapshot = await self.observe()
        banners: tuple[Banner, ...] = ()
        if self.page.url.partition("#")[0] != before:
            # Only on another page: a cookie dialog that an action opens in place is the result of the action.
            snapshot, banners = await self._close_banners(snapshot)
        popup = await self._new_tab(snapshot)
        return ActionResult(
            rung=performed.rung,
            snapshot=await popup.observe() if popup else snapshot,
            popup=popup,
            dialogs=self.dialogs,
            downloads=self.downloads,
            ms=_ms_since(start),
            opens_tab=popup is not None or performed.new_tab,
            other_tabs=snapshot.tabs[1:],
            stopped=snapshot.stopped,
            banners=banners,
        )

    async def perform(self, action: Action, *, reverts: bool = False) -> PerformedAction:
        """Perform a recorded action without taking a snapshot.

        Parameters
        ----------
        action
            The action, not a `goto`.
        reverts
            Whether the action is a way back from the one before. `ways_back` still leads to the page before that one.

        Returns
        -------
        PerformedAction
            How the element was found.

        Raises
        ------
        NotActionable
            If the recorded element is missing or takes no pointer; nothing was done to the page.
        PageFailure
            If the page does not respond.
        """
        self.forget_earlier_actions()
        self.on_acting(self.page)
        return await self._actor.perform(action, self.before_leaving, reverts=reverts)

    async def has_other_handlers(self) -> bool:
        """Return whether the last click, in a guarded page, gave its element another handler for clicks."""
        return bool(await self._evaluator.evaluate(f"() => {WAYGRAPH}?.hasOtherHandlers() ?? false", None))

    async def scroll(self, direction: str, action: Action | None = None) -> bool:
        """Scroll the page by most of the window, and wait for nothing.

        Parameters
        ----------
        direction
            `up`, `down`, `left` or `right`.
        action
            An action on an element: the box that scrolls it is scrolled. None: the page. Elements in cross-origin
            frames are not found.

        Returns
        -------
        bool
            Whether anything moved.

        Raises
        ------
        NotActionable
            If the element is not on the page.
        PageFailure
            If the page does not respond.
        """
        self.forget_earlier_actions()
        return await self._actor.scroll(direction, action)

    async def press_key(self, key: str) -> None:
        """Press a key, with no element focused."""
        await self._actor.press_key(key)

    def forget_earlier_actions(self) -> None:
        """Drop dialogs, downloads and tabs of earlier actions, which are not results of the next one.

        `goto`, `act`, `perform` and `scroll` do so themselves.
        """
        self._events.clear()
        self._popups.drop_late()

    async def call(self, expression: str, argument: object, timeout_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """Call a function expression where the in-page script runs, see `PageEvaluator.evaluate`."""
        return await self._evaluator.evaluate(expression, argument, timeout_s)

    async def with_timeout(self, call: Awaitable[T], timeout_s: float = 0.0) -> T:
        """Await a browser call with a timeout, see `PageEvaluator.with_timeout`."""
        return await self._evaluator.with_timeout(call, timeout_s)

    def normalize(self, url: str) -> str:
        """Return the canonical form of a URL under the policy of the view's snapshots."""
        return normalize_url(url, self._options.url_policy)

    @property
    def is_hovering(self) -> bool:
        """Whether pointer or focus rest on an element; any other action moves them away."""
        return self._actor.is_hovering

    @property
    def accepts_dialogs(self) -> bool:
        """Whether JavaScript dialogs that the view answers are accepted."""
        return self._options.accept_dialogs

    @property
    def dialogs(self) -> tuple[str, ...]:
        """JavaScript dialogs that were raised and answered since the last action began."""
        return tuple(self._events.dialogs)

    @property
    def downloads(self) -> tuple[str, ...]:
        """URLs of downloads that were started and refused since the last action began."""
        return tuple(self._events.downloads)

    async def _close_banners(self, snapshot: Snapshot) -> tuple[Snapshot, tuple[Banner, ...]]:
        """Close the cookie banners of a loaded page, as a person would, and take another snapshot."""
        closed: list[Banner] = []
        while snapshot.banner and self._options.banners and len(closed) < _MAX_BANNERS:
            try:
                await self._actor.press_banner_button(snapshot.banner.action)
            except NotActionable as error:
                log.info("view/banner_stays %s", error.message)
                break
            except PlaywrightError as error:
                raise PageFailure.of(error, f"Cookie banner of {self.page.url}") from error
            closed.append(snapshot.banner)
            snapshot = await self.observe()
        return snapshot, tuple(closed)

    async def _new_tab(self, snapshot: Snapshot) -> PageView | None:
        """Return the view of the tab that the action opened or tried to open; None if it may not be loaded."""
        if snapshot.tabs and self.open_tab:
            tab = self._view_of(await self.open_tab())
            tab.on_settled, tab.on_acting = self.on_settled, self.on_acting
            try:
                await tab.goto(snapshot.tabs[0])
            except BrowserFailure as error:
                log.info("view/tab_not_loaded %s: %s", snapshot.tabs[0], error.message)
                await tab.page.close()
                return None
            return tab
        page = await self.take_popup(snapshot)
        return self._view_of(page) if page is not None else None

    async def take_popup(self, snapshot: Snapshot) -> Page | None:
        """Return the tab that opened since the last action; wait for it if the snapshot says that one was opened."""
        return await self._popups.take(opened=snapshot.opened, timeout_s=self._settings.action_timeout_ms / 1000)

    def of_tab(self, page: Page) -> PageView:
        """Return a view of another tab with the same options, which the caller detaches."""
        return self._view_of(page)

    def _view_of(self, page: Page) -> PageView:
        return PageView(page, self._options, self._settings, owned=self._owned)


@asynccontextmanager
async def _immediate_turn(_: str) -> AsyncIterator[Callable[[], None]]:
    yield lambda: None


def _ms_since(start: float) -> float:
    return (time.monotonic() - start) * 1000
