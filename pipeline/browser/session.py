"""Guarded pages: one page in its own browser context, with known cookies and storage and a network guard."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from waygraph.core.settings import BrowserSettings, CaptureProfile
from waygraph.pipeline.browser.guard import DocumentPolicy, NetworkGuard, RequestPolicy, StoppedRequests
from waygraph.pipeline.browser.guard.credentials import SiteCredentials
from waygraph.pipeline.browser.guard.static_files import StaticFiles
from waygraph.pipeline.browser.page.evaluate import evaluate_apart
from waygraph.pipeline.browser.page.failures import PageFailure
from waygraph.pipeline.browser.page.script import add_page_script
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.storage.contexts import (
    HeldSession,
    open_context,
    origin_of,
    read_session,
    session_values,
)
from waygraph.pipeline.browser.storage.database_watch import DatabaseWatch
from waygraph.pipeline.browser.storage.first_documents import start_tab
from waygraph.pipeline.browser.storage.session_file import SessionState
from waygraph.pipeline.browser.storage.stored_values import (
    COOKIES,
    DATABASES,
    LOCAL,
    SESSION,
    StoredValues,
    cookie_key,
    differences,
    store_of,
)

log = logging.getLogger(__name__)

#: Sets the storage to that of the prepared session, and disables writes: scripts that write when their page is left
#: must not change it again. A document with an opaque origin has no storage.
_RESTORE_STORAGE = """(origins) => {
  const own = origins.find(({ origin }) => origin === location.origin);
  try {
    sessionStorage.clear();
    localStorage.clear();
    for (const { name, value } of own?.localStorage ?? []) localStorage.setItem(name, value);
    for (const { name, value } of own?.sessionStorage ?? []) sessionStorage.setItem(name, value);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}"""
#: What scripts store from now on is dropped.
_CLOSE_STORAGE = "for (const method of ['setItem', 'removeItem', 'clear']) Storage.prototype[method] = () => {}; null"
_SCREENSHOT_TIMEOUT_MS = 10_000
_CLOSE_TIMEOUT_S = 10.0
#: Stored values of which it is recorded that a page left them.
_MAX_LEFT_VALUES = 64
#: Areas of a session that can be restored without a new context.
RESTORABLE_AREAS = frozenset({COOKIES, LOCAL, SESSION})


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """Cookies and storage that a context starts with, and the baseline that shows changes.

    Attributes
    ----------
    storage_state
        Cookies and storage; None for a first visit.
    baseline
        Cookies and storage after the start page was loaded.
    volatile
        Keys that change on every load.
    """

    storage_state: SessionState | None
    baseline: StoredValues
    volatile: frozenset[tuple[str, str]]

    def changed_areas(self, stored: StoredValues, since: StoredValues | None = None) -> frozenset[str]:
        """Find the areas of a session that have changed.

        Parameters
        ----------
        stored
            The current values.
        since
            The values to compare with; None: the baseline.

        Returns
        -------
        frozenset
            The areas (`cookie`, `local`, `session`, `database`) with a change in a key that is not volatile.
        """
        before = self.baseline if since is None else since
        return frozenset(
            area
            for area, key in differences(before, stored) - self.volatile
            if area != DATABASES or (area, store_of(key)) not in self.volatile
        )

    def with_values(
        self, held: SessionState, stored: StoredValues, keys: Collection[tuple[str, str]]
    ) -> PreparedSession:
        """Return this session with the values that some keys have in another one.

        Parameters
        ----------
        held
            The other session.
        stored
            Its stored values.
        keys
            Area and key of cookies, local and session storage.

        Returns
        -------
        PreparedSession
            Equal to this one in everything else.
        """
        state: SessionState = self.storage_state or {"cookies": [], "origins": []}
        cookies = {
            cookie_key(cookie): cookie for cookie in state["cookies"] if (COOKIES, cookie_key(cookie)) not in keys
        }
        cookies |= {cookie_key(cookie): cookie for cookie in held["cookies"] if (COOKIES, cookie_key(cookie)) in keys}
        others = {entry["origin"]: entry for entry in held["origins"]}
        own = {entry["origin"]: entry for entry in state["origins"]}
        origins = [
            own.get(origin, {"origin": origin})
            | {
                name: [
                    *(item for item in own.get(origin, {}).get(name, ()) if (area, item["name"]) not in keys),
                    *(item for item in others.get(origin, {}).get(name, ()) if (area, item["name"]) in keys),
                ]
                for area, name in ((LOCAL, "localStorage"), (SESSION, "sessionStorage"))
            }
            for origin in {**own, **others}
        ]
        kept = {key: value for key, value in self.baseline.items() if key not in keys}
        baseline = kept | {key: stored[key] for key in keys if key in stored}
        return PreparedSession({"cookies": list(cookies.values()), "origins": origins}, baseline, self.volatile)

    def left_values(self, stored: StoredValues) -> tuple[tuple[str, str, str], ...]:
        """Return in which cookies and storage the current values differ: area, key, digest (empty: removed), sorted.

        Storage is that of the page's origin, so that a key that is missing there need not have been removed. Keys that
        are volatile are left out, and those beyond a limit.
        """
        return tuple(
            (area, key, _digest(stored.get((area, key))))
            for area, key in sorted(differences(self.baseline, stored) - self.volatile)
            if area == COOKIES or (area != DATABASES and (area, key) in stored)
        )[:_MAX_LEFT_VALUES]


def _digest(value: str | None) -> str:
    if value is None:
        return ""
    return hashlib.md5(value.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Capture:
    """Large parts of an observation, taken for new states only.

    Attributes
    ----------
    screenshot
        JPEG of the viewport.
    dom
        HTML of the document, with its shadow roots as `<template shadowrootmode>`.
    aria
        Accessibility snapshot, see `PageMarkup`.
    """

    screenshot: bytes
    dom: str
    aria: str


#: Takes the capture of a page in its present state.
TakeCapture = Callable[[], Awaitable[Capture]]


def storage_hashes(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """Return the hashes of a snapshot's local and session storage."""
    return {(area, key): value for area, items in snapshot.storage.items() for key, value in items.items()}


class HostTurn(Protocol):
    """Permission to request one document from a host."""

    def end(self) -> None:
        """End the turn: the request has arrived."""
        ...


class Pacing(Protocol):
    """Schedule of document requests by host."""

    def turn(self, url: str) -> AbstractAsyncContextManager[HostTurn]:
        """Wait for a turn at the host of `url`."""
        ...

    def note_request(self, url: str) -> None:
        """Record that a document was requested from the host of `url`."""
        ...

    async def wait_for_redirect(self, url: str) -> None:
        """Wait during a turn that has not ended, before its document is requested from another host."""
        ...


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """Options of a browser context: how pages are displayed, and how they reach the network.

    Attributes
    ----------
    profile
        Viewport, locale and time zone.
    user_agent
        The `User-Agent` header.
    proxy
        URL of the egress proxy for all traffic, loopback included; empty: none.
    storage_state
        Cookies and storage to start with; None: none.
    credentials
        Password and headers for the site's own hosts.
    """

    profile: CaptureProfile
    user_agent: str
    proxy: str = ""
    storage_state: SessionState | None = None
    credentials: SiteCredentials | None = None

    def to_playwright(self) -> dict[str, Any]:
        """Return the options of `Browser.new_context`, without the session."""
        profile = self.profile
        return {
            "viewport": {"width": profile.viewport_width, "height": profile.viewport_height},
            "device_scale_factor": profile.scale,
            "locale": profile.locale,
            "timezone_id": profile.timezone,
            "user_agent": self.user_agent,
            "reduced_motion": "reduce",
            "service_workers": "block",
            "accept_downloads": False,
            # Browsers bypass the proxy for loopback addresses by default.
            "proxy": {"server": self.proxy, "bypass": "<-loopback>"} if self.proxy else None,
            "http_credentials": self.credentials.http_credentials if self.credentials else None,
        }


class GuardedPage:
    """A page that waygraph owns, in its own context, with a view of it and a network guard. Close it after use.

    Parameters
    ----------
    context
        The browser context of the page.
    page
        The page.
    view
        The view of the page.
    guard
        The guard that is attached to the page.
    devtools
        The guard's DevTools session of the page.
    session
        The session that the context started with; None: none.
    pacing
        Schedule of the requests for documents of the main frame; None: no limits.
    """

    def __init__(
        self,
        context: BrowserContext,
        page: Page,
        view: PageView,
        guard: NetworkGuard,
        devtools: CDPSession,
        *,
        session: SessionState | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        self._context = context
        self._pacing = pacing
        self._has_turn = self._is_loading = False
        if pacing is not None:
            view.navigation_turn, view.before_leaving = self._turn, self._wait_before_leaving
            guard.before_document = self._wait_for_turn
        self.page = page
        self.view = view
        self.guard = guard
        self._sessions: dict[Page, CDPSession] = {page: devtools}
        self._databases = DatabaseWatch(devtools)
        self._session_storage = session_values(session)
        """What new tabs start with, by origin."""
        self._origins = frozenset(each["origin"] for each in (session or {}).get("origins", []))

    @classmethod
    async def open(
        cls,
        browser: Browser,
        context_options: ContextOptions,
        *,
        settings: BrowserSettings,
        snapshot_options: SnapshotOptions,
        document_policy: DocumentPolicy,
        request_policy: RequestPolicy | None = None,
        pacing: Pacing | None = None,
        static_files: StaticFiles | None = None,
        counters: Counter[str] | None = None,
    ) -> GuardedPage:
        """Open a context with one page that is guarded from its first request.

        Parameters
        ----------
        browser
            The browser, launched with `guarded=True`.
        context_options
            Options of the new context.
        settings
            Timeouts of the view.
        snapshot_options
            What snapshots of the page contain.
        document_policy
            Which documents the main frame may load.
        request_policy
            Which requests are blocked; None: the default of `NetworkGuard`.
        pacing
            Schedule of the requests for documents of the main frame; None: no limits.
        static_files
            Static files of the site, which its pages share; None: each page requests them.
        counters
            Counters of requests, see `NetworkGuard`; None: they are not counted.

        Returns
        -------
        GuardedPage
            The page, which shows no document yet.
        """
        context = await open_context(browser, context_options.storage_state, **context_options.to_playwright())
        guard = NetworkGuard(
            document_policy,
            request_policy=request_policy,
            credentials=context_options.credentials,
            static_files=static_files,
            counters=counters,
        )
        # First: the in-page script then sees a message when the page sends it, not when the guard has let it pass.
        await guard.prepare(context)
        await add_page_script(context, guarded=True, accepts_dialogs=snapshot_options.accept_dialogs)
        page = await context.new_page()
        opened = cls(
            context,
            page,
            PageView(page, snapshot_options, settings),
            guard,
            await guard.attach(page),
            session=context_options.storage_state,
            pacing=pacing,
        )
        opened.view.open_tab = opened._open_tab
        opened.view.on_settled, opened.view.on_acting = guard.end_visit, guard.begin_action
        await start_tab(page, opened._session_storage)
        page.on("popup", opened._guard_popup)
        return opened

    @asynccontextmanager
    async def _turn(self, url: str) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn of a document that the view is about to load; the guard does not wait for it again."""
        if self._pacing is None or self.guard.hold_navigations:
            yield lambda: None
            return
        async with self._pacing.turn(url) as turn:
            self._has_turn = self._is_loading = True
            try:
                yield turn.end
            finally:
                self._has_turn = self._is_loading = False

    async def _wait_before_leaving(self, url: str) -> None:
        """Wait for the turn of a document that an action is about to request."""
        if self._pacing is not None and not self.guard.hold_navigations:
            async with self._pacing.turn(url):
                self._has_turn = True

    async def _wait_for_turn(self, url: str) -> None:
        if self._pacing is None:
            return
        has_turn, self._has_turn = self._has_turn, False
        if has_turn:
            self._pacing.note_request(url)
            return
        if self._is_loading:
            # A redirect. This page may hold the turn of its host, and that turn ends only after the redirect.
            began = time.monotonic()
            await self._pacing.wait_for_redirect(url)
            self.view.delayed_s += time.monotonic() - began
            return
        async with self._pacing.turn(url):
            pass

    async def stored_values(self, snapshot: Snapshot) -> StoredValues:
        """Return the present cookies (by value), storage and databases (by hash); `snapshot` must be the latest one."""
        jar = {(COOKIES, cookie_key(cookie)): cookie.get("value", "") for cookie in await self._context.cookies()}
        return {**jar, **storage_hashes(snapshot), **await self._databases.values(self.view)}

    async def restore(self, session: PreparedSession, changed: Collection[str]) -> None:
        """Restore areas of the prepared session, and keep the files that the browser has cached.

        The page shows no usable document afterwards, hence another one must be loaded next.

        Parameters
        ----------
        session
            The prepared session.
        changed
            The areas that changed, out of `RESTORABLE_AREAS`. Storage is restored in any case, because pages may write
            it when they are left.

        Raises
        ------
        PlaywrightError
            If the page is gone.
        BrowserFailure
            If the page does not respond.
        """
        state = session.storage_state or {}
        with_timeout = self.view.with_timeout
        await with_timeout(self.page.evaluate(_CLOSE_STORAGE))
        await with_timeout(evaluate_apart(self.page, _RESTORE_STORAGE, state.get("origins", [])))
        if COOKIES not in changed:
            return
        # The document that is open could change the cookies again.
        await with_timeout(self.page.goto("about:blank"))
        await with_timeout(self._context.clear_cookies())
        if cookies := state.get("cookies"):
            await with_timeout(self._context.add_cookies(cast("Any", cookies)))

    async def held_session(self, *, of_tab: bool = False) -> HeldSession:
        """Return cookies, storage and databases, to start another context with.

        Session storage is that of the origins for which the context started with some: what a page stores for a visitor
        is stored again by each tab.

        Parameters
        ----------
        of_tab
            Whether the other context continues this tab, so that what the page keeps in its session storage counts too.

        Returns
        -------
        HeldSession
            The session.
        """
        shown = origin_of(self.page.url)
        session_storage = dict(self._session_storage)
        if shown in session_storage or (of_tab and shown):
            items = await self.view.with_timeout(evaluate_apart(self.page, "() => ({ ...sessionStorage })"))
            session_storage[shown] = items
        origins = {*session_storage, *self._origins, *(origin_of(frame.url) for frame in self.page.frames)} - {""}
        return await read_session(self._context, origins, session_storage)

    async def capture(self, view: PageView | None = None) -> Capture:
        """Take the large parts of an observation, after charts have finished drawing; three round trips.

        Parameters
        ----------
        view
            The view to capture, such as that of a new tab; None: the view of the page.

        Returns
        -------
        Capture
            Screenshot, HTML and accessibility snapshot.

        Raises
        ------
        PageFailure
            If the page is gone or does not respond.
        """
        view = view or self.view
        page = view.page
        try:
            if page not in self._sessions:
                self._sessions[page] = await view.with_timeout(self._context.new_cdp_session(page))
            await view.wait_until_drawn()
            # Concurrently: the compositor makes the screenshot in other processes than the one that serialises the DOM.
            screenshot, markup = await asyncio.gather(
                view.with_timeout(_take_screenshot(page, self._sessions[page])), view.markup()
            )
        except PlaywrightError as error:
            raise PageFailure.of(error, f"{page.url} could not be captured") from error
        return Capture(screenshot=screenshot, dom=markup.html, aria=markup.aria)

    def take_stopped(self) -> StoppedRequests:
        """Return the requests that the guard stopped since the last call, see `NetworkGuard.take_stopped`."""
        return self.guard.take_stopped()

    async def close(self) -> None:
        """Close the context with all its pages. A browser that is gone or hangs is not an error."""
        try:
            await asyncio.wait_for(self._context.close(), _CLOSE_TIMEOUT_S)
        except (PlaywrightError, TimeoutError) as error:
            log.debug("session/not_closed %s", error)

    async def _open_tab(self) -> Page:
        """Open a tab in the same context, guarded before it loads anything."""
        page = await self._context.new_page()
        self._sessions[page] = await self.guard.attach(page)
        page.on("close", self._forget_session)
        await start_tab(page, self._session_storage)
        return page

    def _forget_session(self, page: Page) -> None:
        self._sessions.pop(page, None)

    async def _guard_popup(self, page: Page) -> None:
        """Guard a tab that was opened in a way that the in-page script cannot intercept; its first request was sent."""
        try:
            self._sessions[page] = await self.guard.attach(page)
        except PlaywrightError as error:
            log.debug("guard/popup_gone %s: %s", page.url, error)


async def _take_screenshot(page: Page, session: CDPSession) -> bytes:
    """Take a JPEG of the viewport.

    Playwright would wait for fonts and for two repaints; a page that is captured has already settled.
    """
    try:
        shot = await session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 60})
    except PlaywrightError:
        # The compositor has no frame yet: Playwright waits for one.
        return await page.screenshot(type="jpeg", quality=60, timeout=_SCREENSHOT_TIMEOUT_MS)
    return base64.b64decode(shot["data"])
