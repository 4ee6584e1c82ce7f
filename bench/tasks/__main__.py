"""Replay the benchmark's tasks: each right end must score 1, each wrong end 0, and the references must be on the sites.

    python -m bench.tasks --check [--site demo_shop] [--save]

The sites are the demo shop and, from package registries, those of `bench/real_sites.py`. Without `--check`, tasks are
listed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from bench import real_sites
from bench.result_files import RESULTS, run_info, write_result
from bench.tasks.replay import SPLITS, SiteTasks, check_task, read_site
from waygraph.core.settings import BrowserSettings
from waygraph.demo_site import DemoSite
from waygraph.pipeline.browser.process.launch import launch

SITES = [site for sites in SPLITS.values() for site in sites]
_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


@contextmanager
def serving_site(site: str, scratch: Path) -> Iterator[tuple[str, str | None]]:
    """Serve a site; yield the URL that its placeholder stands for, and the file of a logged-in session."""
    if site == "demo_shop":
        with DemoSite() as shop:
            yield shop.url, None
        return
    with getattr(real_sites, site)(scratch) as served:
        parts = urlsplit(served.start)
        state = served.storage_state
        yield f"{parts.scheme}://{parts.netloc}/", str(state) if state else None


def check_site(site: str, scratch: Path) -> dict[str, Any]:
    """Serve a site, replay its tasks, and print what is wrong."""
    try:
        with serving_site(site, scratch) as (base_url, storage_state):
            tasks = read_site(site, base_url)
            problems = asyncio.run(replay_tasks(base_url, storage_state, tasks))
    except real_sites.NotAvailable as error:
        print(f"{site}: not available: {error}")
        return {"tasks": None, "as_expected": 0, "not_available": str(error)}
    for task_id, found in problems.items():
        for problem in found:
            print(f"{site} {task_id}: {problem}")
    as_expected = sum(not found for found in problems.values())
    print(f"{site}: {as_expected} of {len(problems)} tasks replayed as they should")
    return {
        "tasks": len(problems),
        "as_expected": as_expected,
        "kinds": dict(Counter(tasks.kinds.values())),
        "sha256": tasks.file.sha256,
    }


async def replay_tasks(base_url: str, storage_state: str | None, tasks: SiteTasks) -> dict[str, list[str]]:
    """Return what is wrong, by task."""
    async with launch(_LOOPBACK) as browser:
        context = await browser.new_context(storage_state=storage_state)
        return {
            task.task_id: await check_task(context, base_url, task, tasks.replays[task.task_id])
            for task in tasks.file.tasks
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tasks", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="serve the sites and replay the tasks")
    parser.add_argument("--site", choices=SITES, action="append", help="only this site; repeatable")
    parser.add_argument("--scratch", type=Path, help="folder for the sites, to keep them")
    parser.add_argument("--save", action="store_true", help="write bench/results/tasks.json")
    options = parser.parse_args()
    chosen = [(split, site) for split, sites in SPLITS.items() for site in options.site or SITES if site in sites]
    if not options.check:
        for split, site in chosen:
            for task in read_site(site, "http://127.0.0.1/").file.tasks:
                print(f"{split:5} {site:12} {task.task_id}  {task.intent}")
        return 0
    results: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory() as temporary:
        scratch = options.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        for split, site in chosen:
            results[site] = {"split": split, **check_site(site, scratch)}
    if options.save:
        write_result(RESULTS / "tasks.json", {**run_info(), "sites": results})
    return 0 if all(result.get("tasks") == result.get("as_expected") for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
