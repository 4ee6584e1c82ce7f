"""`waygraph tasks`: look at the task files of benchmarks, and at what an agent did in a task."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import JsonOption, PlaceholderOption
from waygraph.cli.output import print_json, print_table, say, warn, write_file
from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.agents.tasks.task import Task
    from waygraph.agents.tasks.task_file import TaskFile

HELP = """List and check the task files of benchmarks, as they are published, and save what an agent did in a task.

\b
Examples:
  waygraph tasks check test.raw.json
  waygraph tasks list test.raw.json --site shopping
  waygraph tasks trace RUN 103 -o replay.json
"""

_FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A task file: a JSON list, or JSON lines.")]
#: Longest part of an intent that the list shows, in characters.
_SHOWN_INTENT = 100


def list_tasks(
    file: _FileArgument,
    *,
    site: Annotated[str, typer.Option("--site", metavar="NAME", help="Only tasks that involve this site.")] = "",
    placeholder: PlaceholderOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of a file: WebArena, WebChoreArena, WebArena-Verified or Online-Mind2Web, as published.

    Rows that are no tasks are left out, with a warning; `waygraph tasks check` names them.

    \b
    Examples:
      waygraph tasks list test.raw.json
      waygraph tasks list test.raw.json --site shopping --json > shopping.json
    """  # noqa: D301 - \b keeps the lines of an example together
    read = _read(file, placeholder)
    tasks = [task for task in read.tasks if not site or site in task.sites]
    if as_json:
        print_json([task.model_dump(mode="json", by_alias=True) for task in tasks])
    else:
        rows = [(task.task_id, ", ".join(task.sites), _evaluators(task), _shown(task.intent)) for task in tasks]
        print_table(("task", "sites", "evaluators", "intent"), rows)
    if read.problems:
        warn(f"{len(read.problems)} problem(s) with rows that are not listed; see: waygraph tasks check {file}")


def check(file: _FileArgument, *, placeholder: PlaceholderOption = None, as_json: JsonOption = False) -> None:
    """Check a task file: count what it holds, and name every row that is no task, by line and field.

    Exits with 2 if there are such rows. Placeholders such as __SHOPPING__ that have no URL are named, and are no
    problem of the file.

    \b
    Examples:
      waygraph tasks check test.raw.json
      waygraph tasks check test.raw.json --placeholder __SHOPPING__=http://127.0.0.1:7770
    """  # noqa: D301 - \b keeps the lines of an example together
    read = _read(file, placeholder)
    counts = _counts(read)
    if as_json:
        print_json({**counts, "problems": [asdict(problem) for problem in read.problems]})
    else:
        say(f"{read.name}: {len(read.tasks)} tasks, sha256 {read.sha256}")
        for title, part in counts.items():
            if isinstance(part, dict) and part:
                say(f"{title.replace('_', ' ')}: " + ", ".join(f"{name} {number}" for name, number in part.items()))
        if read.placeholders():
            say(f"placeholders without a URL: {', '.join(read.placeholders())}")
        if read.problems:
            rows = [(problem.line, problem.task_id, problem.field, problem.message) for problem in read.problems]
            print_table(("line", "task", "field", "problem"), rows, right=("line",))
    if read.problems:
        if as_json:  # the document is printed already
            raise typer.Exit(InvalidInput.exit_code)
        raise InvalidInput(
            f"{read.name} has {len(read.problems)} problem(s); {len(read.tasks)} tasks can be used.",
            hint="Correct or remove these rows.",
        )


def trace(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of `waygraph run`.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id of a task.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")],
) -> None:
    """Save what an agent saw and did in a task as one file that the page of the service replays.

    Drop the file onto the page of `waygraph serve`. Screenshots are part of the file, if the run has any.

    \b
    Examples:
      waygraph tasks trace runs/greedy 103 -o replay.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.runner.task_replay import replay_of_task
    from waygraph.agents.scoring.run_folder import RunFolder

    replay = replay_of_task(RunFolder(run).task_folder(task))
    write_file(output, replay.model_dump_json(), option="--output")
    say(f"{len(replay.steps)} steps, {len(replay.images)} screenshots: {output}")
    if replay.images_left_out:
        warn(f"{replay.images_left_out} screenshots were left out: they are too large, or no images.")


def _read(file: Path, placeholder: list[str] | None) -> TaskFile:
    from waygraph.agents.tasks.task_file import read_task_file
    from waygraph.cli.option_values import parse_site_urls

    return read_task_file(file, parse_site_urls(placeholder))


def _counts(read: TaskFile) -> dict[str, object]:
    needs: Counter[str] = Counter(_need(task) for task in read.tasks)
    return {
        "file": read.name,
        "sha256": read.sha256,
        "tasks": len(read.tasks),
        "formats": dict(Counter(task.benchmark.value for task in read.tasks)),
        "sites": dict(Counter(", ".join(sorted(task.sites)) or "(none named)" for task in read.tasks).most_common()),
        "evaluators": dict(Counter(map(_evaluators, read.tasks)).most_common()),
        "to_score": dict(needs.most_common()),
        "placeholders": read.placeholders(),
    }


def _evaluators(task: Task) -> str:
    if task.evaluation is None:
        return " + ".join(dict.fromkeys(task.other_scorers))
    return " + ".join(kind.value for kind in task.evaluation.eval_types)


def _need(task: Task) -> str:
    """Return what scoring a task takes beyond its answer."""
    from waygraph.agents.tasks.task import EvaluatorKind

    evaluation = task.evaluation
    if evaluation is None:
        return "another scorer"
    if EvaluatorKind.PROGRAM_HTML in evaluation.eval_types:
        return "values of pages"
    references = evaluation.reference_answers
    if EvaluatorKind.STRING_MATCH in evaluation.eval_types and references is not None:
        if references.is_unachievable and evaluation.string_note:
            return "a model, unless the answer is N/A"
        if references.fuzzy_match is not None and not references.is_unachievable:
            return "a model"
    return "the final URL" if EvaluatorKind.URL_MATCH in evaluation.eval_types else "the answer"


def _shown(intent: str) -> str:
    from waygraph.core.text import shortened

    return shortened(intent, _SHOWN_INTENT)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("list", short_help="List the tasks of a file.")(list_tasks)
    group.command("check", short_help="Name every row of a file that is no task.")(check)
    group.command("trace", short_help="Save what an agent did in a task, to replay it.")(trace)
    app.add_typer(group, name="tasks", short_help="List and check task files; save traces.")
