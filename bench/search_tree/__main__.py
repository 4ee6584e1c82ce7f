"""Benchmark of the tree search: find-a-page tasks with lookahead over a map and without a map, and returns to states.

    python -m bench.search_tree --work FOLDER [--site NAME] [--states 100] [--seconds 1800] [--tasks 20]
                                [--max-steps 10] [--returns 50] [--per-tree 25] [--fresh 10] [--save]

Each site is served and mapped. Its tasks are the questions of `bench/retrieval/questions/` whose targets are addresses
alone, each begun on the start page by four agents without a language model, one after the other: the tree search with
lookahead and hits of the map, the tree search without a map, and the greedy agent with and without the map. A task
succeeds if the address of the page where the agent stopped is one of the targets. The place of the target among the
hits of the map's search is noted: it tells which failures are those of the search of the map.

For the returns, a search that values states at random builds a tree of visited states, 40 actions long. Then states are
drawn from those that a search would return to, and the session returns to each twice, from wherever it is, in the
context that the tree grew in, as a search does: over the map or a URL, and over URLs alone. A return has arrived if the
page then shows the recorded state. States from before an action that changed data are not drawn, as a search never
returns to them; they are counted. After `--per-tree` returns another tree is grown. The first `--fresh` returns of each
site are also made in a new context, without what the search left in cookies and local storage.

Every row is written to FOLDER at once. The same command goes on where it was interrupted; a site of which something is
left is mapped again then.
`--save` writes bench/results/search-tree.json from all rows of the folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter

from bench.agents import questions_of
from bench.real_sites import Served
from bench.result_files import RESULTS, processor, run_info, write_result
from bench.retrieval.queries import Query
from bench.search_tree.returns import ReturnRow, TreeRow, measure_returns
from bench.search_tree.site import BENCH_SITES, OpenSite, opened
from bench.search_tree.summary import return_summary, task_summary
from bench.search_tree.tasks import TaskRow, do_task
from waygraph.core.settings import Settings
from waygraph.pipeline.encode.registry import create_encoder

RESULT = RESULTS / "search-tree.json"
TASKS, RETURNS, TREES = TypeAdapter(TaskRow), TypeAdapter(ReturnRow), TypeAdapter(TreeRow)


class Rows:
    """The rows of a site, in a file with one JSON object a line.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.written: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def of(self, kind: str) -> list[Any]:
        """Return the rows of a kind, as JSON."""
        return [each[kind] for each in self.written if kind in each]

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row."""
        self.written.append(dict(row))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def chosen_questions(name: str, count: int) -> list[Query]:
    """Return the questions about a site that are asked."""
    found = questions_of(name) if name != "fixtures" else []
    return random.Random(7).sample(found, count) if len(found) > count else found


def is_done(name: str, rows: Rows, options: argparse.Namespace) -> bool:
    """Whether all tasks and returns of a site are in its rows, so that it need not be mapped."""
    asked = {row["ask"] for row in rows.of("task")}
    return len(rows.of("return")) >= options.returns and all(
        each.ask in asked for each in chosen_questions(name, options.tasks)
    )


async def measure(site: OpenSite, name: str, rows: Rows, work: Path, options: argparse.Namespace) -> None:
    """Do the tasks and returns of a site that are not done yet."""
    parts = {"tasks": len(rows.of("task")), "returns": len(rows.of("return"))}
    setup = {**run_info(), **processor(), "states": site.states, "max_steps": options.max_steps, "done_before": parts}
    rows.add({"setup": setup})
    done = {row["ask"] for row in rows.of("task")}
    trees = work / f"{name}-trees"
    trees.mkdir(exist_ok=True)
    for number, query in enumerate(chosen_questions(name, options.tasks)):
        if query.ask in done:
            continue
        task = await do_task(site, query, number, max_steps=options.max_steps, trees=trees)
        rows.add({"task": TASKS.dump_python(task, mode="json")})
        marks = " ".join(f"{'+' if each.success else '-'}{each.steps}" for each in task.by_agent.values())
        print(f"{name}: {marks} {query.ask}", flush=True)
    measured = len(rows.of("return"))
    async for row in measure_returns(
        site, trees, done=measured, count=options.returns, per_tree=options.per_tree, fresh=options.fresh
    ):
        if isinstance(row, TreeRow):
            rows.add({"tree": TREES.dump_python(row, mode="json")})
            print(f"{name}: {row}", flush=True)
            continue
        rows.add({"return": RETURNS.dump_python(row, mode="json")})
        arms = (row.with_map, row.urls_alone)
        print(f"{name}: node {row.node}", *((each.arrived, each.tried, each.seconds) for each in arms), flush=True)


def parsed(every: Sequence[Rows]) -> dict[str, Any]:
    """Return the numbers of rows: of the tasks, and of the returns."""
    tasks = [TASKS.validate_python(row) for rows in every for row in rows.of("task")]
    returns = [[RETURNS.validate_python(row) for row in rows.of("return")] for rows in every]
    # An interrupted process may have grown a tree without its returns; the next one grows it again.
    latest = [row for rows in every for row in {row["seed"]: row for row in rows.of("tree")}.values()]
    trees = [TREES.validate_python(row) for row in latest]
    return {"tasks": task_summary(tasks), "returns": return_summary(returns, trees)}


def split_of(name: str) -> str:
    """Return which questions the site belongs to: `dev`, `test`, or none."""
    return BENCH_SITES[name].split if name != "fixtures" else "fixtures"


def document(work: Path) -> dict[str, Any]:
    """Return the numbers of each site with rows in a folder, of each split, and of all sites together."""
    found = {name: Rows(work / f"{name}.jsonl") for name in BENCH_SITES if (work / f"{name}.jsonl").exists()}
    splits = {name: split_of(name) for name in found}
    sites = {
        name: {
            "setups": rows.of("setup"),  # one for each time that the site was mapped
            "split": splits[name],
            **parsed([rows]),
            "task_rows": rows.of("task"),
            "tree_rows": rows.of("tree"),
            "return_rows": rows.of("return"),
        }
        for name, rows in found.items()
    }
    by_split = {
        split: parsed([rows for name, rows in found.items() if splits[name] == split])["tasks"]
        for split in ("dev", "test")
    }
    return {"tasks_by_split": by_split, "returns": parsed(list(found.values()))["returns"], "sites": sites}


async def run_site(name: str, served: Served, maps: Path, rows: Rows, options: argparse.Namespace) -> None:
    """Map and measure a site."""
    encoder = create_encoder(Settings().encode)
    async with opened(BENCH_SITES[name], served, maps, encoder, states=options.states, seconds=options.seconds) as site:
        await measure(site, name, rows, options.work, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of rows and trees, from which a run goes on")
    parser.add_argument("--scratch", type=Path, help="folder where sites are installed (default: in --work)")
    parser.add_argument("--site", choices=sorted(BENCH_SITES), action="append", default=[], help="measure these sites")
    parser.add_argument("--states", type=int, default=100, help="limit of each map")
    parser.add_argument("--seconds", type=float, default=1_800, help="limit of the time that each map takes")
    parser.add_argument("--tasks", type=int, default=20, help="tasks per site")
    parser.add_argument("--max-steps", type=int, default=10)
    parser.add_argument("--returns", type=int, default=50, help="returns per site")
    parser.add_argument("--per-tree", type=int, default=25, help="returns after which another tree is grown")
    parser.add_argument("--fresh", type=int, default=10, help="returns per site that are also made in a new context")
    parser.add_argument("--save", action="store_true", help="write bench/results/search-tree.json")
    options = parser.parse_args()
    scratch = (options.scratch or options.work / "sites").absolute()
    for folder in (options.work, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    for name in options.site:
        rows = Rows(options.work / f"{name}.jsonl")
        if is_done(name, rows, options):
            continue
        with BENCH_SITES[name].get(scratch) as served, TemporaryDirectory() as maps:
            asyncio.run(run_site(name, served, Path(maps), rows, options))
        print(name, json.dumps(parsed([rows]), indent=1), flush=True)
    if options.save:
        write_result(RESULT, document(options.work))


if __name__ == "__main__":
    main()
