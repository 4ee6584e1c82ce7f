"""`waygraph tasks`: task files of benchmarks, and runs in the formats of their scorers and of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import JsonOption, PlaceholderOption, WhereOption
from waygraph.cli.output import print_json, print_table, say, warn, write_file
from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.agents.tasks.task import Task
    from waygraph.agents.tasks.task_file import TaskFile

HELP = """Fetch, list and check the task files of benchmarks; export runs for their scorers, and save traces.

\b
Examples:
  waygraph tasks fetch webarena-verified
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
    where: WhereOption = None,
    placeholder: PlaceholderOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of a file: WebArena, WebChoreArena, WebArena-Verified or Online-Mind2Web, as published.

    Rows that are no tasks are left out, with a warning; `waygraph tasks check` names them.

    \b
    Examples:
      waygraph tasks list test.raw.json
      waygraph tasks list test.raw.json --site shopping --where level=hard --json > hard.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.scoring.figures import evaluators_of
    from waygraph.agents.tasks.where import matching, parse_conditions

    read = _read(file, placeholder)
    tasks = matching((task for task in read.tasks if not site or site in task.sites), parse_conditions(where))
    if as_json:
        print_json([task.model_dump(mode="json", by_alias=True) for task in tasks])
    else:
        rows = [(task.task_id, ", ".join(task.sites), evaluators_of(task), _shown(task.intent)) for task in tasks]
        print_table(("task", "sites", "evaluators", "intent"), rows)
    if read.problems:
        warn(f"{len(read.problems)} problem(s) with rows that are not listed; see: waygraph tasks check {file}")


