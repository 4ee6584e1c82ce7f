"""The exam: read-only tasks over sites of others, done by agents with maps and without, by a large model.

    python -m bench.exam serve --split dev --scratch FOLDER
    python -m bench.exam play --split dev --scratch FOLDER --arm webnavigator --model NAME --base-url URL
    python -m bench.exam play --split dev --scratch FOLDER --arm webnavigator --asked FOLDER
    python -m bench.exam table --split dev --scratch FOLDER [--save]

`serve` serves the sites of a split and maps them one after the other, until Ctrl+C. `play` lets one arm do the tasks,
and goes on where it was interrupted. `table` scores all arms and compares them. With `--asked`, requests to the model
are files, and whoever answers them writes files (`exchange.py`); with neither, calls are replayed, as long as the same
`serve` runs. Runs are kept in FOLDER/runs in the form of `waygraph run`, with a recording of all calls, so `waygraph
score` reads them.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.exam.exam_tasks import NEEDLE, RENAMED, ExamTask, exam_tasks
from bench.exam.maps import MAPS
from bench.exam.playing import ARMS, Exam, play
from bench.exam.table import Outcome, arm_row, paired
from bench.result_files import RESULTS, run_info, write_result
from bench.tasks.serving import serving_sites
from bench.tasks.site_tasks import SPLITS, read_tasks
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.models.endpoint import EndpointModel
from waygraph.agents.run_report.write import write_report
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.tasks.task import Task
from waygraph.core.settings import BrowserSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Store
from waygraph.pipeline.jobs import run_index

_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))
#: Longest wait for one reply in a file, in seconds.
_PATIENCE_S = 3_600.0


def serve(split: str, scratch: Path) -> None:
    """Serve and map the sites of a split until SIGINT or SIGTERM.

    Ports are new each time, and maps and recordings belong to ports.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    store = str(scratch / f"maps-{split}")
    with (
        serving_sites({site for task in exam_tasks(split) for site in task.sites}, scratch) as served,
        suppress(KeyboardInterrupt),
    ):
        state = {"urls": served.urls, "session": served.storage_state}
        (scratch / f"{split}.json").write_text(json.dumps(state), encoding="utf-8")
        for name in (name for name in MAPS if name in served.sites):
            site = served.sites[name]
            explore = {**asdict(MAPS[name]), "storage_state": site.storage_state}
            settings = Settings(store=store, browser=_LOOPBACK, explore=explore)
            report = run_index([site.start], settings=settings, on_event=lambda _: None)
            if report.interrupted:
                return
            said = f"exit code {report.exit_code}" if report.exit_code else "mapped"
            print(f"{name}: {said}, from {site.start}", flush=True)
            site.forget()
        print("All sites are mapped. Ctrl+C ends the servers.", flush=True)
        threading.Event().wait()


def read_exam(split: str, scratch: Path, only: list[str] | None) -> Exam:
    """Return the tasks of a split whose sites are served."""
    state = json.loads((scratch / f"{split}.json").read_text(encoding="utf-8"))
    store = str(scratch / f"maps-{split}")
    tasks: list[Task] = []
    hashes = []
    wanted = {(each.file, each.task_id) for each in exam_tasks(split)}
    for path in dict.fromkeys(each.file for each in exam_tasks(split)):
        file = read_tasks(path, state["urls"]).file
        hashes.append(file.sha256)
        tasks += [task for task in file.tasks if (path, task.task_id) in wanted and (not only or task.task_id in only)]
    # Where the site is entered in one task, the list of sites leads to in others.
    starts = {site_key(url): url for task in reversed(tasks) for url in task.start_urls}
    session = {"storage_state": state["session"] or ""}
    return Exam(
        name=f"exam_{split}",
        sha256=hashlib.sha256("".join(hashes).encode()).hexdigest(),
        tasks=tuple(
            task.model_copy(
                update={**session, "site_urls": {k: starts.get(site_key(u), u) for k, u in task.site_urls.items()}}
            )
            for task in tasks
        ),
        settings=Settings(store=store, browser=_LOOPBACK),
        mapped=frozenset(Store.open(store).sites()),
        sessions=Path("/"),
        scratch=scratch,
    )


