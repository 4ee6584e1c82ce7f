"""Start of an exploration: the start page is checked, and its session becomes the start of every work item."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version

from playwright.async_api import Browser

from waygraph.core.errors import BrowserFailure, RobotsForbidden, SiteUnreachable
from waygraph.core.retry_after import parse_retry_after
from waygraph.core.settings import Settings
from waygraph.core.urls import parse_start_url, site_key
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.guard.credentials import SiteCredentials
from waygraph.pipeline.browser.page.failures import FailureCause, FailureKind, failure_cause
from waygraph.pipeline.browser.page.snapshot import Banner, Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.view import ActionResult
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage, Pacing, PreparedSession
from waygraph.pipeline.browser.storage.contexts import HeldSession, origin_of
from waygraph.pipeline.browser.storage.session_file import SessionState
from waygraph.pipeline.browser.storage.stored_values import removed_secrets, volatile_keys
from waygraph.pipeline.explore.policies.policy import ElementPolicy
from waygraph.pipeline.explore.policies.robots import RobotsPolicy
from waygraph.pipeline.explore.policies.scope import Scope
from waygraph.pipeline.explore.policies.site_policies import SitePolicies
from waygraph.pipeline.explore.politeness.pacer import MAX_COOL_DOWN_S, Pacer
from waygraph.pipeline.explore.session.login import check_start_page
from waygraph.pipeline.explore.session.network_boundary import NetworkBoundary
from waygraph.pipeline.explore.session.secrets import Redactor
from waygraph.pipeline.explore.session.storage_state import read_storage_state

#: Reasons for Chromium's network errors, by the beginning of the error code.
_NETWORK_REASONS = {
    "ERR_NAME_NOT_RESOLVED": "its name cannot be resolved (DNS)",
    "ERR_CONNECTION_REFUSED": "it refuses the connection",
    "ERR_CONNECTION_TIMED_OUT": "it does not answer",
    "ERR_TIMED_OUT": "it does not answer",
    "ERR_CONNECTION_RESET": "it breaks off the connection",
    "ERR_EMPTY_RESPONSE": "it closes the connection without an answer",
    "ERR_TOO_MANY_REDIRECTS": "it redirects in a circle",
    "ERR_CERT_": "its certificate is not valid",
    "ERR_SSL_": "no secure connection can be made",
    "ERR_ADDRESS_UNREACHABLE": "there is no route to it",
    "ERR_INTERNET_DISCONNECTED": "this machine has no network",
    "ERR_UNSAFE_PORT": "browsers refuse to use that port",
    "ERR_ABORTED": "it sends a download or nothing instead of a page",
}
#: Reasons for other failures.
_FAILURE_REASONS = {
    FailureKind.DOWNLOAD_STARTED: "it sends a download instead of a page",
    FailureKind.TIMEOUT: "it does not answer in time",
    FailureKind.NO_ANSWER: "its page hangs",
}
#: Network errors that are often over a little later. The others are as the site wants it.
_TRANSIENT_ERRORS = (
    "ERR_NAME_NOT_RESOLVED", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_TIMED_OUT", "ERR_TIMED_OUT",
    "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_ADDRESS_UNREACHABLE", "ERR_INTERNET_DISCONNECTED",
)  # fmt: skip
_TRANSIENT_KINDS = frozenset({FailureKind.TIMEOUT, FailureKind.NO_ANSWER})
#: Least time after which such a site may be tried again, in seconds.
_RETRY_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Start:
    """Everything that is fixed before the first state.

    Attributes
    ----------
    url
        URL of the start page, after redirects.
    site
        Key of the site.
    user_agent
        User agent of all pages.
    session
        Cookies and storage that every work item starts from.
    snapshots
        Two snapshots of the start page, loaded twice. What differs between them is noise.
    banners
        Cookie banners that were closed for the prepared session.
    robots
        Policy for robots.txt; None if it is switched off.
    site_policies
        Scope, user's rules and hazards of the site.
    boundary
        The proxy and the request policy.
    logged_in
        Whether the session is a user's.
    redactor
        Removes secrets from everything that is stored.
    stopped
        Requests of the start page that the guard stopped while it was loading.
    warnings
        What is suspicious about the session.
    """

    url: str
    site: str
    user_agent: str
    session: PreparedSession
    snapshots: tuple[Snapshot, Snapshot]
    banners: tuple[Banner, ...]
    robots: RobotsPolicy | None
    site_policies: SitePolicies
    boundary: NetworkBoundary
    logged_in: bool
    redactor: Redactor
    stopped: tuple[BlockedRequest, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        """Hosts that belong to the site."""
        return self.site_policies.scope

    @property
    def policies(self) -> tuple[ElementPolicy, ...]:
        """Policies for elements, in order."""
        return self.site_policies.for_elements(self.robots)

    def refuse_url(self, url: str) -> str | None:
        """Return the reason why the guard stops a document; a script may request what no link leads to."""
        refusal = self.site_policies.refuse_url(url, self.robots)
        return refusal.reason if refusal else None

    async def open_page(
        self,
        browser: Browser,
        snapshot_options: SnapshotOptions,
        settings: Settings,
        pacing: Pacing,
        session: SessionState | None,
    ) -> GuardedPage:
        """Open a guarded page in a session.

        Parameters
        ----------
        browser
            Browser to open it in.
        snapshot_options
            What snapshots of the page contain.
        settings
            Settings of the browser and of the exploration.
        pacing
            Schedule of the page's requests for documents.
        session
            What its context starts with.

        Returns
        -------
        GuardedPage
            The page, to be closed after use.
        """
        credentials = SiteCredentials.from_settings(
            self.url, settings.explore, lambda url: self.scope.refuse_url(url) is None
        )
        page = await GuardedPage.open(
            browser,
            ContextOptions(
                profile=settings.capture,
                user_agent=self.user_agent,
                proxy=self.boundary.proxy.url,
                storage_state=session,
                credentials=credentials,
            ),
            settings=settings.browser,
            snapshot_options=snapshot_options,
            document_policy=self.refuse_url,
            request_policy=self.boundary.request_policy,
            pacing=pacing,
            static_files=self.boundary.static_files,
            counters=self.boundary.counters,
        )
        page.guard.on_unguarded = self.boundary.add_unguarded
        return page


async def prepare_start(
    browser: Browser, start_url: str, settings: Settings, boundary: NetworkBoundary, *, pacer: Pacer, pacing: Pacing
) -> Start:
    """Check the start page, and load it twice to learn its noise.

    If the start page redirects to another host, that host is the site.

    Parameters
    ----------
    browser
        Browser to load it in.
    start_url
        Start URL as the user wrote it.
    settings
        Settings of the browser and of the exploration.
    boundary
        The proxy and the policies of the site that the user asked for. Switched to the site of the redirect.
    pacer
        Schedule of the requests for robots.txt.
    pacing
        Schedule of the requests for documents.

    Returns
    -------
    Start
        Everything that is fixed before the first state.

    Raises
    ------
    InvalidInput
        If the URL, the rules file or the storage state is malformed.
    SiteUnreachable
        If the start page cannot be loaded, or is not an HTML page.
    RobotsForbidden
        If robots.txt forbids it.
    """
    url = parse_start_url(start_url)
    explore = settings.explore
    user_agent = settings.capture.user_agent or await _user_agent_with_contact(browser, explore.contact)
    robots = RobotsPolicy(user_agent=user_agent, proxy=boundary.proxy.url, pacer=pacer) if explore.robots else None
    await _check_robots(robots, url)
    initial = read_storage_state(explore.storage_state, site_key(url))
    page = await GuardedPage.open(
        browser,
        ContextOptions(
            profile=settings.capture,
            user_agent=user_agent,
            proxy=boundary.proxy.url,
            storage_state=initial,
            credentials=SiteCredentials.from_settings(url, explore, lambda target: site_key(target) == site_key(url)),
        ),
        settings=settings.browser,
        snapshot_options=SnapshotOptions.from_settings(settings.browser, explore, boundary.policies.scope.frames),
        document_policy=lambda target: _refuse_start(target, robots),
        request_policy=boundary.request_policy,
        pacing=pacing,
        static_files=boundary.static_files,
        counters=boundary.counters,
    )
    page.guard.on_unguarded = boundary.add_unguarded
    try:
        loaded = await _load_start(page, url, boundary)
        first = loaded.snapshot
        stored_first = await page.stored_values(first)
        page.take_stopped()
        second = (await _load_start(page, url, boundary)).snapshot
        stopped = page.take_stopped().blocked
        stored_second = await page.stored_values(second)
        held = await page.held_session()
        session = PreparedSession(
            storage_state=held.state,
            baseline=stored_second,
            volatile=volatile_keys(stored_first, stored_second),
        )
    finally:
        await page.close()
    boundary.request_policy.visits.is_learning = False
    removed = removed_secrets(initial, origin_of(second.raw_url), stored_second) if initial is not None else []
    warning = check_start_page(url, second, initial, removed)
    site = site_key(second.raw_url)
    if site != site_key(url):
        await _check_robots(robots, second.raw_url)
        boundary.switch_site(site, explore, start=site_key(url))
    return Start(
        url=second.raw_url,
        site=site,
        user_agent=user_agent,
        session=session,
        snapshots=(first, second),
        banners=loaded.banners,
        robots=robots,
        site_policies=boundary.policies,
        boundary=boundary,
        logged_in=initial is not None,
        redactor=Redactor.from_settings(explore, initial, held.state if initial is not None else None),
        stopped=stopped,
        warnings=tuple(filter(None, (warning, _incomplete(held)))),
    )


def _incomplete(held: HeldSession) -> str:
    """Return a warning if other pages start without a part of what the start page keeps; else an empty text."""
    if not held.lost:
        return ""
    more = f" (and {len(held.lost) - 1} more)" if len(held.lost) > 1 else ""
    return f"Pages are explored without what cannot be copied from one page to another: {held.lost[0]}{more}."


async def _load_start(page: GuardedPage, url: str, boundary: NetworkBoundary) -> ActionResult:
    boundary.counters["load/start"] += 1
    try:
        loaded = await page.view.goto(url)
    except BrowserFailure as error:
        for refused, reason in page.take_stopped().refused:
            if reason == "robots":
                raise _robots_forbidden(refused) from error
        cause = failure_cause(error)
        # Behind a proxy, the browser does not know why a host cannot be reached, but the proxy does.
        problem = boundary.proxy.problem(url)
        reason = problem.text if problem else _failure_reason(cause, url, boundary)
        is_transient = cause.net_code.startswith(_TRANSIENT_ERRORS) or cause.kind in _TRANSIENT_KINDS
        raise SiteUnreachable(
            f"{url} cannot be mapped: {reason}.",
            hint="Check the address, and that this machine reaches it.",
            retry_after_s=_RETRY_AFTER_S if is_transient else None,
        ) from error
    snapshot = loaded.snapshot
    status = snapshot.status
    if status >= HTTPStatus.BAD_REQUEST:
        is_transient = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        asked = parse_retry_after(page.view.response.retry_after, time.time()) or 0.0
        later = f" and asks to come again in {asked:.0f} s" if asked > MAX_COOL_DOWN_S else ""
        raise SiteUnreachable(
            f"{url} cannot be mapped: the server answers with HTTP status {status}{later}.",
            hint="Choose a start page that loads; for pages behind a login pass --storage-state.",
            retry_after_s=max(asked, _RETRY_AFTER_S) if is_transient and not later else None,
        )
    if not snapshot.is_page:
        raise SiteUnreachable(
            f"{url} cannot be mapped: it is {snapshot.content_type or 'nothing'}, not an HTML page.",
            hint="Choose an HTML page of the site as the start.",
        )
    return loaded


def _failure_reason(cause: FailureCause, url: str, boundary: NetworkBoundary) -> str:
    """Return why the start page could not be loaded, as the end of a sentence about it."""
    if boundary.refused:
        refused, reason = boundary.refused[-1]
        return f"it leads to {refused}: {reason}"
    for code, reason in _NETWORK_REASONS.items():
        if cause.net_code.startswith(code):
            return reason
    message = cause.message.removeprefix(f"{url}: ").removeprefix("Page.goto: ").rstrip(".")
    return _FAILURE_REASONS.get(cause.kind, message)


async def _check_robots(robots: RobotsPolicy | None, url: str) -> None:
    if robots is None:
        return
    await robots.start(url)
    if robots.refuse_url(url):
        raise _robots_forbidden(url)


def _robots_forbidden(url: str) -> RobotsForbidden:
    return RobotsForbidden(
        f"The robots.txt of {site_key(url)} forbids {url}.",
        hint="Respect that, or use --no-robots on a site of your own.",
    )


def _refuse_start(url: str, robots: RobotsPolicy | None) -> str | None:
    """Return why a document is not loaded while the start page is.

    The start page may redirect to another host, which then is the site, but not to a page that robots.txt forbids.
    """
    if not url.startswith(("http:", "https:")):
        return "scheme"
    # The robots.txt of another host is read once the start page has led there.
    refusal = robots.refuse_url(url) if robots is not None and robots.has_read(url) else None
    return refusal.reason if refusal else None


async def _user_agent_with_contact(browser: Browser, contact: str) -> str:
    """Return the browser's user agent with the name of the robot and, if given, where its operator can be reached."""
    page = await browser.new_page()
    try:
        own: str = await page.evaluate("() => navigator.userAgent")
    finally:
        await page.close()
    try:
        release = version("waygraph")
    except PackageNotFoundError:
        release = "0"
    return f"{own} waygraph/{release}" + (f" (+{contact})" if contact else "")
