"""Which states does a site have, and which actions join them? Adaptive breadth-first exploration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pipeline.browser.launch import launch
from pipeline.explore.capture import BlobSink, ExploreProgress, SiteCapture
from pipeline.explore.explorer import Explorer
from pipeline.explore.start import prepare
from pipeline.explore.walls import walls
from waygraph.settings import Settings

__all__ = ["BlobSink", "ExploreProgress", "SiteCapture", "explore_site"]


async def explore_site(
    start_url: str,
    *,
    settings: Settings,
    blobs: BlobSink,
    on_progress: Callable[[ExploreProgress], None] | None = None,
    stop: asyncio.Event | None = None,
) -> SiteCapture:
    """Explore one site in a browser of its own and return its map.

    Parameters
    ----------
    start_url : where to begin; its host is the site.
    blobs : where screenshots, DOMs and accessibility snapshots go while exploring.
    on_progress : called after every work item.
    stop : set it to end early; what was found until then is returned, marked partial.

    Raises
    ------
    InvalidInput, SiteUnreachable, RobotsForbidden
        When the start page cannot be mapped.
    BrowserMissing, BrowserFailure
        When there is no browser, or it was lost.
    """
    async with (
        walls(start_url, settings) as around,
        launch(settings.browser, guarded=True, proxy=around.proxy.url) as browser,
    ):
        start = await prepare(browser, start_url, settings, around)
        explorer = Explorer(
            browser,
            start,
            settings=settings,
            blobs=blobs,
            on_progress=on_progress or (lambda _: None),
            stop=stop or asyncio.Event(),
        )
        return await explorer.run()
