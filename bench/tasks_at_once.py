"""Benchmark of many tasks at once: whether a task is starved, and the memory that all of them take.

    python -m bench.tasks_at_once [--workers 20] [--rounds 3] [--save]

The greedy agent does find-a-page tasks of the bundled shop without a map, `--rounds` for each worker, in as many
browsers at once; before that with two workers, for comparison. Reported are the times of the first and the last result,
quantiles of the times of tasks, and the largest sum of proportional set sizes of all processes of the run. `--save`
writes bench/results/tasks_at_once.json.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from bench.result_files import RESULTS, processor, quantiles, run_info, write_result
from waygraph.agents.create import AgentName
from waygraph.agents.runner.attempt import AttemptOptions
from waygraph.agents.runner.task_run import TaskEnded, TaskLimits, run_tasks
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.agents.tasks.task_file import TaskFile
from waygraph.core.settings import BrowserSettings, Settings
from waygraph.demo_site import DemoSite

RESULT = RESULTS / "tasks_at_once.json"
_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))
_QUESTIONS = ("how returns work", "a warm wool throw", "sales by month", "opening hours", "change the password")
_SAMPLE_SECONDS = 2.0
MIB = 2**20


class MemoryPeak:
    """Samples the memory of this process and of all its descendants until it is closed."""

    def __init__(self) -> None:
        self.peak_mib = 0
        self.by_kind: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            kinds: Counter[str] = Counter()
            for process in (own := psutil.Process(), *own.children(recursive=True)):
                try:
                    kinds[process.name()] += process.memory_full_info().pss // MIB
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue  # it has ended since it was listed
            if kinds.total() > self.peak_mib:
                self.peak_mib = kinds.total()
                self.by_kind = dict(kinds.most_common(6))

    def close(self) -> None:
        """End the sampling."""
        self._ended.set()
        self._thread.join()


def measure(workers: int, rounds: int) -> dict[str, object]:
    """Do `workers * rounds` tasks and return what they took."""
    ended: list[float] = []
    with TemporaryDirectory() as scratch, DemoSite() as site:
        tasks = tuple(
            Task(
                task_id=str(number),
                benchmark=TaskBenchmark.WEBARENA,
                intent=_QUESTIONS[number % len(_QUESTIONS)],
                start_urls=(site.url,),
            )
            for number in range(workers * rounds)
        )
        options = AttemptOptions(
            output=Path(scratch) / "run",
            agent=AgentName.GREEDY,
            settings=Settings(browser=_LOOPBACK),
            maps="",
            api_key=None,
            mapped=frozenset(),
            sessions=Path("/"),
            max_steps=10,
            step_seconds=60.0,
        )
        memory, start = MemoryPeak(), time.perf_counter()

        def note(_: TaskEnded) -> None:
            ended.append(time.perf_counter() - start)

        problems = run_tasks(
            TaskFile("shop", "0" * 64, tasks, ()),
            tasks,
            options,
            TaskLimits(workers=workers, per_site=workers),
            on_ended=note,
        )
        memory.close()
        answers = [attempt.answer for attempt in RunFolder(options.output).read().attempts.values()]
    seconds = [answer.seconds for answer in answers]
    return {
        "workers": workers,
        "tasks": len(tasks),
        "without_result": problems,
        "first_result_seconds": round(min(ended), 1),
        "all_seconds": round(max(ended), 1),
        "task_seconds": dict(zip(("min", "p50", "p90", "max"), quantiles(seconds, (0, 0.5, 0.9, 1), 1), strict=True)),
        "seconds_per_step_p50": quantiles([a.seconds / max(a.steps, 1) for a in answers], (0.5,), 2)[0],
        "ends": dict(Counter(str(answer.ended) for answer in answers)),
        "peak_pss_mib": memory.peak_mib,
        "peak_pss_mib_by_process": memory.by_kind,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="write bench/results/tasks_at_once.json")
    options = parser.parse_args()
    document = {
        **run_info(),
        **processor(),
        "rows": [measure(workers, options.rounds) for workers in (2, options.workers)],
    }
    print(json.dumps(document["rows"], indent=1))
    if options.save:
        write_result(RESULT, document)


if __name__ == "__main__":
    main()
