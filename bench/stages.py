"""Profile of exploring by stage: wall time and CPU time of each kind of process per new state.

Explores with one worker, so that all that is used meanwhile is used by the stage that is under way, and prints what
each stage takes for one new state: the pages of `bench.explore`, or an application of `bench.real_sites` that talks
over a WebSocket and is loaded anew whenever an action cannot be reverted:

    python -m bench.stages [links|clicks|node-red] [--states 96] [--scratch FOLDER]

The time of a nested stage is not counted in the outer one: `look` is a load's first look without reading it.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from playwright.async_api import Page

from bench import real_sites
from bench.cpu import cpu_by_kind
from bench.explore import CPU_KINDS, served
from tests.blobs import MemoryBlobs
from waygraph.core.settings import Settings
from waygraph.pipeline.browser import session as session_module
from waygraph.pipeline.browser.page import observer as observer_module
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.browser.session import GuardedPage
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.crawl import Crawl
from waygraph.pipeline.explore.engine import revert as undo_module
from waygraph.pipeline.explore.engine import worker as worker_module
from waygraph.pipeline.explore.engine.graph_builder import GraphBuilder
from waygraph.pipeline.explore.engine.loader import Loader
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.explore.session.secrets import Redactor

#: What is timed: name of the stage, where it is defined, what it is called there.
STAGES: tuple[tuple[str, Any, str], ...] = (
    ("the rest of the round", Crawl, "_run_round"),
    ("reach the state again", Worker, "_reach"),
    ("find and gesture", PageView, "perform"),
    ("settle, digest (after the gesture)", PageView, "settle"),
    ("is it back: settle, digest", worker_module, "is_back"),
    ("is it back: settle, digest", undo_module, "is_back"),
    ("cookies", GuardedPage, "stored_values"),
    ("request to commit", Page, "goto"),
    ("load, settle, look", PageView, "observe"),
    ("parse the look", observer_module, "parse_snapshot"),
    ("open a page", GuardedPage, "open"),
    ("write the look", Journal, "add_snapshot"),
    ("charts", PageView, "wait_until_drawn"),
    ("screenshot", session_module, "_take_screenshot"),
    ("HTML, accessibility snapshot", PageView, "markup"),
    ("redact", Redactor, "dom"),
    ("redact", Redactor, "document"),
    ("blobs, note of the capture", SnapshotStore, "_capture"),
    ("note of the load, answer, storage", Loader, "_load"),
    ("write the load", Journal, "record_load"),
    ("write the capture", Journal, "record_capture"),
    ("write the outcome", Journal, "record"),
    ("commit", GraphBuilder, "commit"),
)


class Costs:
    """Wall and CPU seconds by stage."""

    def __init__(self) -> None:
        self.wall = defaultdict[str, float](float)
        self.cpu: dict[str, dict[str, float]] = {}
        self.times: Counter[str] = Counter()
        self._within: ContextVar[tuple[str, ...]] = ContextVar("stages", default=())
        self._since = (time.perf_counter(), _python_seconds())
        self._cpu = cpu_by_kind()

    def _charge(self, stage: str) -> None:
        """Add the time since the last change of stage to `stage`; the time of the measurement itself is excluded."""
        wall, python = time.perf_counter(), _python_seconds()
        cpu = cpu_by_kind()
        self.wall[stage] += wall - self._since[0]
        used = self.cpu.setdefault(stage, defaultdict(float))
        for kind, seconds in cpu.items():
            used[kind] += seconds - self._cpu.get(kind, 0.0)
        used["python"] += python - self._since[1] - (cpu["python"] - self._cpu["python"])
        self._cpu = cpu
        self._since = (time.perf_counter(), _python_seconds())

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Charge what is used in the block to a stage."""
        outer = self._within.get()
        self._charge(outer[-1] if outer else "")
        token = self._within.set((*outer, name))
        self.times[name] += 1
        try:
            yield
        finally:
            self._charge(name)
            self._within.reset(token)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function as a stage."""
        if asyncio.iscoroutinefunction(function):

            async def later(*arguments: Any, **more: Any) -> Any:
                with self.stage(name):
                    return await function(*arguments, **more)

            return later

        def at_once(*arguments: Any, **more: Any) -> Any:
            with self.stage(name):
                return function(*arguments, **more)

        return at_once


def _python_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def costs(url: str, settings: Settings) -> tuple[Costs, SiteCapture]:
    """Explore a site; returns the costs, and what was found."""
    spent = Costs()
    with ExitStack() as stack:
        for name, owner, attribute in STAGES:
            original = owner.__dict__[attribute]
            if isinstance(original, classmethod):
                timed: Any = classmethod(spent.timed(name, original.__func__))
            else:
                timed = spent.timed(name, original)
            stack.enter_context(mock.patch.object(owner, attribute, timed))
        async with BrowserPool(partial(launch, settings.browser, guarded=True)) as pool:
            capture = await explore_site(url, settings=settings, blobs=MemoryBlobs(), pool=pool)
    return spent, capture


def table(spent: Costs, states: int) -> str:
    """Milliseconds for each state."""
    kinds = (*CPU_KINDS, "site")
    lines = [f"{'ms for each new state':36}{'times':>7}{'wall':>8}" + "".join(f"{kind:>10}" for kind in kinds)]
    for stage, wall in sorted(spent.wall.items(), key=lambda pair: -pair[1]):
        cpu = "".join(f"{1000 * spent.cpu[stage][kind] / states:10.1f}" for kind in kinds)
        lines.append(f"{stage or 'outside':36}{spent.times[stage] / states:7.2f}{1000 * wall / states:8.1f}{cpu}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", default="links", choices=["links", "clicks", "node-red"])
    parser.add_argument("--states", type=int, default=96)
    parser.add_argument("--scratch", type=Path, help="folder in which the application is installed and kept")
    options = parser.parse_args()
    if options.what == "node-red":
        settings = Settings(explore={"workers": 1, "depth": 2, "max_states": options.states})
        with ExitStack() as stack:
            scratch = options.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            site = stack.enter_context(real_sites.node_red(scratch))
            spent, capture = asyncio.run(costs(site.start, settings))
        states = len(capture.graph)
    else:
        settings = Settings(explore={"workers": 1, "depth": 1, "order": "breadth"})
        with served() as url:
            spent, capture = asyncio.run(costs(f"{url}{options.what}/{options.states}", settings))
        states = capture.report.depths[1].states
    print(table(spent, states))
    loads = capture.report.counters.get("requests/document", 0)
    print(f"{states} states in {sum(spent.wall.values()):.0f} s, {loads / states:.2f} requests for documents each")
    reverts = {key: count for key, count in capture.report.counters.items() if key.startswith("undo/")}
    print("reverted, and attempts to:", ", ".join(f"{key} {count}" for key, count in sorted(reverts.items())))


if __name__ == "__main__":
    main()
