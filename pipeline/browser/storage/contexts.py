"""Browser contexts that start with a session, and the session that a context holds in the end."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Frame, Page, Route
from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import InvalidInput
from waygraph.pipeline.browser.page.evaluate import evaluate_apart
from waygraph.pipeline.browser.storage.session_file import SessionState

#: Header of documents that no server sent: they are loaded only to reach what an origin stores.
STAND_IN_HEADER = "x-waygraph-stand-in"
#: Begin of Playwright's messages about sessions.
_FAILED = "Browser.new_context: Error setting storage state:"
#: Bytes of the databases of an origin up to which they are carried from one context to another.
MAX_DATABASE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class HeldSession:
    """The session that a context holds.

    Attributes
    ----------
    state
        The session.
    lost
        What it lacks, because it cannot leave the browser.
    """

    state: SessionState
    lost: tuple[str, ...] = ()


@cache
def databases_script() -> str:
    """Return the expression whose value reads, writes and compares databases, see `js/databases.js`."""
    script = files("waygraph.pipeline.browser.storage").joinpath("js/databases.js").read_text(encoding="utf-8")
    return script[script.index("(() =>") :]


def origin_of(url: str) -> str:
    """Return the origin of a URL; empty if it is neither HTTP nor HTTPS, and hence keeps nothing.

    >>> origin_of("https://a.example:8443/path")
    'https://a.example:8443'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.scheme in {"http", "https"} else ""


async def open_context(browser: Browser, state: SessionState | None, **options: Any) -> BrowserContext:  # noqa: ANN401
    """Open a browser context that starts with a session, without any request. Tabs get theirs with `start_tab`.

    Parameters
    ----------
    browser
        The browser.
    state
        The session; None: none.
    **options
        Further options of `Browser.new_context`.

    Returns
    -------
    BrowserContext
        The context, without pages.

    Raises
    ------
    InvalidInput
        If the browser does not take an entry of the session.
    """
    if state is None:
        return await browser.new_context(**options)
    try:
        context = await browser.new_context(storage_state=cast("Any", _for_playwright(state)), **options)
    except PlaywrightError as error:
        if (refused := await _refused_entry(browser, state)) is None:
            raise
        raise _refusal(*refused) from error
    try:
        await _check_cookies(context, state)
        for i, entry in enumerate(state["origins"]):
            if entry.get("indexedDB"):
                await _write_databases(context, entry, f"origins.{i}.indexedDB")
    except BaseException:
        await context.close()
        raise
    return context


async def read_session(
    context: BrowserContext, origins: Collection[str], session_storage: Mapping[str, Mapping[str, str]]
) -> HeldSession:
    """Return the session that a context holds, to start another one with.

    Parameters
    ----------
    context
        The context.
    origins
        Origins that may keep databases.
    session_storage
        Contents of the session storage by origin, which belong to a tab rather than to the context.

    Returns
    -------
    HeldSession
        Cookies, local and session storage, databases.
    """
    # Playwright's own copies of databases lack types, and some values end its driver.
    state = cast("SessionState", await context.storage_state())
    by_origin = {entry["origin"]: entry for entry in state["origins"]}
    lost: list[str] = []

    def entry(origin: str) -> dict[str, Any]:
        return by_origin.setdefault(origin, {"origin": origin, "localStorage": []})

    for origin, items in session_storage.items():
        if items:
            entry(origin)["sessionStorage"] = [{"name": name, "value": value} for name, value in items.items()]
    for origin, found in (await _read_databases(context, origins)).items():
        lost += [f"{origin}: {each}" for each in found["lost"]]
        if found["databases"]:
            entry(origin)["indexedDB"] = found["databases"]
    return HeldSession({**state, "origins": list(by_origin.values())}, tuple(lost))


def session_values(state: SessionState | None) -> dict[str, dict[str, str]]:
    """Return the contents of the session storage in a session, by origin."""
    origins = (state or {}).get("origins", [])
    return {
        each["origin"]: {item["name"]: item["value"] for item in each["sessionStorage"]}
        for each in origins
        if each.get("sessionStorage")
    }


def _for_playwright(state: SessionState) -> dict[str, Any]:
    """Return the part of a session that Playwright restores."""
    own = {"indexedDB", "sessionStorage"}
    origins = [{key: value for key, value in each.items() if key not in own} for each in state["origins"]]
    kept = [each for each in origins if any(each.get(area) for area in each if area != "origin")]
    return {"cookies": state["cookies"], "origins": kept}


