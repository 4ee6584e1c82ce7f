"""Scores of a stored run as text, and the models that they need."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from waygraph.cli.output import print_table, say

if TYPE_CHECKING:
    from pathlib import Path

    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.scoring.dialects import DialectName
    from waygraph.agents.scoring.run_folder import StoredRun
    from waygraph.agents.scoring.run_score import RunScore
    from waygraph.core.settings import ChatSettings


async def score_with_judge(
    stored: StoredRun, name: DialectName, settings: ChatSettings, cassette: Path | None = None
) -> RunScore:
    """Score a run with the configured judge.

    Parameters
    ----------
    stored
        The run.
    name
        The dialect.
    settings
        The judge; without a model, checks that need one are not made.
    cassette
        Recording of the judge: replayed, and added to; None: none.

    Returns
    -------
    RunScore
        The scores.
    """
    from waygraph.agents.models.cassette import CassetteModel
    from waygraph.agents.models.create import open_model
    from waygraph.agents.scoring.dialects import DIALECTS
    from waygraph.agents.scoring.run_score import score_run

    async with AsyncExitStack() as stack:
        judge: ChatModel | None = await stack.enter_async_context(open_model(settings)) if settings.model else None
        if cassette is not None:
            judge = CassetteModel(cassette, judge)
        return await score_run(stored, DIALECTS[name], judge)


def print_score(result: RunScore, *, checks: bool) -> None:
    """Print the reward of each task, and what they add up to.

    Parameters
    ----------
    result
        The scores.
    checks
        Whether to print every check with its evidence, too.
    """
    rows = []
    for score_ in result.scores:
        reward = "" if score_.reward is None else f"{score_.reward:.3g}"
        verdict = {True: "success", False: "failure", None: "needs " + " and ".join(score_.needs)}[score_.success]
        rows.append((score_.task_id, reward, verdict))
    print_table(("task", "reward", ""), rows, right=("reward",))
    if checks:
        say()
        print_table(
            ("task", "subject", "rule", "score", "expected", "found", "note"),
            [
                (
                    score_.task_id,
                    check.subject,
                    check.rule,
                    "" if check.score is None else f"{check.score:.3g}",
                    check.expected,
                    check.found,
                    check.note or (f"needs {check.need}" if check.need else ""),
                )
                for score_ in result.scores
                for check in score_.checks
            ],
            right=("score",),
        )
    say()
    low, high = result.success_range()
    rate = f"{low:.1%}" if low == high else f"between {low:.1%} and {high:.1%}"
    say(f"{result.successes} of {result.tasks} tasks succeeded ({rate}).")
    if result.scored < result.tasks:
        lacking = ", ".join(f"{count} need {need}" for need, count in result.needs.items())
        say(f"{result.tasks - result.scored} tasks have no reward: {lacking}.")
    if result.mean_reward is not None:
        say(f"mean reward of the {result.scored} tasks with a reward: {result.mean_reward:.3f}")
    say(f"dialect {result.dialect}; tasks of {result.task_file.name}, sha256 {result.task_file.sha256}")
