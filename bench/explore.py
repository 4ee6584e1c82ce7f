"""How fast is a site explored, and how much of what the browser could do is that?

Explores pages of about 1,200 elements and 220 KB of script (`bench.pages`, served by a process of its own) with full
capture, guard and egress proxy on, and plays the recorded browser work back as a bare script in the same run:

    python -m bench.explore [--runs 3] [--workers 4] [--settle-runs 500] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import hashlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import psutil
from playwright.async_api import Browser

from bench.trace import Trace, play, recorded
from pipeline.browser.find import find_browser
from pipeline.browser.guard import NetworkGuard
from pipeline.browser.launch import launch
from pipeline.browser.session import GuardedPage
from pipeline.browser.snapshot import Lens
from pipeline.explore import SiteCapture, explore_site
from pipeline.explore import worker as worker_module
from pipeline.explore.walls import walls
from pipeline.explore.worker import Worker
from waygraph.demo_site import DemoSite
from waygraph.settings import Settings

CLICKS, LINKS, KNOWN = 96, 96, 192
LATE_MS = (200, 500, 800, 950)


class Blobs(dict[str, bytes]):
    """Captures, kept in memory."""

    def put(self, content: bytes) -> str:  # noqa: D102
        key = hashlib.sha256(content).hexdigest()
        self[key] = content
        return key


@dataclass(frozen=True)
class Run:
    """One exploration, or the bare script that repeats its browser work. CPU is that of driver, browser and us."""

    what: str
    done: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:  # noqa: D102
        return self.done / self.seconds


@contextmanager
def served() -> Iterator[str]:
    """The pages, from a process whose CPU time is not counted."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.pages"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def cpu_seconds() -> float:
    """Of this process and all it started and waited for: browsers and drivers are, the page server is not."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


async def explored(what: str, url: str, settings: Settings, count: str) -> tuple[Run, Run, SiteCapture]:
    """Explore to depth 1, then play the same browser work back; `count` is what is counted: states or activations."""
    trace = Trace()
    cpu, began = cpu_seconds(), time.perf_counter()
    async with recorded(trace):
        capture = await explore_site(url, settings=settings, blobs=Blobs())
    seconds, used = time.perf_counter() - began, cpu_seconds() - cpu
    level = capture.report.depths[1]
    done = level.states if count == "states" else level.activations
    ours = Run(what, done, level.seconds, used)
    cpu = cpu_seconds()
    async with (
        walls(url, settings) as around,
        launch(settings.browser, guarded=True, proxy=around.proxy.url) as browser,
    ):
        began = time.perf_counter()
        await play(trace, browser, lambda: NetworkGuard(lambda _: None, rules=around.rules))
        bare_seconds = time.perf_counter() - began
    # Starting the browser and preparing the session are no part of the level, nor of what is played back at its speed.
    bare = Run(f"{what}: bare script", done, bare_seconds * level.seconds / seconds, cpu_seconds() - cpu)
    return ours, bare, capture


async def restore_share(url: str, settings: Settings) -> float:
    """Which part of the browser's CPU time goes into getting back to states? One worker, so that it can be told."""
    spent = {"restore": 0.0}
    reach, restore = Worker._reach, Worker._restore  # noqa: SLF001 - what is measured

    def browser_cpu() -> float:
        total = 0.0
        for process in psutil.Process().children(recursive=True):
            try:
                if "chrom" in process.name():
                    times = process.cpu_times()
                    total += times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return total

    async def timed_reach(self: Worker, *args: object) -> object:
        before = browser_cpu()
        try:
            return await reach(self, *args)  # type: ignore[arg-type]
        finally:
            spent["restore"] += browser_cpu() - before

    async def timed_restore(self: Worker, *args: object) -> object:
        before = browser_cpu()
        try:
            return await restore(self, *args)  # type: ignore[arg-type]
        finally:
            spent["restore"] += browser_cpu() - before

    one = settings.model_copy(update={"explore": settings.explore.model_copy(update={"workers": 1})})
    total = {"cpu": 0.0}

    async def watch(stop: asyncio.Event) -> None:
        while not stop.is_set():
            total["cpu"] = max(total["cpu"], browser_cpu())
            try:
                await asyncio.wait_for(stop.wait(), 0.2)
            except TimeoutError:
                continue

    stop = asyncio.Event()
    watching = asyncio.ensure_future(watch(stop))
    with (
        mock.patch.object(worker_module.Worker, "_reach", timed_reach),
        mock.patch.object(worker_module.Worker, "_restore", timed_restore),
    ):
        await explore_site(url, settings=one, blobs=Blobs())
    stop.set()
    await watching
    return spent["restore"] / total["cpu"]


@dataclass(frozen=True)
class Settling:
    """How long settling takes after a click that changes the page at once, and how often late content is missed."""

    median_ms: float
    late_runs: int
    missed: int


async def settling(url: str, settings: Settings, runs: int, pages: int) -> Settling:
    async with launch(settings.browser, guarded=True) as browser:
        return await _settling(browser, url, settings, runs=runs, pages=pages)


async def _open(browser: Browser, settings: Settings, lens: Lens) -> GuardedPage:
    return await GuardedPage.open(
        browser,
        lens=lens,
        settings=settings.browser,
        profile=settings.capture,
        user_agent="bench",
        storage_state=None,
        policy=lambda _: None,
    )


