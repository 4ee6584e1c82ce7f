"""Soak test of exploring: memory and processes over a long exploration whose browser is killed at random moments.

Explores a generated site of 10,000 pages on loopback, kills its browser or its driver at random moments of the first
half, and samples the memory and the processes of the whole tree:

    make soak-explore        WAYGRAPH_PAGES=1000 WAYGRAPH_KILLS=10 WAYGRAPH_SEED=1 make soak-explore

It fails when a page was lost or found twice, when the memory of Python, of the driver (Node) or of the browser was not
flat in the second half (a fitted line rises by more than 10% of the median from end to end; checked for halves of two
minutes or more, since a browser that was just started grows), or when a process is left over at the end.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path

import psutil

from bench.result_files import RESULTS, run_info, write_result
from tests.blobs import MemoryBlobs
from waygraph.core.settings import Settings
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.browser.process.process_tree import (
    adopt_orphans,
    children,
    command_line,
    descendants,
    is_alive,
    memory_bytes,
)
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import ExploreProgress, SiteCapture

PAGES = int(os.environ.get("WAYGRAPH_PAGES", "10000"))
KILLS = int(os.environ.get("WAYGRAPH_KILLS", "10"))
SEED = int(os.environ.get("WAYGRAPH_SEED", time.time_ns() % 10**6))
SAMPLE_S = 2.0
FLAT = 0.10
#: A shorter half says nothing about growth: caches fill first.
SHORTEST_S = 120.0
#: More samples than these add nothing to a slope.
MOST_POINTS = 200
KINDS = ("python", "node", "browser")


class Site(LocalServer):
    """A start page, sections, and in each of them pages: `pages` in all, with texts of their own."""

    def __init__(self, pages: int) -> None:
        super().__init__(self._page)
        self.sections = max(1, round(pages**0.5))
        self.each = [len(range(section, pages - 1 - self.sections, self.sections)) for section in range(self.sections)]
        self.pages = 1 + self.sections + sum(self.each)

    def _page(self, request: Request) -> Response:
        parts = [part for part in request.path.split("/") if part]
        known = all(part.isdigit() for part in parts) and len(parts) <= 2
        if request.path in {"/robots.txt", "/favicon.ico"} or not known:
            return Response("Not here.", status=404)
        numbers = [int(part) for part in parts]
        links: list[str] = []
        if not numbers:
            links = [f"/{section}" for section in range(self.sections)]
        elif len(numbers) == 1:
            links = [f"/{numbers[0]}/{page}" for page in range(self.each[numbers[0]])]
        name = ".".join(parts) or "start"
        items = "".join(f"<li><a href='{link}'>Page {link}</a></li>" for link in links)
        rows = "".join(f"<tr><td>{name}-{row}</td><td>A line of page {name}</td></tr>" for row in range(30))
        return Response(
            f"<!doctype html><title>{name}</title><h1>Page {name}</h1><ul>{items}</ul><table>{rows}</table>"
        )


@dataclass(frozen=True)
class Sample:
    """Sample of the process tree: seconds since the start, bytes (PSS) by kind of process, number of processes."""

    seconds: float
    memory: Mapping[str, int]
    processes: int


def kind_of(each: psutil.Process) -> str:
    if each.pid == os.getpid():
        return "python"
    return "node" if "run-driver" in command_line(each) else "browser"


def _is_main(command: tuple[str, ...]) -> bool:
    return "/bin/sh" not in command and not any(argument.startswith("--type=") for argument in command)


@dataclass
class Watch:
    """What was seen of the processes while exploring."""

    pool: BrowserPool
    chance: random.Random
    began: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    seen: set[psutil.Process] = field(default_factory=set)
    states: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    back_s: list[float] = field(default_factory=list)

    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def progress(self, progress: ExploreProgress) -> None:  # noqa: D102
        self.states = progress.states
        self.changed.set()

    async def reached(self, states: int) -> None:
        """Wait until so many states are known."""
        while self.states < states:
            self.changed.clear()
            await self.changed.wait()

    async def sample(self) -> None:
        """Look at the tree every `SAMPLE_S` seconds."""
        ourselves = psutil.Process()
        while True:
            tree = descendants([ourselves])
            self.seen |= tree - {ourselves}
            memory = {
                kind: await asyncio.to_thread(memory_bytes, {each for each in tree if kind_of(each) == kind})
                for kind in KINDS
            }
            self.samples.append(Sample(time.monotonic() - self.began, memory, len(tree)))
            mebibytes = ", ".join(f"{kind} {used >> 20}" for kind, used in memory.items())
            sys.stderr.write(
                f"\r{self.samples[-1].seconds:6.0f} s {self.states:6} states, MiB: {mebibytes};"
                f" {len(tree):3} processes {sum(self.kills.values())} kills "
            )
            await asyncio.sleep(SAMPLE_S)

    async def kill(self, pages: int, kills: int) -> None:
        """Kill a browser or a driver `kills` times in the first half, so that the second half shows growth."""
        for threshold in sorted(self.chance.uniform(0.02, 0.5) * pages for _ in range(kills)):
            await self.reached(round(threshold))
            tree = self.pool.processes()
            mains = [each for each in tree if "--remote-debugging-pipe" in command_line(each)]
            victims_by_kind = {
                "driver": [each for each in tree if "run-driver" in command_line(each)],
                # Not the script that some distributions start it with.
                "browser": [each for each in mains if _is_main(command_line(each))],
                "renderer": [each for each in tree if "--type=renderer" in command_line(each)],
            }
            kind, victims = self.chance.choice(list(victims_by_kind.items()))
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(victims).pid, signal.SIGKILL)
                self.kills[kind] += 1
                before, states = time.monotonic(), self.states
                await self.reached(states + 1)
                self.back_s.append(time.monotonic() - before)


@dataclass(frozen=True)
class Flatness:
    """Memory of one kind of process in the second half: median, and the part of it by which it grew from end to end."""

    median_mib: int
    growth: float


def flatness(samples: Sequence[Sample]) -> dict[str, Flatness]:
    """Fit a line (Theil-Sen, robust to single peaks) through each kind's use in the second half."""
    second = samples[len(samples) // 2 :]
    seconds = [sample.seconds for sample in second]
    found = {}
    for kind in KINDS:
        used = [sample.memory[kind] for sample in second]
        middle = statistics.median(used)
        pairs = list(combinations(range(0, len(second), max(1, len(second) // MOST_POINTS)), 2))
        slopes = [(used[j] - used[i]) / (seconds[j] - seconds[i]) for i, j in pairs]
        slope = statistics.median(slopes) if slopes else 0.0
        growth = slope * (seconds[-1] - seconds[0]) / middle if middle else 0.0
        found[kind] = Flatness(round(middle) >> 20, round(growth, 4))
    return found


async def soak() -> int:
    chance = random.Random(SEED)
    settings = Settings(
        explore={"depth": 3, "max_states": 10 * PAGES, "max_activations": 10 * PAGES, "max_seconds": 10**6,
                 "trap_budget": 10 * PAGES, "identity": "exact", "max_bytes": 2**50}
    )  # fmt: skip
    adopt_orphans()
    with Site(PAGES) as site, tempfile.TemporaryDirectory() as folder:
        async with BrowserPool(partial(launch, settings.browser, guarded=True)) as pool:
            watch = Watch(pool, chance)
            sampling, killing = (asyncio.ensure_future(work) for work in (watch.sample(), watch.kill(PAGES, KILLS)))
            try:
                capture = await explore_site(
                    site.url,
                    settings=settings,
                    blobs=MemoryBlobs(keep=False),
                    on_progress=watch.progress,
                    journal=Path(folder) / "soak.sqlite",
                    pool=pool,
                )
            finally:
                for task in (sampling, killing):
                    task.cancel()
                await asyncio.wait([sampling, killing])
        requests = len(site.requests)
        return report(watch, capture, site.pages, requests)


def report(watch: Watch, capture: SiteCapture, pages: int, requests: int) -> int:
    memory = flatness(watch.samples)
    long_enough = watch.samples[-1].seconds / 2 >= SHORTEST_S
    left = sorted(each.pid for each in watch.seen if is_alive(each))
    zombies = [each for each in children(os.getpid()) if each in watch.seen]
    urls = [node.url for node in capture.graph.nodes.values()]
    problems = [
        text
        for wrong, text in [
            (len(set(urls)) != pages, f"{pages - len(set(urls))} pages were lost"),
            (len(urls) != len(set(urls)), f"{len(urls) - len(set(urls))} pages were found twice"),
            *(
                (
                    long_enough and flat.growth > FLAT,
                    f"memory of {kind} grows: {flat.growth:+.1%} over the second half",
                )
                for kind, flat in memory.items()
            ),
            (bool(left), f"left over: {left}"),
        ]
        if wrong
    ]
    seconds = watch.samples[-1].seconds
    most = max(sample.processes for sample in watch.samples)
    flat = ", ".join(f"{kind} {found.median_mib} MiB {found.growth:+.1%}" for kind, found in memory.items())
    sys.stdout.write(
        f"\n{len(urls)} states of {pages} pages in {seconds:.0f} s ({len(urls) / seconds:.1f}/s), {requests} requests,"
        f" kills {dict(watch.kills)}, seconds until the next new state {[round(s, 1) for s in watch.back_s]}\n"
        f"memory in the second half, median and growth{'' if long_enough else ' (too short to tell)'}: {flat};"
        f" at most {most} processes, {len(left)} left over, {len(zombies)} not reaped\n"
        + "".join(f"FAILED: {problem}\n" for problem in problems)
    )
    document = {
        **run_info(),
        "seed": SEED,
        "pages": pages,
        "states": len(urls),
        "seconds": round(seconds, 1),
        "requests": requests,
        "kills": dict(watch.kills),
        "seconds_until_next_state_after_kill": [round(s, 2) for s in watch.back_s],
        "second_half": {kind: asdict(found) for kind, found in memory.items()},
        "most_processes": most,
        "left_over": len(left),
        "counters": dict(capture.report.counters),
        "problems": problems,
        "samples": [
            (round(each.seconds, 1), *(each.memory[kind] >> 20 for kind in KINDS), each.processes)
            for each in watch.samples[::5]
        ],
    }
    write_result(RESULTS / "soak.json", document)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.stdout.write(f"WAYGRAPH_PAGES={PAGES} WAYGRAPH_KILLS={KILLS} WAYGRAPH_SEED={SEED}\n")
    sys.exit(asyncio.run(soak()))
