"""Benchmark of what a map brings to an agent: find-a-page tasks with the map and without it, paired.

    python -m bench.agents [--split dev|test] [--site NAME] [--states 100] [--limit 40] [--max-steps 20] [--save]

Each site is served and mapped. Its tasks are the questions of `bench/retrieval/questions/` whose targets are addresses
alone. The greedy agent, which has no model, begins each on the start page, once with the map and once without. A task
succeeds if the address of the page where the agent stopped is one of the targets, query and route included, so a page
that shows the same under another address is a failure in both. Questions whose page is not in the map are asked as
well: such a map sends the agent to a wrong page. `--save` replaces the rows of these sites in
bench/results/agents.json.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.result_files import RESULTS, processor, run_info, write_result
from bench.retrieval.maps import SITES, Site
from bench.retrieval.queries import Query, Target, read_queries
from waygraph.agents.create import AgentName
from waygraph.agents.runner.attempt import AttemptOptions
from waygraph.agents.runner.task_run import TaskLimits, run_tasks
from waygraph.agents.runner.trace import TRACE_FILE
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.agents.tasks.task_file import TaskFile
from waygraph.cluster import ray_cluster
from waygraph.core.settings import BrowserSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Store
from waygraph.pipeline.jobs import run_index

RESULT = RESULTS / "agents.json"
_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))
_RESAMPLES = 2_000


@dataclass(frozen=True)
class TaskOutcome:
    """How a task ended in one of the two runs.

    Attributes
    ----------
    success : whether the agent stopped on the right page.
    steps : number of its actions; `navigate` is one.
    pages : number of other addresses that it saw.
    seconds : time it took.
    """

    success: bool
    steps: int
    pages: int
    seconds: float


@dataclass(frozen=True)
class TaskPair:
    """A task, and both outcomes. `mapped`: whether the map has a state at a target's address."""

    ask: str
    mapped: bool
    with_map: TaskOutcome
    without: TaskOutcome


def questions_of(site: str) -> list[Query]:
    """Return the questions of a site whose targets are addresses alone."""
    return [
        query
        for query in read_queries(site)
        if query.at
        and all("*" not in text and not (t := Target.parse(text)).shows and not t.hides for text in query.at)
    ]


def measure_site(site: Site, scratch: Path, *, states: int, limit: int, max_steps: int) -> list[TaskPair]:
    """Serve and map a site, and do its tasks twice."""
    chosen = questions_of(site.name)
    chosen = random.Random(7).sample(chosen, limit) if len(chosen) > limit else chosen
    with site.get(scratch) as served:
        session = str(served.storage_state.absolute()) if served.storage_state else ""
        settings = Settings(
            store=str(scratch / f"maps-{site.name}"),
            browser=_LOOPBACK,
            explore={
                "depth": site.depth,
                "max_states": states,
                "robots": site.robots,
                "storage_state": session or None,
            },
        )
        run_index([served.start], settings=settings, on_event=lambda _: None)
        graph = Store.open(settings.store).read(site_key(served.start)).graph
        tasks = {
            str(number): Task(
                task_id=str(number),
                benchmark=TaskBenchmark.WEBARENA,
                intent=query.ask,
                start_urls=(served.start,),
                storage_state=session,
            )
            for number, query in enumerate(chosen)
        }
        outcomes = {}
        for maps in ("", settings.store):
            options = AttemptOptions(
                output=scratch / f"run-{site.name}-{'with' if maps else 'without'}",
                agent=AgentName.GREEDY,
                settings=settings,
                maps=maps,
                api_key=None,
                mapped=frozenset({site_key(served.start)}),
                sessions=Path("/"),
                max_steps=max_steps,
                step_seconds=6.0,
            )
            file = TaskFile(site.name, "0" * 64, tuple(tasks.values()), ())
            # One at a time: two would slow each other down, and share what a server keeps of an account.
            problems = run_tasks(file, file.tasks, options, TaskLimits(workers=1))
            if problems:
                raise SystemExit(f"{site.name}: {problems}")
            outcomes[bool(maps)] = {
                key: outcome_of(options.output, key, query) for key, query in zip(tasks, chosen, strict=True)
            }
    urls = [node.url for node in graph.nodes.values()]
    return [
        TaskPair(
            query.ask,
            any(Target.parse(text).is_at(url) for text in query.at for url in urls),
            outcomes[True][key],
            outcomes[False][key],
        )
        for key, query in zip(tasks, chosen, strict=True)
    ]


