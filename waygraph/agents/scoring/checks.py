"""Results of scoring: each check with its evidence, and the reward of a task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from waygraph.agents.tasks.task import EvaluatorKind
from waygraph.core.schemas import UsageModel
from waygraph.core.text import shortened

#: Longest text that a check keeps as evidence, in characters.
MAX_EVIDENCE_CHARS = 500


class ScoringNeed(StrEnum):
    """What a check needs and does not have."""

    MODEL = "a model"
    TRACE = "a trace"
    LIVE_SITE = "the live site"
    SHOP = "an account of the shop's administrator"
    SITE_URL = "the URL of a site"
    DIALECT = "another dialect"
    OTHER_SCORER = "another scorer"
    RUN = "a run"


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskCheck(_Result):
    """One check of a task.

    Attributes
    ----------
    evaluator
        The evaluator that it is part of; absent for what waygraph cannot check.
    rule
        How it compares, such as `must_include`.
    subject
        What it looks at, such as `answer`, `url` or `page 0`.
    score
        Its share of the reward, from 0 to 1; absent if it could not be made.
    need
        What it lacks; absent if it was made.
    expected
        The reference.
    found
        What was compared with it.
    note
        Why it came out so, where that is not obvious.
    """

    evaluator: EvaluatorKind | None
    rule: str
    subject: str
    score: float | None = None
    need: ScoringNeed | None = None
    expected: str = ""
    found: str = ""
    note: str = ""


class TaskScore(_Result):
    """The score of a task.

    Attributes
    ----------
    task_id
        Id of the task.
    scorer
        What gave the reward: a dialect, or a judge with its version; empty: the task is not known.
    reward
        Product of the scores of all checks; absent if it depends on a check that could not be made.
    success
        Whether the reward is 1; absent if the reward is.
    checks
        All checks.
    needs
        What the checks that could not be made lack, without repetition; empty if there is a reward.
    usage
        What the judge took.
    """

    task_id: str
    scorer: str
    reward: float | None
    success: bool | None
    checks: tuple[TaskCheck, ...]
    needs: tuple[ScoringNeed, ...] = ()
    usage: UsageModel | None = None


def combine_checks(
    task_id: str, scorer: str, checks: Sequence[TaskCheck], usage: UsageModel | None = None
) -> TaskScore:
    """Return the score of a task from its checks.

    A check that failed makes the reward 0, whatever the checks that could not be made would have given.

    Parameters
    ----------
    task_id
        Id of the task.
    scorer
        What made them.
    checks
        The checks, at least one.
    usage
        What the judge took.

    Returns
    -------
    TaskScore
        The score.
    """
    scores = [check.score for check in checks if check.score is not None]
    needs = tuple(dict.fromkeys(check.need for check in checks if check.need is not None))
    reward = math.prod(scores)
    known = bool(checks) and (not needs or reward == 0)
    return TaskScore(
        task_id=task_id,
        scorer=scorer,
        reward=reward if known else None,
        success=reward == 1 if known else None,
        checks=tuple(checks),
        needs=() if known else needs or (ScoringNeed.OTHER_SCORER,),
        usage=usage,
    )


def evidence(text: str) -> str:
    """Return a text as a check keeps it."""
    return shortened(text, MAX_EVIDENCE_CHARS)
