"""What the tasks of a run add up to: successes, steps, time, tokens and money, by groups of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from waygraph.agents.scoring.checks import TaskScore
from waygraph.agents.scoring.run_folder import StoredAttempt
from waygraph.agents.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

#: Name of the group of all tasks over several sites, as the papers' tables have it.
MULTI_SITE = "multi-site"
#: Labels of tasks that make groups, where files state them.
GROUPING_LABELS = ("type_main", "level", "required_obs")


class GroupFigures(BaseModel):
    """Numbers of a group of tasks.

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
        Number of tasks with a result; means are over these.
    steps
        Actions of all tasks.
    seconds
        Time of all tasks.
    input_tokens
        Tokens of all questions to models.
    output_tokens
        Tokens of all answers of models.
    cost
        Price of all model calls; absent: no prices are configured, or there were no calls.
    mean_steps
        Actions per task; absent, like the other means, if no task has a result.
    mean_seconds
        Time per task.
    mean_input_tokens
        Tokens of questions per task.
    mean_output_tokens
        Tokens of answers per task.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    tasks: int
    successes: int
    undecided: int
    done: int
    steps: int
    seconds: float
    input_tokens: int
    output_tokens: int
    cost: float | None
    mean_steps: float | None
    mean_seconds: float | None
    mean_input_tokens: float | None
    mean_output_tokens: float | None


#: A score of a task, with what the agent left; None: the task has no result.
ScoredTask = tuple[TaskScore, StoredAttempt | None]


def group_figures(name: str, scored: Sequence[ScoredTask]) -> GroupFigures:
    """Return the numbers of a group.

    Parameters
    ----------
    name
        Its name.
    scored
        Its tasks.

    Returns
    -------
    GroupFigures
        The numbers.
    """
    answers = [attempt.answer for _, attempt in scored if attempt is not None]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    prices = [usage.cost for usage in usages if usage.cost is not None]
    sums = {
        "steps": sum(answer.steps for answer in answers),
        "seconds": sum(answer.seconds for answer in answers),
        "input_tokens": sum(usage.input_tokens for usage in usages),
        "output_tokens": sum(usage.output_tokens for usage in usages),
    }
    return GroupFigures(
        name=name,
        tasks=len(scored),
        successes=sum(score.success is True for score, _ in scored),
        undecided=sum(score.reward is None for score, _ in scored),
        done=len(answers),
        cost=sum(prices) if prices else None,
        **sums,
        **{f"mean_{kind}": round(total / len(answers), 3) if answers else None for kind, total in sums.items()},
    )


def all_groups(scored: Iterable[ScoredTask]) -> Mapping[str, tuple[GroupFigures, ...]]:
    """Return the numbers of groups of tasks, the largest group first. Tasks without a result are in none.

    Parameters
    ----------
    scored
        The tasks.

    Returns
    -------
    Mapping
        The groups by what makes them: `site`, `evaluator`, and labels that tasks have, such as `type_main`.
    """
    known = [(score, attempt) for score, attempt in scored if attempt is not None]
    kinds: dict[str, Callable[[Task], str]] = {"site": group_site_of, "evaluator": evaluators_of}
    for label in GROUPING_LABELS:
        kinds[label] = lambda task, label=label: task.labels.get(label, "")  # type: ignore[misc]
    groups: dict[str, tuple[GroupFigures, ...]] = {}
    for kind, key in kinds.items():
        members: dict[str, list[ScoredTask]] = {}
        for score, attempt in known:
            if name := key(attempt.task):
                members.setdefault(name, []).append((score, attempt))
        figures = [group_figures(name, each) for name, each in members.items()]
        if figures:
            groups[kind] = tuple(sorted(figures, key=lambda group: (-group.tasks, group.name)))
    return groups


def group_site_of(task: Task) -> str:
    """Return the site of a task, or the name of the group of those with several."""
    return MULTI_SITE if len(task.sites) > 1 else site_of(task)


def site_of(task: Task) -> str:
    """Return the sites of a task as one name: those that its file names, or the hosts of its start URLs."""
    return ", ".join(sorted(task.sites)) or ", ".join(dict.fromkeys(urlsplit(url).netloc for url in task.start_urls))


def evaluators_of(task: Task) -> str:
    """Return the evaluators of a task as one name."""
    if task.evaluation is None:
        return " + ".join(dict.fromkeys(task.other_scorers))
    return " + ".join(kind.value for kind in task.evaluation.eval_types)
