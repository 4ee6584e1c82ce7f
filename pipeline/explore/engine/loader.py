"""Loading of URLs: each distinct URL is loaded once in a run, in the prepared session."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from msgspec import structs
from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure
from waygraph.core.urls import UrlPolicy, linked_url, normalize_url
from waygraph.pipeline.browser.guard import suggest_rule
from waygraph.pipeline.browser.page.failures import ClassifiedError, FailureCause, FailureKind, failure_cause
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.page.view import ActionResult
from waygraph.pipeline.browser.session import Capture, GuardedPage, PreparedSession
from waygraph.pipeline.explore.engine.context import CrawlContext, SaveSnapshot
from waygraph.pipeline.explore.engine.retries import Retries
from waygraph.pipeline.explore.engine.session_page import SessionPage
from waygraph.pipeline.explore.engine.varying import needs_second_load, shows_another_page
from waygraph.pipeline.explore.identity.session_values import same_values
from waygraph.pipeline.explore.policies.block_page import detect_block_page, needs_document
from waygraph.pipeline.explore.politeness.pace import Pace
from waygraph.pipeline.explore.records.state import LeftValues, Load

log = logging.getLogger(__name__)

#: Kinds of failures that the same load will meet again.
_LASTING = frozenset({FailureKind.NETWORK_ERROR, FailureKind.NAVIGATION_ABORTED})


class BlockedOrRateLimited(ClassifiedError):
    """The host requests to come again later, or shows a block page or a CAPTCHA."""


class Loader:
    """The page of one worker that loads documents, in its own browser context.

    Parameters
    ----------
    context
        What all loaders share.
    pace
        The slot of its worker and its turns at hosts.

    Attributes
    ----------
    requested_by
        Snapshot of the page whose action requested the next document; None if no action did.
    """

    def __init__(self, context: CrawlContext, pace: Pace) -> None:
        self._context = context
        self._counters = context.counters
        self._page = SessionPage(context)
        self.pace = pace
        self.requested_by: Snapshot | None = None

    def in_session(self, session: PreparedSession) -> Loader:
        """Return another loader, with its own page, that loads in another session."""
        return Loader(self._context.in_session(session), self.pace)

    def saving_to(self, save_snapshot: SaveSnapshot) -> Loader:
        """Return another loader, with its own page, that stores its snapshots elsewhere."""
        return Loader(self._context.saving_to(save_snapshot), self.pace)

    async def load(self, url: str, referrer: str = "") -> Load:
        """Load a URL. Failed loads are repeated, see `Retries`.

        Parameters
        ----------
        url
            The URL.
        referrer
            Value of the `Referer` header; empty for none.

        Returns
        -------
        Load
            The result, or the problem of the last attempt.
        """
        retries = Retries()
        while True:
            async with self.pace.hold_slot():
                await self._page.close_if_worn()
                page = await self._page.open()
                self._page.requested += 1
                self._counters[f"load/{self._reason(is_retry=retries != Retries())}"] += 1
                try:
                    return await self._load(page, url, referrer)
                except BlockedOrRateLimited as error:
                    retries.record(error.kind)
                    if retries.are_exhausted:
                        return Load(problem=error.message, failure=error.kind)
                except (BrowserFailure, PlaywrightError) as error:
                    cause = failure_cause(error)
                    stopped = page.take_stopped()
                    # The browser may report the failed navigation before the download.
                    is_download = cause.kind is FailureKind.DOWNLOAD_STARTED
                    downloads = page.view.downloads or ((url,) if is_download else ())
                    if stopped.refused or downloads:
                        return Load(
                            problem=cause.message,
                            refused=stopped.refused,
                            downloads=downloads,
                            blocked=stopped.blocked,
                            failure=cause.kind,
                        )
                    log.info("reach/not_loaded %s: %s", url, cause.message)
                    await self.close()
                    retries.record(cause.kind)
                    cause = self._explained(cause, url)
                    if cause.kind in _LASTING or retries.are_exhausted:
                        return Load(problem=cause.message, failure=cause.kind)
                    self._counters["explore/retries"] += 1

    def _reason(self, *, is_retry: bool) -> str:
        if is_retry:
            return "retry"
        if self._context.prepared is not None:
            return "other_session"
        return "found" if self.requested_by is not None else "probe"

    def _explained(self, cause: FailureCause, url: str) -> FailureCause:
        """Add the egress proxy's reason to a failed connection, which is a lasting error if the reason is."""
        if cause.kind is not FailureKind.CONNECTION_FAILED:
            return cause
        reason = self._context.connection_problem(url)
        if reason is None:
            return cause
        kind = FailureKind.NETWORK_ERROR if reason.is_lasting else cause.kind
        return replace(cause, kind=kind, message=f"{cause.message} ({reason})")

    async def _load(self, page: GuardedPage, url: str, referrer: str, *, is_checked: bool = False) -> Load:
        page.take_stopped()
        result = await page.view.goto(url, referrer=referrer, digest=False)
        if result.snapshot.waiting:
            result = await self._load_waiting(page, url, referrer, result)
        snapshot = result.snapshot
        stopped = page.take_stopped()
        sends = page.guard.sent_by_visit(page.page)
        self._counters["browser/loads"] += 1
        self._counters["settle/capped"] += int(snapshot.capped)
        self._counters["look/cut"] += int(snapshot.cut)
        await check_answer(page, snapshot, url, pace=self.pace, counters=self._counters)
        if self._context.login.may_be_signed_out(url, snapshot) and not is_checked:
            await self.check_session(url, snapshot)
            return await self._load(await self._page.open(), url, referrer, is_checked=True)
        left = await self._left_values(page, snapshot)
        again = None
        if needs_second_load(url, snapshot, self._context.url_policy):
            await self._page.restore()  # the first load may have changed what decides where the URL leads
            page = await self._page.open()
            again = await self._load_again(page, url, referrer)
            left = same_values(left, await self._left_values(page, again))
            if again.status == snapshot.status and shows_another_page(snapshot, again):
                await self._page.restore()
                return Load(ms=result.ms, blocked=stopped.blocked, varies=again.url)
        if advice := suggest_rule(stopped.blocked, self.requested_by, snapshot, requested_url=url):
            self._context.advise(advice)
        key, is_kept = await self._save(page, snapshot)
        for banner in result.banners:
            self._counters[f"banner/{banner.choice}"] += 1
        is_again = is_kept and again is not None and again.id == snapshot.id
        persists = is_again and await self._persists(page, snapshot, left)
        await self._page.restore()
        return Load(
            snapshot.id,
            result.ms,
            refused=stopped.refused,
            downloads=result.downloads,
            blocked=stopped.blocked,
            snapshot_key=key,
            sends=sends,
            shown_url=snapshot.url if snapshot.url != normalize_url(url, self._context.url_policy) else "",
            left=left,
            persists=persists,
        )

    async def _save(self, page: GuardedPage, snapshot: Snapshot) -> tuple[str, bool]:
        """Store the snapshot of a page, with further rows of lists that grow.

        Return its key, and whether the page is still open: reading on may lead elsewhere or take too long.
        """
        if not (snapshot.is_page and snapshot.may_grow):
            return await self._context.save_snapshot(snapshot, page.capture), True
        (shown,) = await asyncio.gather(page.capture(), return_exceptions=True)

        async def capture_before() -> Capture:
            if isinstance(shown, BaseException):
                raise shown
            return shown

        try:
            further, cut = await page.view.read_on(snapshot)
        except (BrowserFailure, PlaywrightError) as error:
            log.info("lists/not_read %s: %s", snapshot.url, failure_cause(error).message)
            self._counters["lists/cut"] += 1
            await self.close()
            return await self._context.save_snapshot(snapshot, capture_before), False
        self._counters["lists/cut"] += cut
        # Also what scrolling stored must not be there when the next document is loaded.
        await self._left_values(page, further)
        return await self._context.save_snapshot(replace(further, storage=snapshot.storage), capture_before), True

    async def check_session(self, url: str, snapshot: Snapshot) -> None:
        """Load the start page in a new context of the session. Raise LoggedOut if it shows what visitors see.

        Parameters
        ----------
        url
            URL of a page that looks so.
        snapshot
            What it shows.
        """
        login = self._context.login
        if login.start is None:
            return
        await self._page.close()
        page = await self._page.open()
        self._page.requested += 1
        self._counters["session/checks"] += 1
        self._counters["browser/loads"] += 1
        again = (await page.view.goto(login.start.raw_url, digest=False)).snapshot
        page.take_stopped()
        login.check_start(url, snapshot, again)
        await self._left_values(page, again)
        await self._page.restore()

    async def _load_waiting(self, page: GuardedPage, url: str, referrer: str, first: ActionResult) -> ActionResult:
        """Load once more a URL whose page showed for the whole time that it was not ready."""
        self._counters["settle/loaded_again"] += 1
        self._counters["browser/loads"] += 1
        second = await page.view.goto(url, referrer=referrer, digest=False)
        signs = second.snapshot.waiting
        if not signs:
            return second
        self._counters["settle/waiting"] += 1
        self._context.advise(
            f"{first.snapshot.url} still shows that it is not ready ({', '.join(signs)}), also when loaded again. "
            "If it needs longer, raise browser.settle_cap_ms."
        )
        return second

    async def _load_again(self, page: GuardedPage, url: str, referrer: str) -> Snapshot:
        """Load a URL a second time, to find out whether it leads elsewhere each time."""
        result = await page.view.goto(url, referrer=referrer, digest=False)
        page.take_stopped()
        self._counters["browser/loads"] += 1
        self._counters["reach/loaded_twice"] += 1
        return result.snapshot

    async def _persists(self, page: GuardedPage, snapshot: Snapshot, left: LeftValues) -> bool:
        """Return whether the page that a redirect led to shows the same when it is loaded with what was left.

        Else it shows something once, such as a notice. Asked only of values that may decide something.
        """
        if not self._context.values.untried(left):
            return False
        result = await page.view.goto(snapshot.raw_url, digest=False)
        page.take_stopped()
        self._counters["browser/loads"] += 1
        self._counters["load/persists"] += 1
        await self._left_values(page, result.snapshot)
        return result.snapshot.id == snapshot.id

    async def _left_values(self, page: GuardedPage, snapshot: Snapshot) -> LeftValues:
        """Return what the page left in the browser, and note what must be restored."""
        stored = await page.stored_values(snapshot)
        self._page.changed |= self._context.session.changed_areas(stored)
        return self._context.left_values(stored)

    async def close(self) -> None:
        """Close the page. The next load opens another one."""
        await self._page.close()


