"""Benchmark of the read-only guard and the egress proxy: CPU time of the same actions with and without them.

Explores the bundled demo shop once, then walks the recorded edges again (load the source, act, take a snapshot, capture
the states not captured yet), under each configuration in turn. CPU is that of the whole process tree: this process
with the proxy in it, Playwright's driver, the browser. The shop is served by its own process.

    python -m bench.guard [--runs 3] [--edges 60] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from unittest.mock import patch

from playwright.async_api import BrowserContext, CDPSession, Page

from bench.result_files import RESULTS, run_info, write_result
from tests.blobs import MemoryBlobs
from waygraph.core.errors import BrowserFailure
from waygraph.core.settings import Settings
from waygraph.index.graph import Action
from waygraph.pipeline.browser import session
from waygraph.pipeline.browser.guard import NetworkGuard, RequestPolicy
from waygraph.pipeline.browser.page.failures import NotActionable
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.session.network_boundary import network_boundary

TARGET_SHARE = 0.10

#: Serves the shop, says where, ends with its standard input.
_SERVER = """
import sys
from waygraph.demo_site import DemoSite
with DemoSite() as site:
    print(site.url, flush=True)
    sys.stdin.read()
"""


class _NoGuard(NetworkGuard):
    """Lets everything pass, without looking at it."""

    async def prepare(self, context: BrowserContext) -> None:
        pass

    async def attach(self, page: Page) -> CDPSession:
        return await page.context.new_cdp_session(page)


@dataclass(frozen=True)
class Run:
    """One walk along the trace."""

    what: str
    steps: int
    seconds: float
    cpu_seconds: float


def cpu_seconds() -> float:
    """Of this process and the children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


async def trace_of(url: str, edges: int) -> list[tuple[str, Action]]:
    """Return each action that the exploration did, as (URL of an addressable state, action)."""
    capture = await explore_site(url, settings=Settings(), blobs=MemoryBlobs())
    nodes = capture.graph.nodes
    walked = [(e.source, e.action) for e in capture.graph.edges if not e.inherited]
    steps = [(nodes[source].url, action) for source, action in walked if nodes[source].addressable]
    # Evenly from all depths, in canonical order.
    every = max(1, len(steps) // edges)
    return steps[::every][:edges]


async def walk(what: str, url: str, trace: Sequence[tuple[str, Action]]) -> Run:
    """Do everything of the trace in a fresh browser."""
    settings = Settings()
    began = time.perf_counter(), cpu_seconds()
    async with AsyncExitStack() as stack:
        proxy, policy = "", RequestPolicy()
        if what == "guard and proxy":
            around = await stack.enter_async_context(network_boundary(url, settings))
            proxy, policy = around.proxy.url, around.request_policy
        browser = await stack.enter_async_context(launch(settings.browser, guarded=what != "nothing"))
        if what == "nothing":
            stack.enter_context(patch.object(session, "NetworkGuard", _NoGuard))
        page = await GuardedPage.open(
            browser,
            ContextOptions(settings.capture, user_agent="waygraph-bench", proxy=proxy),
            settings=settings.browser,
            snapshot_options=SnapshotOptions.from_settings(settings.browser, settings.explore),
            document_policy=lambda _: None,
            request_policy=policy,
        )
        captured: set[str] = set()
        steps = 0
        for source, action in trace:
            try:
                loaded = await page.view.goto(source)
                if loaded.snapshot.id not in captured:
                    captured.add(loaded.snapshot.id)
                    await page.capture()
                acted = await page.view.act(action)
                if acted.snapshot.id not in captured:
                    captured.add(acted.snapshot.id)
                    await page.capture(acted.popup)
                if acted.popup is not None:
                    await acted.popup.page.close()
            except (NotActionable, BrowserFailure):
                continue  # the page differs with what was stopped; all configurations are measured on the same trace
            steps += 1
        await page.close()
    return Run(what, steps, time.perf_counter() - began[0], cpu_seconds() - began[1])


CONFIGURATIONS = ("nothing", "guard", "guard and proxy")


async def bench(url: str, runs: int, edges: int) -> list[Run]:
    trace = await trace_of(url, edges)
    await walk("guard and proxy", url, trace[:3])  # warm-up: code, disk caches
    results = []
    for run in range(runs):
        order = CONFIGURATIONS[run % 3 :] + CONFIGURATIONS[: run % 3]
        results += [await walk(what, url, trace) for what in order]
    return results


def per_step(results: Sequence[Run], what: str) -> float:
    """Mean CPU seconds per step (load, act, look, capture what is new), over all runs: single ones vary by a tenth."""
    runs = [run for run in results if run.what == what]
    return sum(run.cpu_seconds for run in runs) / sum(run.steps for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--edges", type=int, default=60)
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        results = asyncio.run(bench(server.stdout.readline().strip(), options.runs, options.edges))
        server.stdin.close()
    bare = per_step(results, "nothing")
    shares = {what: per_step(results, what) / bare - 1 for what in CONFIGURATIONS}
    print(f"{'':20}{'steps':>7}{'s':>8}{'CPU s':>8}{'CPU ms/step':>13}")
    for run in results:
        per = run.cpu_seconds / run.steps * 1000
        print(f"{run.what:20}{run.steps:7}{run.seconds:8.1f}{run.cpu_seconds:8.1f}{per:13.1f}")
    for what in CONFIGURATIONS[1:]:
        print(f"{what}: {shares[what]:+.1%} CPU (target: at most {TARGET_SHARE:.0%})")
    if options.save:
        document = {
            **run_info(),
            "browser": find_browser().path.name,
            "runs": [asdict(run) for run in results],
            "cpu_ms_per_step": {what: round(per_step(results, what) * 1000, 2) for what in CONFIGURATIONS},
            "share_over_nothing": {what: round(share, 4) for what, share in shares.items()},
        }
        write_result(RESULTS / "guard.json", document)


if __name__ == "__main__":
    main()
