"""What does loading a URL show? Each distinct URL is loaded once in a run, in the prepared session."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from playwright.async_api import Error as PlaywrightError

from index.graph import UrlPolicy, normalize_url
from pipeline.browser.guard import advice
from pipeline.browser.session import RESTORABLE, Capture, GuardedPage, PreparedSession
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.blockpage import detect, needs_source
from pipeline.explore.outages import is_connection_failure
from pipeline.explore.pace import Pace
from pipeline.explore.state import Load
from waygraph.errors import BrowserFailure, WaygraphError

log = logging.getLogger(__name__)

#: A page that gave no answer, or whose connection failed, is tried once more, in a fresh context.
_TRIES = 2
#: What Playwright says when the browser is lost. That is not the page's doing, unless it happens again and again.
LOST, LOSSES = "browser has been closed", 3
#: Playwright keeps what it knows of requests, 10,000 of each kind, until their context is closed.
LOADS_PER_CONTEXT = 200
#: A host that turned us away is asked so often in all, each time after leaving it alone for longer.
VISITS = 3

TakeCapture = Callable[[], Awaitable[Capture]]


class TurnedAway(WaygraphError):
    """The host asks to come again later, or shows a block page or a CAPTCHA."""


class Loader:
    """The page of one worker that loads documents, beside the one that is acted on; in a context of its own.

    Parameters
    ----------
    open_page : opens a fresh page in the prepared session.
    session : what every load starts from.
    see : is told every look and how to capture it, while the page still shows it; returns the key it is kept by.
    advise : is told what a user should know of requests whose stopping broke a page.
    why : why the host of a URL could not be connected to, empty when that is not known: the browser does not know it.
    """

    def __init__(
        self,
        open_page: Callable[[], Awaitable[GuardedPage]],
        session: PreparedSession,
        *,
        pace: Pace,
        counters: Counter[str],
        see: Callable[[Snapshot, TakeCapture], Awaitable[str]],
        advise: Callable[[str], None],
        why: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._open_page = open_page
        self._session = session
        self._counters = counters
        self._see = see
        self._advise = advise
        self._why = why
        self._page: GuardedPage | None = None
        self._loaded = 0
        self.pace = pace
        self.left: Snapshot | None = None
        """What the page showed that asks for the next document; nothing when none did."""

    def seeing(self, see: Callable[[Snapshot, TakeCapture], Awaitable[str]]) -> Loader:
        """Another loader, with a page of its own, that tells its looks to `see`."""
        return Loader(
            self._open_page,
            self._session,
            pace=self.pace,
            counters=self._counters,
            see=see,
            advise=self._advise,
            why=self._why,
        )

    async def load(self, url: str, referrer: str = "") -> Load:
        """Load `url` and look at it."""
        failed = turned_away = lost = 0
        while True:
            async with self.pace.busy():
                page = await self._fresh_page()
                try:
                    return await self._load(page, url, referrer)
                except TurnedAway as error:
                    turned_away += 1
                    if turned_away == VISITS:
                        return Load(problem=error.message)
                except (BrowserFailure, PlaywrightError) as error:
                    stopped = page.take_stopped()
                    problem = getattr(error, "message", None) or str(error).splitlines()[0]
                    # The browser may give up the navigation before it tells of the download.
                    downloads = page.view.downloads or ((url,) if "Download is starting" in problem else ())
                    if stopped.refused or downloads:
                        return Load("", 0.0, problem, stopped.refused, downloads, stopped.blocked)
                    log.info("reach/not_loaded %s: %s", url, problem)
                    await self.close()
                    is_lost = LOST in problem and lost < LOSSES
                    lost, failed = lost + is_lost, failed + (not is_lost)
                    if is_connection_failure(problem) and (reason := self._why(url)):
                        problem = f"{problem} ({reason})"
                    # What Chromium says of an address or a certificate, it says again.
                    is_final = "net::" in problem and not is_connection_failure(problem)
                    if is_final or failed == _TRIES:
                        return Load(problem=problem)
                    self._counters["explore/retries"] += 1

    async def _load(self, page: GuardedPage, url: str, referrer: str) -> Load:
        page.take_stopped()
        acted = await page.view.goto(url, referrer=referrer, digest=False)
        seen = acted.snapshot
        stopped = page.take_stopped()
        self._counters["browser/loads"] += 1
        self._counters["settle/capped"] += int(seen.capped)
        self._counters["look/cut"] += int(seen.cut)
        await check_answer(page, seen, url, pace=self.pace, counters=self._counters)
        if said := advice(stopped.blocked, self.left, seen, asked=url):
            self._advise(said)
        look = await self._see(seen, lambda: page.capture(acted))
        for banner in acted.banners:
            self._counters[f"banner/{banner.choice}"] += 1
        changed = self._session.changed_areas(await page.stored(seen))
        if changed <= RESTORABLE:
            if changed:
                self._counters["session/resets"] += 1
                await page.restore_storage(self._session)
        else:
            self._counters["session/renewals"] += 1
            await self.close()
        return Load(
            seen.id, acted.ms, refused=stopped.refused, downloads=acted.downloads, blocked=stopped.blocked, look=look
        )

    async def _fresh_page(self) -> GuardedPage:
        if self._loaded == LOADS_PER_CONTEXT:
            await self.close()
        if self._page is None:
            self._page, self._loaded = await self._open_page(), 0
            self._counters["browser/contexts"] += 1
        self._loaded += 1
        return self._page

    async def close(self) -> None:
        """Give the page back."""
        page, self._page = self._page, None
        if page is not None:
            await page.close()


async def check_answer(page: GuardedPage, seen: Snapshot, url: str, *, pace: Pace, counters: Counter[str]) -> None:
    """Learn from the answer to a document that was just loaded.

    Raises
    ------
    TurnedAway
        When the host asks to come again later, or keeps us out; it is left alone for a while then.
    """
    answer = page.view.answer
    again = pace.answered(url, seconds=answer.seconds, status=seen.status, retry_after=answer.retry_after)
    if blocker := await _blocker(page, seen):
        counters["block/pages"] += 1
        pace.blocked(url, blocker)
        raise TurnedAway(f"{url} shows a block page ({blocker}).")
    if again:
        raise TurnedAway(f"{url} answers {seen.status}, even after waiting.")


async def _blocker(page: GuardedPage, seen: Snapshot) -> str | None:
    """Who keeps us out, if anybody does."""
    if not needs_source(seen):
        return None
    frames = [frame.url for frame in page.page.frames[1:]]
    return detect(seen, html=await page.view.within(page.page.content()), frames=frames)


class Loads:
    """What every URL that was loaded showed, by normalised URL. Two workers that want the same one share one load.

    Parameters
    ----------
    record : keeps what a URL showed.
    ask : finds out what a URL shows, given the loader of the worker that wants to know.
    """

    def __init__(
        self,
        policy: UrlPolicy,
        record: Callable[[str, Load], Awaitable[None]],
        ask: Callable[[str, Loader, str], Awaitable[Load]] | None = None,
    ) -> None:
        self._policy = policy
        self._record = record
        self._ask = ask or (lambda url, loader, referrer: loader.load(url, referrer))
        self._loads: dict[str, asyncio.Future[Load]] = {}

    def know(self, url: str, load: Load) -> None:
        """Take over what was loaded in the run that this one resumes."""
        future: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        future.set_result(load)
        self._loads[normalize_url(url, self._policy)] = future

    async def alias(self, url: str, load: Load) -> None:
        """Take note, for a resumed run too, of another URL that what was loaded goes by."""
        await self._record(normalize_url(url, self._policy), load)
        self.know(url, load)

    async def get(self, url: str, loader: Loader, referrer: str = "") -> Load:
        """What loading `url` shows; `loader` does it when nobody has."""
        key = normalize_url(url, self._policy)
        while (known := self._loads.get(key)) is not None:
            if known.done() and not known.cancelled():
                return known.result()
            try:
                async with loader.pace.idle():
                    return await asyncio.shield(known)
            except asyncio.CancelledError:
                # Whoever was at it gave up; when it is we who are cancelled, perhaps as well, that goes on.
                task = asyncio.current_task()
                if not known.cancelled() or (task is not None and task.cancelling()):
                    raise
        future: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        self._loads[key] = future
        try:
            load = await self._ask(key, loader, referrer)
            await self._record(key, load)
            future.set_result(load)
        finally:
            if not future.done():
                del self._loads[key]
                future.cancel()
        return load

    def all(self) -> dict[str, Load]:
        """What was loaded so far, by normalised URL."""
        return {url: load.result() for url, load in self._loads.items() if load.done() and not load.cancelled()}

    def known(self, url: str) -> Load | None:
        """What loading `url` showed; nothing when it was not loaded (yet)."""
        load = self._loads.get(normalize_url(url, self._policy))
        return load.result() if load is not None and load.done() and not load.cancelled() else None
