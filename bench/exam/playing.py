"""Letting agents do the exam's tasks: in one browser, many at a time, since they mostly wait for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from waygraph.agents.create import AgentName
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.runner.attempt import AttemptOptions, TaskAttempts
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskRunManifest
from waygraph.agents.tasks.task import Task
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.sdk.facade import AsyncWaygraph


@dataclass(frozen=True)
class Arm:
    """What is compared: an agent, with maps or without."""

    agent: AgentName
    has_maps: bool

    @property
    def name(self) -> str:
        """Name in results, such as `webnavigator-no-map`."""
        return self.agent.value if self.has_maps else f"{self.agent.value}-no-map"


ARMS = {
    arm.name: arm
    for arm in (
        Arm(AgentName.WEBNAVIGATOR, has_maps=True),
        Arm(AgentName.WEBNAVIGATOR, has_maps=False),
        Arm(AgentName.OCCAM, has_maps=True),
        Arm(AgentName.OCCAM, has_maps=False),
        Arm(AgentName.SEARCH, has_maps=True),
        Arm(AgentName.MEMORY, has_maps=True),
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
    """

    name: str
    sha256: str
    tasks: tuple[Task, ...]
    settings: Settings
    mapped: frozenset[str]
    sessions: Path


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
        Limit of a task's time for each of its actions, in seconds; replies may take minutes.

    Returns
    -------
    list of str
        Tasks without a result, with the reason.
    """
    options = AttemptOptions(
        output=folder,
        agent=arm.agent,
        settings=exam.settings,
        maps=exam.settings.store if arm.has_maps else "",
        api_key=None,
        mapped=exam.mapped if arm.has_maps else frozenset(),
        sessions=exam.sessions,
        max_steps=max_steps,
        step_seconds=step_seconds,
        cassettes=folder / "calls",
    )
    run = RunFolder(folder)
    _write_manifest(run, exam, arm)
    encoder = await asyncio.to_thread(create_encoder, exam.settings.encode)
    room = asyncio.Semaphore(at_once)
    tasks = [
        each
        for each in exam.tasks
        if not arm.has_maps or {site_key(url) for url in each.site_urls.values()} <= exam.mapped
    ]
    problems = [f"{each.task_id}: a site is not mapped yet" for each in exam.tasks if each not in tasks]

    async with launch(exam.settings.browser) as browser:
        maps = AsyncWaygraph(options.maps) if options.maps else None

        async def attempt(task: Task) -> None:
            async with room:
                attempts = TaskAttempts(options, encoder, maps, model_of(task.task_id))
                result = await attempts.attempt(task, browser, ModelBudget(task.task_id))
                if result.answer is None:
                    problems.append(f"{task.task_id}: {result.problem}")
                print(
                    f"{arm.name} {task.task_id}: {result.answer.ended if result.answer else result.problem}", flush=True
                )

        try:
            await asyncio.gather(*(attempt(task) for task in tasks if not run.has(task.task_id)))
        finally:
            if maps is not None:
                await maps.close()
    return problems


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
            labels={"agent": arm.agent.value, "map": "yes" if arm.has_maps else "no"},
        )
    )
