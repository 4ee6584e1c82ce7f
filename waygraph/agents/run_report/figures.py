"""What the tasks of a run add up to: successes, steps, time, tokens and money, by groups of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from waygraph.agents.scoring.run_folder import StoredAttempt
from waygraph.agents.tasks.task import Task

if TYPE_CHECKING:
    from waygraph.agents.scoring.checks import TaskScore
    from waygraph.agents.scoring.run_folder import StoredRun
    from waygraph.agents.scoring.run_score import RunScore


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task of a run, with its score.

    Attributes
    ----------
    task_id
        Id of the task.
    score
        Its score.
    attempt
        What the agent left; None: the task has no result.
    problem
        Why it has none, as far as that is known.
    """

    task_id: str
    score: TaskScore
    attempt: StoredAttempt | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Numbers of a group of tasks. Means are over the tasks with a result.

    Attributes
    ----------
    name
        What the tasks have in common.
    tasks
        Number of tasks.
    successes
        Number of tasks with reward 1.
    undecided
        Number of tasks without a reward.
    done
        Number of tasks with a result.
    steps
        Actions of all tasks.
    seconds
        Time of all tasks.
    tokens
        Tokens of all model calls, those of questions and of answers.
    cost
        Price of all model calls; None: no prices are configured, or there were no calls.
    """

    name: str
    tasks: int
    successes: int
    undecided: int
    done: int
    steps: int
    seconds: float
    tokens: int
    cost: float | None


def task_results(run: StoredRun, score: RunScore) -> tuple[TaskResult, ...]:
    """Return the tasks of a run with their scores, in the order of the run.

    Parameters
    ----------
    run
        The run.
    score
        Its scores.

    Returns
    -------
    tuple of TaskResult
        The tasks.
    """
    return tuple(
        TaskResult(each.task_id, each, run.attempts.get(each.task_id), run.problems.get(each.task_id, ""))
        for each in score.scores
    )


def group_figures(name: str, results: Iterable[TaskResult]) -> GroupFigures:
    """Return the numbers of a group.

    Parameters
    ----------
    name
        Its name.
    results
        Its tasks.

    Returns
    -------
    GroupFigures
        The numbers.
    """
    results = list(results)
    answers = [result.attempt.answer for result in results if result.attempt is not None]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    prices = [usage.cost for usage in usages if usage.cost is not None]
    return GroupFigures(
        name=name,
        tasks=len(results),
        successes=sum(result.score.success is True for result in results),
        undecided=sum(result.score.reward is None for result in results),
        done=len(answers),
        steps=sum(answer.steps for answer in answers),
        seconds=sum(answer.seconds for answer in answers),
        tokens=sum(usage.input_tokens + usage.output_tokens for usage in usages),
        cost=sum(prices) if prices else None,
    )


def grouped(results: Iterable[TaskResult], key: Callable[[Task], str]) -> tuple[GroupFigures, ...]:
    """Return the numbers of the groups of tasks, the largest group first. Tasks without a result are in none.

    Parameters
    ----------
    results
        The tasks.
    key
        Gives the name of a task's group.

    Returns
    -------
    tuple of GroupFigures
        The groups.
    """
    groups: dict[str, list[TaskResult]] = {}
    for result in results:
        if result.attempt is not None:
            groups.setdefault(key(result.attempt.task), []).append(result)
    figures = [group_figures(name, members) for name, members in groups.items()]
    return tuple(sorted(figures, key=lambda group: (-group.tasks, group.name)))


def site_of(task: Task) -> str:
    """Return the sites of a task as one name: those that its file names, or the hosts of its start URLs."""
    return ", ".join(sorted(task.sites)) or ", ".join(dict.fromkeys(urlsplit(url).netloc for url in task.start_urls))


def evaluators_of(task: Task) -> str:
    """Return the evaluators of a task as one name."""
    if task.evaluation is None:
        return " + ".join(dict.fromkeys(task.other_scorers))
    return " + ".join(kind.value for kind in task.evaluation.eval_types)
