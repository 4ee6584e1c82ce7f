"""Replay the benchmark's tasks: each right end must score 1, each wrong end 0, and the references must be on the sites.

    python -m bench.tasks --check [--site demo_shop] [--save]
    python -m bench.tasks --oracle [--site demo_shop] [--save]
    python -m bench.tasks --serve --site demo_shop --scratch FOLDER

`--oracle` does the shortest clicks of the find-a-page tasks, which other agents are compared with. `--serve` serves a
site for `waygraph run`. The sites are the demo shop and, from package registries, those of `bench/real_sites.py`.
Without these options, tasks are listed.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from bench import real_sites
from bench.result_files import RESULTS, run_info, write_result
from bench.tasks.oracle import OracleRun, follow_way
from bench.tasks.replay import TaskCheck
from bench.tasks.site_tasks import FOLDER, SPLITS, SiteTasks, read_site
from waygraph.agents.actions.session import SessionOptions
from waygraph.core.settings import BrowserSettings, CaptureProfile
from waygraph.demo_site import DemoSite
from waygraph.pipeline.browser.process.launch import launch

SITES = [site for sites in SPLITS.values() for site in sites]
_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


@dataclass(frozen=True)
class TaskSite:
    """A site that is served.

    Attributes
    ----------
    base_url : the URL that its placeholder stands for.
    storage_state : the file of a logged-in session.
    forget : makes the server forget how an account left its pages, see `bench.real_sites.Served`.
    """

    base_url: str
    storage_state: str | None = None
    forget: Callable[[], None] = lambda: None

    def context_options(self) -> dict[str, Any]:
        """Return the options of a browser context, with the window that agents have."""
        profile = CaptureProfile()
        return {
            "storage_state": self.storage_state,
            "viewport": {"width": profile.viewport_width, "height": profile.viewport_height},
            "locale": profile.locale,
            "timezone_id": profile.timezone,
            "reduced_motion": "reduce",
        }


@contextmanager
def serving_site(site: str, scratch: Path) -> Iterator[TaskSite]:
    """Serve a site until the end of the block."""
    if site == "demo_shop":
        with DemoSite() as shop:
            yield TaskSite(shop.url)
        return
    with getattr(real_sites, site)(scratch) as served:
        parts = urlsplit(served.start)
        state = served.storage_state
        yield TaskSite(f"{parts.scheme}://{parts.netloc}/", str(state) if state else None, served.forget)


async def replay_tasks(site: TaskSite, tasks: SiteTasks) -> dict[str, list[str]]:
    """Replay the tasks of a site one after the other; return what is wrong, by task."""
    async with launch(_LOOPBACK) as browser:
        context = await browser.new_context(**site.context_options())
        return {
            task.task_id: await TaskCheck(
                context, site.base_url, task, tasks.replays[task.task_id], site.forget
            ).problems()
            for task in tasks.file.tasks
        }


async def run_oracle(site: TaskSite, tasks: SiteTasks) -> dict[str, OracleRun]:
    """Do the shortest clicks of the find-a-page tasks of a site, each in a browser context of its own."""
    runs = {}
    async with launch(_LOOPBACK) as browser:
        for task in tasks.file.tasks:
            if task.task_id in tasks.ways:
                site.forget()
                context = await browser.new_context(**site.context_options())
                options = SessionOptions(browser=_LOOPBACK)
                runs[task.task_id] = await follow_way(context, task, tasks.ways[task.task_id], options)
                await context.close()
    return runs


def check_site(name: str, site: TaskSite) -> dict[str, Any]:
    """Replay the tasks of a site, and print what is wrong."""
    tasks = read_site(name, site.base_url)
    problems = asyncio.run(replay_tasks(site, tasks))
    for task_id, found in problems.items():
        for problem in found:
            print(f"{name} {task_id}: {problem}")
    as_expected = sum(not found for found in problems.values())
    print(f"{name}: {as_expected} of {len(problems)} tasks replayed as they should", flush=True)
    return {
        "tasks": len(problems),
        "as_expected": as_expected,
        "kinds": dict(Counter(tasks.kinds.values())),
        "sha256": tasks.file.sha256,
    }


def oracle_site(name: str, site: TaskSite) -> dict[str, Any]:
    """Do the shortest clicks of the tasks of a site, and print what is wrong."""
    tasks = read_site(name, site.base_url)
    runs = asyncio.run(run_oracle(site, tasks))
    for task_id, run in runs.items():
        if not run.arrived:
            print(f"{name} {task_id}: {run.problem}")
    arrived = sum(run.arrived for run in runs.values())
    steps = {task_id: run.steps for task_id, run in runs.items() if run.arrived}
    print(f"{name}: {arrived} of {len(runs)} tasks arrived, in {sum(steps.values())} steps", flush=True)
    return {"tasks": len(runs), "as_expected": arrived, "steps": steps, "sha256": tasks.file.sha256}


def measure(name: str, scratch: Path, run: Callable[[str, TaskSite], dict[str, Any]]) -> dict[str, Any]:
    """Serve a site, and run something on it."""
    try:
        with serving_site(name, scratch) as site:
            return run(name, site)
    except real_sites.NotAvailable as error:
        print(f"{name}: not available: {error}", flush=True)
        return {"tasks": None, "as_expected": 0, "not_available": str(error)}


def serve_site(name: str, scratch: Path) -> None:
    """Serve a site until SIGINT or SIGTERM, and print how its tasks are done."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The session of a task is looked for beside the task file.
    file = Path(shutil.copy(FOLDER / f"{name}.json", scratch))
    with serving_site(name, scratch) as site:
        url = f"--placeholder __{name.upper()}__={site.base_url}"
        print(f"waygraph run --tasks {file} {url} --output RUN\nCtrl+C ends the server.", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tasks", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="serve the sites and replay the tasks")
    what.add_argument("--oracle", action="store_true", help="serve the sites and do the shortest clicks to the pages")
    what.add_argument("--serve", action="store_true", help="serve the one site for agents, until Ctrl+C")
    parser.add_argument("--site", choices=SITES, action="append", help="only this site; repeatable")
    parser.add_argument("--scratch", type=Path, help="folder for the sites, to keep them")
    parser.add_argument("--save", action="store_true", help="write tasks.json or tasks_oracle.json in bench/results/")
    options = parser.parse_args()
    chosen = [(split, site) for split, sites in SPLITS.items() for site in options.site or SITES if site in sites]
    if options.serve and (len(chosen) != 1 or options.scratch is None):
        parser.error("--serve takes one --site, and --scratch")
    if not options.check and not options.oracle and not options.serve:
        for split, site in chosen:
            for task in read_site(site, "http://127.0.0.1/").file.tasks:
                print(f"{split:5} {site:12} {task.task_id}  {task.intent}")
        return 0
    results: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory() as temporary:
        scratch = (options.scratch or Path(temporary)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        if options.serve:
            serve_site(chosen[0][1], scratch)
            return 0
        for split, site in chosen:
            run = oracle_site if options.oracle else check_site
            results[site] = {"split": split, **measure(site, scratch, run)}
    if options.save:
        name = "tasks_oracle.json" if options.oracle else "tasks.json"
        write_result(RESULTS / name, {**run_info(), "sites": results})
    return 0 if all(result["tasks"] == result["as_expected"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