async def check_answer(page: GuardedPage, snapshot: Snapshot, url: str, *, pace: Pace, counters: Counter[str]) -> None:
    """Adapt the pace of a host to its answer.

    Parameters
    ----------
    page
        Page that loaded the document.
    snapshot
        What it shows.
    url
        URL that was requested.
    pace
        Pace to adapt.
    counters
        Counters, see docs/counters.md.

    Raises
    ------
    BlockedOrRateLimited
        If the host requests to come again later or blocks the explorer. It is left alone for a while then.
    """
    answer = page.view.response
    if blocker := await _blocker(page, snapshot):
        counters["block/pages"] += 1
        pace.record_block_page(url, blocker, status=snapshot.status, retry_after=answer.retry_after)
        raise BlockedOrRateLimited(f"{url} shows a block page ({blocker}).", FailureKind.BLOCKED_OR_RATE_LIMITED)
    if pace.record_answer(url, seconds=answer.seconds, status=snapshot.status, retry_after=answer.retry_after):
        message = f"{url} answers {snapshot.status}: come again later."
        raise BlockedOrRateLimited(message, FailureKind.BLOCKED_OR_RATE_LIMITED)


async def _blocker(page: GuardedPage, snapshot: Snapshot) -> str | None:
    """Return the name of the service whose block page is shown, if any."""
    headers = page.view.response.headers
    if not needs_document(snapshot):
        return detect_block_page(snapshot, headers=headers)
    frames = [frame.url for frame in page.page.frames[1:]]
    html = await page.view.with_timeout(page.page.content())
    return detect_block_page(snapshot, html=html, frames=frames, headers=headers)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """The session of a page, in which links of the page are loaded.

    Attributes
    ----------
    name
        Its name, see `name_of`.
    open
        Returns a loader whose pages start from it.
    """

    name: str
    open: Callable[[], Awaitable[Loader]]


