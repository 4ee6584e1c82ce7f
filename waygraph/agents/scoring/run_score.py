"""Scores of a whole run, and what they add up to."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel, ConfigDict

from waygraph.agents.models.chat import ChatModel, add_usage
from waygraph.agents.scoring.checks import ScoringNeed, TaskCheck, TaskScore, combine_checks
from waygraph.agents.scoring.dialects import DialectName, ScoringDialect
from waygraph.agents.scoring.run_folder import StoredRun, StoredTaskFile
from waygraph.agents.scoring.score import score_task
from waygraph.core.schemas import UsageModel


class RunScore(BaseModel):
    """Scores of a run.

    Attributes
    ----------
    dialect
        The dialect.
    task_file
        The task file: its hash is a part of every result.
    tasks
        Number of tasks that the run was to do.
    scored
        Number of tasks with a reward.
    successes
        Number of tasks whose reward is 1.
    mean_reward
        Mean reward of the scored tasks; absent without any. With partial credit it is above the rate of success.
    needs
        Number of tasks without a reward, by what they lack.
    scores
        Scores by task, in the order of the run.
    usage
        What the judge took.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialect: DialectName
    task_file: StoredTaskFile
    tasks: int
    scored: int
    successes: int
    mean_reward: float | None
    needs: dict[ScoringNeed, int]
    scores: tuple[TaskScore, ...]
    usage: UsageModel | None = None

    def success_range(self) -> tuple[float, float]:
        """Return the least and the largest rate of success over all tasks, as those without a reward may turn out."""
        undecided = self.tasks - self.scored
        return self.successes / self.tasks, (self.successes + undecided) / self.tasks


async def score_run(run: StoredRun, dialect: ScoringDialect, judge_model: ChatModel | None = None) -> RunScore:
    """Score all tasks of a stored run.

    Parameters
    ----------
    run
        The run. A task that it has no files of lacks a run; it is counted, and not as a failure.
    dialect
        The dialect.
    judge_model
        What compares texts by their meaning; None: such checks are not made.

    Returns
    -------
    RunScore
        The scores.
    """
    scores = []
    for task_id in run.manifest.tasks:
        if (attempt := run.attempts.get(task_id)) is not None:
            scores.append(await score_task(attempt.task, attempt.state, dialect, judge_model))
        else:
            note = run.problems.get(task_id, "")
            missing = TaskCheck(evaluator=None, rule="run", subject="files", need=ScoringNeed.RUN, note=note)
            scores.append(combine_checks(task_id, dialect.name, [missing]))
    rewards = [score.reward for score in scores if score.reward is not None]
    usage: UsageModel | None = None
    for score in scores:
        if score.usage is not None:
            usage = score.usage if usage is None else add_usage(usage, score.usage)
    return RunScore(
        dialect=dialect.name,
        task_file=run.manifest.task_file,
        tasks=len(scores),
        scored=len(rewards),
        successes=sum(score.success is True for score in scores),
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        needs=dict(Counter(need for score in scores for need in score.needs)),
        scores=tuple(scores),
        usage=usage,
    )
