"""Synthetic sites of `bench.scale`, drawn from measured runs and explored without a browser.

A site is drawn from one of the three sites of others in bench/results/sites.json: states, walked and inherited edges,
time per state of each depth, counters and failures are that site's, and each state's time is drawn from an exponential
distribution around the mean of its depth. What `sites.json` does not hold is set here: texts and elements of a page,
and captures of a few kilobytes, so that writing them does not take longer than all the rest.

Its address says how it is to be explored: `http://s000042.scale.example/?seed=1&shrink=30&speed=40&blobs=1`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np

from waygraph.core.settings import EncodeSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Segment, SegmentCounts
from waygraph.index.vectors.multivector import EncodedPage, MultiVector
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.encode.protocol import Reads, Screenshots, SiteContext
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots
from waygraph.pipeline.explore.records.capture import (
    BlobSink,
    DepthRow,
    ExploreProgress,
    ExploreReport,
    Failure,
    SiteCapture,
)
from waygraph.pipeline.jobs.publishing.publisher_actor import PublisherActor
from waygraph.pipeline.jobs.report.outcomes import Publication

SITES = Path(__file__).parent / "results" / "sites.json"

#: Of a page: exposed elements, texts, and the bytes of its screenshot, DOM and accessibility snapshot.
ELEMENTS, SEGMENTS, BLOB_BYTES = 200, 30, (8_000, 4_000, 1_000)
#: Rows and columns of a state's vectors: what the default encoder makes of a page.
ROWS, DIM = 6, 384


@dataclass(frozen=True, slots=True)
class Depth:
    """A depth of a measured run."""

    states: int
    activations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one measured run tells of a site."""

    name: str
    states: int
    edges: int
    inherited: int
    depths: tuple[Depth, ...]
    counters: Mapping[str, int]
    failures: Mapping[str, int]

    @property
    def seconds(self) -> float:
        """How long exploring it took."""
        return sum(depth.seconds for depth in self.depths)


