"""Stand-in for exploring in tests of the cluster: finds the number of states that the URL asks for.

`http://a.example/?states=3&kilobytes=500&ms=100&hold=/folder/file`: 3 states, each with 500 kB of text, 100 ms apart;
after the first one it waits until the file exists. Only one process at a time explores a site.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import ray

from tests.patch_encoder import PatchEncoder, create
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Segment, node_id
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.encode.protocol import Screenshots
from waygraph.pipeline.explore.checkpoint.journal_file import FileLease
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots
from waygraph.pipeline.explore.records.capture import BlobSink, DepthRow, ExploreProgress, ExploreReport, SiteCapture


def address(name: str, *, states: int = 3, kilobytes: int = 1, ms: int = 0, hold: Path | None = None) -> str:
    """The start URL of a site."""
    how = {"states": states, "kilobytes": kilobytes, "ms": ms, **({"hold": str(hold)} if hold else {})}
    return f"http://{name}.example/?{urlencode(how)}"


async def explore_site(
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
    how = dict(parse_qsl(urlsplit(start_url).query))
    site, states, held = site_key(start_url), int(how["states"]), how.get("hold")
    observations: dict[str, Observation] = {}
    journal.parent.mkdir(parents=True, exist_ok=True)
    lease = FileLease.take(journal.with_name(f"{journal.name}.lock"))  # as the journal of a real exploration does
    for number in range(states):
        await asyncio.sleep(int(how["ms"]) / 1000)
        url = f"http://{site}/{number}"
        # A text of its own, so that it is as long when it travels as it is here.
        segment = Segment(f"{site} {number} ".ljust(1024 * int(how["kilobytes"]), "x"), "text", Box(0, 0, 10, 10))
        dom = blobs.put(url.encode())
        seen = Observation(node_id([], url), url, f"Page {number}", (segment,), dom=dom)
        observations[seen.node_id] = seen
        await on_state(seen)
        on_progress(ExploreProgress(site, 0, number + 1, number, number, states - number - 1, 0, 0))
        while held and not Path(held).exists() and not stop.is_set():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.02)
    lease.release()
    ids = list(observations)
    return SiteCapture(
        site,
        start_url,
        InteractionGraph(
            (
                Node(o.node_id, o.url, o.title, (), min(i, 1), addressable=True)
                for i, o in enumerate(observations.values())
            ),
            (Edge(ids[0], other, Action("click", role="link", name=other[:6]), 10.0) for other in ids[1:]),
        ),
        observations,
        ExploreReport(
            start_url,
            seconds=1.0,
            partial=stop.is_set(),
            stopped_by="",
            depths=(DepthRow(0, states, states, 1.0),),
            counters={"cluster/machine": int(ray.get_runtime_context().get_node_id()[:12], 16)},
        ),
        settings.capture.model_dump(),
    )


def create_encoder(settings: EncodeSettings, screenshots: Screenshots | None) -> PatchEncoder:
    """Return an encoder that loads only when the file named by `WAYGRAPH_TEST_WEIGHTS` exists."""
    while not Path(os.environ["WAYGRAPH_TEST_WEIGHTS"]).exists():
        time.sleep(0.02)
    return create(settings, screenshots)