def check(
    file: _FileArgument,
    *,
    where: WhereOption = None,
    placeholder: PlaceholderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a task file: count what it holds, and name every row that is no task, by line and field.

    Exits with 2 if there are such rows. Placeholders such as __SHOPPING__ that have no URL, and reference URLs that no
    page can match, are named and are no problem of the file's form. --where counts only the tasks that it selects.

    \b
    Examples:
      waygraph tasks check test.raw.json
      waygraph tasks check test.raw.json --placeholder __SHOPPING__=http://127.0.0.1:7770
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.tasks.where import matching, parse_conditions

    read = _read(file, placeholder)
    read = replace(read, tasks=tuple(matching(read.tasks, parse_conditions(where))))
    counts = _counts(read)
    warnings = _warnings(read)
    if as_json:
        print_json({**counts, "warnings": warnings, "problems": [asdict(problem) for problem in read.problems]})
    else:
        say(f"{read.name}: {len(read.tasks)} tasks, sha256 {read.sha256}")
        for title, part in counts.items():
            if isinstance(part, dict) and part:
                say(f"{title.replace('_', ' ')}: " + ", ".join(f"{name} {number}" for name, number in part.items()))
        if read.placeholders():
            say(f"placeholders without a URL: {', '.join(read.placeholders())}")
        for task_id, text in warnings.items():
            say(f"task {task_id}: {text}")
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


def fetch(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="webarena, webchorearena, webarena-verified or online-mind2web.")
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it.", show_default="NAME.json, here"),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Another address of the file.")] = None,
    sha256: Annotated[str | None, typer.Option("--sha256", metavar="HASH", help="Hash that it must have.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Keep a file that is not pinned, as it comes.")] = False,
) -> None:
    """Download the task file of a benchmark, and check that it is the pinned one.

    webarena-verified and webchorearena are pinned. webarena is known by its commit, and of online-mind2web no address
    is known to be right: give --url. A file without a pin or --sha256 is not written; its hash is printed, and the
    command exits with 2, unless --accept is given.

    \b
    Examples:
      waygraph tasks fetch webarena-verified
      waygraph tasks fetch webarena --sha256 HASH
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.tasks.fetch import choose_source, fetch_tasks, write_tasks
    from waygraph.agents.tasks.sources import SOURCES

    if name not in SOURCES:
        raise typer.BadParameter(f"'{name}' is none of {', '.join(SOURCES)}.", param_hint="NAME")
    source = choose_source(SOURCES[name], url, sha256)
    fetched = fetch_tasks(source)
    say(f"{source.url}: {len(fetched.content):,} bytes, sha256 {fetched.sha256}")
    if not fetched.is_pinned and not accept:
        raise InvalidInput(
            f"The file of {name} is not pinned: no hash is known that it must have. It was not written.",
            hint=f"Compare with a source that you trust, then: --sha256 {fetched.sha256}; or --accept it as it is.",
        )
    path = output or Path(source.file)
    write_tasks(fetched, path)
    say(f"{path} ({'the expected hash' if fetched.is_pinned else 'not pinned'})")


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a stored run (docs/scoring.md).")],
    *,
    kind: Annotated[str, typer.Option("--format", metavar="NAME", help="webarena-verified or online-mind2web.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder, with one per task.")],
    as_json: JsonOption = False,
) -> None:
    """Write a stored run in the format of another scorer.

    webarena-verified: agent_response.json and network.har per task, for its command `eval-tasks`. online-mind2web:
    result.json (version 2) and trajectory/*.png, for WebJudge. Tasks that lack a file that the format needs are left
    out, with a warning.

    \b
    Examples:
      waygraph tasks export runs/monday --format webarena-verified --output verified
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.exports.write import ExportFormat, export_run
    from waygraph.agents.scoring.repeats import repeat_folders
    from waygraph.agents.scoring.run_folder import RunFolder

    try:
        name = ExportFormat(kind)
    except ValueError:
        raise typer.BadParameter(f"'{kind}' is none of {', '.join(ExportFormat)}.", param_hint="--format") from None
    if folders := repeat_folders(run):
        raise InvalidInput(f"'{run}' holds {len(folders)} repeats.", hint=f"Export each of them: {folders[0]}")
    exported = export_run(RunFolder(run), name, output)
    for task_id, why in exported.left_out.items():
        warn(f"task {task_id} is left out: {why}")
    if as_json:
        print_json({"tasks": exported.tasks, "left_out": dict(exported.left_out)})
    else:
        say(f"{len(exported.tasks)} tasks written to {output}")


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
    from waygraph.agents.scoring.figures import GROUPING_LABELS, evaluators_of

    needs: Counter[str] = Counter(_need(task) for task in read.tasks)
    return {
        "file": read.name,
        "sha256": read.sha256,
        "tasks": len(read.tasks),
        "formats": dict(Counter(task.benchmark.value for task in read.tasks)),
        "sites": dict(Counter(", ".join(sorted(task.sites)) or "(none named)" for task in read.tasks).most_common()),
        "evaluators": dict(Counter(map(evaluators_of, read.tasks)).most_common()),
        **{
            label: dict(Counter(task.labels[label] for task in read.tasks if label in task.labels).most_common())
            for label in GROUPING_LABELS
        },
        "to_score": dict(needs.most_common()),
        "placeholders": read.placeholders(),
    }


def _warnings(read: TaskFile) -> dict[str, str]:
    """Return what is odd about tasks, by id: reference URLs that no page can match."""
    from waygraph.agents.scoring.dialects import DIALECTS, dialect_of
    from waygraph.agents.scoring.url_match import unmet_alternatives

    found = {}
    for task in read.tasks:
        reference = task.evaluation.reference_url if task.evaluation is not None else None
        if reference and (unmet := unmet_alternatives(reference, DIALECTS[dialect_of(task.benchmark)])):
            found[task.task_id] = (
                "url_match wants the query parameters of all alternatives together, so no page matches as: "
                + ", ".join(unmet)
            )
    return found


def _need(task: Task) -> str:
    """Return what scoring a task takes beyond its answer."""
    from waygraph.agents.tasks.formats import WEB_JUDGE
    from waygraph.agents.tasks.task import EvaluatorKind, calls_shop

    evaluation = task.evaluation
    if evaluation is None:
        return "a model that takes images" if WEB_JUDGE in task.other_scorers else "another scorer"
    if EvaluatorKind.PROGRAM_HTML in evaluation.eval_types:
        return "the shop's API" if calls_shop(evaluation) else "values of pages"
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
    group.command("fetch", short_help="Download the task file of a benchmark.")(fetch)
    group.command("export", short_help="Write a stored run in the format of another scorer.")(export)
    group.command("trace", short_help="Save what an agent did in a task, to replay it.")(trace)
    app.add_typer(group, name="tasks", short_help="Task files, exports and traces of runs.")
