"""Where does every work item start? A guarded page in a browser context with known cookies and storage."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from playwright.async_api import Browser, BrowserContext, CDPSession, Page, StorageState
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from pipeline.browser.access import Access
from pipeline.browser.guard import NOTHING_ACTS, ActsOnGet, DocumentPolicy, GuardMode, GuardRules, NetworkGuard, Stopped
from pipeline.browser.script import WAYGRAPH, page_script
from pipeline.browser.snapshot import Lens, Snapshot
from pipeline.browser.view import Acted, PageView
from waygraph.errors import BrowserFailure
from waygraph.settings import BrowserSettings, CaptureProfile

log = logging.getLogger(__name__)

#: Storage that a new context would have; scripts that write when their page is left must not change it again.
_RESTORE_STORAGE = """(origins) => {
  const own = origins.find(({ origin }) => origin === location.origin);
  sessionStorage.clear();
  localStorage.clear();
  for (const { name, value } of own?.localStorage ?? []) localStorage.setItem(name, value);
  for (const method of ["setItem", "removeItem", "clear"]) Storage.prototype[method] = () => {};
}"""
_ARIA_TIMEOUT_MS = 5_000
_CLOSE_PATIENCE_S = 10.0
#: What of a session can be put back without a new context.
RESTORABLE = frozenset({"local", "session"})

#: (area, key) -> hash or value, for everything a site keeps in the browser.
Stored = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """Cookies and storage that a context starts with, and how to see that they were changed.

    Attributes
    ----------
    storage_state : as Playwright takes it; nothing for a first visitor.
    baseline : what the start page leaves in cookies and storage.
    volatile : keys that change on every load anyway.
    """

    storage_state: StorageState | None
    baseline: Stored
    volatile: frozenset[tuple[str, str]]

    def changed_areas(self, stored: Stored, since: Stored | None = None) -> frozenset[str]:
        """Where `stored` differs from the baseline, or from what was stored before, in more than the volatile keys.

        Areas are `cookie`, `local` and `session`.
        """
        before = self.baseline if since is None else since
        keys = (before.keys() | stored.keys()) - self.volatile
        return frozenset(area for area, key in keys if before.get((area, key)) != stored.get((area, key)))


@dataclass(frozen=True, slots=True)
class Capture:
    """The large parts of an observation, taken for states not seen before.

    `screenshot` is a JPEG of the viewport, `dom` is HTML, `aria` Playwright's accessibility snapshot (YAML).
    """

    screenshot: bytes
    dom: str
    aria: str


def kept(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """Local and session storage (by hash) of the document that was looked at."""
    return {(area, key): value for area, items in snapshot.storage.items() for key, value in items.items()}


class Turn(Protocol):
    """The right to ask a host for one document."""

    def over(self) -> None:
        """The request has arrived."""
        ...


class Pacing(Protocol):
    """Says when documents may be asked for."""

    def turn(self, url: str) -> AbstractAsyncContextManager[Turn]:
        """Wait for a turn at the host of `url`."""
        ...

    def used(self, url: str) -> None:
        """A document was asked for at the host of `url`."""
        ...

    async def redirected(self, url: str) -> None:
        """Wait, under a turn that is not over, before the document that it was taken for is asked for elsewhere."""
        ...


class GuardedPage:
    """One page of our own, in a context of its own: looked at, acted on, guarded, captured. Close it when done."""

    def __init__(
        self, context: BrowserContext, page: Page, view: PageView, guard: NetworkGuard, pace: Pacing | None = None
    ) -> None:
        self._context = context
        self._pace = pace
        self._has_turn = self._is_loading = False
        if pace is not None:
            view.turn, view.leave = self._turn, self._leave
            guard.before_document = self._wait_for_turn
        self.page = page
        self.view = view
        self.guard = guard
        self._sessions: dict[Page, CDPSession] = {}

    @classmethod
    async def open(
        cls,
        browser: Browser,
        *,
        lens: Lens,
        settings: BrowserSettings,
        profile: CaptureProfile,
        user_agent: str,
        storage_state: StorageState | None,
        policy: DocumentPolicy,
        guard_mode: GuardMode = "guard",
        guard_rules: GuardRules | None = None,
        proxy: str = "",
        pace: Pacing | None = None,
        access: Access | None = None,
        acts: ActsOnGet = NOTHING_ACTS,
    ) -> GuardedPage:
        """Open a context under the capture profile, with one page that the guard watches from its first request.

        Parameters
        ----------
        proxy : URL of the egress proxy that everything goes through, loopback included.
        pace : asked for a turn before each document of the main frame.
        access : passwords and headers for the site's own hosts.
        acts : addresses that may not be asked for, see `NetworkGuard`.
        """
        context = await browser.new_context(
            **context_options(profile, user_agent=user_agent, proxy=proxy),
            storage_state=storage_state,
            http_credentials=access.credentials if access else None,
        )
        own = json.dumps({"guarded": True, "acceptsDialogs": lens.accept_dialogs})
        await context.add_init_script(f"{page_script()}\nObject.assign({WAYGRAPH}, {own});")
        guard = NetworkGuard(policy, mode=guard_mode, rules=guard_rules, access=access, acts=acts)
        await guard.prepare(context)
        page = await context.new_page()
        opened = cls(context, page, PageView(page, lens, settings), guard, pace)
        opened.view.open_tab = opened._open_tab
        opened._sessions[page] = await guard.attach(page)
        page.on("popup", opened._guard_popup)
        return opened

    @asynccontextmanager
    async def _turn(self, url: str) -> AsyncIterator[Callable[[], None]]:
        """A turn for a document that the view is about to load; the guard need not wait for it again."""
        if self._pace is None or self.guard.hold:
            yield lambda: None
            return
        async with self._pace.turn(url) as turn:
            self._has_turn = self._is_loading = True
            try:
                yield turn.over
            finally:
                self._has_turn = self._is_loading = False

    async def _leave(self, url: str) -> None:
        """A turn for a document that an action is about to ask for."""
        if self._pace is not None and not self.guard.hold:
            async with self._pace.turn(url):
                self._has_turn = True

    async def _wait_for_turn(self, url: str) -> None:
        if self._pace is None:
            return
        has_turn, self._has_turn = self._has_turn, False
        if has_turn:
            self._pace.used(url)
            return
        if self._is_loading:
            # A redirect: the turn of its host may be our own, which is not over before the redirect was followed.
            began = time.monotonic()
            await self._pace.redirected(url)
            self.view.held_back_s += time.monotonic() - began
            return
        async with self._pace.turn(url):
            pass

    async def stored(self, snapshot: Snapshot) -> Stored:
        """Cookies (by value) and storage (by hash) as they are now; `snapshot` must be the latest one."""
        cookies = await self._context.cookies()
        jar = {("cookie", f"{c.get('domain')}{c.get('path')} {c.get('name')}"): c.get("value", "") for c in cookies}
        return jar | kept(snapshot)

    async def restore_storage(self, session: PreparedSession) -> None:
        """Let local and session storage be what they are in the prepared session.

        What the document that is shown writes after that is lost: another one must be loaded next.
        """
        origins = session.storage_state.get("origins", []) if session.storage_state else []
        await self.view.within(self.page.evaluate(_RESTORE_STORAGE, origins))

    async def storage_state(self) -> StorageState:
        """Cookies and local storage, to start another context from."""
        return await self._context.storage_state()

    async def capture(self, acted: Acted) -> Capture:
        """Take the large parts of what `acted` led to, when charts have drawn themselves; four round trips.

        Raises
        ------
        BrowserFailure
            When the page went away or gives no answer.
        """
        view = acted.popup or self.view
        page = view.page
        try:
            if page not in self._sessions:
                self._sessions[page] = await view.within(self._context.new_cdp_session(page))
            await view.drawn()
            # At once: the picture is made by other processes than the one that serialises the document.
            screenshot, (dom, aria) = await asyncio.gather(
                view.within(_screenshot(page, self._sessions[page])), _serialised(view)
            )
        except PlaywrightError as error:
            raise BrowserFailure(f"{page.url} could not be captured: {str(error).splitlines()[0]}") from error
        return Capture(screenshot=screenshot, dom=dom, aria=aria)

    def take_stopped(self) -> Stopped:
        """Requests that the guard stopped since the last call, see `NetworkGuard.take`."""
        return self.guard.take()

    async def close(self) -> None:
        """Close the context with all its pages. A browser that is gone already, or hangs, is no error."""
        try:
            await asyncio.wait_for(self._context.close(), _CLOSE_PATIENCE_S)
        except (PlaywrightError, TimeoutError) as error:
            log.debug("session/not_closed %s", error)

    async def _open_tab(self) -> Page:
        """A new tab beside the page, guarded before it loads anything."""
        page = await self._context.new_page()
        self._sessions[page] = await self.guard.attach(page)
        page.on("close", self._forget)
        return page

    def _forget(self, page: Page) -> None:
        self._sessions.pop(page, None)

    async def _guard_popup(self, page: Page) -> None:
        """A tab opened in a way that the in-page script does not see: its first request is out already."""
        try:
            self._sessions[page] = await self.guard.attach(page)
        except PlaywrightError as error:
            log.debug("guard/popup_gone %s: %s", page.url, error)


def context_options(profile: CaptureProfile, *, user_agent: str, proxy: str) -> dict[str, Any]:
    """How pages are shown under the capture profile, and how they reach anything: options of `Browser.new_context`."""
    return {
        "viewport": {"width": profile.viewport_width, "height": profile.viewport_height},
        "device_scale_factor": profile.scale,
        "locale": profile.locale,
        "timezone_id": profile.timezone,
        "user_agent": user_agent,
        "reduced_motion": "reduce",
        "service_workers": "block",
        "accept_downloads": False,
        # Browsers go to loopback addresses directly unless told otherwise.
        "proxy": {"server": proxy, "bypass": "<-loopback>"} if proxy else None,
    }


async def _screenshot(page: Page, session: CDPSession) -> bytes:
    """A JPEG of the viewport. Playwright would wait for fonts and repaint twice, but the page has settled already."""
    try:
        shot = await session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 60})
    except PlaywrightError:
        # The compositor has no frame yet: Playwright waits for one.
        return await page.screenshot(type="jpeg", quality=60, timeout=10_000)
    return base64.b64decode(shot["data"])


def compare_loads(first: Stored, second: Stored) -> frozenset[tuple[str, str]]:
    """Keys whose values differ between two loads of the same page: they change by themselves."""
    return frozenset(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


async def _serialised(view: PageView) -> tuple[str, str]:
    """HTML and accessibility snapshot."""
    dom = await view.within(view.page.content())
    # A frameset has no body, and waiting for one would take long.
    return dom, "" if "<frameset" in dom else await _aria(view.page)


async def _aria(page: Page) -> str:
    """Playwright's accessibility snapshot; nothing for a page so large that it takes too long."""
    try:
        return await page.locator("body").aria_snapshot(timeout=_ARIA_TIMEOUT_MS)
    except PlaywrightTimeoutError:
        log.info("capture/no_aria %s", page.url)
        return ""
