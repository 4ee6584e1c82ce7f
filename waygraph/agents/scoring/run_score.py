"""Scores of a whole run, and what they add up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from waygraph.agents.models.chat import ChatModel, add_usage
from waygraph.agents.scoring.checks import ScoringNeed, TaskCheck, TaskScore, combine_checks
from waygraph.agents.scoring.dialects import DIALECTS, DialectName, dialect_of
from waygraph.agents.scoring.figures import GroupFigures, all_groups, group_figures
from waygraph.agents.scoring.run_folder import StoredAttempt, StoredRun, StoredTaskFile
from waygraph.agents.scoring.score import score_task
from waygraph.agents.scoring.web_judge import JudgedTrajectory
from waygraph.core.schemas import UsageModel

#: Quantile of the normal distribution for an interval of 95%.
_Z = 1.959964


class RunScore(BaseModel):
    """Scores of a run.

    Attributes
    ----------
    dialect
        The dialect of all tasks; absent: each task has that of its benchmark, which its score names.
    task_file
        The task file: its hash is a part of every result.
    tasks
        Number of tasks that the run was to do.
    scored
        Number of tasks with a reward.
    successes
        Number of tasks whose reward is 1.
    interval
        95% interval of the rate of success (Wilson 1927), as if the tasks were a sample; absent if any lacks a reward.
    mean_reward
        Mean reward of the scored tasks; absent without any. With partial credit it is above the rate of success.
    needs
        Number of tasks without a reward, by what they lack.
    scorers
        Number of tasks by what gave them their rewards: dialects and their versions, see `TaskScore.scorer`.
    figures
        Steps, time, tokens and money of all tasks.
    groups
        The same by site, evaluator and labels of tasks, see `all_groups`.
    scores
        Scores by task, in the order of the run.
    usage
        What the judge took.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialect: DialectName | None
    task_file: StoredTaskFile
    tasks: int
    scored: int
    successes: int
    interval: tuple[float, float] | None
    mean_reward: float | None
    needs: dict[ScoringNeed, int]
    scorers: dict[str, int]
    figures: GroupFigures
    groups: Mapping[str, tuple[GroupFigures, ...]]
    scores: tuple[TaskScore, ...]
    usage: UsageModel | None = None

    def success_range(self) -> tuple[float, float]:
        """Return the least and the largest rate of success over all tasks, as those without a reward may turn out."""
        undecided = self.tasks - self.scored
        return self.successes / self.tasks, (self.successes + undecided) / self.tasks


async def score_run(
    run: StoredRun,
    dialect: DialectName | None = None,
    judge_model: ChatModel | None = None,
    trajectory: Callable[[StoredAttempt], JudgedTrajectory] | None = None,
) -> RunScore:
    """Score all tasks of a stored run.

    Parameters
    ----------
    run
        The run. A task that it has no files of lacks a run; it is counted, and not as a failure.
    dialect
        The dialect; None: the one that the run names, else that of each task's benchmark.
    judge_model
        What compares texts by their meaning and looks at screenshots; None: such checks are not made.
    trajectory
        Reads what an agent saw and did, for tasks that are judged by it; None: such tasks lack a trace.

    Returns
    -------
    RunScore
        The scores.
    """
    chosen = dialect or run.manifest.dialect
    scores = []
    for task_id in run.manifest.tasks:
        if (attempt := run.attempts.get(task_id)) is not None:
            spoken = DIALECTS[chosen or dialect_of(attempt.task.benchmark)]
            seen = trajectory(attempt) if trajectory is not None else None
            scores.append(await score_task(attempt.task, attempt.state, spoken, judge_model, seen))
        else:
            note = run.problems.get(task_id, "")
            missing = TaskCheck(evaluator=None, rule="run", subject="files", need=ScoringNeed.RUN, note=note)
            scores.append(combine_checks(task_id, "", [missing]))
    return summarise_scores(chosen, run.manifest.task_file, scores, run.attempts)


def summarise_scores(
    dialect: DialectName | None,
    task_file: StoredTaskFile,
    scores: Sequence[TaskScore],
    attempts: Mapping[str, StoredAttempt],
) -> RunScore:
    """Return what scores of at least one task add up to.

    Parameters
    ----------
    dialect
        The dialect of all; None: that of each task's benchmark.
    task_file
        The task file.
    scores
        The scores.
    attempts
        What agents left, by id.

    Returns
    -------
    RunScore
        The sum.
    """
    scored = [(score, attempts.get(score.task_id)) for score in scores]
    rewards = [score.reward for score in scores if score.reward is not None]
    successes = sum(score.success is True for score in scores)
    usage: UsageModel | None = None
    for score in scores:
        if score.usage is not None:
            usage = score.usage if usage is None else add_usage(usage, score.usage)
    return RunScore(
        dialect=dialect,
        task_file=task_file,
        tasks=len(scores),
        scored=len(rewards),
        successes=successes,
        interval=wilson_interval(successes, len(scores)) if len(rewards) == len(scores) else None,
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        needs=dict(Counter(need for score in scores for need in score.needs)),
        scorers=dict(Counter(score.scorer for score in scores if score.scorer).most_common()),
        figures=group_figures("all", scored),
        groups=all_groups(scored),
        scores=tuple(scores),
        usage=usage,
    )


def wilson_interval(successes: int, tasks: int) -> tuple[float, float]:
    """Return the 95% interval of a rate (Wilson 1927), which fits also rates near 0 and 1.

    >>> [round(end, 3) for end in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    rate, share = successes / tasks, _Z**2 / tasks
    middle, half = rate + share / 2, _Z * math.sqrt(rate * (1 - rate) / tasks + share / (4 * tasks))
    return max(0.0, (middle - half) / (1 + share)), min(1.0, (middle + half) / (1 + share))
