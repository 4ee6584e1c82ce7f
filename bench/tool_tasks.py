"""Benchmark of tasks that are one call of a tool: GET forms and tools that only read, called from the start page.

    python -m bench.tool_tasks --store FOLDER [--states 40] [--sites NAME ...] [--save]

Tasks are in `bench/retrieval/questions/tool_tasks.yaml`. The maps are those of `bench.tool_questions`, made by
`python -m bench.retrieval.maps --store FOLDER --states 40`. Each site is started again. For each task and each way a
page in a fresh context loads the start page of the site, and the tool is called once by `use_tool`:

- given: the tool that the task names is called with the arguments of the task;
- found: a search for tools is asked the text of the task, and the first hit is called with these arguments. If its
  schema does not accept them, the task is not done.

A task is done if the live page is the one that the task describes, observed anew without the map; of a tool that
answers, if the answer is the expected one. Expectations were written by hand from what the applications answer.

Actions are those that happen in the browser: each step of the walk to the tool (a URL that is loaded, or a click; a
step through a menu is one), and the call, which fills and submits the form. Filling is not counted by field. For an
agent the call is one action if it knows the tool, and two if it searches first. `--save` replaces the rows of these
sites in bench/results/tool-tasks.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from playwright.async_api import Browser, Page

from bench.real_sites import Served
from bench.result_files import RESULTS, run_info, with_sites_before, write_result
from bench.retrieval.embeddings import identity, remembering_encoder
from bench.retrieval.maps import SITES, open_map, path_of
from bench.retrieval.queries import FOLDER, Target
from bench.site_walks import agents_page, plain
from bench.tool_questions import publish_encoded
from waygraph.core.errors import WaygraphError
from waygraph.core.schemas import Filter, ToolModel
from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.index.graph import Observation
from waygraph.index.store import MapVersion
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.sdk.local import StoreMap
from waygraph.sdk.use_tool import use_tool

TASKS = FOLDER / "tool_tasks.yaml"
RESULT = RESULTS / "tool-tasks.json"
Way = Literal["given", "found"]
WAYS: tuple[Way, ...] = ("given", "found")


@dataclass(frozen=True)
class Task:
    """A task that one call of a tool does.

    Attributes
    ----------
    site
        Where it is done.
    ask
        What is asked, in plain words.
    tool
        Name of the tool; `NAME at PATH` is the one whose form is submitted to a path, where several have the name.
    arguments
        Its inputs.
    shows
        The page in the end, in the form of `bench.retrieval.queries`; empty if the tool answers.
    answer
        The answer; None if the tool arrives at a page.
    """

    site: str
    ask: str
    tool: str
    arguments: Mapping[str, Any]
    shows: str = ""
    answer: object = None

    def is_named(self, tool: ToolModel) -> bool:
        """Tell whether a tool of the map is the one that the task names."""
        return self.tool in {tool.name, tool_name(tool)}

    def is_done(self, seen: Observation, answer: object) -> bool:
        """Tell whether the page in the end, or the answer if no page is expected, is the right one."""
        return Target.parse(self.shows).fits(seen) if self.shows else answer == self.answer


@dataclass(frozen=True)
class Done:
    """How a task ended: the tool that was called, the actions in the browser, and why it is not done, if so."""

    ask: str
    way: Way
    tool: str
    is_named_tool: bool
    done: bool
    actions: int
    why: str = ""


def read_tasks() -> list[Task]:
    """Return all tasks; an entry that has other fields raises TypeError."""
    entries = yaml.safe_load(TASKS.read_text(encoding="utf-8"))
    return [Task(site=site, **entry) for site, of_site in entries.items() for entry in of_site]


async def chosen_tool(source: StoreMap, site: str, task: Task, way: Way) -> ToolModel | None:
    """Return the tool that a task names, or the first one that a search for its text finds."""
    if way == "found":
        answer = await asyncio.to_thread(source.search, site, task.ask, 1, Filter(tools_only=True))
        return answer.hits[0].tool if answer.hits else None
    named = await asyncio.to_thread(source.tools, site, tool=task.tool.partition(" at ")[0])
    return next(filter(task.is_named, named.tools), None)


async def shown(page: Page) -> Observation:
    """Return what a page shows."""
    settings = BrowserSettings()
    view = PageView(page, SnapshotOptions.from_settings(settings, ExploreSettings()), settings, owned=False)
    try:
        snapshot = await view.observe()
    finally:
        view.detach()
    return Observation("", snapshot.url, snapshot.title, tuple(snapshot.segments))


@dataclass(frozen=True)
class Caller:
    """An agent's browser beside a site that runs, and the site's map; `start` is the start page when it was mapped."""

    browser: Browser
    source: StoreMap
    served: Served
    site: str
    start: str

    async def do(self, task: Task, way: Way) -> Done:
        """Do a task in a page of its own, from the start page of the site."""
        tool = await chosen_tool(self.source, self.site, task, way)
        if tool is None:
            return Done(task.ask, way, "", is_named_tool=False, done=False, actions=0, why="no such tool in the map")
        name, is_named, actions, why = tool_name(tool), task.is_named(tool), 0, ""
        self.served.forget()
        page = await agents_page(self.browser, self.served.storage_state)
        try:
            await page.goto(self.start)
            result = await use_tool(page, self.source, self.site, tool.id, task.arguments)
            actions = len(result.steps) + 1
            seen = await shown(result.page)
            done = task.is_done(seen, result.answer)
            if not done:
                why = f"{result.outcome}: {seen.url} {result.answer or ''} {result.problem}".rstrip()
        except WaygraphError as error:
            done, why = False, f"{type(error).__name__}: {error.message}"
        finally:
            await page.context.close()
        return Done(task.ask, way, name, is_named, done, actions, plain(why, self.start))


def tool_name(tool: ToolModel) -> str:
    """Return what a task calls a tool."""
    return f"{tool.name} at {path_of(tool.target)}" if tool.target else tool.name


async def do_all(folder: str, version: MapVersion, served: Served, tasks: Sequence[Task]) -> list[Done]:
    """Do tasks of a site in both ways. Its URLs have the port at which it was mapped; it is found there."""
    start, site = version.manifest.start_url, version.manifest.site
    ports = [urlsplit(url).port for url in (start, served.start)]
    rule = f"MAP 127.0.0.1:{ports[0]} 127.0.0.1:{ports[1]}, MAP * ~NOTFOUND"
    found = []
    with StoreMap(folder) as source:
        async with launch(BrowserSettings(extra_args=(f"--host-resolver-rules={rule}",))) as browser:
            caller = Caller(browser, source, served, site, start)
            for task in tasks:
                for way in WAYS:
                    done = await caller.do(task, way)
                    found.append(done)
                    mark = "done" if done.done else "-"
                    print(f"{mark:5}{way:6}{done.actions:2} {task.ask} -> {done.tool} {done.why}", flush=True)
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the share of tasks done, and the actions of those, by the way in which the tool was chosen."""
    found: dict[str, Any] = {}
    for way in WAYS:
        of_way = [row for row in rows if row["way"] == way]
        actions = [row["actions"] for row in of_way if row["done"]]
        found[way] = {
            "tasks": len(of_way),
            "done": round(statistics.fmean(row["done"] for row in of_way), 3),
            "the named tool": sum(row["is_named_tool"] for row in of_way),
            "median actions": statistics.median(actions) if actions else None,
            "actions": dict(sorted(Counter(map(str, actions)).items())),
        }
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = read_tasks()
    names = list(dict.fromkeys(task.site for task in tasks))
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--states", type=int, default=40, help="take the maps of at most this many states")
    parser.add_argument("--sites", nargs="+", default=names, choices=names)
    parser.add_argument("--save", action="store_true", help="replace the rows of these sites in the file of results")
    options = parser.parse_args()

    folder = options.store.resolve()
    remembering = remembering_encoder("text", folder)
    sites = {}
    for name in options.sites:
        version = open_map(name, folder, options.states)
        with publish_encoded(version, remembering.text) as store, SITES[name].get(folder / "sites") as served:
            remembering.save()
            before = served.contents()
            of_site = [task for task in tasks if task.site == name]
            rows = asyncio.run(do_all(store, version, served, of_site))
            changed = served.contents() != before if before else None  # None: the site cannot tell
        about = {**identity(remembering.text), **run_info(), "limit": options.states}
        sites[name] = {"site changed": changed, **about, "tasks": [vars(row) for row in rows]}
    known = with_sites_before(RESULT, sites, list(SITES)) if options.save else sites
    total = summary([row for site in known.values() for row in site["tasks"]])
    print(json.dumps(total, indent=1))
    if options.save:
        write_result(RESULT, {**total, "sites": known})


if __name__ == "__main__":
    main()
