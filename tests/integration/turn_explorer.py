"""Explorer without a browser or a site: pages are counted, and a stopped exploration resumes from its journal.

The host says what it explores: `pages40-kinds9.example` has 40 pages, of which the first 9 are of new kinds.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.index.graph import Box, InteractionGraph, Node, Observation, Segment, node_id
from waygraph.pipeline.explore.records.capture import (
    NEXT_ITEMS,
    ExploreProgress,
    ExploreReport,
    RoundRow,
    SiteCapture,
)

#: Time that a page takes. The coordinator hears of progress five times a second, and stops an exploration then.
_PAGE_SECONDS = 0.04


async def explore_pages(
    start_url: str,
    *,
    settings: Settings,
    on_progress: Callable[[ExploreProgress], None],
    stop: asyncio.Event,
    journal: Path,
    on_state: Callable[[Observation], Awaitable[None]],
    **_: Any,
) -> SiteCapture:
    site = site_key(start_url)
    pages, kinds = map(int, re.match(r"pages(\d+)-kinds(\d+)", site).groups())
    done = _read(journal)
    while done < pages and not stop.is_set():
        await asyncio.sleep(_PAGE_SECONDS)
        await on_state(_observation(start_url, done))
        done += 1
        _write(journal, done)
        on_progress(ExploreProgress(site, 1, done, 0, done, pages - done, 0, 0))
    shown = [_observation(start_url, number) for number in range(done)]
    partial = done < pages
    report = ExploreReport(
        start_url,
        1.0,
        partial=partial,
        stopped_by="interrupted" if partial else "",
        depths=(),
        counters={"explore/activations": done},
        rounds=(RoundRow(done, done, 1.0, min(done, kinds)),),
        expected_gain=float(min(NEXT_ITEMS, max(0, kinds - done))),
    )
    graph = InteractionGraph(Node(each.node_id, each.url, each.title, (), 0, True) for each in shown)
    observations = {each.node_id: each for each in shown}
    return SiteCapture(site, start_url, graph, observations, report, settings.capture.model_dump())


def _read(journal: Path) -> int:
    return int(journal.read_text()) if journal.exists() else 0


def _write(journal: Path, done: int) -> None:
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.write_text(str(done))


def _observation(start_url: str, number: int) -> Observation:
    url = f"{start_url}{number}"
    texts = (Segment(f"Page {number}", "text", Box(0, 0, 100, 20)),)
    return Observation(node_id([], url), url, f"Page {number}", texts)
