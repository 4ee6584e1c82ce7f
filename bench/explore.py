"""Benchmark of exploring: states per second, also as a share of the rate of a bare script with the same browser.

Explores pages of about 1,200 elements and 220 KB of script (`bench.pages`, served by its own process) with full
capture, guard and egress proxy on, and plays the recorded browser work back as a bare script in the same run:

    python -m bench.explore [--runs 3] [--workers 4] [--settle-runs 500] [--only clicks|links|known] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from unittest import mock

import psutil
from playwright.async_api import Browser

from bench.result_files import RESULTS, run_info, write_result
from bench.trace import Trace, Waiting, play, recorded
from tests.blobs import MemoryBlobs
from waygraph.core.settings import Settings
from waygraph.demo_site import DemoSite
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage
from waygraph.pipeline.explore.engine import worker as worker_module
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.explore.session.network_boundary import network_boundary

CLICKS, LINKS, KNOWN = 96, 96, 192
LATE_MS = (200, 500, 800, 950)
WAITINGS: tuple[Waiting, ...] = ("quiet", "raw")


@dataclass(frozen=True)
class Run:
    """One level of an exploration, or a bare script that repeats its browser work. CPU seconds by kind of process."""

    what: str
    done: int
    seconds: float
    cpu: dict[str, float]

    @property
    def per_second(self) -> float:  # noqa: D102
        return self.done / self.seconds

    @property
    def cpu_ms(self) -> dict[str, float]:
        """CPU milliseconds for each that was done, by kind of process."""
        return {kind: round(1000 * seconds / self.done, 1) for kind, seconds in sorted(self.cpu.items())}


@contextmanager
def served() -> Iterator[str]:
    """Serve the pages from a process whose CPU time is not counted."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.pages"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


async def explored(what: str, url: str, settings: Settings, count: str) -> tuple[Run, list[Run], SiteCapture]:
    """Explore to depth 1, then play the browser work of that level back, in both ways of waiting.

    Parameters
    ----------
    count : what is counted: `states` or `activations`.
    """
    trace = Trace()
    async with BrowserPool(partial(launch, settings.browser, guarded=True)) as pool, recorded(trace):
        capture = await explore_site(url, settings=settings, blobs=MemoryBlobs(), pool=pool)
    level = capture.report.depths[1]
    done = level.states if count == "states" else level.activations
    ours = Run(what, done, trace.seconds, trace.cpu)
    bare = []
    for waiting in WAITINGS:
        async with (
            network_boundary(url, settings) as around,
            BrowserPool(partial(launch, settings.browser, guarded=True)) as pool,
            pool.lease() as lease,
        ):
            played = await play(trace, lease.browser, around, settings, waiting)
        # Without waiting, the script sometimes goes on before the last navigation is requested.
        missed = 0.02 * trace.held if waiting == "raw" else 0
        if played.captures != trace.captures or not trace.held - missed <= played.held <= trace.held:
            raise AssertionError(
                f"{what}, {waiting}: {played.captures} documents captured and {played.held} navigations held,"
                f" not {trace.captures} and {trace.held}"
            )
        bare.append(Run(f"{what}: {waiting} script", done, played.seconds, played.cpu))
    return ours, bare, capture


async def restore_share(url: str, settings: Settings) -> float:
    """Return the share of the browser's CPU time that restores states, measured with one worker."""
    spent = {"restore": 0.0}
    reach, revert = Worker._reach, Worker._revert  # noqa: SLF001 - what is measured

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

    async def timed_revert(self: Worker, *args: object) -> object:
        before = browser_cpu()
        try:
            return await revert(self, *args)  # type: ignore[arg-type]
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
        mock.patch.object(worker_module.Worker, "_revert", timed_revert),
    ):
        await explore_site(url, settings=one, blobs=MemoryBlobs())
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


async def _open(browser: Browser, settings: Settings, options: SnapshotOptions) -> GuardedPage:
    return await GuardedPage.open(
        browser,
        ContextOptions(settings.capture, user_agent="bench"),
        settings=settings.browser,
        snapshot_options=options,
        document_policy=lambda _: None,
    )


