"""Which states does a site have, and which actions join them? Adaptive breadth-first exploration."""

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

from index.graph import Observation
from pipeline.browser.launch import launch
from pipeline.browser.script import page_script_hash
from pipeline.browser.supervise import BrowserPool
from pipeline.explore.blocklist import rules_digest
from pipeline.explore.capture import BlobSink, ExploreProgress, SiteCapture
from pipeline.explore.explorer import Explorer
from pipeline.explore.journal import Journal
from pipeline.explore.pace import Pace
from pipeline.explore.pacing import Pacer
from pipeline.explore.refresh import Recall
from pipeline.explore.secrets import redacted_logs
from pipeline.explore.slots import Slots
from pipeline.explore.start import Start, prepare
from pipeline.explore.walls import walls
from waygraph.errors import SiteMoved
from waygraph.settings import ExploreSettings, Settings

__all__ = ["BlobSink", "ExploreProgress", "SiteCapture", "explore_site", "shaping", "visitor"]


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
    recall: Recall | None = None,
    site: str | None = None,
) -> SiteCapture:
    """Explore one site and return its map.

    Parameters
    ----------
    start_url : where to begin; its host is the site, or the one that it redirects to.
    blobs : where screenshots, DOMs and accessibility snapshots go while exploring.
    on_progress : called after every work item.
    stop : set it to end early; what was found until then is returned, marked partial.
    journal : file that what is found is written down in as it is found. An unfinished run of the same site under the
        same settings is gone on with. It is left behind for the caller to remove (`pipeline.explore.journal_file`)
        when the map is published. Empty: nothing is left behind.
    pool, pacer, slots : browsers, turns at hosts and slots for busy pages, shared with other explorations in the same
        event loop. Left out: this one has its own.
    on_state : told what each state looks like as soon as it is part of the map; exploring waits for it.
    recall : what an earlier exploration found, and what of that is asked again.
    site : key of the site that it has to be. Left out: whatever the start page leads to.

    Raises
    ------
    InvalidInput, SiteUnreachable, RobotsForbidden
        When the start page cannot be mapped.
    SiteMoved
        When it leads to another site than `site`.
    BrowserMissing, BrowserFailure
        When there is no browser, or it was lost.
    """
    explore = settings.explore
    counters: Counter[str] = Counter()
    pacer = pacer or Pacer(delay_seconds=explore.delay_seconds, max_delay_seconds=explore.max_delay_seconds)
    slots = slots or Slots()
    async with AsyncExitStack() as stack:
        around = await stack.enter_async_context(walls(start_url, settings))
        if pool is None:
            pool = await stack.enter_async_context(BrowserPool(partial(launch, settings.browser, guarded=True)))
        browsers = await stack.enter_async_context(pool.lease(counters))
        pace = Pace(pacer, slots, item_seconds=explore.page_seconds)
        start = await prepare(browsers.browser, start_url, settings, around, pacer=pacer, pace=pace)
        if site is not None and start.site != site:
            raise SiteMoved(
                f"The start page of {site} leads to {start.site} ({start.url}) now.",
                hint=f"Map that one: waygraph index {start.url}, and remove the old map: waygraph rm {site}",
            )
        if journal is None:
            journal = Path(stack.enter_context(TemporaryDirectory(prefix="waygraph-"))) / "journal.sqlite"
        names = terms(start, settings) | ({"recalls": recall.name} if recall is not None else {})
        notes = await asyncio.to_thread(Journal.open, journal, names, resume=explore.resume)
        stack.enter_context(closing(notes))
        # What a run holds that is gone on with may be another session's.
        start = replace(start, redactor=start.redactor.also(notes.withheld()))
        stack.enter_context(redacted_logs(start.redactor))
        explorer = Explorer(
            browsers,
            start,
            pacer=pacer,
            slots=slots,
            journal=notes,
            settings=settings,
            blobs=blobs,
            counters=counters,
            on_progress=on_progress or (lambda _: None),
            stop=stop or asyncio.Event(),
            on_state=on_state,
            recall=recall,
        )
        rules = rules_digest(explore.rules, start.site)
        return replace(await explorer.run(), settings={"visitor": visitor(explore), "rules": rules})


#: Settings that shape neither graph nor looks, or must not be written down.
_FREE = {"workers", "max_seconds", "max_bytes", "resume", "headers", "basic_auth", "proxy", "contact", "storage_state"}


def shaping(explore: ExploreSettings) -> dict[str, Any]:
    """The settings of an exploration that shape what it finds, as plain JSON without secrets."""
    return explore.model_dump(mode="json", exclude=_FREE)


def visitor(explore: ExploreSettings) -> dict[str, Any]:
    """Who a site sees, as plain JSON without secrets: `session`, `basic_auth`, `headers` (names in lower case)."""
    return {
        "session": explore.storage_state is not None,
        "basic_auth": bool(explore.basic_auth.get_secret_value()),
        "headers": sorted(map(str.lower, explore.headers)),
    }


def terms(start: Start, settings: Settings) -> dict[str, Any]:
    """What must be equal for one run to go on with another's journal.

    Sessions end, so another one of the site may go on; a visitor without any may not publish what an account saw.
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
