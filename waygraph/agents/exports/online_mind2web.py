"""Runs in the format of Online-Mind2Web, version 2: `result.json`, beside the screenshots in `trajectory/`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic import JsonValue

from waygraph.agents.scoring.web_judge import JudgedTrajectory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waygraph.agents.runner.trace_reading import TaskTrace
    from waygraph.agents.scoring.run_folder import StoredAttempt, TaskAnswer
    from waygraph.agents.tasks.task import Task

SCHEMA_VERSION = "online-mind2web-v2"
TRAJECTORY = "trajectory"
#: Statuses of actions that were done as the agent wanted them.
_DONE = frozenset({"done", "kept"})
_STOP = "stop"


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """An action, and the window that it was decided on.

    Attributes
    ----------
    action
        The action as text, with what became of it unless it was done.
    thought
        Why, in the model's words.
    source
        Name of the screenshot in the trace; empty: there is none.
    """

    action: str
    thought: str
    source: str

    def image(self, number: int) -> str:
        """Return the path of the image beside `result.json`; empty: there is none."""
        return f"{TRAJECTORY}/{number:04}.png" if self.source else ""


def trajectory(answer: TaskAnswer, trace: TaskTrace) -> tuple[TrajectoryStep, ...]:
    """Return the steps of a trace, and the end as a step.

    The judge of version 2 looks at the screenshots and leaves out the last action, which is the answer. So a trace
    without such a step gets one; otherwise the last click would be left out, and the page that it led to not be shown.

    Parameters
    ----------
    answer
        What the agent left.
    trace
        The trace.

    Returns
    -------
    tuple of TrajectoryStep
        The steps.
    """
    steps = [
        TrajectoryStep(
            step.action if step.status in _DONE else f"{step.action} -> {step.status}: {step.message}",
            step.thinking,
            step.screenshot,
        )
        for step in trace.steps
    ]
    if not steps or not steps[-1].action.startswith(_STOP):
        steps.append(TrajectoryStep(f"{_STOP} [{answer.answer}]", "", trace.last_screenshot))
    return tuple(steps)


def result_document(task: Task, answer: TaskAnswer, steps: Sequence[TrajectoryStep]) -> dict[str, JsonValue]:
    """Return the file `result.json` of a task.

    Parameters
    ----------
    task
        The task.
    answer
        What the agent left.
    steps
        Its trajectory.

    Returns
    -------
    dict
        The document.
    """
    history: list[JsonValue] = [
        {"action": step.action, "thought": step.thought, "screenshot": step.image(number)}
        for number, step in enumerate(steps)
    ]
    return {
        "task_id": task.task_id,
        "task": task.intent,
        "schema_version": SCHEMA_VERSION,
        "action_history": history,
        "agent_final_answer": answer.answer,
    }


def judged_trajectory(attempt: StoredAttempt, trace: TaskTrace) -> JudgedTrajectory:
    """Return what WebJudge looks at.

    Parameters
    ----------
    attempt
        The task with what the agent left.
    trace
        Its trace.

    Returns
    -------
    JudgedTrajectory
        All actions but the last one, which is the answer, and the windows.
    """
    steps = trajectory(attempt.answer, trace)
    # Actions that change nothing leave the same window.
    names = [name for name, _ in groupby([*(step.source for step in steps), trace.last_screenshot])]
    files = [file for name in names if (file := trace.screenshot(name)) is not None]
    return JudgedTrajectory(tuple(step.action for step in steps[:-1]), tuple(files), attempt.answer.answer)
