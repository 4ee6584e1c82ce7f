"""Replay the benchmark's tasks: each right end must score 1, each wrong end 0, and the references must be on the sites.

    python -m bench.tasks --check [--site demo_shop] [--save]
    python -m bench.tasks --oracle [--site demo_shop] [--save]
    python -m bench.tasks --serve --site demo_shop --scratch FOLDER

`--oracle` does the shortest clicks of the find-a-page tasks, which other agents are compared with. `--serve` serves the
sites of a task file for `waygraph run`: the demo shop and, from package registries, those of `bench/real_sites.py`.
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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import real_sites
from bench.exam.exam_tasks import EXAM
from bench.result_files import RESULTS, run_info, write_result
from bench.tasks.oracle import OracleRun, follow_way
from bench.tasks.replay import TaskCheck
from bench.tasks.serving import TaskSites, serving_sites
from bench.tasks.site_tasks import ACROSS, FOLDER, SPLITS, SiteTasks, read_tasks, sites_of
from waygraph.agents.actions.session import SessionOptions
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.process.launch import launch

#: Task files by name, in the order of splits: those of one site, those over several sites, and the exam.
FILES = {
    split: {
        **{site: FOLDER / f"{site}.json" for site in sites},
        f"across_{split}": ACROSS[split],
        f"exam_{split}": EXAM[split],
    }
    for split, sites in SPLITS.items()
}
NAMES = [name for files in FILES.values() for name in files]
_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


async def replay_tasks(sites: TaskSites, tasks: SiteTasks) -> dict[str, list[str]]:
    """Replay tasks one after the other; return what is wrong, by task."""
    async with launch(_LOOPBACK) as browser:
        context = await browser.new_context(**sites.context_options())
        return {
            task.task_id: await TaskCheck(
                context, sites.urls, task, tasks.replays[task.task_id], sites.forget
            ).problems()
            for task in tasks.file.tasks
        }


async def run_oracle(sites: TaskSites, tasks: SiteTasks) -> dict[str, OracleRun]:
    """Do the shortest clicks of the find-a-page tasks of a file, each in a browser context of its own."""
    runs = {}
    async with launch(_LOOPBACK) as browser:
        for task in tasks.file.tasks:
            if task.task_id in tasks.ways:
                sites.forget()
                context = await browser.new_context(**sites.context_options())
                options = SessionOptions(browser=_LOOPBACK)
                runs[task.task_id] = await follow_way(context, task, tasks.ways[task.task_id], options)
                await context.close()
    return runs


def check_file(name: str, sites: TaskSites, tasks: SiteTasks) -> dict[str, Any]:
    """Replay the tasks of a file, and print what is wrong."""
    problems = asyncio.run(replay_tasks(sites, tasks))
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


def oracle_file(name: str, sites: TaskSites, tasks: SiteTasks) -> dict[str, Any]:
    """Do the shortest clicks of the tasks of a file, and print what is wrong."""
    runs = asyncio.run(run_oracle(sites, tasks))
    for task_id, run in runs.items():
        if not run.arrived:
            print(f"{name} {task_id}: {run.problem}")
    arrived = sum(run.arrived for run in runs.values())
    steps = {task_id: run.steps for task_id, run in runs.items() if run.arrived}
    print(f"{name}: {arrived} of {len(runs)} tasks arrived, in {sum(steps.values())} steps", flush=True)
    return {"tasks": len(runs), "as_expected": arrived, "steps": steps, "sha256": tasks.file.sha256}


def measure(
    name: str, path: Path, scratch: Path, run: Callable[[str, TaskSites, SiteTasks], dict[str, Any]]
) -> dict[str, Any]:
    """Serve the sites of a task file, and run something on them."""
    try:
        with serving_sites(sites_of(path), scratch) as sites:
            return run(name, sites, read_tasks(path, sites.urls))
    except real_sites.NotAvailable as error:
        print(f"{name}: not available: {error}", flush=True)
        return {"tasks": None, "as_expected": 0, "not_available": str(error)}


def serve_file(path: Path, scratch: Path) -> None:
    """Serve the sites of a task file until SIGINT or SIGTERM, and print how its tasks are done."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The session of a task is looked for beside the task file.
    file = Path(shutil.copy(path, scratch))
    with serving_sites(sites_of(path), scratch) as sites:
        urls = " ".join(f"--placeholder __{name.upper()}__={url}" for name, url in sites.urls.items())
        print(f"waygraph run --tasks {file} {urls} --output RUN\nCtrl+C ends the server.", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tasks", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="serve the sites and replay the tasks")
    what.add_argument("--oracle", action="store_true", help="serve the sites and do the shortest clicks to the pages")
    what.add_argument("--serve", action="store_true", help="serve the one site for agents, until Ctrl+C")
    parser.add_argument("--site", choices=NAMES, action="append", help="only this site, or file of tasks; repeatable")
    parser.add_argument("--scratch", type=Path, help="folder for the sites, to keep them")
    parser.add_argument("--save", action="store_true", help="write tasks.json or tasks_oracle.json in bench/results/")
    options = parser.parse_args()
    chosen = [
        (split, name, files[name]) for split, files in FILES.items() for name in options.site or NAMES if name in files
    ]
    if options.serve and (len(chosen) != 1 or options.scratch is None):
        parser.error("--serve takes one --site, and --scratch")
    if not options.check and not options.oracle and not options.serve:
        for split, name, path in chosen:
            for task in read_tasks(path, {}).file.tasks:
                print(f"{split:5} {name:12} {task.task_id}  {task.intent}")
        return 0
    results: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory() as temporary:
        scratch = (options.scratch or Path(temporary)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        if options.serve:
            serve_file(chosen[0][2], scratch)
            return 0
        for split, name, path in chosen:
            run = oracle_file if options.oracle else check_file
            results[name] = {"split": split, **measure(name, path, scratch, run)}
    if options.save:
        name = "tasks_oracle.json" if options.oracle else "tasks.json"
        write_result(RESULTS / name, {**run_info(), "sites": results})
    return 0 if all(result["tasks"] == result["as_expected"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
