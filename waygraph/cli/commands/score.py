"""`waygraph score`: score a stored run of tasks, without the sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.display.stored_run import print_stored, score_stored
from waygraph.cli.options import JsonOption, load_settings
from waygraph.cli.output import print_json

if TYPE_CHECKING:
    from waygraph.agents.scoring.dialects import DialectName


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
    report: Annotated[bool, typer.Option("--report", help="Also write RUN/report.html, with traces.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Score a stored run: reward and success of each task, and what the others lack.

    Nothing is loaded from a site. Checks that need a model are made by WAYGRAPH_AGENTS__JUDGE__MODEL; without one,
    and for pages whose values were not recorded, the task has no reward rather than 0. Of a run with repeats, all are
    scored.

    \b
    Examples:
      waygraph score runs/monday
      waygraph score runs/monday --dialect agentoccam --checks
      waygraph score runs/monday --json > scores.json
    """  # noqa: D301 - \b keeps the lines of an example together
    name = _dialect(dialect) if dialect else None
    judge = load_settings({}).agents.judge
    result = score_stored(run, judge, dialect=name, cassette=cassette, report=report)
    if as_json:
        print_json(result)
    else:
        print_stored(result, checks=checks)


def _dialect(text: str) -> DialectName:
    from waygraph.agents.scoring.dialects import DialectName

    try:
        return DialectName(text)
    except ValueError:
        names = ", ".join(DialectName)
        raise typer.BadParameter(f"'{text}' is none of {names}.", param_hint="--dialect") from None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score", short_help="Score a stored run of tasks.")(score)
