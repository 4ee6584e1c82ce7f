"""`waygraph gc`: delete old versions, unused blobs and old run records."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from waygraph.cli.option_values import parse_duration
from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, say
from waygraph.core.errors import InvalidInput

_DEFAULT_GRACE = timedelta(days=7)
_DEFAULT_RECORDS_AGE = timedelta(days=90)
#: Limit of printed paths of files that do not belong to the store.
_SHOWN = 5


def gc(
    *,
    keep: Annotated[int, typer.Option("--keep", metavar="N", help="Newest versions of each site to keep.", min=1)] = 3,
    grace: Annotated[
        timedelta | None,
        typer.Option(
            "--grace",
            metavar="AGE",
            parser=parse_duration,
            help="Keep what is younger: 36h, 7d, 2w; at least 1d.",
            show_default=f"{_DEFAULT_GRACE.days}d",
        ),
    ] = None,
    keep_records: Annotated[
        timedelta | None,
        typer.Option(
            "--keep-records",
            metavar="AGE",
            parser=parse_duration,
            help="The same for run records and feedback; at least 7d.",
            show_default=f"{_DEFAULT_RECORDS_AGE.days}d",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be deleted.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete old versions and unused screenshots, leftovers of crashed writers, and old run records.

    Each site keeps its current version, its newest N versions, and those that were replaced less than
    --grace ago. Blobs (screenshots, DOMs) that no remaining version uses are deleted when they are older
    than --grace. This is safe while a service reads and runs publish, as long as exploring one site takes
    less than --grace. An exploration that was interrupted for longer must be started again:
    waygraph index --fresh. Run reports, and feedback of agents, are deleted when nothing was added to them
    for --keep-records; runs that this machine may still resume are kept. If the settings name a Qdrant server, the
    vectors of deleted versions are deleted there, too.

    \b
    Examples:
      waygraph gc --dry-run
      waygraph gc --keep 1 --grace 1d --store s3://bucket/maps
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.index.catalog.server_copies import server_copies
    from waygraph.index.store import Store
    from waygraph.index.store.upkeep.gc import MIN_GRACE, collect_garbage
    from waygraph.index.store.upkeep.retention import MIN_RECORDS_AGE, prune_records
    from waygraph.pipeline.jobs.run.manifest import run_database_folder
    from waygraph.pipeline.jobs.run.run_database import unfinished_runs

    grace = _DEFAULT_GRACE if grace is None else grace
    if grace < MIN_GRACE:
        raise InvalidInput("--grace is too short.", hint="Use at least 1d: runs may still need what they stored.")
    keep_records = _DEFAULT_RECORDS_AGE if keep_records is None else keep_records
    if keep_records < MIN_RECORDS_AGE:
        raise InvalidInput("--keep-records is too short.", hint="Use at least 7d: for that long runs can be resumed.")
    settings = load_settings({"store": store})
    location = settings.store
    opened = Store.open(location, create=not dry_run)
    with server_copies(settings.vectors) as drop_copies:
        garbage = collect_garbage(opened, keep=keep, grace=grace, dry_run=dry_run, before_drop=drop_copies)
    unfinished = {status.manifest.run_id for status, _ in unfinished_runs(run_database_folder(location))}
    records = prune_records(opened, older_than=keep_records, spare=unfinished, dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, **asdict(garbage), "records": asdict(records)})
        return
    for site, versions in garbage.versions.items():
        say(f"{site}: version(s) {', '.join(map(str, versions))}")
    verb = "Would delete" if dry_run else "Deleted"
    say(
        f"{verb} {sum(map(len, garbage.versions.values()))} version(s), {garbage.blobs} blobs "
        f"({garbage.blob_bytes:,} bytes) and {garbage.leftovers} leftover(s); {garbage.kept_blobs} blobs are kept."
    )
    if garbage.strange:
        hidden = len(garbage.strange) - _SHOWN
        more = f" and {hidden} more (--json prints all)" if hidden > 0 else ""
        say(f"Not written by waygraph, and kept: {', '.join(garbage.strange[:_SHOWN])}{more}")
    say(
        f"{verb} records of {len(records.runs)} run(s) and {records.feedback} file(s) of feedback "
        f"({records.bytes:,} bytes)."
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gc", short_help="Delete old versions and unused screenshots.")(gc)
