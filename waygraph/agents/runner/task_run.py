"""A run of tasks: which are left, which worker does which, and what is tried again."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from waygraph.agents.models.create import run_budget
from waygraph.agents.runner.attempt import AttemptResult
from waygraph.agents.runner.hooks import HookFailed, HookOptions, TaskHooks
from waygraph.agents.runner.retries import AttemptFailure, may_try_again
from waygraph.agents.runner.run_labels import run_labels
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.runner.waits import POSTMILL_WAIT_S, SiteWaits
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.cluster import ray_cluster
from waygraph.core.errors import InUse, InvalidInput
from waygraph.core.locks import FileInUse, exclusive_lock
from waygraph.core.urls import site_key
from waygraph.pipeline.jobs.actors.protocol import Actor, ActorDied, ActorUnreachable
from waygraph.pipeline.jobs.actors.ray_actors import RayActors
from waygraph.pipeline.jobs.call_errors import to_waygraph_error

if TYPE_CHECKING:
    from waygraph.agents.runner.attempt import AttemptOptions
    from waygraph.agents.scoring.dialects import DialectName
    from waygraph.agents.tasks.task import Task
    from waygraph.agents.tasks.task_file import TaskFile
    from waygraph.core.schemas import UsageModel

log = logging.getLogger(__name__)
T = TypeVar("T")

_LOCK_FILE = "run.lock"
#: Memory of a private Ray for objects, in bytes: tasks and answers are small.
_OBJECT_STORE_BYTES = 128 * 2**20
_WORKER = "waygraph.agents.runner.worker:TaskWorker"
#: CPUs that a worker reserves; its browser uses more. Less than one, so that a machine of one CPU has a worker.
_WORKER_CPUS = 0.5


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How many tasks are done at the same time.

    Attributes
    ----------
    workers
        Browsers, with one task each.
    per_site
        Tasks on one host: a task over several sites counts at each.
    wait_after_s
        Wait after a task that its file says needs one (`SiteWaits`), in seconds.
    """

    workers: int = 2
    per_site: int = 2
    wait_after_s: float = POSTMILL_WAIT_S


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """A task of a run has ended.

    Attributes
    ----------
    task_id
        Id of the task.
    answer
        What the agent left; None: the task has no result, and the next run with this folder tries it again.
    problem
        Why it has none; empty otherwise.
    ended
        Number of tasks that have ended, this one and those of earlier invocations included.
    tasks
        Number of tasks of the run.
    """

    task_id: str
    answer: TaskAnswer | None
    problem: str
    ended: int
    tasks: int


def run_tasks(
    file: TaskFile,
    tasks: Sequence[Task],
    options: AttemptOptions,
    limits: TaskLimits,
    *,
    hooks: HookOptions | None = None,
    dialect: DialectName | None = None,
    on_ended: Callable[[TaskEnded], None] = lambda _: None,
) -> dict[str, str]:
    """Do tasks in workers on the connected Ray, or a private one, and store what the agent left.

    Tasks with a result in the folder are not done again, so a run that was interrupted or killed is resumed by the same
    call. A result is complete or absent.

    Parameters
    ----------
    file
        The file that the tasks are from.
    tasks
        The tasks to do.
    options
        Options of the attempts, the folder of the run included.
    limits
        How many tasks are done at the same time.
    hooks
        What is done before each task; None: nothing.
    dialect
        Dialect in which the run is to be scored; None: each task in that of its benchmark.
    on_ended
        Called when a task has ended.

    Returns
    -------
    dict
        Why tasks have no result, by id: nothing that the agent did, and worth another try.

    Raises
    ------
    InvalidInput
        If there are no tasks, if all have placeholders without a URL, or if the folder holds another run. Single ones
        have no result, and a trace that says so.
    InUse
        If another process writes the folder.
    KeyboardInterrupt
        If SIGINT or SIGTERM was received. What has ended is stored.
    WaygraphError
        If no worker can start.
    """
    if not tasks:
        raise InvalidInput("There are no tasks to do.", hint="Check the file and the filters: waygraph tasks list")
    if all(task.placeholders for task in tasks):
        missing = sorted({name for task in tasks for name in task.placeholders})
        raise InvalidInput(_missing(missing), hint=f"--placeholder {missing[0]}=http://...")
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive_lock(options.output / _LOCK_FILE):
            _write_manifest(file, tasks, options, dialect)
            run = _TaskRun(tasks, options, limits, TaskHooks(hooks or HookOptions()), on_ended)
            if not run.has_work:
                return run.without_result
            with ray_cluster(object_store_bytes=_OBJECT_STORE_BYTES, num_cpus=private_cpus(limits.workers)):
                return asyncio.run(_until_signalled(run.work()))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except ExceptionGroup as errors:
        raise to_waygraph_error(errors, "Doing the tasks") from errors
    except FileInUse as error:
        raise InUse(f"Another process writes '{options.output}'.", hint="Wait for its end.") from error


