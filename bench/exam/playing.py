"""Letting agents do the exam's tasks, many at a time, since they mostly wait for the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from waygraph.agents.create import AgentName
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.runner.attempt import AttemptOptions, AttemptResult, TaskAttempts
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskRunManifest
from waygraph.agents.tasks.task import Task
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.sdk.facade import AsyncWaygraph

#: The agent that is not ours, see `bench.exam.mcp_clients`.
MCP = "mcp"
#: Does a task and stores the result.
Attempt = Callable[[Task], Awaitable[AttemptResult]]


@dataclass(frozen=True)
class Arm:
    """What is compared: an agent, ours (`AgentName`) or `MCP`, with maps or without."""

    agent: str
    has_maps: bool

    @property
    def name(self) -> str:
        """Name in results, such as `webnavigator-no-map`."""
        return self.agent if self.has_maps else f"{self.agent}-no-map"

    @property
    def at_once(self) -> int:
        """Number of tasks at the same time: in one browser, or each in a browser of its own."""
        return 6 if self.agent == MCP else 12


ARMS = {
    arm.name: arm
    for arm in (
        Arm(AgentName.WEBNAVIGATOR, has_maps=True),
        Arm(AgentName.WEBNAVIGATOR, has_maps=False),
        Arm(AgentName.OCCAM, has_maps=True),
        Arm(AgentName.OCCAM, has_maps=False),
        Arm(AgentName.SEARCH, has_maps=True),
        Arm(AgentName.MEMORY, has_maps=True),
        Arm(MCP, has_maps=True),
        Arm(MCP, has_maps=False),
    )
}


@dataclass(frozen=True)
class Exam:
    """Tasks with served and mapped sites.

    Attributes
    ----------
    name : name of the task file.
    sha256 : its hash.
    tasks : the tasks to do, with URLs in place of placeholders.
    settings : browser, store of the maps, encoder.
    mapped : keys of the sites that have maps.
    sessions : folder of session files.
    scratch : folder of sites, maps and runs.
    """

    name: str
    sha256: str
    tasks: tuple[Task, ...]
    settings: Settings
    mapped: frozenset[str]
    sessions: Path
    scratch: Path


async def play(
    exam: Exam,
    arm: Arm,
    folder: Path,
    model_of: Callable[[str], ChatModel | None],
    *,
    at_once: int,
    max_steps: int = 20,
    step_seconds: float = 600.0,
) -> list[str]:
    """Do all tasks that have no result in the folder; return why some have none.

    Parameters
    ----------
    exam
        The tasks.
    arm
        The agent.
    folder
        Folder of the run, in the form of `waygraph run`.
    model_of
        Returns the chat model that is asked about a task; None: its calls are replayed.
    at_once
        Number of tasks at the same time.
    max_steps
        Limit of a task's actions.
    step_seconds
        Limit of a task's time for each of its actions, in seconds; replies may take minutes. Agents of ours have it.

    Returns
    -------
    list of str
        Tasks without a result, with the reason.
    """
    run = RunFolder(folder)
    _write_manifest(run, exam, arm)
    room = asyncio.Semaphore(at_once)
    tasks = [
        each
        for each in exam.tasks
        if not arm.has_maps or {site_key(url) for url in each.site_urls.values()} <= exam.mapped
    ]
    problems = [f"{each.task_id}: a site is not mapped yet" for each in exam.tasks if each not in tasks]
    if arm.agent == MCP:
        from bench.exam.mcp_clients import client_attempts, install

        program = await asyncio.to_thread(install, exam.scratch)
        store = exam.settings.store if arm.has_maps else ""
        attempts = client_attempts(program, exam.settings, store, folder, model_of, max_steps=max_steps)
    else:
        attempts = _own_attempts(exam, arm, folder, model_of, max_steps=max_steps, step_seconds=step_seconds)
    async with attempts as attempt:

        async def do(task: Task) -> None:
            async with room:
                result = await attempt(task)
                if result.answer is None:
                    problems.append(f"{task.task_id}: {result.problem}")
                print(
                    f"{arm.name} {task.task_id}: {result.answer.ended if result.answer else result.problem}", flush=True
                )

        await asyncio.gather(*(do(task) for task in tasks if not run.has(task.task_id)))
    return problems


@asynccontextmanager
async def _own_attempts(
    exam: Exam,
    arm: Arm,
    folder: Path,
    model_of: Callable[[str], ChatModel | None],
    *,
    max_steps: int,
    step_seconds: float,
) -> AsyncIterator[Attempt]:
    """Start the browser of our agents; yield what does a task with one of them."""
    options = AttemptOptions(
        output=folder,
        agent=AgentName(arm.agent),
        settings=exam.settings,
        maps=exam.settings.store if arm.has_maps else "",
        api_key=None,
        mapped=exam.mapped if arm.has_maps else frozenset(),
        sessions=exam.sessions,
        max_steps=max_steps,
        step_seconds=step_seconds,
        cassettes=folder / "calls",
    )
    encoder = await asyncio.to_thread(create_encoder, exam.settings.encode)
    async with launch(exam.settings.browser) as browser:
        maps = AsyncWaygraph(options.maps) if options.maps else None

        async def attempt(task: Task) -> AttemptResult:
            attempts = TaskAttempts(options, encoder, maps, model_of(task.task_id))
            return await attempts.attempt(task, browser, ModelBudget(task.task_id))

        try:
            yield attempt
        finally:
            if maps is not None:
                await maps.close()


def _write_manifest(run: RunFolder, exam: Exam, arm: Arm) -> None:
    ids: Sequence[str] = [task.task_id for task in exam.tasks]
    if run.has_manifest():
        before = run.read_manifest()
        run.write_manifest(before.model_copy(update={"tasks": tuple(dict.fromkeys((*before.tasks, *ids)))}))
        return
    run.write_manifest(
        TaskRunManifest(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            task_file=StoredTaskFile(name=exam.name, sha256=exam.sha256),
            tasks=tuple(ids),
            labels={"agent": arm.agent, "map": "yes" if arm.has_maps else "no"},
        )
    )
