"""`waygraph runs`: which runs were there, how far are they, and what became of one?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, print_table, say
from waygraph.errors import InvalidInput, NotFound, StoreError

if TYPE_CHECKING:
    from index.store import Store
    from pipeline.jobs.run.ledger import RunStatus

_DEFAULT_LIMIT = 20
_COLUMNS = ("run", "work", "state", "sites", "published", "failed", "left", "states")


def runs_command(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Id of a run: show it; else all are listed.")
    ] = None,
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the run's page, with plots and pictures.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Runs that are listed, the newest.")
    ] = _DEFAULT_LIMIT,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs of a store, or show what became of one.

    Runs that are under way or were killed are listed on the machine that they were begun on; elsewhere
    they are "no report". The command that began a run goes on with it (docs/runs.md).

    \b
    Examples:
      waygraph runs
      waygraph runs 20261122-062321-0a1b2c
      waygraph runs 20261122-062321-0a1b2c --html run.html
      waygraph runs 20261122-062321-0a1b2c --json > report.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from index.store import Store

    settings = load_settings({"store": store})
    opened = Store.open(settings.store)
    if run is None:
        if html is not None:
            raise InvalidInput("--html needs the id of a run.", hint="See which there are: waygraph runs")
        _list(opened, settings.store, limit, as_json=as_json)
    else:
        _show(opened, settings.store, run, html, as_json=as_json)


def _list(store: Store, location: str, limit: int, *, as_json: bool) -> None:
    from pipeline.jobs.report.report_file import known_runs
    from pipeline.jobs.run.ledger import unfinished_runs
    from pipeline.jobs.run.manifest import ledgers

    unfinished = {status.manifest.run_id: (status, held) for status, held in unfinished_runs(ledgers(location))}
    names = known_runs(store)
    rows = [_unfinished(*unfinished[name]) if name in unfinished else _ended(store, name) for name in names[:limit]]
    if as_json:
        print_json({"runs": rows})
        return
    if not rows:
        say("There was no run yet. Start one: waygraph index https://example.org")
        return
    print_table(_COLUMNS, [[row[name] for name in _COLUMNS] for row in rows], right=_COLUMNS[3:])
    if len(names) > limit:
        say(f"and {len(names) - limit} older ones (--limit)")


def _unfinished(status: RunStatus, held: bool) -> dict[str, Any]:
    counts = status.counts
    done = sum(counts.get(name, 0) for name in ("published", "unchanged"))
    return {
        "run": status.manifest.run_id,
        "work": status.manifest.work,
        "state": "under way" if held else "unfinished",
        "started": status.manifest.started,
        "updated": status.updated,
        "sites": status.manifest.sites,
        "published": done,
        "failed": counts.get("failed", 0),
        "left": status.manifest.sites - done - counts.get("failed", 0),
        "states": "",
    }


def _ended(store: Store, run: str) -> dict[str, Any]:
    from pipeline.jobs.report.report_file import read_head
    from pipeline.jobs.run.manifest import MANIFEST_NAME, RunManifest

    try:
        report = read_head(store, run)
    except (NotFound, StoreError) as problem:
        row: dict[str, Any] = dict.fromkeys((*_COLUMNS, "started", "updated"), "")
        row |= {"run": run, "state": "no report" if isinstance(problem, NotFound) else "unreadable"}
        try:
            manifest = RunManifest.model_validate_json(store.read_run(run, MANIFEST_NAME))
        except (NotFound, ValueError):  # a run of an earlier version, or one whose manifest is damaged
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
    from pipeline.jobs.report.report_file import read_report
    from pipeline.jobs.report.report_page import report_page
    from pipeline.jobs.run.ledger import unfinished_runs
    from pipeline.jobs.run.manifest import ledgers
    from waygraph.cli.index_summary import print_summary

    try:
        report = read_report(store, run)
    except NotFound:
        found = next((each for each in unfinished_runs(ledgers(location)) if each[0].manifest.run_id == run), None)
        if found is None or html is not None:
            raise
        row = _unfinished(*found)
        if as_json:
            print_json(row)
        else:
            say(f"Run {run} is {row['state']}, and has no report yet.")
            print_table(_COLUMNS[3:7], [[row[name] for name in _COLUMNS[3:7]]])
        return
    if html is not None:
        try:
            html.write_text(report_page(store, report), encoding="utf-8", errors="replace")
        except OSError as error:
            raise InvalidInput(f"Cannot write {html}: {error.strerror}.", hint="Choose another --html.") from error
    print_summary(report, as_json=as_json)
    if html is not None and not as_json:
        say(f"Page: {html}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runs", short_help="List runs, or show what became of one.")(runs_command)
