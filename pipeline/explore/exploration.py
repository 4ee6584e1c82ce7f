"""Explore one site: its states, and the actions between them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from waygraph.core.errors import SiteMoved
from waygraph.core.settings import Settings
from waygraph.index.graph import Observation
from waygraph.pipeline.browser.page.script import page_script_hash
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.explorer import Callbacks, Explorer, Resources
from waygraph.pipeline.explore.policies.blocklist import rules_digest
from waygraph.pipeline.explore.politeness.pace import Pace
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots
from waygraph.pipeline.explore.records.capture import BlobSink, ExploreProgress, SiteCapture
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.session.network_boundary import network_boundary
from waygraph.pipeline.explore.session.secrets import redacted_logs
from waygraph.pipeline.explore.session.start import Start, prepare_start
from waygraph.pipeline.explore.shaping import shaping, visitor
from waygraph.pipeline.explore.sitemap.listing import read_listing


async def explore_site(
    start_url: str,
    *,
    settings: Settings,
    blobs: BlobSink,
    on_progress: Callable[[ExploreProgress], None] | None = None,
    stop: asyncio.Event | None = None,
    journal: Path | None = None,
    pool: BrowserPool | None = None,
    pacer: Pacer | None = None,
    slots: Slots | None = None,
    on_state: Callable[[Observation], Awaitable[None]] | None = None,
    prior: PriorExploration | None = None,
    site: str | None = None,
) -> SiteCapture:
    """Explore one site and return its map.

    Parameters
    ----------
    start_url
        Start page. Its host is the site, or the host that it redirects to.
    settings
        Settings of exploration, browser and capture.
    blobs
        Where screenshots, DOMs and accessibility snapshots go.
    on_progress
        Called after every work item.
    stop
        Set it to end early. The result is partial then.
    journal
        File in which results are recorded as they arrive. An unfinished run of the same site under the same settings
        is resumed from it. The caller removes it (`waygraph.pipeline.explore.checkpoint.journal_file`) when the map is
        published. None: a temporary file.
    pool
        Browsers shared with other explorations in the same event loop. None: a pool of its own.
    pacer
        Shared turns at hosts. None: its own.
    slots
        Shared slots for busy pages. None: its own.
    on_state
        Called with each state as soon as it is part of the map. Exploring waits for it.
    prior
        An earlier exploration, for a refresh.
    site
        Key that the site must have. None: any.

    Returns
    -------
    SiteCapture
        The map.

    Raises
    ------
    InvalidInput, SiteUnreachable, RobotsForbidden
        If the start page cannot be mapped.
    SiteMoved
        If it leads to another site than `site`.
    BrowserMissing, BrowserFailure
        If there is no browser, or it is lost for good.
    """
    explore = settings.explore
    counters: Counter[str] = Counter()
    stop = stop or asyncio.Event()
    pacer = pacer or Pacer(delay_seconds=explore.delay_seconds, max_delay_seconds=explore.max_delay_seconds)
    slots = slots or Slots()
    async with AsyncExitStack() as stack:
        boundary = await stack.enter_async_context(network_boundary(start_url, settings))
        if pool is None:
            pool = await stack.enter_async_context(BrowserPool(partial(launch, settings.browser, guarded=True)))
        browsers = await stack.enter_async_context(pool.lease(counters))
        pace = Pace(pacer, slots, item_seconds=explore.page_seconds)
        start = await prepare_start(browsers.browser, start_url, settings, boundary, pacer=pacer, pacing=pace)
        if site is not None and start.site != site:
            raise SiteMoved(
                f"The start page of {site} leads to {start.site} ({start.url}) now.",
                hint=f"Map that one: waygraph index {start.url}, and remove the old map: waygraph rm {site}",
            )
        if journal is None:
            journal = Path(stack.enter_context(TemporaryDirectory(prefix="waygraph-"))) / "journal.sqlite"
        names = terms(start, settings) | ({"recalls": prior.name} if prior is not None else {})
        opened = await asyncio.to_thread(Journal.open, journal, names, resume=explore.resume)
        stack.enter_context(closing(opened))
        # A resumed run may hold secrets of another session.
        start = replace(start, redactor=start.redactor.with_secrets(opened.withheld()))
        stack.enter_context(redacted_logs(start.redactor))
        listing = await asyncio.to_thread(opened.listing)
        if listing is None:
            listing = await read_listing(start, explore, pacer, stop)
            if stop is None or not stop.is_set():  # else a resumed run reads it to its end
                await opened.record_listing(listing)
        if prior is not None:
            listed_counters = Counter(listing.counters)
            listed_counters["refresh/listed_as_changed"] += prior.heed_dates(listing)
            listing = replace(listing, counters=listed_counters)
        explorer = Explorer(
            start,
            settings,
            Resources(browsers, pacer, slots, opened, blobs, counters),
            callbacks=Callbacks(on_progress or (lambda _: None), on_state, stop),
            prior=prior,
            listing=listing,
        )
        rules = rules_digest(explore.rules, start.site)
        return replace(await explorer.run(), settings={"visitor": visitor(explore), "rules": rules})


def terms(start: Start, settings: Settings) -> dict[str, Any]:
    """Return what must be equal for a run to resume another run's journal.

    Another session of the site may resume, since sessions end. A visitor without a session may not publish what a
    session saw.
    """
    explore = settings.explore
    seen = visitor(explore)
    return {
        "account": [seen["session"], seen["basic_auth"], *seen["headers"]],
        "start": start.url,
        "explore": shaping(explore),
        "capture": settings.capture.model_dump(mode="json"),
        "script": page_script_hash(),
    }
