"""What a site keeps in the browser: recorded with each state, and set back before a return to it.

A folded side bar, a list that was sorted, a cart of a page without a server: sites keep such things in cookies that
scripts set, in local and in session storage. A page then shows them wherever it is loaded again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from waygraph.agents.search.tree import BrowserStorage, StoredCookie
from waygraph.core.errors import BrowserFailure
from waygraph.pipeline.browser.page.evaluate import evaluate_apart
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.storage.first_documents import SET_LOCAL, FirstDocuments, FirstValues
from waygraph.pipeline.browser.storage.stored_values import may_grant_access

log = logging.getLogger(__name__)

_READ = """() => {
  try {
    return { origin: location.origin, local: { ...localStorage }, session: { ...sessionStorage } };
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
    return { origin: "", local: {}, session: {} }; // a document with an opaque origin has no storage
  }
}"""


@dataclass(frozen=True, slots=True)
class StorageChange:
    """What must be done so that the browser keeps other values.

    Attributes
    ----------
    cookies
        Cookies to set.
    dropped
        Cookies to remove.
    local
        Values of the local storage to set; None: to remove.
    """

    cookies: tuple[StoredCookie, ...]
    dropped: tuple[StoredCookie, ...]
    local: Mapping[str, str | None]


def storage_change(present: BrowserStorage, wanted: BrowserStorage) -> StorageChange:
    """Return the change from what the browser keeps to what it kept when a state was recorded.

    Values that were withheld at one of the two times stay as they are. Local storage is changed only if both are of one
    origin.

    Parameters
    ----------
    present
        What the browser keeps.
    wanted
        What it kept.

    Returns
    -------
    StorageChange
        The change.
    """
    withheld = {*present.withheld, *wanted.withheld}
    now, then = ({_key(each): each for each in stored.cookies} for stored in (present, wanted))
    local: dict[str, str | None] = {}
    if present.origin == wanted.origin:
        local |= {name: value for name, value in wanted.local.items() if present.local.get(name) != value}
        local |= dict.fromkeys(present.local.keys() - wanted.local.keys())
    return StorageChange(
        cookies=tuple(
            cookie
            for key, cookie in then.items()
            if key not in withheld and (key not in now or now[key].value != cookie.value)
        ),
        dropped=tuple(cookie for key, cookie in now.items() if key not in withheld and key not in then),
        local={name: value for name, value in local.items() if f"local {name}" not in withheld},
    )


def recorded_storage(page: Mapping[str, Any], cookies: Sequence[Mapping[str, Any]]) -> BrowserStorage:
    """Return the values that are kept with a state, and the names of the others.

    Parameters
    ----------
    page
        Its `origin`, the values of its `local` and `session` storage, and the `url` of the cookies.
    cookies
        The cookies, as Playwright has them.

    Returns
    -------
    BrowserStorage
        The values. Those of HTTP-only cookies are withheld: they are sessions of the server, and no script sets them.
        So are those of partitioned cookies, which are sessions of embedded sites.
    """
    withheld: list[str] = []
    areas: dict[str, dict[str, str]] = {}
    for area in ("local", "session"):
        items = page[area].items()
        areas[area] = {name: value for name, value in items if not may_grant_access(name, value)}
        withheld += [f"{area} {name}" for name, _ in items if name not in areas[area]]
    found = [_stored_cookie(each) for each in cookies]
    plain = [
        each
        for each, raw in zip(found, cookies, strict=True)
        if not (raw["httpOnly"] or raw.get("partitionKey") or may_grant_access(each.name, each.value))
    ]
    withheld += [_key(each) for each in found if each not in plain]
    return BrowserStorage(url=page["url"], origin=page["origin"], cookies=plain, withheld=sorted(withheld), **areas)


async def read_storage(view: PageView) -> BrowserStorage | None:
    """Return what the site of a page keeps in the browser, without what may grant access; None if it cannot be read."""
    try:
        return recorded_storage(*await _read(view, view.page.url))
    except (PlaywrightError, BrowserFailure) as error:
        log.info("search/storage_not_read %s: %s", view.page.url, error)
        return None


class StorageSetBack:
    """Storage that was set back for a block, and whether it stays so."""

    def __init__(self) -> None:
        self.is_kept = False

    def keep(self) -> None:
        """Leave the storage as it is at the end of the block."""
        self.is_kept = True


@asynccontextmanager
async def storage_set_back(
    view: PageView, tab: PageView, wanted: BrowserStorage | None
) -> AsyncIterator[StorageSetBack]:
    """Set back what the browser kept when a state was recorded, for walks to it in a new tab.

    Cookies are set at once, local and session storage when the new tab creates its first document. The page that is
    shown may be of another origin (a link that led elsewhere in a new tab). The scripts of the
    page that is shown stand still meanwhile: its timers may store again what it shows, before the new tab reads it. At
    the end of the block they go on and the storage is as before it, if the block has not called `keep`; otherwise they
    stand still until the tab is closed. A failure is logged: the walk is checked in any case.

    Parameters
    ----------
    view
        The page that is shown. Its session storage is that of the new tab, but for the recorded values.
    tab
        The new tab, without a document yet.
    wanted
        What was kept; None: nothing is set.

    Yields
    ------
    StorageSetBack
        Whether the storage stays.
    """
    block = StorageSetBack()
    before: BrowserStorage | None = None
    first: FirstDocuments | None = None
    debugger: CDPSession | None = None
    if wanted is not None:
        try:
            page, cookies = await _read(view, wanted.url, wanted.origin)
            before = recorded_storage(page, cookies)
            change = storage_change(before, wanted)
            await _set_cookies(view, change)
            withheld = {name: value for name, value in page["session"].items() if f"session {name}" in before.withheld}
            first = FirstDocuments(tab.page)
            values = FirstValues({**withheld, **wanted.session}, change.local)
            await tab.with_timeout(first.prepare(wanted.origin, values))
            debugger = await view.with_timeout(view.page.context.new_cdp_session(view.page))
            await view.with_timeout(debugger.send("Debugger.enable"))
            await view.with_timeout(debugger.send("Debugger.pause"))  # before the next statement of any script
        except (PlaywrightError, BrowserFailure) as error:
            log.info("search/storage_not_set_back %s: %s", view.page.url, error)
    try:
        yield block
    finally:
        try:
            if first is not None:
                await tab.with_timeout(first.forget())
            if debugger is not None and not block.is_kept:
                await view.with_timeout(debugger.detach())
            if before is not None and not block.is_kept:
                change = storage_change(recorded_storage(*await _read(view, before.url, before.origin)), before)
                await _set_cookies(view, change)
                if change.local:
                    await _set_local((view, tab), before.origin, change.local)
        except (PlaywrightError, BrowserFailure) as error:
            log.info("search/storage_not_restored %s: %s", view.page.url, error)


async def _read(view: PageView, url: str, origin: str = "") -> tuple[dict[str, Any], list[Any]]:
    """Return the storage of a page, and the cookies of a URL.

    If the page is not of `origin`, the local storage is that of the origin, and the session storage is empty.
    """
    context = view.page.context
    page = await view.with_timeout(evaluate_apart(view.page, _READ))
    if origin and page["origin"] != origin:
        # Playwright reads origins that no page shows in a page of its own, without asking the site.
        state = await view.with_timeout(context.storage_state())
        stored = [each["localStorage"] for each in state["origins"] if each["origin"] == origin]
        local = {item["name"]: item["value"] for items in stored for item in items}
        page = {"origin": origin, "local": local, "session": {}}
    return {**page, "url": url}, list(await view.with_timeout(context.cookies(url)))


async def _set_local(views: Sequence[PageView], origin: str, local: Mapping[str, str | None]) -> None:
    """Change the local storage of an origin in the first page that is of it. Without one, nothing has changed it."""
    for view in views:
        if await view.with_timeout(evaluate_apart(view.page, "() => location.origin")) == origin:
            await view.with_timeout(evaluate_apart(view.page, SET_LOCAL, dict(local)))
            break


async def _set_cookies(view: PageView, change: StorageChange) -> None:
    context = view.page.context
    for each in change.dropped:
        await view.with_timeout(context.clear_cookies(name=each.name, domain=each.domain, path=each.path))
    if change.cookies:
        await view.with_timeout(context.add_cookies([_cookie(each) for each in change.cookies]))


def _key(cookie: StoredCookie) -> str:
    return f"cookie {cookie.name} {cookie.domain}{cookie.path}"


def _stored_cookie(raw: Mapping[str, Any]) -> StoredCookie:
    return StoredCookie(
        name=raw["name"],
        value=raw["value"],
        domain=raw["domain"],
        path=raw["path"],
        expires=raw["expires"],
        secure=raw["secure"],
        same_site=raw.get("sameSite", "Lax"),
    )


def _cookie(stored: StoredCookie) -> Any:  # noqa: ANN401 - Playwright's type of a cookie to set is private
    return {
        "name": stored.name,
        "value": stored.value,
        "domain": stored.domain,
        "path": stored.path,
        "expires": stored.expires,
        "secure": stored.secure,
        "sameSite": stored.same_site,
    }