async def _settling(browser: Browser, url: str, settings: Settings, *, runs: int, pages: int) -> Settling:
    options = SnapshotOptions.from_settings(settings.browser, settings.explore)
    page = await _open(browser, settings, options)
    seen = (await page.view.goto(f"{url}clicks/20")).snapshot
    times = []
    for candidate in seen.candidates:
        await page.view.perform(candidate.action)
        began = time.perf_counter()
        await page.view.settle()
        times.append((time.perf_counter() - began) * 1000)
    await page.close()
    missed, left = 0, iter(range(runs))

    async def work() -> None:
        nonlocal missed
        page = await _open(browser, settings, options)
        for number in left:
            seen = (await page.view.goto(f"{url}late/{LATE_MS[number % len(LATE_MS)]}")).snapshot
            acted = await page.view.act(seen.candidates[number // len(LATE_MS) % 2].action)
            missed += not any(segment.role == "heading" and "By" in segment.text for segment in acted.snapshot.segments)
        await page.close()

    await asyncio.gather(*(work() for _ in range(pages)))
    return Settling(statistics.median(times), runs, missed)


async def look_ms(settings: Settings, url: str) -> float:
    """Return the median time of one snapshot of a settled page of this size, without the quiet window."""
    async with launch(settings.browser, guarded=True) as browser:
        page = await _open(browser, settings, SnapshotOptions.from_settings(settings.browser, settings.explore))
        await page.view.goto(f"{url}clicks/60")
        times = []
        for _ in range(15):
            began = time.perf_counter()
            await page.view.observe()
            times.append((time.perf_counter() - began) * 1000)
        await page.close()
    return statistics.median(times)


async def differencing(settings: Settings) -> dict[str, dict[str, float]]:
    """Explore the demo shop to depth 2, with differencing and without."""
    results = {}
    for diff in ("element", "off"):
        explore = settings.explore.model_copy(update={"depth": 2, "diff": diff})
        with DemoSite() as site:
            began = time.perf_counter()
            capture = await explore_site(
                site.url, settings=settings.model_copy(update={"explore": explore}), blobs=MemoryBlobs()
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


async def bench(runs: int, workers: int, settle_runs: int, only: str = "") -> dict[str, Any]:
    """Return the whole result, or only the rows of the pages that `only` names."""
    settings = Settings(explore={"workers": workers, "depth": 1, "order": "breadth"})
    document: dict[str, Any] = {}
    with served() as url:
        kinds: dict[str, dict[str, Any]] = {}
        for what, path, count, target in KINDS:
            if not path.startswith(only):
                continue
            measured = [await explored(what, url + path, settings, count) for _ in range(runs)]
            ours = [run for run, _, _ in measured]
            kinds[what] = {
                "per_s": round(statistics.median(run.per_second for run in ours), 2),
                "cpu_ms": _medians([run.cpu_ms for run in ours]),
                "target_per_s": target,
                "counters": dict(measured[-1][2].report.counters),
                "runs": [asdict(run) for run, bare, _ in measured for run in (run, *bare)],
            }
            for number, waiting in enumerate(WAITINGS):
                scripts = [bare[number] for _, bare, _ in measured]
                kinds[what][waiting] = {
                    "per_s": round(statistics.median(run.per_second for run in scripts), 2),
                    "cpu_ms": _medians([run.cpu_ms for run in scripts]),
                    "share": round(
                        statistics.median(b.seconds / o.seconds for o, b in zip(ours, scripts, strict=True)), 2
                    ),
                }
            print(rows(what, kinds[what]), flush=True)
        document["kinds"] = kinds
        if only:
            return document
        document["restore_share_of_browser_cpu"] = round(await restore_share(f"{url}clicks/{CLICKS}", settings), 3)
        document["look_ms"] = round(await look_ms(settings, url), 1)
        document["settling"] = asdict(await settling(url, settings, settle_runs, 2 * workers))
    document["differencing"] = await differencing(settings)
    return document


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {
        kind: round(statistics.median(run.get(kind, 0.0) for run in runs), 1) for kind in sorted(set().union(*runs))
    }


CPU_KINDS = ("renderer", "browser", "network", "gpu", "driver", "python")


def rows(what: str, kind: dict[str, Any]) -> str:
    """One kind of work: how many per second, CPU milliseconds of each, and the same for the bare scripts."""
    lines = []
    for name, run in ((what, kind), *((f"  {waiting} script", kind[waiting]) for waiting in WAITINGS)):
        share = f"{run['share']:8.2f}" if "share" in run else f"{'':8}"
        cpu = run["cpu_ms"]
        each = "".join(f"{cpu.get(of, 0.0):10.1f}" for of in CPU_KINDS)
        total = sum(ms for of, ms in cpu.items() if of != "site")
        lines.append(f"{name:24}{run['per_s']:8.2f}{share}{each}{total:10.1f}")
    return "\n".join(lines)


def table(document: dict[str, Any]) -> str:
    """Return the whole result as text."""
    lines = [f"{'':24}{'per s':>8}{'share':>8}" + "".join(f"{of:>10}" for of in CPU_KINDS) + f"{'CPU ms':>10}"]
    lines += [rows(what, kind) for what, kind in document["kinds"].items()]
    lines += [
        "targets: "
        + ", ".join(f"{what} {kind['target_per_s']:g}/s" for what, kind in document["kinds"].items())
        + "; share of the quiet script 0.85"
    ]
    if "settling" not in document:
        return "\n".join(lines)
    settle = document["settling"]
    lines += [
        f"ways back: {document['restore_share_of_browser_cpu']:.0%} of the browser's CPU time (target 35%)",
        f"one snapshot of a page of 1,200 elements: {document['look_ms']} ms",
        f"settling, median: {settle['median_ms']:.0f} ms (target 120)",
        f"late content missed in {settle['missed']} of {settle['late_runs']} runs (target < 1%)",
    ]
    lines += [
        f"demo shop to depth 2, differencing {name}: {run['states']} states, {run['edges']} edges,"
        f" {run['activations']} activations, {run['seconds']} s"
        for name, run in document["differencing"].items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=Settings().explore.workers)
    parser.add_argument("--settle-runs", type=int, default=500)
    parser.add_argument("--only", choices=("clicks", "links", "known"), default="", help="one kind of work, not saved")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    document = asyncio.run(bench(options.runs, options.workers, options.settle_runs, options.only))
    print(table(document))
    if options.save and not options.only:
        document |= {
            **run_info(),
            "browser": find_browser().path.name,
            "workers": options.workers,
        }
        write_result(RESULTS / "explore.json", document)


if __name__ == "__main__":
    main()