def private_cpus(workers: int, cpus: int | None = None) -> int:
    """Return the CPUs that a private Ray may reserve, so that all workers start at once.

    Agents mostly wait for models and pages, so workers may be more than the cores. On a shared cluster, workers beyond
    its CPUs wait until others end.

    Parameters
    ----------
    workers
        Number of workers.
    cpus
        Cores that this process may use; None: those of this machine.

    Returns
    -------
    int
        Number of CPUs, at least the cores.

    >>> private_cpus(20, cpus=2), private_cpus(3, cpus=2), private_cpus(1, cpus=8)
    (10, 2, 8)
    """
    return max(cpus or len(os.sched_getaffinity(0)), math.ceil(workers * _WORKER_CPUS))


def _write_manifest(
    file: TaskFile, tasks: Sequence[Task], options: AttemptOptions, dialect: DialectName | None
) -> None:
    """Write `run.json`, or extend the tasks of the one that is there if it is of the same run."""
    folder = RunFolder(options.output)
    manifest = TaskRunManifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        task_file=StoredTaskFile(name=file.name, sha256=file.sha256),
        dialect=dialect,
        tasks=tuple(task.task_id for task in tasks),
        labels=run_labels(options),
    )
    if folder.has_manifest():
        before = folder.read_manifest()
        same = {"created": before.created, "tasks": before.tasks}
        if manifest.model_copy(update=same) != before:
            raise InvalidInput(
                f"'{options.output}' holds a run of another task file or with other options.",
                hint="Choose another folder, or repeat the options that are recorded in its run.json.",
            )
        every = tuple(dict.fromkeys((*before.tasks, *manifest.tasks)))
        manifest = before.model_copy(update={"tasks": every})
    folder.write_manifest(manifest)


