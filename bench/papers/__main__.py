"""A paper's table beside our runs, and the commands that make what is missing.

    python -m bench.papers TABLE [--run FOLDER ...] [--store STORE] [--tasks FILE] [--placeholder NAME=URL ...]
                                 [--dialect NAME]

Prints the rows of the paper (bench/papers/tables.json, with their source), a row for each run, which sites of the tasks
are mapped in the store, and the commands that are left to be run. Runs are scored as `waygraph score` does without a
judge: what needs one is undecided, and the rate of success a range.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from waygraph.agents.scoring.dialects import DialectName
from waygraph.agents.scoring.figures import GroupFigures
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.tasks.task import Task
from waygraph.agents.tasks.task_file import read_task_file
from waygraph.core.urls import site_key
from waygraph.index.store import Store

TABLES = Path(__file__).with_name("tables.json")


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, and how we make ours.

    Attributes
    ----------
    paper : paper and table.
    measure : what the numbers are.
    task_file : name of the task file, for `waygraph tasks fetch`.
    rows : the paper's rows: a name, and numbers by column.
    index : the command that maps the sites; empty: the agent has no map.
    run : the command that does the tasks.
    score : the command that scores them.
    settings : settings of the run; of a table of ablations, one for each further run.
    """

    paper: str
    measure: str
    task_file: str
    rows: list[dict[str, str | float]]
    index: str
    run: str
    score: str
    settings: list[str]


def read_tables() -> dict[str, PaperTable]:
    """Return the tables by name."""
    return TypeAdapter(dict[str, PaperTable]).validate_json(TABLES.read_bytes())


def run_figures(folder: Path, dialect: DialectName | None = None) -> list[GroupFigures]:
    """Return the numbers of a stored run: of all tasks, of those over several sites, and of those of each site."""
    score = asyncio.run(score_run(RunFolder(folder).read(), dialect))
    return [score.figures, *score.groups.get("site", ())]


def figures_line(figures: GroupFigures) -> str:
    """Return the numbers of a group as a row."""
    least, most = figures.successes, figures.successes + figures.undecided
    rate = f"{100 * least / figures.tasks:.1f}" + (f" to {100 * most / figures.tasks:.1f}" if most > least else "")
    done, tokens = max(1, figures.done), figures.input_tokens + figures.output_tokens
    return (
        f"  {figures.name:<24} {rate:>12}%  of {figures.tasks} tasks, {figures.done} done,"
        f" mean steps {figures.steps / done:.1f}, tokens {tokens / done:,.0f} a task"
    )


def mapped_lines(tasks: Sequence[Task], mapped: Iterable[str]) -> list[str]:
    """Return, for each site where tasks begin, whether it is mapped, and how many tasks have all start sites mapped."""
    known = set(mapped)
    hosts = {task.task_id: {site_key(url) for url in task.start_urls} for task in tasks}
    lines = [
        f"  {host:<32} {'mapped' if host in known else 'NOT mapped'}"
        for host in sorted({host for each in hosts.values() for host in each})
    ]
    return [*lines, f"  {sum(each <= known for each in hosts.values())} of {len(tasks)} tasks start on mapped sites"]


def missing_commands(table: PaperTable, *, tasks: str, store: str, placeholders: Sequence[str], runs: int) -> list[str]:
    """Return the commands that are left: of ablations, those that have no run yet."""
    values = {
        "TASKS": tasks,
        "STORE": store,
        "PLACEHOLDERS": " ".join(f"--placeholder {each}" for each in placeholders) or "--placeholder __SITE__=URL",
        "RUN": "runs/NAME",
    }

    def filled(command: str) -> str:
        return " ".join(values.get(word, word) for word in command.split())

    commands = []
    if not runs:
        commands.append(f"waygraph tasks fetch {table.task_file}")
        commands += [filled(table.index)] if table.index else []
    is_ablation = not table.rows
    settings = ["", *table.settings] if is_ablation else [" ".join(table.settings)]
    for number, each in enumerate(settings, start=1):
        if number > runs:
            done = filled(f"{table.run} PLACEHOLDERS").replace("runs/NAME", f"runs/{number}")
            commands += [f"{each} {done}".strip(), filled(table.score).replace("runs/NAME", f"runs/{number}")]
    return commands


def main() -> None:
    tables = read_tables()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=sorted(tables))
    parser.add_argument("--run", type=Path, action="append", default=[], help="folder of a stored run")
    parser.add_argument("--store", default="", help="store with the maps")
    parser.add_argument("--tasks", type=Path, help="the task file")
    parser.add_argument("--placeholder", action="append", default=[], help="NAME=URL, as for `waygraph run`")
    parser.add_argument("--dialect", type=DialectName, choices=list(DialectName), help="default: that of the run")
    options = parser.parse_args()
    table = tables[options.table]
    print(f"{table.paper}: {table.measure}")
    for row in table.rows:
        print(f"  {row['name']}: " + ", ".join(f"{name} {value}" for name, value in row.items() if name != "name"))
    for folder in options.run:
        print(f"\nOurs, {folder}:")
        for figures in run_figures(folder, options.dialect):
            print(figures_line(figures))
    if options.tasks is not None and options.store:
        urls = dict(each.split("=", 1) for each in options.placeholder)
        found = read_task_file(options.tasks, urls).tasks
        print(f"\nMaps in {options.store}:", *mapped_lines(found, Store.open(options.store).sites()), sep="\n")
    tasks, store = str(options.tasks or f"{table.task_file}.json"), options.store or "maps"
    commands = missing_commands(
        table, tasks=tasks, store=store, placeholders=options.placeholder, runs=len(options.run)
    )
    print("\nWhat is left:", *(f"  {each}" for each in commands), sep="\n")


if __name__ == "__main__":
    main()
