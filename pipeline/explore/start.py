"""Where does an exploration begin? At a start page that loads, in a session that every work item starts from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from playwright.async_api import Browser

from index.graph import parse_start_url, site_key
from pipeline.browser.access import Access
from pipeline.browser.session import GuardedPage, Pacing, PreparedSession, compare_loads
from pipeline.browser.snapshot import Banner, Lens, Snapshot
from pipeline.browser.view import Acted
from pipeline.explore.blocklist import BlockList
from pipeline.explore.hazard import Covered, Disabled, Forms, Hazards
from pipeline.explore.login import check_start
from pipeline.explore.pacing import Pacer
from pipeline.explore.policy import Policy, Refusal
from pipeline.explore.robots import RobotsByHost
from pipeline.explore.scope import Scope
from pipeline.explore.secrets import Redactor
from pipeline.explore.storage import read_storage_state
from pipeline.explore.walls import Walls
from waygraph.errors import BrowserFailure, RobotsForbidden, SiteUnreachable
from waygraph.settings import Settings

DocumentCheck = Callable[[str], Refusal | None]

_NET_ERRORS = {
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
    "Download is starting": "it sends a download instead of a page",
    "ERR_ABORTED": "it sends a download or nothing instead of a page",
    "Timeout": "it does not answer in time",
    "gave no answer": "its page hangs",
}
#: Of them, what is often over a little later; the rest is as the site wants it.
_PASSING = (
    "ERR_NAME_NOT_RESOLVED", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_TIMED_OUT", "ERR_TIMED_OUT",
    "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_ADDRESS_UNREACHABLE", "ERR_INTERNET_DISCONNECTED",
    "Timeout", "gave no answer",
)  # fmt: skip
#: How much later, at least.
_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class Start:
    """Everything that is fixed before the first state: site, session, scope, policies, user agent."""

    url: str
    site: str
    user_agent: str
    session: PreparedSession
    looks: tuple[Snapshot, Snapshot]
    """The start page, loaded twice: what differs changes by itself."""
    banners: tuple[Banner, ...]
    """Cookie banners that were closed for the prepared session."""
    scope: Scope
    robots: RobotsByHost | None
    policies: tuple[Policy, ...]
    rules: BlockList
    hazards: Hazards
    walls: Walls
    logged_in: bool
    redactor: Redactor

    def refuse_url(self, url: str) -> str | None:
        """Why the guard must not let a document through; a script may go where no link leads."""
        refusal = (
            self.scope.refuse_url(url)
            or (self.robots.refuse_url(url) if self.robots else None)
            or self.rules.refuse_url(url)
            or self.hazards.refuse_url(url)
        )
        return refusal.reason if refusal else None

    async def open_page(self, browser: Browser, lens: Lens, settings: Settings, pace: Pacing) -> GuardedPage:
        """A fresh page in the prepared session, guarded, that asks for documents when it is its turn."""
        page = await GuardedPage.open(
            browser,
            lens=lens,
            settings=settings.browser,
            profile=settings.capture,
            user_agent=self.user_agent,
            storage_state=self.session.storage_state,
            policy=self.refuse_url,
            guard_mode=settings.explore.guard,
            guard_rules=self.walls.judge.rules,
            proxy=self.walls.proxy.url,
            pace=pace,
            access=Access.of(self.url, settings.explore, lambda url: self.scope.refuse_url(url) is None),
            acts=self.walls.judge.acts,
        )
        page.guard.on_unguarded = self.walls.add_unguarded
        return page


async def prepare(
    browser: Browser, start_url: str, settings: Settings, walls: Walls, *, pacer: Pacer, pace: Pacing
) -> Start:
    """Check the start page and load it twice: what differs between the loads changes by itself.

    When it redirects to another host, that host is the site.

    Raises
    ------
    InvalidInput
        For a URL, rules file or storage state that makes no sense.
    SiteUnreachable
        When the start page does not come, or is no page.
    RobotsForbidden
        When robots.txt asks not to visit it.
    """
    url = parse_start_url(start_url)
    explore = settings.explore
    user_agent = settings.capture.user_agent or await _honest_user_agent(browser, explore.contact)
    robots = RobotsByHost(user_agent=user_agent, proxy=walls.proxy.url, pacer=pacer) if explore.robots else None
    await _ask_robots(robots, url)
    initial = read_storage_state(explore.storage_state, site_key(url))
    page = await GuardedPage.open(
        browser,
        lens=Lens.of(settings.browser, explore, Scope.of(site_key(url), explore).frames),
        settings=settings.browser,
        profile=settings.capture,
        user_agent=user_agent,
        storage_state=initial,
        policy=lambda target: _refuse_start(target, robots),
        guard_mode=explore.guard,
        guard_rules=walls.judge.rules,
        proxy=walls.proxy.url,
        pace=pace,
        access=Access.of(url, settings.explore, lambda target: site_key(target) == site_key(url)),
        acts=walls.judge.acts,
    )
    page.guard.on_unguarded = walls.add_unguarded
    try:
        acted = await _load_start(page, url, walls)
        first = acted.snapshot
        stored_first = await page.stored(first)
        second = (await _load_start(page, url, walls)).snapshot
        stored_second = await page.stored(second)
        session = PreparedSession(
            storage_state=await page.storage_state(),
            baseline=stored_second,
            volatile=compare_loads(stored_first, stored_second),
        )
    finally:
        await page.close()
    check_start(url, second, logged_in=initial is not None)
    site = site_key(second.raw_url)
    if site != site_key(url):
        await _ask_robots(robots, second.raw_url)
        walls.follow(site, settings)
    scope = Scope.of(site, explore, start=site_key(url))
    rules = BlockList.read(explore.rules, site)
    hazards = Hazards(rules)
    redactor = Redactor.of(settings.explore, initial)
    asked = (robots,) if robots else ()
    return Start(
        url=second.raw_url,
        site=site,
        user_agent=user_agent,
        session=session,
        looks=(first, second),
        banners=acted.banners,
        scope=scope,
        robots=robots,
        policies=(Disabled(), Covered(), scope, *asked, rules, Forms(rules), hazards),
        rules=rules,
        hazards=hazards,
        walls=walls,
        logged_in=initial is not None,
        redactor=redactor,
    )


async def _load_start(page: GuardedPage, url: str, walls: Walls) -> Acted:
    try:
        acted = await page.view.goto(url)
    except BrowserFailure as error:
        for refused, reason in page.take_stopped().refused:
            if reason == "robots":
                raise _forbidden(refused) from error
        unknown = error.message.removeprefix(f"{url}: ").removeprefix("Page.goto: ").rstrip(".")
        # Behind a proxy, the browser does not know why a host cannot be reached: the proxy does.
        reason = walls.proxy.problem(url) or next(
            (f"it leads to {refused}: {why}" for refused, why in walls.refused[-1:]),
            next((text for code, text in _NET_ERRORS.items() if code in error.message), unknown),
        )
        raise SiteUnreachable(
            f"{url} cannot be mapped: {reason}.",
            hint="Check the address, and that this machine reaches it.",
            after_s=_AFTER_S if any(code in error.message for code in _PASSING) else None,
        ) from error
    seen = acted.snapshot
    if seen.status >= 400:
        raise SiteUnreachable(
            f"{url} cannot be mapped: the server answers with HTTP status {seen.status}.",
            hint="Choose a start page that loads; for pages behind a login pass --storage-state.",
            after_s=_AFTER_S if seen.status == 429 or seen.status >= 500 else None,
        )
    if not seen.is_page:
        raise SiteUnreachable(
            f"{url} cannot be mapped: it is {seen.content_type or 'nothing'}, not an HTML page.",
            hint="Choose an HTML page of the site as the start.",
        )
    return acted


async def _ask_robots(robots: RobotsByHost | None, url: str) -> None:
    if robots is None:
        return
    await robots.start(url)
    if robots.refuse_url(url):
        raise _forbidden(url)


def _forbidden(url: str) -> RobotsForbidden:
    return RobotsForbidden(
        f"The robots.txt of {site_key(url)} forbids {url}.",
        hint="Respect that, or use --no-robots on a site of your own.",
    )


def _refuse_start(url: str, robots: RobotsByHost | None) -> str | None:
    """The start page may redirect to another host, which then is the site, but not to what robots.txt forbids."""
    if not url.startswith(("http:", "https:")):
        return "scheme"
    # What the robots.txt of another host says is asked when the site has moved there.
    refusal = robots.refuse_url(url) if robots is not None and robots.has_read(url) else None
    return refusal.reason if refusal else None


async def _honest_user_agent(browser: Browser, contact: str) -> str:
    """The browser's own user agent, saying that it is a robot, which, and where its owner can be reached."""
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