class _TaskRun:
    """The tasks of one invocation that have no result yet.

    Parameters
    ----------
    tasks
        All tasks of the invocation.
    options
        Options of the attempts.
    limits
        How many tasks are done at the same time.
    hooks
        What is done before each task.
    on_ended
        Called when a task has ended.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        options: AttemptOptions,
        limits: TaskLimits,
        hooks: TaskHooks,
        on_ended: Callable[[TaskEnded], None],
    ) -> None:
        folder = RunFolder(options.output)
        self.without_result: dict[str, str] = {}
        """Why tasks have no result, by id."""
        waiting = [task for task in tasks if not folder.has(task.task_id)]
        self._waiting = deque(task for task in waiting if not task.placeholders)
        self._budget = run_budget(options.settings.agents)
        for attempt in folder.read().attempts.values():
            self._charge(attempt.answer.usage)
        self._tasks = len(tasks)
        self._ended = self._tasks - len(waiting)
        self._options = options
        self._limits = limits
        self._hooks = hooks
        self._on_ended = on_ended
        self._busy: Counter[str] = Counter()
        """Number of tasks that are being done, by site."""
        self._exclusive: set[str] = set()
        """Sites that were reset for a task that is being done."""
        self._waits = SiteWaits(limits.wait_after_s)
        self._freed = asyncio.Condition()
        self._failures: dict[str, Counter[AttemptFailure]] = {}
        for task in waiting:
            if task.placeholders:
                self._give_up(task, _missing(task.placeholders))

    @property
    def has_work(self) -> bool:
        """Whether any task has no result yet."""
        return bool(self._waiting)

    async def work(self) -> dict[str, str]:
        """Do all tasks; return why some have no result, by id."""
        workers = min(self._limits.workers, len(self._waiting))
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work_with_one())
        return self.without_result

    async def _work_with_one(self) -> None:
        """Do tasks in one worker, which is replaced when its process ends, until none is left."""
        worker: Actor | None = None
        try:
            while (task := await self._next()) is not None:
                if worker is None:
                    worker = RayActors().start(_WORKER, self._options, cpus=_WORKER_CPUS, concurrency=1)
                try:
                    await self._hooks.prepare(task)
                    result: AttemptResult = await worker.call("attempt", task, self._budget.left())
                except HookFailed as error:
                    result = self._hook_failed(task, error)
                except (ActorDied, ActorUnreachable) as error:
                    worker = None
                    result = AttemptResult(None, AttemptFailure.WORKER_LOST, "The process of its browser ended.")
                    log.info("runner/worker_lost %s: %s", task.task_id, error)
                await self._finish(task, result)
        finally:
            if worker is not None:
                worker.kill()

    def _hook_failed(self, task: Task, error: HookFailed) -> AttemptResult:
        """Return the result of a task that did not begin, and leave a trace that says so."""
        result = AttemptResult(None, AttemptFailure.HOOK_FAILED, str(error))
        self._write_end(task, AttemptFailure.HOOK_FAILED, result.problem)
        return result

    def _write_end(self, task: Task, failure: AttemptFailure, problem: str) -> None:
        trace = TraceWriter(RunFolder(self._options.output).task_folder(task.task_id))
        trace.write("end", failure=failure, problem=problem)

    def _give_up(self, task: Task, problem: str) -> None:
        """End without a result a task that cannot begin with these options, and leave a trace that says so."""
        self._write_end(task, AttemptFailure.START_FAILED, problem)
        self.without_result[task.task_id] = problem
        self._on_ended(TaskEnded(task.task_id, None, problem, self._ended, self._tasks))

    async def _next(self) -> Task | None:
        """Return the next task whose site has room, once there is one; None if no task or no budget is left."""
        async with self._freed:
            while self._waiting:
                if self._budget.is_spent:
                    self._give_up_waiting()
                    return None
                for task in self._waiting:
                    if self._has_room(task):
                        self._waiting.remove(task)
                        self._busy.update(_hosts_of(task))
                        self._exclusive |= self._hooks.reset_sites(task)
                        self._waits.begin(task)
                        return task
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._waits.left()):
                        await self._freed.wait()
            return None

    def _give_up_waiting(self) -> None:
        """End without a result what waits: the budget of the run is spent."""
        waiting, self._waiting = tuple(self._waiting), deque()
        for task in waiting:
            problem = "The budget of the run is spent."
            self.without_result[task.task_id] = problem
            self._on_ended(TaskEnded(task.task_id, None, problem, self._ended, self._tasks))
        self._freed.notify_all()

    def _charge(self, usage: UsageModel | None) -> None:
        if usage is not None:
            self._budget.charge(usage)

    def _has_room(self, task: Task) -> bool:
        """Return whether a task may begin; none begins on a site that another one was promised the reset state of."""
        reset = self._hooks.reset_sites(task)
        is_free = self._exclusive.isdisjoint(reset) and self._waits.allow(task, reset)
        return is_free and all(self._busy[host] < self._limits.per_site for host in _hosts_of(task))

    async def _finish(self, task: Task, result: AttemptResult) -> None:
        """Free the site, and report the task, or add it to those that wait if it is tried again."""
        async with self._freed:
            self._busy.subtract(_hosts_of(task))
            self._exclusive -= self._hooks.reset_sites(task)
            self._waits.end(task)
            self._charge(result.usage)
            self._freed.notify_all()
            if result.failure is not None:
                failures = self._failures.setdefault(task.task_id, Counter())
                failures[result.failure] += 1
                if may_try_again(failures):
                    self._waiting.append(task)
                    return
                self.without_result[task.task_id] = result.problem
            self._ended += result.answer is not None
        self._on_ended(TaskEnded(task.task_id, result.answer, result.problem, self._ended, self._tasks))


async def _until_signalled(work: Coroutine[None, None, T]) -> T:
    """Await `work`, which SIGINT and SIGTERM cancel; Ray's own handler of SIGTERM ends the process in the middle."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


def _hosts_of(task: Task) -> set[str]:
    """Return the hosts that a task works on."""
    return {site_key(url) for url in (*task.start_urls, *task.site_urls.values())}


def _missing(placeholders: Sequence[str]) -> str:
    return f"These placeholders have no URL: {', '.join(placeholders)}."
