"""Scores of a stored run as text, and the models that they need."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from waygraph.cli.output import print_table, say
from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.scoring.dialects import DialectName
    from waygraph.agents.scoring.figures import GroupFigures
    from waygraph.agents.scoring.run_folder import StoredAttempt, StoredRun
    from waygraph.agents.scoring.run_score import RunScore
    from waygraph.agents.scoring.web_judge import JudgedTrajectory
    from waygraph.core.settings import ChatSettings

#: Folder in that of a run with recordings of judges, a file per model: another model must not get its replies.
_JUDGES = "judge"


async def score_with_judge(
    folder: Path,
    stored: StoredRun,
    dialect: DialectName | None,
    settings: ChatSettings,
    cassette: Path | None = None,
) -> RunScore:
    """Score a run with the configured judge, whose replies are recorded: scoring again gives the same.

    Parameters
    ----------
    folder
        Folder of the run.
    stored
        The run.
    dialect
        The dialect; None: the one that the run names.
    settings
        The judge; without a model and a recording, checks that need one are not made.
    cassette
        Recording of the judge: replayed, and added to; None: the one beside the run.

    Returns
    -------
    RunScore
        The scores.
    """
    from waygraph.agents.exports.online_mind2web import judged_trajectory
    from waygraph.agents.models.cassette import CassetteModel
    from waygraph.agents.models.create import open_model
    from waygraph.agents.runner.trace_reading import read_trace
    from waygraph.agents.scoring.run_folder import RunFolder
    from waygraph.agents.scoring.run_score import score_run

    def trajectory(attempt: StoredAttempt) -> JudgedTrajectory:
        return judged_trajectory(attempt, read_trace(RunFolder(folder).task_folder(attempt.task.task_id)))

    recording = cassette or _recording(folder, settings.model)
    async with AsyncExitStack() as stack:
        judge: ChatModel | None = await stack.enter_async_context(open_model(settings)) if settings.model else None
        if recording is not None:
            judge = CassetteModel(recording, judge, secrets=[settings.api_key.get_secret_value()])
        return await score_run(stored, dialect, judge, trajectory)


def _recording(folder: Path, model: str) -> Path | None:
    """Return the recording of a model beside a run; without a model the only one that there is, or None."""
    if model:
        return folder / _JUDGES / f"{quote(model, safe='')}.jsonl"
    found = sorted((folder / _JUDGES).glob("*.jsonl"))
    if len(found) > 1:
        raise InvalidInput(
            f"'{folder}' has recordings of {len(found)} judges, and none is configured.",
            hint=f"Choose one: --cassette {found[0]}",
        )
    return found[0] if found else None


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
    elif result.interval is not None:
        say(f"95% interval: {result.interval[0]:.1%} to {result.interval[1]:.1%}")
    if result.mean_reward is not None:
        say(f"mean reward of the {result.scored} tasks with a reward: {result.mean_reward:.3f}")
    _print_groups(result)
    say(_scorers(result))
    say(f"tasks of {result.task_file.name}, sha256 {result.task_file.sha256}")


def _scorers(result: RunScore) -> str:
    return "scored by " + (", ".join(f"{scorer} ({count})" for scorer, count in result.scorers.items()) or "nothing")


def _print_groups(result: RunScore) -> None:
    """Print the means of all tasks, and of the groups of each kind that has several."""
    if not result.figures.done:
        return
    groups = [("", result.figures)]
    groups += [(kind, group) for kind, each in result.groups.items() if len(each) > 1 for group in each]
    with_model = any(group.input_tokens for _, group in groups)
    tokens = ("input tokens", "output tokens") if with_model else ()
    columns = ("tasks", "succeeded", "rate", "steps", "seconds", *tokens)
    rows = [(kind, group.name, *_figures(group)[: len(columns)]) for kind, group in groups]
    say()
    print_table(("", "means", *columns), rows, right=columns)
    say()


def _figures(group: GroupFigures) -> tuple[str, ...]:
    rate = f"{group.successes / group.tasks:.1%}"
    if group.undecided:
        rate += f" to {(group.successes + group.undecided) / group.tasks:.1%}"
    tokens = (group.mean_input_tokens, group.mean_output_tokens)
    return (
        str(group.tasks),
        str(group.successes),
        rate,
        f"{group.mean_steps or 0:.1f}",
        f"{group.mean_seconds or 0:.1f}",
        *(f"{value or 0:,.0f}" for value in tokens),
    )
