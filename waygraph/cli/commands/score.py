"""`waygraph score`: score a stored run of tasks, without the sites."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import JsonOption, load_settings
from waygraph.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.scoring.dialects import DialectName
    from waygraph.agents.scoring.run_folder import StoredRun
    from waygraph.agents.scoring.run_score import RunScore
    from waygraph.core.settings import ChatSettings


def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a stored run (docs/tasks.md).")],
    *,
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect",
            metavar="NAME",
            help="webarena, agentoccam or weboperator.",
            show_default="the one that the run names",
        ),
    ] = None,
    cassette: Annotated[
        Path | None,
        typer.Option("--cassette", metavar="FILE", help="Recording of the judge: replayed, and added to."),
    ] = None,
    checks: Annotated[bool, typer.Option("--checks", help="Also print every check with its evidence.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Score a stored run: reward and success of each task, and what the others lack.

    Nothing is loaded from a site. Checks that need a model are made by WAYGRAPH_AGENTS__JUDGE__MODEL; without one,
    and for pages whose values were not recorded, the task has no reward rather than 0.

    \b
    Examples:
      waygraph score runs/monday
      waygraph score runs/monday --dialect agentoccam --checks
      waygraph score runs/monday --json > scores.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.scoring.run_folder import RunFolder

    stored = RunFolder(run).read()
    name = _dialect(dialect) if dialect else stored.manifest.dialect
    result = asyncio.run(_score(stored, name, load_settings({}).agents.judge, cassette))
    if as_json:
        print_json(result)
    else:
        _print(result, checks=checks)


async def _score(stored: StoredRun, name: DialectName, settings: ChatSettings, cassette: Path | None) -> RunScore:
    from waygraph.agents.models.cassette import CassetteModel
    from waygraph.agents.models.create import open_model
    from waygraph.agents.scoring.dialects import DIALECTS
    from waygraph.agents.scoring.run_score import score_run

    async with AsyncExitStack() as stack:
        judge: ChatModel | None = await stack.enter_async_context(open_model(settings)) if settings.model else None
        if cassette is not None:
            judge = CassetteModel(cassette, judge)
        return await score_run(stored, DIALECTS[name], judge)


def _dialect(text: str) -> DialectName:
    from waygraph.agents.scoring.dialects import DialectName

    try:
        return DialectName(text)
    except ValueError:
        names = ", ".join(DialectName)
        raise typer.BadParameter(f"'{text}' is none of {names}.", param_hint="--dialect") from None


def _print(result: RunScore, *, checks: bool) -> None:
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score", short_help="Score a stored run of tasks.")(score)
