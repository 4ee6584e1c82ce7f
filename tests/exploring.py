"""Explore fixture sites with the browsers that the tests of one process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from waygraph.core.settings import Settings
from waygraph.demo_site import DemoSite
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import BlobSink, SiteCapture
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration


@dataclass(frozen=True)
class ExploredShop:
    """The running demo shop and the result of exploring it to depth 3."""

    site: DemoSite
    capture: SiteCapture
    blobs: MemoryBlobs
    requests: tuple[tuple[str, str], ...]
    """Requests that the exploration made."""


def explore(
    url: str,
    *,
    browser: dict[str, int] | None = None,
    blobs: MemoryBlobs | None = None,
    prior: PriorExploration | None = None,
    **explore_settings: Any,
) -> SiteCapture:
    """Explore a site with a browser that reaches loopback only.

    The browser is the shared one, unless `browser` adds arguments. `prior` makes it a refresh.
    """
    settings = Settings(browser=LOOPBACK_ONLY.model_copy(update=browser or {}), explore=explore_settings)
    blobs = MemoryBlobs() if blobs is None else blobs

    async def work() -> SiteCapture:
        pool = await BROWSERS.pool() if settings.browser.extra_args == LOOPBACK_ONLY.extra_args else None
        return await explore_site(url, settings=settings, blobs=blobs, pool=pool, prior=prior)

    return BROWSERS.run(work())


def explore_with(settings: Settings, url: str, *, blobs: BlobSink, **options: Any) -> SiteCapture:
    """Explore a site with the shared browser under given settings; `options` are further ones of `explore_site`."""
    assert settings.browser == LOOPBACK_ONLY

    async def work() -> SiteCapture:
        return await explore_site(url, settings=settings, blobs=blobs, pool=await BROWSERS.pool(), **options)

    return BROWSERS.run(work())
