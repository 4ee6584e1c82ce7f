"""`waygraph run`: let an agent do the tasks of a file, and score what it left."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.agent_options import agent_name, agent_overrides, check_model, dialect_name
from waygraph.cli.display.stored_run import print_stored, score_stored
from waygraph.cli.hook_options import LoginMaxAgeOption, LoginOption, ResetOption, WaitAfterOption, hook_options
from waygraph.cli.option_values import existing_file, read_lines
from waygraph.cli.options import (
    AgentOption,
    ApiKeyOption,
    BaseUrlOption,
    CandidatesOption,
    DialectOption,
    ImagesOption,
    JsonOption,
    JudgeOption,
    MaxStepsOption,
    ModelOption,
    NoMapOption,
    PlaceholderOption,
    ScopeHostOption,
    ScopeOption,
    SelectOption,
    SelectorModelOption,
    StoreOption,
    TipsOption,
    UrlOption,
    WhereOption,
    load_settings,
)
from waygraph.cli.output import clean, print_json, say, warn
from waygraph.cli.selection import open_source
from waygraph.core.errors import InvalidInput, RunUnfinished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waygraph.agents.runner.task_run import TaskEnded
    from waygraph.agents.tasks.task import Task
    from waygraph.agents.tasks.task_file import TaskFile
    from waygraph.core.settings import ShopSettings


def run(
    *,
    tasks: Annotated[
        Path,
        typer.Option("--tasks", metavar="FILE", callback=existing_file, help="A task file (`waygraph tasks check`)."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="Folder of the run. An unfinished run is resumed.")
    ],
    agent: AgentOption = "greedy",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    images: ImagesOption = None,
    select: SelectOption = None,
    selector_model: SelectorModelOption = None,
    candidates: CandidatesOption = None,
    judge: JudgeOption = None,
    tips: TipsOption = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.0, metavar="PRICE", help="Limit of all calls of the run.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Limit of all tokens of the run.")
    ] = None,
    cassettes: Annotated[
        Path | None,
        typer.Option(
            "--cassettes", metavar="DIR", help="Record the model's calls here, one file per task, and replay them."
        ),
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    no_map: NoMapOption = False,
    site: Annotated[str, typer.Option("--site", metavar="NAME", help="Only tasks that involve this site.")] = "",
    task: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="ID", help="Only this task, or @FILE with ids; repeatable."),
    ] = None,
    where: WhereOption = None,
    dialect: DialectOption = None,
    placeholder: PlaceholderOption = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let agents do what changes data at the sites.")
    ] = False,
    scope: ScopeOption = None,
    scope_hosts: ScopeHostOption = None,
    max_steps: MaxStepsOption = 20,
    step_seconds: Annotated[
        float,
        typer.Option("--step-seconds", min=0.1, help="Limit of a task's time: these seconds for each of --max-steps."),
    ] = 60.0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Tasks, and browsers, at the same time.")] = 2,
    per_site: Annotated[int, typer.Option("--per-site", min=1, help="Tasks on one host at the same time.")] = 2,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="How often each task is done.")] = 1,
    reset: ResetOption = None,
    login: LoginOption = None,
    login_max_age: LoginMaxAgeOption = None,
    wait_after: WaitAfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let an agent do the tasks of a file, each in a browser session of its own, and score them.

    Every task's trace (what the agent saw and did) and its result are kept in RUN. The same command resumes a run that
    was interrupted: tasks with a result are not done again. `waygraph score RUN` scores it again, without the sites.
    RUN/report.html shows both. Actions that would change data are refused without --allow-changes. The key of
    the model is WAYGRAPH_AGENTS__MODEL__API_KEY; the account that reads the API of WebArena's shop is
    WAYGRAPH_AGENTS__SHOP__USER and __PASSWORD.

    An agent stays on the hosts of its task's start URLs, of --placeholder for all sites of the task, and of
    --scope-host and --scope domain; private addresses are reached only if you name them so.

    With --repeat, each repeat is a run of its own in RUN/repeats, and mean and spread are printed. The site of --reset
    and --login is a name of the task file, or its host; in commands, {task} is the id of the task and
    {session} the path of its session file.

    \b
    Exit codes: 0 every task has a result, whatever its score, 11 some have none (a site that cannot be
    reached, a browser that was lost): run the command again, 130 interrupted

    \b
    Examples:
      waygraph run --tasks tasks.json --output runs/monday --store maps
      waygraph run --tasks tasks.json --output runs/without --no-map --site shopping
      waygraph run --tasks tasks.json --output runs/calc --where type_main=calc --task @ids.txt
      waygraph run --tasks tasks.json --output runs/model --agent webnavigator --model qwen --base-url http://127.0.0.1:8000/v1
      waygraph run --tasks tasks.json --output runs/three --repeat 3 --reset "shopping=docker restart shop"
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.loop.tips import read_tips
    from waygraph.agents.runner.attempt import AttemptOptions
    from waygraph.agents.runner.task_run import TaskLimits, run_tasks
    from waygraph.agents.scoring.repeats import plan_repeats

    name, spoken, file = agent_name(agent), dialect_name(dialect), _read(tasks, placeholder)
    chosen = _chosen(file, site, task, where)
    settings = load_settings(
        agent_overrides(
            store=store, model=model, base_url=base_url, images=images, select=select,
            selector_model=selector_model, candidates=candidates, judge=judge,
            run_cost=max_cost, run_tokens=max_tokens,
        )
        | {"explore": {"scope": scope, "scope_hosts": scope_hosts}}
    )  # fmt: skip
    check_model(name, settings, is_replayed=cassettes is not None)
    limits = TaskLimits(workers, per_site)
    if wait_after is not None:
        limits = replace(limits, wait_after_s=wait_after.total_seconds())
    _warn_about(chosen, settings.agents.shop, limits.wait_after_s)
    mapped: frozenset[str] = frozenset()
    if not no_map:
        with open_source(store, url, api_key) as source:
            mapped = frozenset(summary.site for summary in source.sites())
    options = AttemptOptions(
        output=output.absolute(),
        agent=name,
        settings=settings,
        maps="" if no_map else url or settings.store,
        api_key=api_key,
        mapped=mapped,
        sessions=tasks.parent,
        max_steps=max_steps,
        step_seconds=step_seconds,
        allows_changes=allow_changes,
        cassettes=cassettes.absolute() if cassettes is not None else None,
        tips=read_tips(tips),
    )
    hooks = hook_options(reset, login, login_max_age, tasks.parent)
    without_result: dict[str, str] = {}
    folders = plan_repeats(options.output, repeat)
    try:
        for number, folder in enumerate(folders, start=1):
            if len(folders) > 1:
                sys.stderr.write(f"repeat {number} of {len(folders)}\n")
            missing = run_tasks(
                file,
                chosen,
                replace(options, output=folder),
                limits,
                hooks=hooks,
                dialect=spoken,
                on_ended=_print_ended,
            )
            without_result.update(missing)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command does the tasks that are left\n")
        raise
    result = score_stored(options.output, settings.agents.judge, report=True)
    if as_json:
        print_json(result)
    else:
        say()
        print_stored(result, checks=False)
        say(f"Traces and results: {output / 'report.html'}")
    if without_result:
        first = next(iter(without_result))
        raise RunUnfinished(
            f"{len(without_result)} of {len(chosen)} tasks have no result. Task {first}: {without_result[first]}",
            hint="Run the same command again: it does these tasks only.",
        )


def _read(file: Path, placeholder: list[str] | None) -> TaskFile:
    from waygraph.agents.tasks.task_file import read_task_file
    from waygraph.cli.option_values import parse_site_urls

    read = read_task_file(file, parse_site_urls(placeholder))
    if read.problems:
        warn(f"{len(read.problems)} problem(s) with rows that are no tasks; see: waygraph tasks check {file}")
    return read


def _chosen(file: TaskFile, site: str, ids: list[str] | None, where: list[str] | None) -> list[Task]:
    from waygraph.agents.tasks.where import matching, parse_conditions

    wanted: set[str] = set()
    for text in ids or ():
        wanted.update(read_lines(Path(text[1:]), "--task") if text.startswith("@") else [text])
    known = {each.task_id for each in file.tasks}
    if unknown := sorted(wanted.difference(known)):
        raise InvalidInput(f"{file.name} has no task {unknown[0]}.", hint="waygraph tasks list shows all ids.")
    of_site = (each for each in file.tasks if not site or site in each.sites)
    return matching((each for each in of_site if not wanted or each.task_id in wanted), parse_conditions(where))


def _warn_about(chosen: Sequence[Task], shop: ShopSettings, wait_s: float) -> None:
    """Say what a run of tasks lacks or takes, before it begins."""
    from waygraph.agents.runner.waits import needs_wait
    from waygraph.agents.scoring.shop_access import SETTINGS_NEEDED, shop_access
    from waygraph.agents.tasks.task import calls_shop

    asking = sum(task.evaluation is not None and calls_shop(task.evaluation) for task in chosen)
    if asking and shop_access(shop, "") is None:
        warn(f"{asking} task(s) are scored with the shop's API and get no reward without {SETTINGS_NEEDED}.")
    if wait_s and (waits := sum(map(needs_wait, chosen))):
        warn(f"After each of {waits} task(s) that need it, their sites rest for {wait_s:g} s (--wait-after).")


def _print_ended(ended: TaskEnded) -> None:
    """Print a line on stderr, so that stdout carries the scores only."""
    if ended.answer is None:
        what = f"no result: {ended.problem}"
    else:
        what = f"{ended.answer.ended}, {ended.answer.steps} steps, {ended.answer.seconds:.1f} s"
    sys.stderr.write(f"{ended.ended}/{ended.tasks}  task {clean(ended.task_id)}  {clean(what, one_line=True)}\n")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Let an agent do the tasks of a file.")(run)