def outcome_of(run: Path, task_id: str, query: Query) -> TaskOutcome:
    """Read how a task ended."""
    folder = RunFolder(run)
    answer = folder.read().attempts[task_id].answer
    lines = (folder.task_folder(task_id) / TRACE_FILE).read_text(encoding="utf-8").splitlines()
    steps = [row for row in map(json.loads, lines) if row["kind"] == "step"]
    urls = [row["url"] for row in steps] + [answer.url]
    changes = sum(before != after for before, after in pairwise(urls))
    success = any(Target.parse(text).is_at(answer.url) for text in query.at)
    return TaskOutcome(success, answer.steps, changes, answer.seconds)


def interval(pairs: list[TaskPair], value: Any) -> list[float]:
    """Return the middle 95% of a statistic over tasks that are drawn again with replacement."""
    chance = random.Random(1)
    values = sorted(value(chance.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLES))
    return [round(values[int(share * (_RESAMPLES - 1))], 3) for share in (0.025, 0.975)]


def difference(pairs: list[TaskPair]) -> float:
    """Return the rate of success with the map minus that without."""
    return sum(pair.with_map.success - pair.without.success for pair in pairs) / len(pairs)


def summary(pairs: list[TaskPair]) -> dict[str, Any]:
    """Return what the pairs add up to."""

    def one(outcomes: list[TaskOutcome]) -> dict[str, Any]:
        return {
            "successes": sum(each.success for each in outcomes),
            "mean_steps": round(statistics.mean(each.steps for each in outcomes), 2),
            "mean_pages": round(statistics.mean(each.pages for each in outcomes), 2),
            "median_seconds": round(statistics.median(each.seconds for each in outcomes), 2),
        }

    return {
        "tasks": len(pairs),
        "mapped": sum(pair.mapped for pair in pairs),
        "with_map": one([pair.with_map for pair in pairs]),
        "without": one([pair.without for pair in pairs]),
        "only_with_map": sum(pair.with_map.success and not pair.without.success for pair in pairs),
        "only_without": sum(pair.without.success and not pair.with_map.success for pair in pairs),
        "difference": round(difference(pairs), 3),
        "difference_95": interval(pairs, difference),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    parser.add_argument("--site", choices=sorted(SITES), action="append", help="these sites alone")
    parser.add_argument("--states", type=int, default=100, help="limit of each map")
    parser.add_argument("--limit", type=int, default=40, help="tasks per site")
    parser.add_argument("--max-steps", type=int, default=20)
    parser.add_argument("--scratch", type=Path, help="folder for the sites, to keep them")
    parser.add_argument("--save", action="store_true", help="write bench/results/agents.json")
    options = parser.parse_args()
    names = options.site or [site.name for site in SITES.values() if site.split == options.split]
    every: list[TaskPair] = []
    rows: dict[str, Any] = {}
    with TemporaryDirectory() as temporary, ray_cluster(object_store_bytes=256 * 2**20):
        scratch = (options.scratch or Path(temporary)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not questions_of(name):
                print(f"{name}: no question with an address alone")
                continue
            pairs = measure_site(
                SITES[name], scratch, states=options.states, limit=options.limit, max_steps=options.max_steps
            )
            every += pairs
            rows[name] = {**run_info(), **processor(), "split": SITES[name].split, "states": options.states}
            rows[name] |= {"max_steps": options.max_steps, **summary(pairs), "pairs": [asdict(pair) for pair in pairs]}
            print(name, json.dumps(summary(pairs)), flush=True)
    print("all", json.dumps(summary(every)))
    if options.save:
        before = json.loads(RESULT.read_text(encoding="utf-8"))["sites"] if RESULT.exists() else {}
        write_result(RESULT, {"sites": {**before, **rows}})


if __name__ == "__main__":
    main()
