"""Sites of the benchmark: served, mapped, and opened in a browser for one task or return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Request

from bench.real_sites import Served
from bench.retrieval.maps import BROWSER, SITES, Site
from bench.site_walks import agents_page
from tests.sites.answers import site_pages
from tests.sites.phenomena import clicks, covers, routing, widgets
from tests.sites.server import FixtureServer
from waygraph import AsyncWaygraph
from waygraph.agents.actions import AgentSession, SessionOptions
from waygraph.agents.actions.sites import AgentSite
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import encode_draft


@contextmanager
def fixtures(_scratch: Path) -> Iterator[Served]:
    """Serve the fixture pages whose states are made by clicks: widgets, routes, covers."""
    areas = (*widgets.AREAS, *routing.AREAS, *covers.AREAS, *clicks.AREAS)
    with FixtureServer({}) as other, FixtureServer({}) as site:
        site.pages.update(site_pages(areas, "Phenomena", other))
        yield Served(site.url, Path())


BENCH_SITES = {**SITES, "fixtures": Site("fixtures", "fixture pages of this repository", fixtures, 4, 200)}


@dataclass
class Loads:
    """Counts the documents that a context's pages request."""

    count: int = 0

    def note(self, request: Request) -> None:
        """Count a request if it is for a document, of a page or of a frame in it."""
        self.count += request.is_navigation_request()


@dataclass(frozen=True)
class OpenSite:
    """A served and mapped site with a browser.

    Attributes
    ----------
    served : the site.
    states : number of states of its map.
    maps : its map.
    browser : the browser that all arms use.
    encoder : the encoder of the map.
    settings : settings that the map was made with.
    """

    served: Served
    states: int
    maps: AsyncWaygraph
    browser: Browser
    encoder: Encoder
    settings: Settings

    @property
    def key(self) -> str:
        """Key of the site."""
        return site_key(self.served.start)

    @asynccontextmanager
    async def session(self, *, is_mapped: bool = True) -> AsyncIterator[tuple[AgentSession, Loads]]:
        """Open the start page in a new context."""
        self.served.forget()
        page = await agents_page(self.browser, self.served.storage_state)
        loads = Loads()
        page.context.on("request", loads.note)
        try:
            await page.goto(self.served.start)
            sites = [AgentSite(self.key, self.key, self.served.start, is_mapped=True)] if is_mapped else []
            options = SessionOptions(browser=self.settings.browser, explore=self.settings.explore, sites=sites)
            async with AgentSession(page, options, maps=self.maps) as session:
                yield session, loads
        finally:
            await page.context.close()


@asynccontextmanager
async def opened(
    site: Site, served: Served, folder: Path, encoder: Encoder, *, states: int, seconds: float
) -> AsyncIterator[OpenSite]:
    """Map a site that is served, and open the map and a browser."""
    settings = Settings(
        browser=BROWSER,
        explore={
            "depth": site.depth,
            "max_states": min(states, site.max_states),
            "max_seconds": seconds,
            "robots": site.robots,
            "storage_state": served.storage_state,
        },
    )
    store = Store.open(str(folder), create=True)
    capture = await explore_site(served.start, settings=settings, blobs=store.blobs)
    store.publish(encode_draft(capture, settings, encoder))
    async with AsyncWaygraph(folder) as maps, launch(BROWSER) as browser:
        yield OpenSite(served, len(capture.graph), maps, browser, encoder, settings)
