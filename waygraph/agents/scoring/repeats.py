"""Repeated runs: each task several times, and how much the results differ.

    RUN/repeats/1, RUN/repeats/2, ...    a stored run each

Agents with a model, and sites that change, give another result each time. One rate of success says little then.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.scoring.run_score import RunScore
from waygraph.core.errors import InvalidInput

_REPEATS = "repeats"


class TaskRepeats(BaseModel):
    """How often a task succeeded.

    Attributes
    ----------
    task_id
        Id of the task.
    successes
        Number of repeats in which its reward is 1.
    scored
        Number of repeats in which it has a reward.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_id: str
    successes: int
    scored: int


class RepeatedScore(BaseModel):
    """Scores of a repeated run.

    Attributes
    ----------
    repeats
        The scores of each repeat.
    success_rates
        Rate of success of each repeat: tasks with reward 1, of all tasks.
    mean_success
        Mean of these rates.
    spread
        Their standard deviation (of a sample); absent for one repeat.
    lowest
        The lowest rate.
    highest
        The highest rate.
    tasks
        How often each task succeeded, in the order of the runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    repeats: tuple[RunScore, ...]
    success_rates: tuple[float, ...]
    mean_success: float
    spread: float | None
    lowest: float
    highest: float
    tasks: tuple[TaskRepeats, ...]

    @property
    def undecided(self) -> int:
        """Number of results without a reward, in all repeats."""
        return sum(score.tasks - score.scored for score in self.repeats)


def summarise_repeats(scores: Sequence[RunScore]) -> RepeatedScore:
    """Return what the scores of at least one repeat add up to.

    Parameters
    ----------
    scores
        The scores of each repeat.

    Returns
    -------
    RepeatedScore
        Mean, spread, and successes by task.
    """
    rates = tuple(score.successes / score.tasks for score in scores)
    successes: Counter[str] = Counter()
    scored: Counter[str] = Counter()
    for score in scores:
        for each in score.scores:
            successes[each.task_id] += each.success is True
            scored[each.task_id] += each.reward is not None
    return RepeatedScore(
        repeats=tuple(scores),
        success_rates=rates,
        mean_success=statistics.mean(rates),
        spread=statistics.stdev(rates) if len(rates) > 1 else None,
        lowest=min(rates),
        highest=max(rates),
        tasks=tuple(TaskRepeats(task_id=id_, successes=successes[id_], scored=scored[id_]) for id_ in scored),
    )


def repeat_folders(run: Path) -> tuple[Path, ...]:
    """Return the folders of the repeats of a run in their order; none if it is not a repeated one."""
    names = [path.name for path in (run / _REPEATS).iterdir()] if (run / _REPEATS).is_dir() else []
    folders = [_folder(run, number) for number in sorted(int(name) for name in names if name.isdecimal())]
    return tuple(folder for folder in folders if RunFolder(folder).has_manifest())


def plan_repeats(run: Path, count: int) -> tuple[Path, ...]:
    """Return the folders that a command with `--repeat` writes: the run itself if every task is done once.

    Parameters
    ----------
    run
        Folder of the run.
    count
        How often each task is done. A repeated run can be continued with a larger number.

    Returns
    -------
    tuple of Path
        The folders.

    Raises
    ------
    InvalidInput
        If the folder holds a run of the other kind, or more repeats.
    """
    done = len(repeat_folders(run))
    if count == 1 and not done:
        return (run,)
    if RunFolder(run).has_manifest():
        raise InvalidInput(f"'{run}' holds a run without repeats.", hint="Choose another folder.")
    if count < done:
        raise InvalidInput(f"'{run}' holds {done} repeats.", hint=f"--repeat {done} continues it.")
    return tuple(_folder(run, number) for number in range(1, count + 1))


def _folder(run: Path, number: int) -> Path:
    return run / _REPEATS / str(number)