@lru_cache(1)
def measured() -> tuple[Measured, ...]:
    """Return the runs in bench/results/sites.json."""
    return tuple(
        Measured(
            site["name"],
            site["states"],
            site["edges"],
            site["inherited"],
            tuple(Depth(row["states"], row["activations"], row["seconds"]) for row in site["depths"]),
            site["counters"],
            site["failures"],
        )
        for site in json.loads(SITES.read_text(encoding="utf-8"))["sites"]
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """A synthetic site: the run it was drawn from, states of each depth, edges, and seconds that exploring it takes."""

    of: Measured
    states: tuple[int, ...]
    edges: int
    inherited: int
    seconds: float


def drawn(number: int, *, seed: int, shrink: float) -> Shape:
    """Draw site `number`; equal arguments give equal sites. `shrink` divides the number of states."""
    chance = random.Random(f"{seed}/{number}")
    of = chance.choice(measured())
    states = tuple(max(1, round(depth.states / shrink)) for depth in of.depths)
    seconds = 0.0
    for depth, count in zip(of.depths, states, strict=True):
        mean = depth.seconds / max(1, depth.states)
        seconds += sum(chance.expovariate(1 / mean) for _ in range(count))
    total = sum(states)
    return Shape(
        of, states, max(1, round(of.edges / of.states * total)), round(of.inherited / of.states * total), seconds
    )


def address(number: int, **how: float) -> str:
    """Return the start URL of a site."""
    return f"http://s{number:07}.scale.example/?" + "&".join(f"{name}={value:g}" for name, value in how.items())


async def explore_site(
    start_url: str,
    *,
    settings: Settings,
    blobs: BlobSink,
    on_progress: Callable[[ExploreProgress], None],
    stop: asyncio.Event,
    pool: BrowserPool,  # noqa: ARG001 - the seam that `waygraph.pipeline.jobs.exploring.explorer_actor.ExploreFunction` describes
    pacer: Pacer,  # noqa: ARG001
    slots: Slots,  # noqa: ARG001
    journal: Path,
    on_state: Callable[[Observation], Awaitable[None]],
) -> SiteCapture:
    """Take the time that exploring the drawn site takes, divided by `speed`, and return what would be found."""
    began = time.monotonic()
    how = {name: float(values[0]) for name, values in parse_qs(urlsplit(start_url).query).items()}
    site = site_key(start_url)
    shape = drawn(int(site.split(".")[0].removeprefix("s")), seed=int(how["seed"]), shrink=how["shrink"])
    if how["blobs"]:
        await asyncio.to_thread(_leave, journal)
    graph, observations = await asyncio.to_thread(_found, site, shape, blobs if how["blobs"] else None)
    pause = shape.seconds / how["speed"] - (time.monotonic() - began)
    for done, seen in enumerate(observations.values(), 1):
        await asyncio.sleep(max(0.0, pause / len(observations)))
        await on_state(seen)
        on_progress(ExploreProgress(site, 0, done, shape.edges, shape.edges, len(observations) - done, 0, 0))
        if stop.is_set():
            break
    ended = time.monotonic()
    report = ExploreReport(
        start_url,
        ended - began,
        partial=stop.is_set(),
        stopped_by="",
        depths=tuple(
            DepthRow(number, states, depth.activations, depth.seconds)
            for number, (states, depth) in enumerate(zip(shape.states, shape.of.depths, strict=True))
        ),
        # Start, end and process: the waiting times are computed from these.
        counters={
            **shape.of.counters,
            "scale/began_us": round(began * 1e6),
            "scale/ended_us": round(ended * 1e6),
            "scale/process": os.getpid(),
        },
        failures=tuple(Failure(next(iter(observations)), "hover", reason) for reason in shape.of.failures),
    )
    return SiteCapture(site, start_url, graph, observations, report, settings.capture.model_dump())


def _leave(journal: Path) -> None:
    """Leave a journal, as exploring does, for the run to remove."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.touch()


def _found(site: str, shape: Shape, blobs: BlobSink | None) -> tuple[InteractionGraph, dict[str, Observation]]:
    chance = random.Random(site)
    nodes, observations = [], {}
    depths = [depth for depth, count in enumerate(shape.states) for _ in range(count)]
    for number, depth in enumerate(depths):
        url = f"http://{site}/{number}"
        node = Node(
            f"{chance.getrandbits(128):032x}",
            url,
            f"Page {number} of {site}",
            tuple(sorted(f"{chance.getrandbits(128):032x}" for _ in range(ELEMENTS))),
            depth,
            addressable=True,
            load_ms=100.0,
        )
        nodes.append(node)
        segments = tuple(
            Segment(f"{site} page {number} text {chance.random()}", "text", Box(0, 20 * i, 300, 20))
            for i in range(SEGMENTS)
        )
        screenshot, dom, aria = ("" if blobs is None else blobs.put(chance.randbytes(size)) for size in BLOB_BYTES)
        observations[node.id] = Observation(node.id, url, node.title, segments, screenshot, dom, aria)
    edges = [
        Edge(
            chance.choice(nodes).id,
            chance.choice(nodes).id,
            Action("click", role="link", name=f"Link {i}", xpath=f"/html[1]/body[1]/div[{i}]/a[1]"),
            50.0,
            inherited=i >= shape.edges,
        )
        for i in range(shape.edges + shape.inherited)
    ]
    return InteractionGraph(nodes, edges), observations


class DrawnVectors:
    """An encoder that computes nothing worth mentioning: vectors drawn by content."""

    name, dim, fingerprint = "drawn", DIM, "drawn-1"
    needs_whole_site = True
    overlaps_calls = False
    reads: Reads = "text"

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:  # noqa: D102
        return {"states": counts.states}

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:  # noqa: ARG002, D102
        pages = []
        for seen in observations:
            vectors = np.random.default_rng(int(seen.content_hash[:8], 16)).standard_normal((ROWS, DIM), np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            pages.append(EncodedPage(vectors, (seen.title,) * ROWS, ((),) * ROWS))
        return pages

    def encode_query(self, text: str) -> MultiVector:  # noqa: D102
        return self.encode_queries([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[MultiVector]:  # noqa: D102
        return self.encode_queries(texts)

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:  # noqa: D102
        return [np.ones((1, self.dim), np.float32) for _ in texts]


def create_encoder(settings: EncodeSettings, screenshots: Screenshots | None) -> DrawnVectors:  # noqa: ARG001
    """Make one, as `EncodeSettings.encoder` wants it."""
    return DrawnVectors()


class UnwrittenMaps(PublisherActor):
    """A publisher that takes captures and publishes nothing: no vectors, no tables, no store."""

    async def publish(self, capture: SiteCapture) -> Publication:
        """Say that it is published."""
        return Publication(
            version=1, encoded=0, reused=0, encode_seconds=0.0, publish_seconds=0.0, states=len(capture.graph)
        )
