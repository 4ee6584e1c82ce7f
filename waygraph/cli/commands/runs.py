"""`waygraph runs`: list the runs of a store, or show one of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, print_table, say, write_file
from waygraph.core.errors import InvalidInput, NotFound, StoreError

if TYPE_CHECKING:
    from waygraph.index.store import Store
    from waygraph.pipeline.jobs.run.run_database import RunStatus

_COLUMNS = ("run", "work", "state", "sites", "published", "failed", "left", "states")
_COUNTS = ("sites", "published", "failed", "left")


def runs_command(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Id of the run to show.", show_default="list all runs")
    ] = None,
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the run's page, with plots and screenshots.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Limit of listed runs, newest first.")] = 20,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs of a store, or show the report of one.

    Runs that are active or were killed are listed with their progress on the machine that started them,
    elsewhere as "no report". The command that started a run resumes it (docs/runs.md).

    \b
    Examples:
      waygraph runs
      waygraph runs 20261122-062321-0a1b2c
      waygraph runs 20261122-062321-0a1b2c --html run.html
      waygraph runs 20261122-062321-0a1b2c --json > report.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.index.store import Store

    location = load_settings({"store": store}).store
    opened = Store.open(location)
    if run is None:
        if html is not None:
            raise InvalidInput("--html needs the id of a run.", hint="To list the runs: waygraph runs")
        _list(opened, location, limit, as_json=as_json)
    else:
        _show(opened, location, run, html, as_json=as_json)


def _list(store: Store, location: str, limit: int, *, as_json: bool) -> None:
    from waygraph.pipeline.jobs.report.report_file import list_run_ids

    unfinished = _unfinished_runs(location)
    ids = list_run_ids(store)
    rows = [unfinished[id_] if id_ in unfinished else _ended_row(store, id_) for id_ in ids[:limit]]
    if as_json:
        print_json({"runs": rows})
        return
    if not rows:
        say("There is no run yet. To start one: waygraph index https://example.org")
        return
    print_table(_COLUMNS, [[row[name] for name in _COLUMNS] for row in rows], right=_COLUMNS[3:])
    if len(ids) > limit:
        say(f"and {len(ids) - limit} older ones (--limit)")


def _unfinished_runs(location: str) -> dict[str, dict[str, Any]]:
    """Return the rows of the runs that this machine has not finished, by run id."""
    from waygraph.pipeline.jobs.run.manifest import run_database_folder
    from waygraph.pipeline.jobs.run.run_database import unfinished_runs

    runs = unfinished_runs(run_database_folder(location))
    return {status.manifest.run_id: _unfinished_row(status, is_active=is_held) for status, is_held in runs}


def _unfinished_row(status: RunStatus, *, is_active: bool) -> dict[str, Any]:
    counts, manifest = status.counts, status.manifest
    done = sum(counts.get(name, 0) for name in ("published", "unchanged"))
    return {
        "run": manifest.run_id,
        "work": manifest.work,
        "state": "under way" if is_active else "unfinished",
        "started": manifest.started,
        "updated": status.updated,
        "sites": manifest.sites,
        "published": done,
        "failed": counts.get("failed", 0),
        "left": manifest.sites - done - counts.get("failed", 0),
        "states": "",
    }


def _ended_row(store: Store, run: str) -> dict[str, Any]:
    from waygraph.pipeline.jobs.report.report_file import read_report_head
    from waygraph.pipeline.jobs.run.manifest import MANIFEST_NAME, RunManifest

    try:
        report = read_report_head(store, run)
    except (NotFound, StoreError) as problem:
        row: dict[str, Any] = dict.fromkeys((*_COLUMNS, "started", "updated"), "")
        row |= {"run": run, "state": "no report" if isinstance(problem, NotFound) else "unreadable"}
        try:
            manifest = RunManifest.model_validate_json(store.read_run(run, MANIFEST_NAME))
        except (NotFound, ValueError):  # a run of an earlier waygraph, or a damaged manifest
            return row
        return row | {"work": manifest.work, "started": manifest.started, "sites": manifest.sites}
    totals = report.totals
    return {
        "run": run,
        "work": report.work,
        "state": f"ended, {report.exit_code}",
        "started": report.started,
        "updated": report.finished,
        "sites": totals.sites,
        "published": totals.published + totals.unchanged,
        "failed": totals.failed,
        "left": report.unfinished,
        "states": totals.states,
    }


def _show(store: Store, location: str, run: str, html: Path | None, *, as_json: bool) -> None:
    from waygraph.cli.display.run_summary import print_summary
    from waygraph.pipeline.jobs.report.report_file import read_report
    from waygraph.pipeline.jobs.report.report_page import report_page

    try:
        report = read_report(store, run)
    except NotFound:
        row = _unfinished_runs(location).get(run)
        if row is None or html is not None:
            raise
        if as_json:
            print_json(row)
        else:
            say(f"Run {run} is {row['state']}, and has no report yet.")
            print_table(_COUNTS, [[row[name] for name in _COUNTS]])
        return
    if html is not None:
        write_file(html, report_page(store, report), option="--html")
    print_summary(report, as_json=as_json)
    if html is not None and not as_json:
        say(f"Page: {html}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runs", short_help="List runs, or show one of them.")(runs_command)