async def _refused_entry(browser: Browser, state: SessionState) -> tuple[str, str, str] | None:
    """Return the first entry that the browser does not take: its place, its name, and why; None: all are taken."""
    cookies = [
        (f"cookies.{i}", f"the cookie '{each['name']}'", {"cookies": [each]}) for i, each in enumerate(state["cookies"])
    ]
    origins = [
        (f"origins.{i}", f"what {each['origin']} stores", _for_playwright({"cookies": [], "origins": [each]}))
        for i, each in enumerate(state["origins"])
    ]
    for place, name, part in (*cookies, *origins):
        try:
            context = await browser.new_context(storage_state=cast("Any", part))
        except PlaywrightError as error:
            return place, name, error.message.removeprefix(_FAILED).strip().splitlines()[0]
        await context.close()
    return None


def _refusal(place: str, name: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"The browser does not take {name} of the storage state, at '{place}': {reason}",
        hint="Remove the entry, or save the session anew with `waygraph login`.",
    )


async def _check_cookies(context: BrowserContext, state: SessionState) -> None:
    """Raise InvalidInput if the browser has dropped a cookie without a word."""
    if not state["cookies"]:
        return
    kept = {(each["name"], each["domain"].lstrip("."), each["path"]) for each in await context.cookies()}
    for i, each in enumerate(state["cookies"]):
        has_expired = 0 <= each.get("expires", -1) < time.time()
        if not has_expired and (each["name"], each["domain"].lstrip("."), each["path"]) not in kept:
            raise _refusal(
                f"cookies.{i}", f"the cookie '{each['name']}'", "browsers reject a cookie with these attributes."
            )


async def _write_databases(context: BrowserContext, entry: Mapping[str, Any], place: str) -> None:
    async with _blank_page(context) as page:
        await page.goto(entry["origin"])
        # As a text, since Playwright cannot pass half of a surrogate pair.
        call = f"(text) => {databases_script()}.write(JSON.parse(text))"
        failure = await page.evaluate(call, json.dumps(entry["indexedDB"]))
    if failure is not None:
        at: Sequence[Any] = failure["at"]
        name = f"the database '{entry['indexedDB'][at[0]]['name']}' of {entry['origin']}" if at else "a database"
        raise _refusal(".".join([place, *map(str, at)]), name, failure["problem"])


@asynccontextmanager
async def _blank_page(context: BrowserContext) -> AsyncIterator[Page]:
    """Open a page for which every address is an empty document, without a request."""

    async def answer(route: Route) -> None:
        await route.fulfill(content_type="text/html", body="<!doctype html>", headers={STAND_IN_HEADER: "1"})

    page = await context.new_page()
    try:
        await page.route("**/*", answer)
        yield page
    finally:
        await page.close()


async def _read_databases(context: BrowserContext, origins: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the databases of each origin that has some, and what could not be read.

    An origin that no page shows is read in a page of its own.
    """
    found: dict[str, dict[str, Any]] = {}
    shown = {origin_of(page.url): page for page in context.pages}
    async with AsyncExitStack() as stack:
        blank = None if shown else await stack.enter_async_context(_blank_page(context))
        devtools = await context.new_cdp_session(blank or context.pages[0])
        for origin in sorted(origins):
            size = await _database_bytes(devtools, origin)
            if size > MAX_DATABASE_BYTES:
                found[origin] = {"databases": [], "lost": [f"databases of {size:,} bytes"]}
            elif size:
                page = shown.get(origin) or blank
                if page is None:
                    opened = await stack.enter_async_context(_blank_page(context))
                    page = blank = opened
                if page is blank:
                    await page.goto(origin)
                found[origin] = json.loads(
                    await evaluate_apart(page, f"() => {databases_script()}.read().then(JSON.stringify)")
                )
        await devtools.detach()
    return found


async def _database_bytes(devtools: Any, origin: str) -> int:  # noqa: ANN401 - a DevTools session
    usage = await devtools.send("Storage.getUsageAndQuota", {"origin": origin})
    return int(sum(each["usage"] for each in usage["usageBreakdown"] if each["storageType"] == "indexeddb"))


class VisitedOrigins:
    """Origins of the documents that the pages of a context have shown.

    Parameters
    ----------
    context
        The context, without pages.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.origins: set[str] = set()
        context.on("page", lambda page: page.on("framenavigated", self._add))

    def _add(self, frame: Frame) -> None:
        if origin := origin_of(frame.url):
            self.origins.add(origin)
