"""How fast are states found, and how much of what the browser could do is that?

Explores the bundled demo shop to depth 3 with full capture, and in the same run lets the same browser, without any of
our exploring, load and capture the pages that were found (the bare rate):

    python -m bench.explore [--runs 3] [--workers 2] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import datetime as dt
import hashlib
import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.browser.find import find_browser
from pipeline.browser.launch import launch
from pipeline.browser.snapshot import Lens, page_script
from pipeline.browser.view import PageView
from pipeline.explore import SiteCapture, explore_site
from waygraph.demo_site import DemoSite
from waygraph.settings import Settings

TARGET_STATES_PER_S = 3.0
BARE_PAGES = 2


class Blobs(dict[str, bytes]):
    """Captures, kept in memory, as the bare run does too."""

    def put(self, content: bytes) -> str:  # noqa: D102
        key = hashlib.sha256(content).hexdigest()
        self[key] = content
        return key


@dataclass(frozen=True)
class Run:
    """One measured run; CPU is that of the whole process tree: this process, driver, browser."""

    what: str
    states: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:  # noqa: D102
        return self.states / self.seconds


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measured(what: str, states: int, began: tuple[float, float]) -> Run:
    return Run(what, states, time.perf_counter() - began[0], cpu_seconds() - began[1])


async def explore_once(url: str, settings: Settings) -> tuple[Run, SiteCapture]:
    began = time.perf_counter(), cpu_seconds()
    capture = await explore_site(url, settings=settings, blobs=Blobs())
    return measured("explore, full capture, ways back and checks included", len(capture.graph), began), capture


async def bare_once(urls: Sequence[str], settings: Settings) -> Run:
    """Load each page and take the same three captures, with nothing else done: what this browser can do."""
    began = time.perf_counter(), cpu_seconds()
    queue = iter(urls)
    async with launch(settings.browser) as browser:

        async def work() -> None:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            for url in queue:
                await page.goto(url, wait_until="load")
                await page.evaluate("() => new Promise(requestAnimationFrame)")  # else there may be nothing to capture
                shot = await session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 60})
                base64.b64decode(shot["data"])
                await page.content()
                await page.locator("body").aria_snapshot()

        await asyncio.gather(*(work() for _ in range(BARE_PAGES)))
    return measured("the bare browser: load and capture addressable pages", len(urls), began)


async def snapshot_ms(settings: Settings, elements: int) -> float:
    """Median time of one look at a settled page with so many exposed elements, quiet window left out."""
    lens = Lens.of(settings.browser, settings.explore)
    rows = "".join(f"<p><a href='/{i}'>Link number {i}</a></p>" for i in range(elements // 2))
    async with launch(settings.browser) as browser:
        page = await browser.new_page()
        await page.add_init_script(page_script())
        await page.set_content(f"<main>{rows}</main>")
        view = PageView(page, lens, settings.browser)
        assert len((await view.observe()).structure) >= elements
        times = []
        for _ in range(9):
            began = time.perf_counter()
            await view.observe()
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def table(runs: Sequence[Run], capture: SiteCapture, looks: dict[int, float]) -> str:
    lines = [f"{'':56}{'states':>8}{'s':>8}{'states/s':>10}{'CPU s':>8}"]
    lines += [f"{r.what:56}{r.states:8}{r.seconds:8.1f}{r.per_second:10.2f}{r.cpu_seconds:8.1f}" for r in runs]
    counters = capture.report.counters
    saved, done = counters["diff/saved"], counters["explore/activations"]
    lines.append(f"activations {done}, saved by differencing {saved} ({saved / (saved + done):.0%})")
    for depth in capture.report.depths:
        lines.append(f"depth {depth.depth}: {depth.states} states, {depth.states_per_minute:.0f} states/min")
    lines += [f"one look at {n} exposed elements: {ms:.0f} ms" for n, ms in looks.items()]
    return "\n".join(lines)


async def bench(runs: int, workers: int) -> tuple[list[Run], SiteCapture, dict[int, float]]:
    settings = Settings(explore={"workers": workers})
    with DemoSite() as site:
        _, capture = await explore_once(site.url, settings)  # warm-up: disk caches, code
        urls = sorted({node.url for node in capture.graph.nodes.values() if node.addressable})
        results: list[Run] = []
        for _ in range(runs):
            explored, capture = await explore_once(site.url, settings)
            results += [explored, await bare_once(urls, settings)]
    looks = {n: await snapshot_ms(settings, n) for n in (200, 2_000, 10_000)}
    return results, capture, looks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=Settings().explore.workers)
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    results, capture, looks = asyncio.run(bench(options.runs, options.workers))
    print(table(results, capture, looks))
    explored = statistics.median(r.per_second for r in results[::2])
    bare = statistics.median(r.per_second for r in results[1::2])
    print(f"median: {explored:.2f} new states/s (target {TARGET_STATES_PER_S}), bare browser {bare:.2f} pages/s,")
    print(
        f"ratio {explored / bare:.2f}: a state costs more than a page, since it is also acted on, left and returned to"
    )
    if options.save:
        machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}"
        document = {
            "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine,
            "browser": find_browser().path.name,
            "workers": options.workers,
            "runs": [asdict(r) | {"per_second": round(r.per_second, 3)} for r in results],
            "median_states_per_s": round(explored, 3),
            "median_bare_pages_per_s": round(bare, 3),
            "counters": dict(capture.report.counters),
            "depths": [asdict(d) | {"states_per_minute": round(d.states_per_minute, 1)} for d in capture.report.depths],
            "look_ms": looks,
        }
        path = Path(__file__).parent / "results" / "explore.json"
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        print(f"saved to {path}")


if __name__ == "__main__":
    main()
