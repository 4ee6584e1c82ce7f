"""Explorer without a browser for tests of the jobs around exploring: requests pages over HTTP and follows links.

Comments in pages inject faults: `<!-- die -->` kills its process, `<!-- bug -->` raises an unexpected exception,
`<!-- hang -->` waits for a stop signal, `<!-- browser -->` raises a browser failure, `<!-- busy -->` asks for a later
attempt. `<!-- shows 10 20 30 -->` sets the colour (red, green, blue) of the screenshot, `<!-- offers NAME -->` declares
a tool.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import httpx

from tests.patch_encoder import picture
from waygraph.core.errors import BrowserFailure, SiteUnreachable
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.index.graph import (
    Action,
    Box,
    Edge,
    InteractionGraph,
    Lead,
    Node,
    Observation,
    Segment,
    Tool,
    lead_id,
    node_id,
    tool_id,
)
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots
from waygraph.pipeline.explore.records.capture import (
    BlobSink,
    DepthRow,
    ExploreProgress,
    ExploreReport,
    Failure,
    SiteCapture,
    Skip,
)


async def explore_links(
    start_url: str,
    *,
    settings: Settings,
    blobs: BlobSink,
    on_progress: Callable[[ExploreProgress], None],
    stop: asyncio.Event,
    pool: BrowserPool,
    pacer: Pacer,
    slots: Slots,
    journal: Path,
    on_state: Callable[[Observation], Awaitable[None]],
) -> SiteCapture:
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a") as kept:  # as exploring would, to go on after an interruption
        kept.write(f"explored in process {os.getpid()}\n")
    async with slots.lease() as lease, pacer.turn(site_key(start_url), lease), pool:
        return await _explore(start_url, settings, blobs, on_progress, stop, on_state=on_state)


async def _explore(
    start_url: str,
    settings: Settings,
    blobs: BlobSink,
    on_progress: Callable[[ExploreProgress], None],
    stop: asyncio.Event,
    *,
    on_state: Callable[[Observation], Awaitable[None]],
) -> SiteCapture:
    site, started = site_key(start_url), time.monotonic()
    pages: dict[str, tuple[str, int]] = {}
    observations: dict[str, Observation] = {}
    level, links, skips = [start_url], [], []
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        for depth in range(settings.explore.depth + 1):
            following: list[str] = []
            for url in level:
                if url in pages or len(pages) >= settings.explore.max_states or stop.is_set():
                    continue
                pages[url] = (await _fetch(client, url, stop), depth)
                observations[_id(url)] = _observation(url, pages[url][0], blobs)
                await on_state(observations[_id(url)])
                for target, text in re.findall(r'href="([^"]+)">([^<]*)', pages[url][0]):
                    absolute = urljoin(url, target)
                    if site_key(absolute) == site:
                        following.append(absolute)
                        links.append((url, absolute, text))
                    else:
                        skips.append(Skip(_id(url), "external", text, absolute))
                on_progress(ExploreProgress(site, depth, len(pages), len(links), len(links), 0, len(skips), 0))
            level = following
    graph = InteractionGraph(Node(_id(url), url, _title(html), (), depth, True) for url, (html, depth) in pages.items())
    for source, target, text in links:
        if target in pages:
            graph.add_edge(Edge(_id(source), _id(target), Action("click", role="link", name=text, target=target), 10.0))
    report = ExploreReport(
        start_url,
        time.monotonic() - started,
        partial=False,
        stopped_by="",
        depths=(DepthRow(0, len(pages), len(links), 1.0),),
        counters={"explore/activations": len(links), "skip/external": len(skips)},
        skips=tuple(skips),
        failures=(Failure(_id(start_url), "click", "one that did not work"),),
    )
    leads = {
        lead_id(target): Lead(
            lead_id(target), target, (text,), "", "", _id(source), Action("click", name=text, target=target), 1
        )
        for source, target, text in links
        if target not in pages
    }
    tools = [
        Tool("", name, "", "", {}, "script", (_id(url),), f"http://{site}")
        for url, (html, _) in pages.items()
        for name in re.findall("<!-- offers (.*?) -->", html)
    ]
    return SiteCapture(
        site,
        start_url,
        graph,
        observations,
        report,
        settings.capture.model_dump(),
        leads=leads,
        tools={tool_id(tool): replace(tool, id=tool_id(tool)) for tool in tools},
    )


async def _fetch(client: httpx.AsyncClient, url: str, stop: asyncio.Event) -> str:
    try:
        html = (await client.get(url)).text
    except httpx.HTTPError as error:
        raise SiteUnreachable(f"{url} did not answer: {error}.", hint="Check the address.") from error
    if "<!-- die -->" in html:
        os.kill(os.getpid(), signal.SIGKILL)
    if "<!-- bug -->" in html:
        raise ZeroDivisionError("a bug")
    if "<!-- browser -->" in html:
        raise BrowserFailure("The browser went away.")
    if "<!-- busy -->" in html:
        raise SiteUnreachable(f"{url} is busy.", retry_after_s=0.01)
    if "<!-- hang -->" in html:
        await stop.wait()
    return html


def _id(url: str) -> str:
    return node_id([], url)


def _title(html: str) -> str:
    match = re.search(r"<title>([^<]*)", html)
    return match[1] if match else ""


def _observation(url: str, html: str, blobs: BlobSink) -> Observation:
    texts = [text.strip() for text in re.findall(r">([^<]+)<", html) if text.strip()]
    segments = tuple(Segment(text, "text", Box(0, 20 * i, 100, 20)) for i, text in enumerate(texts))
    shown = re.search(r"<!-- shows (\d+) (\d+) (\d+) -->", html)
    screenshot = blobs.put(picture((int(shown[1]), int(shown[2]), int(shown[3])))) if shown else ""
    return Observation(_id(url), url, _title(html), segments, screenshot, blobs.put(html.encode()))
