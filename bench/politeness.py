"""Benchmark of politeness: request rates per host, from the logs of local servers, and the time that waiting costs.

Three runs: many hosts without a browser (a sleep stands in for it), which measures the waiting alone; 4 hosts with a
delay of 1 s, which must be visited nearly 4 times per second; 20 hosts, which are more than the machine can do, so that
no core may be idle:

    python -m bench.politeness [--pages 30] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.result_files import RESULTS, run_info, write_result
from tests.blobs import MemoryBlobs
from waygraph.core.settings import Settings
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots

DELAY_S = 1.0
#: A stand-in for a browser: so long a page keeps a slot, of which there are so many.
SYNTHETIC_S, SYNTHETIC_SLOTS = 0.1, 3
TARGET = 0.9


class Host(LocalServer):
    """A site of plain pages, one of which robots.txt forbids. Records when each document was requested."""

    def __init__(self, pages: int) -> None:
        super().__init__(self._page)
        self._pages = pages
        self.arrivals: list[float] = []
        self.disallowed = 0

    def _page(self, request: Request) -> Response:
        arrived = time.monotonic()
        if request.path == "/robots.txt":
            return Response("User-agent: *\nDisallow: /private\n", content_type="text/plain")
        if request.path == "/favicon.ico":
            return Response(status=404)
        self.arrivals.append(arrived)
        self.disallowed += request.path.startswith("/private")
        number = request.path.strip("/") or "start"
        links = "".join(f"<li><a href='/{i}'>Page {i} of this site</a></li>" for i in range(self._pages))
        rows = "".join(f"<tr><td>{number}.{i}</td><td>{number} and {i}</td></tr>" for i in range(60))
        forbidden = "<a href='/private'>Private</a> <button onclick=\"location='/private/too'\">Also private</button>"
        body = f"<h1>Page {number}</h1><ul>{links if number == 'start' else ''}</ul><table>{rows}</table>{forbidden}"
        return Response(f"<!doctype html><title>{number}</title>{body}")


@dataclass(frozen=True)
class Measured:
    """One run. Rates are sums over hosts of what each saw between its first and its last visit."""

    what: str
    hosts: int
    navigations: int
    seconds: float
    per_second: float
    possible_per_second: float
    smallest_gap_s: float
    gaps_below_delay: int
    disallowed: int
    cores_busy: float
    cores_idle: float

    @property
    def share(self) -> float:
        """Of what the delay allows."""
        return self.per_second / self.possible_per_second


class Cores:
    """How many cores were busy with us, and how many with nothing, since it was made."""

    def __init__(self) -> None:
        self._wall, self._ours, self._idle = time.monotonic(), _our_cpu(), _idle_cpu()

    def busy(self) -> float:  # noqa: D102
        return (_our_cpu() - self._ours) / (time.monotonic() - self._wall)

    def idle(self) -> float:  # noqa: D102
        return (_idle_cpu() - self._idle) / (time.monotonic() - self._wall)


def _our_cpu() -> float:
    """CPU seconds of this process and of the children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def _idle_cpu() -> float:
    """CPU seconds in which cores had nothing to do, waiting for the disk included."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def measured(what: str, arrivals: Sequence[Sequence[float]], cores: Cores, disallowed: int = 0) -> Measured:
    gaps = [later - earlier for times in arrivals for earlier, later in pairwise(times)]
    first, last = min(times[0] for times in arrivals), max(times[-1] for times in arrivals)
    rates = [(len(times) - 1) / (times[-1] - times[0]) for times in arrivals]
    return Measured(
        what=what,
        hosts=len(arrivals),
        navigations=sum(map(len, arrivals)),
        seconds=round(last - first, 2),
        per_second=round(sum(rates), 3),
        possible_per_second=len(arrivals) / DELAY_S,
        smallest_gap_s=round(min(gaps), 4),
        gaps_below_delay=sum(gap < DELAY_S for gap in gaps),
        disallowed=disallowed,
        cores_busy=round(cores.busy(), 2),
        cores_idle=round(cores.idle(), 2),
    )


async def waiting_alone(hosts: int, seconds: float) -> Measured:
    """Return the CPU cost of waiting: only sleeps run."""
    pacer, slots = Pacer(delay_seconds=DELAY_S), Slots(SYNTHETIC_SLOTS, most=SYNTHETIC_SLOTS)
    arrivals: list[list[float]] = [[] for _ in range(hosts)]
    cores, end = Cores(), time.monotonic() + seconds

    async def visit(number: int) -> None:
        while time.monotonic() < end:
            async with slots.lease() as lease, pacer.turn(f"host{number}", lease) as turn:
                arrivals[number].append(time.monotonic())
                turn.end()
                await asyncio.sleep(SYNTHETIC_S)

    await asyncio.gather(*(visit(number) for number in range(hosts)))
    return measured(f"waiting alone: {hosts} hosts, a sleep instead of a browser", arrivals, cores)


async def exploring(hosts: int, pages: int) -> Measured:
    """Real exploring of local hosts, as one explorer of a bulk run does it."""
    settings = Settings(explore={"delay_seconds": DELAY_S, "depth": 1, "workers": 2})
    pacer = Pacer(delay_seconds=DELAY_S)
    stop = asyncio.Event()
    with ExitStack() as servers:
        sites = [servers.enter_context(Host(pages)) for _ in range(hosts)]
        cores = Cores()
        idle: list[float] = []
        async with AsyncExitStack() as stack:
            launcher = partial(launch, settings.browser, guarded=True)
            pool = await stack.enter_async_context(BrowserPool(launcher, browsers=len(os.sched_getaffinity(0))))
            slots = Slots()

            async def explore(site: Host) -> None:
                await explore_site(
                    site.url,
                    settings=settings,
                    blobs=MemoryBlobs(keep=False),
                    stop=stop,
                    pool=pool,
                    pacer=pacer,
                    slots=slots,
                )
                # The rest of the time not all hosts take part.
                if not idle:
                    idle.append(cores.idle())

            await asyncio.gather(*(explore(site) for site in sites))
        disallowed = sum(site.disallowed for site in sites)
        result = measured(f"exploring {hosts} local hosts", [site.arrivals for site in sites], cores, disallowed)
    return Measured(**{**asdict(result), "cores_idle": round(idle[0], 2)})


def table(runs: Sequence[Measured]) -> str:
    lines = [
        f"{'':58}{'visits':>8}{'s':>7}{'visits/s':>10}{'of the':>9}{'smallest':>10}{'too':>6}{'dis-':>9}{'cores':>7}",
        f"{'':58}{'':8}{'':7}{'':10}{'possible':>9}{'gap s':>10}{'early':>6}{'allowed':>9}{'idle':>7}",
    ]
    lines += [
        f"{r.what:58}{r.navigations:8}{r.seconds:7.1f}{r.per_second:10.2f}{r.share:9.0%}{r.smallest_gap_s:10.3f}"
        f"{r.gaps_below_delay:6}{r.disallowed:9}{r.cores_idle:7.2f}"
        for r in runs
    ]
    return "\n".join(lines)


async def bench(pages: int) -> list[Measured]:
    return [await waiting_alone(20, 30.0), await exploring(4, pages), await exploring(20, max(5, pages // 3))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=30, help="pages of each of the 4 hosts")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    runs = asyncio.run(bench(options.pages))
    print(table(runs))
    alone, few, many = runs
    print(f"targets: waiting alone and 4 hosts >= {TARGET:.0%} of the possible, 20 hosts no idle core,")
    print("         no gap below the delay, nothing that robots.txt disallows")
    kept = alone.share >= TARGET and few.share >= TARGET and not any(r.gaps_below_delay or r.disallowed for r in runs)
    print(f"{'kept' if kept else 'NOT kept'}; at 20 hosts {many.cores_idle:.2f} of {os.cpu_count()} cores were idle")
    if options.save:
        document = {
            **run_info(),
            "browser": find_browser().path.name,
            "delay_s": DELAY_S,
            "runs": [asdict(run) | {"share_of_possible": round(run.share, 3)} for run in runs],
        }
        write_result(RESULTS / "politeness.json", document)


if __name__ == "__main__":
    main()