def outcomes_of(folder: Path) -> dict[str, Outcome]:
    """Score a run, write its report, and return how its tasks ended."""
    run = RunFolder(folder).read()
    score = asyncio.run(score_run(run))
    write_report(folder, run, score)
    found = {}
    for each in score.scores:
        attempt = run.attempts.get(each.task_id)
        if attempt is None:
            continue
        used = attempt.answer.usage
        found[each.task_id] = Outcome(
            success=bool(each.success),
            steps=attempt.answer.steps,
            input_tokens=used.input_tokens if used else 0,
            output_tokens=used.output_tokens if used else 0,
            calls=used.calls if used else 0,
        )
    return found


def table(split: str, scratch: Path) -> dict[str, Any]:
    """Score all arms of a split, and compare each agent with its maps and without."""
    groups: dict[str, Callable[[ExamTask], bool]] = {
        "all": lambda _: True,
        "one site": lambda task: len(task.sites) == 1,
        "several sites": lambda task: len(task.sites) > 1,
        NEEDLE: lambda task: NEEDLE in task.traits,
        RENAMED: lambda task: RENAMED in task.traits,
    }
    tasks = {each.task_id: each for each in exam_tasks(split)}
    arms = {
        name: outcomes_of(scratch / "runs" / split / name)
        for name in ARMS
        if (scratch / "runs" / split / name).is_dir()
    }
    rows: dict[str, Any] = {}
    for group, belongs in groups.items():
        ids = {task_id for task_id, task in tasks.items() if belongs(task)}
        of_arm = {name: {key: each for key, each in found.items() if key in ids} for name, found in arms.items()}
        rows[group] = {name: arm_row(list(found.values())) for name, found in of_arm.items() if found}
        for name, found in of_arm.items():
            if (other := of_arm.get(f"{name}-no-map")) and found:
                rows[group][f"{name} with against without"] = paired(found, other)
    return {
        "groups": rows,
        "tasks": {name: {key: vars(each) for key, each in found.items()} for name, found in arms.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.exam", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("serve", "play", "table"))
    parser.add_argument("--split", choices=tuple(SPLITS), required=True)
    parser.add_argument("--scratch", type=Path, required=True, help="folder of sites, maps and runs")
    parser.add_argument("--arm", choices=tuple(ARMS), default="webnavigator")
    parser.add_argument("--asked", type=Path, help="folder in which requests wait for replies")
    parser.add_argument("--model", default="", help="name of the model")
    parser.add_argument("--base-url", default="", help="its OpenAI-compatible endpoint")
    parser.add_argument("--task", action="append", help="only this task; repeatable")
    parser.add_argument(
        "--at-once", type=int, help="tasks at the same time; by default 12 in one browser, or 6 in one each"
    )
    parser.add_argument("--max-steps", type=int, default=20)
    parser.add_argument("--save", action="store_true", help="write the table to bench/results/exam-SPLIT.json")
    options = parser.parse_args()
    scratch = options.scratch.absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    if options.what == "serve":
        serve(options.split, scratch)
        return 0
    if options.what == "table":
        document = table(options.split, scratch)
        print(json.dumps(document["groups"], indent=1))
        if options.save:
            write_result(RESULTS / f"exam-{options.split}.json", {**run_info(), **document})
        return 0
    runs = scratch / "runs" / options.split / options.arm
    endpoint = None
    if options.model and options.base_url:
        chosen = {"model": options.model, "base_url": options.base_url}
        endpoint = EndpointModel(Settings().agents.model.model_copy(update=chosen))

    def model_of(task_id: str) -> ChatModel | None:
        model: ChatModel | None = endpoint
        if options.asked is not None:
            from bench.exam.exchange import FolderModel

            label = f"{options.arm}.{task_id}"
            model = FolderModel(options.asked, options.model or "recorded", label, patience_s=_PATIENCE_S)
        return model

    exam = read_exam(options.split, scratch, options.task)
    arm = ARMS[options.arm]
    at_once = options.at_once or arm.at_once
    problems = asyncio.run(play(exam, arm, runs, model_of, at_once=at_once, max_steps=options.max_steps))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
