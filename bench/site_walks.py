"""Random teleports of an unguarded page over a published map, and where they arrive."""

from __future__ import annotations

import asyncio
import io
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image, ImageChops, ImageStat
from playwright.async_api import Browser, Page

from bench.real_sites import Served
from waygraph.core.errors import NoPath
from waygraph.core.settings import BrowserSettings
from waygraph.index.graph import Node
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport
from waygraph.sdk.teleport_result import TeleportResult

BROWSER = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))
SEED, PAIRS = 2026, 30
#: Mean difference of grey values (0 to 255) up to which two small pictures show the same page.
ALIKE = 6.0


@dataclass
class Teleports:
    """30 walks of an unguarded page: how many arrived, how many of them also look like the recorded picture.

    `by_evidence` of those that arrived did so on a page that is never twice the same (`arrived_equivalent`).
    """

    walked: int = 0
    arrived: int = 0
    by_evidence: int = 0
    alike: int = 0
    not_addressable: int = 0
    without_goto: int = 0
    median_ms: float = 0.0
    problems: list[str] = field(default_factory=list)


def pairs(capture: SiteCapture, source: StoreMap) -> Iterator[tuple[Node, Node, bool]]:
    """Seeded pairs with a known way: by turns with and without goto, to states with and without an address."""
    chance = random.Random(SEED)
    nodes = list(capture.graph.nodes.values())
    kinds = {kind: [n for n in nodes if n.addressable is kind] for kind in (True, False)}
    number = 0
    for _ in range(PAIRS * 200):
        if number == PAIRS:
            return
        allow_goto, addressable = number % 2 == 0, number % 4 < 2
        begin, target = chance.choice(nodes), chance.choice(kinds[addressable] or nodes)
        if begin.id != target.id and _has_way(source, capture.site, begin.id, target.id, allow_goto=allow_goto):
            number += 1
            yield begin, target, allow_goto


def _has_way(source: StoreMap, site: str, begin: str, target: str, *, allow_goto: bool) -> bool:
    try:
        source.path(site, begin, target, allow_goto=allow_goto)
        source.path(site, None, begin)
    except NoPath:
        return False
    return True


async def walks(capture: SiteCapture, source: StoreMap, served: Served) -> Teleports:
    """Teleport an unguarded page in a browser of its own."""
    done, times = Teleports(), []
    async with launch(BROWSER) as browser:
        for begin, target, allow_goto in list(pairs(capture, source)):
            served.forget()
            page = await agents_page(browser, served.storage_state)
            done.walked += 1
            done.not_addressable += not target.addressable
            done.without_goto += not allow_goto
            result = await teleport(page, source, capture.site, begin.id)
            what = f"to the source {begin.url}"
            if result.arrived:
                started = time.perf_counter()
                result = await teleport(result.page, source, capture.site, target.id, allow_goto=allow_goto)
                times.append((time.perf_counter() - started) * 1000)
                what = f"{begin.url} -> {target.url}, goto {'allowed' if allow_goto else 'not allowed'}"
            if result.arrived:
                done.arrived += 1
                done.by_evidence += result.outcome == "arrived_equivalent"
                recorded = await asyncio.to_thread(source.screenshot, capture.site, target.id)
                difference = await _difference(recorded, result.page)
                done.alike += difference <= ALIKE
                if difference > ALIKE:
                    done.problems.append(plain(f"arrived, but looks different ({difference:.0f}): {what}", begin.url))
            else:
                done.problems.append(plain(f"{result.outcome}: {what}: {_why(result)}", begin.url))
            await page.context.close()
    done.median_ms = round(statistics.median(times)) if times else 0.0
    return done


@dataclass
class Arrivals:
    """Walks between random pairs of states without loading a URL.

    Attributes
    ----------
    walked
        Walks from a state that was reached, over a known path.
    arrived, at_once
        How many ended at their target, and how many of them over the first path.
    through_menus, through_menus_at_once
        How many first paths have a step with openers, and how many of these walks arrived over it.
    unreached
        Pairs whose first state was not reached, even by its URL.
    problems
        What happened in walks that did not arrive at once.
    """

    walked: int = 0
    arrived: int = 0
    at_once: int = 0
    through_menus: int = 0
    through_menus_at_once: int = 0
    unreached: int = 0
    problems: list[str] = field(default_factory=list)


async def walks_without_goto(capture: SiteCapture, source: StoreMap, served: Served, count: int) -> Arrivals:
    """Walk an unguarded page between random pairs of states that have a path without loading a URL."""
    chance, nodes, done = random.Random(SEED), list(capture.graph.nodes.values()), Arrivals()
    async with launch(BROWSER) as browser:
        for _ in range(count * 20):
            if done.walked == count:
                break
            begin, target = chance.sample(nodes, 2)
            if not _has_way(source, capture.site, begin.id, target.id, allow_goto=False):
                continue
            served.forget()
            page = await agents_page(browser, served.storage_state)
            result = await teleport(page, source, capture.site, begin.id, report=False)
            if result.arrived:
                steps = source.path(capture.site, begin.id, target.id, allow_goto=False).steps
                result = await teleport(result.page, source, capture.site, target.id, allow_goto=False, report=False)
                is_at_once = result.arrived and all(step.agrees for step in result.steps)
                is_through_menu = any(step.openers for step in steps)
                done.walked += 1
                done.arrived += result.arrived
                done.at_once += is_at_once
                done.through_menus += is_through_menu
                done.through_menus_at_once += is_through_menu and is_at_once
                if not is_at_once:
                    walked = "; ".join(map(str, result.steps))
                    why = result.problem or "arrived over another path"
                    what = f"{result.outcome}: {begin.url} -> {target.url}: {why} [{walked}]"
                    done.problems.append(plain(what, begin.url))
            else:
                done.unreached += 1
            await page.context.close()
    return done


def _why(result: TeleportResult) -> str:
    return f"{result.problem} [{'; '.join(str(step) for step in result.steps[-3:])}]"


async def agents_page(browser: Browser, storage_state: Path | None) -> Page:
    """Open a page in a context of its own, of the size and language that maps are made with."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 800},
        reduced_motion="reduce",
        locale="en-US",
        timezone_id="UTC",
        storage_state=storage_state,
    )
    return await context.new_page()


async def _difference(recorded: bytes, page: Page) -> float:
    """Mean difference of grey values (0 to 255) of the recorded picture and of what is shown, within two seconds.

    Small pictures, so that a caret or an edge does not count.
    """
    expected, smallest, began = _small(recorded), 255.0, time.monotonic()
    while smallest > ALIKE and time.monotonic() - began < 2:
        shown = _small(await page.screenshot(type="jpeg"))
        smallest = min(smallest, ImageStat.Stat(ImageChops.difference(expected, shown)).mean[0])
    return smallest


def _small(picture: bytes) -> Image.Image:
    return Image.open(io.BytesIO(picture)).convert("L").resize((160, 100))


def plain(text: str, start: str) -> str:
    """Without the host and port of this run."""
    parts = urlsplit(start)
    return text.replace(f"{parts.scheme}://{parts.netloc}", "")