class Loads:
    """Results of loaded URLs, by normalised URL and session. Concurrent requests of one URL share one load.

    A URL is requested as it is written, never in its normalised form, which servers may refuse. Of several forms of one
    URL, one is requested: the first in the order of the work, whichever worker is the first to load it (`expect`).

    Parameters
    ----------
    policy
        Normalisation of URLs.
    record
        Stores a result durably.
    ask
        Loads a page with the loader of the worker that requests it, by its normalised URL and the one to request. The
        default calls the loader; a refresh may reuse an earlier answer.
    """

    def __init__(
        self,
        policy: UrlPolicy,
        record: Callable[[str, Load], Awaitable[None]],
        ask: Callable[[str, str, Loader, str], Awaitable[Load]] | None = None,
    ) -> None:
        self._policy = policy
        self._record = record
        self._ask = ask or (lambda _, url, loader, referrer: loader.load(url, referrer))
        self._loads: dict[str, asyncio.Future[Load]] = {}
        self._expected: dict[str, str] = {}
        """By normalised URL, the form in which the links of this round are written first."""

    def expect(self, targets: Iterable[str]) -> None:
        """Prepare for a round: of each URL, the first form of `targets` is the one that is requested."""
        self._expected = {}
        for target in targets:
            self._expected.setdefault(normalize_url(target, self._policy), target)

    def add(self, url: str, load: Load) -> None:
        """Add the result of a load in the run that this one resumes, by the URL under which it was recorded."""
        future: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        future.set_result(load)
        self._loads[url if load.session else normalize_url(url, self._policy)] = future

    def _key(self, url: str, session: str) -> str:
        key = normalize_url(url, self._policy)
        return f"{session} {key}" if session else key  # no URL contains a space

    async def alias(self, url: str, load: Load) -> None:
        """Add and store a result under another URL."""
        await self._record(normalize_url(url, self._policy), load)
        self.add(url, load)

    async def get(self, url: str, loader: Loader, referrer: str = "", session: LiveSession | None = None) -> Load:
        """Return the result of loading a URL. It is loaded here unless that was done or is in progress.

        Parameters
        ----------
        url
            The URL.
        loader
            Loads it, in the prepared session.
        referrer
            Value of the `Referer` header; empty for none.
        session
            The session in which it is loaded instead; None: the prepared one.

        Returns
        -------
        Load
            The result.
        """
        page = normalize_url(url, self._policy)
        key = self._key(url, session.name if session is not None else "")
        while (known := self._loads.get(key)) is not None:
            if known.done() and not known.cancelled():
                return known.result()
            try:
                async with loader.pace.release_slot():
                    return await asyncio.shield(known)
            except asyncio.CancelledError:
                # The other load was cancelled: load it here. If this task is cancelled as well, let that propagate.
                task = asyncio.current_task()
                if not known.cancelled() or (task is not None and task.cancelling()):
                    raise
        future: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        self._loads[key] = future
        try:
            address = linked_url(self._expected.get(page, url), self._policy)
            if session is None:
                load = await self._ask(key, address, loader, referrer)
            else:
                load = structs.replace(await (await session.open()).load(address, referrer), session=session.name)
            if address != page:
                load = structs.replace(load, address=address)
            await self._record(key, load)
            future.set_result(load)
        finally:
            if not future.done():
                del self._loads[key]
                future.cancel()
        return load

    def all(self) -> dict[str, Load]:
        """Return the results so far in the prepared session, by normalised URL."""
        done = {url: load.result() for url, load in self._loads.items() if load.done() and not load.cancelled()}
        return {url: load for url, load in done.items() if not load.session}

    def known(self, url: str, session: str = "") -> Load | None:
        """Return the result of a URL in a session, or None if it was not loaded yet."""
        load = self._loads.get(self._key(url, session))
        return load.result() if load is not None and load.done() and not load.cancelled() else None
