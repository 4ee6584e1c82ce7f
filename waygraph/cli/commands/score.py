"""`waygraph score`: score a stored run of tasks, without the sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waygraph.cli.agent_options import dialect_name
from waygraph.cli.display.stored_run import print_stored, score_stored
from waygraph.cli.options import DialectOption, JsonOption, WhereOption, load_settings
from waygraph.cli.output import print_json
from waygraph.core.errors import InvalidInput


def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a stored run (docs/scoring.md).")],
    *,
    dialect: DialectOption = None,
    where: WhereOption = None,
    cassette: Annotated[
        Path | None,
        typer.Option(
            "--cassette",
            metavar="FILE",
            help="Recording of the judge: replayed, and added to.",
            show_default="RUN/judge/MODEL.jsonl",
        ),
    ] = None,
    checks: Annotated[bool, typer.Option("--checks", help="Also print every check with its evidence.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Also write RUN/report.html, with traces.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Score a stored run: reward and success of each task, and what the others lack.

    Nothing is loaded from a site. Checks that need a model are made by WAYGRAPH_AGENTS__JUDGE__MODEL, which must take
    images for Online-Mind2Web; its replies are recorded beside the run, so that scoring again gives the same. Without a
    model, and for pages whose values were not recorded, a task has no reward rather than 0. Of a run with repeats, all
    are scored.

    \b
    Examples:
      waygraph score runs/monday
      waygraph score runs/monday --dialect agentoccam --checks
      waygraph score runs/monday --where type_main=calc --json > scores.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.tasks.where import parse_conditions

    conditions = parse_conditions(where)
    if report and conditions:
        raise InvalidInput("--report is about all tasks of a run.", hint="Leave out --where.")
    judge = load_settings({}).agents.judge
    result = score_stored(
        run, judge, dialect=dialect_name(dialect), cassette=cassette, conditions=conditions, report=report
    )
    if as_json:
        print_json(result)
    else:
        print_stored(result, checks=checks)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score", short_help="Score a stored run of tasks.")(score)