async def _settling(browser: Browser, url: str, settings: Settings, *, runs: int, pages: int) -> Settling:
    lens = Lens.of(settings.browser, settings.explore)
    page = await _open(browser, settings, lens)
    seen = (await page.view.goto(f"{url}clicks/20")).snapshot
    times = []
    for candidate in seen.candidates:
        await page.view.perform(candidate.action)
        began = time.perf_counter()
        await page.view.settle_digest()
        times.append((time.perf_counter() - began) * 1000)
    await page.close()
    missed, left = 0, iter(range(runs))

    async def work() -> None:
        nonlocal missed
        page = await _open(browser, settings, lens)
        for number in left:
            seen = (await page.view.goto(f"{url}late/{LATE_MS[number % len(LATE_MS)]}")).snapshot
            acted = await page.view.act(seen.candidates[number // len(LATE_MS) % 2].action)
            missed += not any(segment.role == "heading" and "By" in segment.text for segment in acted.snapshot.segments)
        await page.close()

    await asyncio.gather(*(work() for _ in range(pages)))
    return Settling(statistics.median(times), runs, missed)


async def look_ms(settings: Settings, url: str) -> float:
    """Median time of one look at a settled page of this weight, quiet window left out."""
    async with launch(settings.browser, guarded=True) as browser:
        page = await _open(browser, settings, Lens.of(settings.browser, settings.explore))
        await page.view.goto(f"{url}clicks/60")
        times = []
        for _ in range(15):
            began = time.perf_counter()
            await page.view.observe()
            times.append((time.perf_counter() - began) * 1000)
        await page.close()
    return statistics.median(times)


async def differencing(settings: Settings) -> dict[str, dict[str, float]]:
    """The demo shop to depth 2, with differencing and without."""
    results = {}
    for diff in ("element", "off"):
        explore = settings.explore.model_copy(update={"depth": 2, "diff": diff})
        with DemoSite() as site:
            began = time.perf_counter()
            capture = await explore_site(
                site.url, settings=settings.model_copy(update={"explore": explore}), blobs=Blobs()
            )
        results[diff] = {
            "states": len(capture.graph),
            "edges": sum(1 for edge in capture.graph.edges if not edge.inherited),
            "activations": capture.report.counters["explore/activations"],
            "seconds": round(time.perf_counter() - began, 1),
        }
    return results


KINDS = (
    ("new in-page states", f"clicks/{CLICKS}", "states", 8.0),
    ("new navigation states", f"links/{LINKS}", "states", 4.5),
    ("known-state steps", f"known/{KNOWN}", "activations", 20.0),
)


async def bench(runs: int, workers: int, settle_runs: int) -> dict[str, object]:
    settings = Settings(explore={"workers": workers, "depth": 1})
    document: dict[str, object] = {}
    with served() as url:
        kinds = {}
        for what, path, count, target in KINDS:
            measured = [await explored(what, url + path, settings, count) for _ in range(runs)]
            ours, bare = [run for run, _, _ in measured], [run for _, run, _ in measured]
            kinds[what] = {
                "per_s": round(statistics.median(run.per_second for run in ours), 2),
                "bare_per_s": round(statistics.median(run.per_second for run in bare), 2),
                "share_of_bare": round(
                    statistics.median(b.seconds / o.seconds for o, b in zip(ours, bare, strict=True)), 2
                ),
                "target_per_s": target,
                "runs": [asdict(run) for pair in zip(ours, bare, strict=True) for run in pair],
                "counters": dict(measured[-1][2].report.counters),
            }
            print(f"{what:24}{kinds[what]['per_s']:8.2f}/s  bare script {kinds[what]['bare_per_s']:6.2f}/s", flush=True)
        document["kinds"] = kinds
        document["restore_share_of_browser_cpu"] = round(await restore_share(f"{url}clicks/{CLICKS}", settings), 3)
        document["look_ms"] = round(await look_ms(settings, url), 1)
        document["settling"] = asdict(await settling(url, settings, settle_runs, 2 * workers))
    document["differencing"] = await differencing(settings)
    return document


def table(document: dict[str, object]) -> str:
    lines = [f"{'':24}{'per s':>9}{'target':>9}{'bare script per s':>20}{'share':>8}"]
    kinds: dict[str, dict[str, float]] = document["kinds"]  # type: ignore[assignment]
    for what, run in kinds.items():
        lines.append(
            f"{what:24}{run['per_s']:9.2f}{run['target_per_s']:9.1f}{run['bare_per_s']:20.2f}{run['share_of_bare']:8.2f}"
        )
    settle: dict[str, float] = document["settling"]  # type: ignore[assignment]
    lines += [
        f"ways back: {document['restore_share_of_browser_cpu']:.0%} of the browser's CPU time (target 35%)",
        f"one look at a page of 1,200 elements: {document['look_ms']} ms",
        f"settling, median: {settle['median_ms']:.0f} ms (target 120)",
        f"late content missed in {settle['missed']} of {settle['late_runs']} runs (target < 1%)",
    ]
    diffs: dict[str, dict[str, float]] = document["differencing"]  # type: ignore[assignment]
    lines += [
        f"demo shop to depth 2, differencing {name}: {run['states']} states, {run['edges']} edges,"
        f" {run['activations']} activations, {run['seconds']} s"
        for name, run in diffs.items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=Settings().explore.workers)
    parser.add_argument("--settle-runs", type=int, default=500)
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    document = asyncio.run(bench(options.runs, options.workers, options.settle_runs))
    print(table(document))
    if options.save:
        document |= {
            "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}",
            "browser": find_browser().path.name,
            "workers": options.workers,
        }
        path = Path(__file__).parent / "results" / "explore.json"
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        print(f"saved to {path}")


if __name__ == "__main__":
    main()
