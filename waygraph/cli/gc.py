"""`waygraph gc`: delete what nobody needs any more."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, say
from waygraph.errors import InvalidInput

_SHOWN = 5
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def gc(
    *,
    keep: Annotated[int, typer.Option("--keep", metavar="N", help="Newest versions of each site to keep.", min=1)] = 3,
    grace: Annotated[
        str, typer.Option("--grace", metavar="AGE", help="What is younger stays: 36h, 7d, 2w; at least 1d.")
    ] = "7d",
    keep_records: Annotated[
        str,
        typer.Option("--keep-records", metavar="AGE", help="The same for records of runs and feedback; at least 7d."),
    ] = "90d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete versions and screenshots that nobody needs, what crashed writers left, and old records of runs.

    Each site keeps its current version, its newest N, and those that were replaced less than --grace
    ago. Blobs (screenshots, DOMs) that no remaining version names go when they are older than --grace.
    Safe while a service reads and jobs publish, as long as exploring one site takes less than --grace.
    An exploration that was interrupted for longer must be begun anew: waygraph index --fresh.
    Reports of runs, and what agents reported of their steps, go when nothing was added to them for
    --keep-records; runs that this machine may go on with stay.

    \b
    Examples:
      waygraph gc --dry-run
      waygraph gc --keep 1 --grace 1d --store s3://bucket/maps
    """  # noqa: D301 - \b keeps the lines of an example together
    from index.store import Store
    from index.store.gc import SHORTEST_GRACE, collect
    from index.store.records import SHORTEST_RECORDS, prune_records
    from pipeline.jobs.run.ledger import unfinished_runs
    from pipeline.jobs.run.manifest import ledgers

    age = parse_age(grace)
    if age < SHORTEST_GRACE:
        raise InvalidInput(f"--grace {grace} is too short.", hint="Give at least 1d: runs may need what they stored.")
    records_age = parse_age(keep_records)
    if records_age < SHORTEST_RECORDS:
        raise InvalidInput(
            f"--keep-records {keep_records} is too short.", hint="Give at least 7d: so long runs may be gone on with."
        )
    location = load_settings({"store": store}).store
    opened = Store.open(location, create=not dry_run)
    done = collect(opened, keep=keep, grace=age, dry_run=dry_run)
    unfinished = {status.manifest.run_id for status, _ in unfinished_runs(ledgers(location))}
    records = prune_records(opened, older_than=records_age, spare=unfinished, dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, **asdict(done), "records": asdict(records)})
        return
    for site, versions in done.versions.items():
        say(f"{site}: version(s) {', '.join(map(str, versions))}")
    say(
        f"{'Would delete' if dry_run else 'Deleted'} {sum(map(len, done.versions.values()))} version(s), "
        f"{done.blobs} blobs ({done.blob_bytes:,} bytes) and {done.leftovers} leftover(s); "
        f"{done.kept_blobs} blobs stay."
    )
    if done.strange:
        more = f" and {len(done.strange) - _SHOWN} more (--json prints all)" if len(done.strange) > _SHOWN else ""
        say(f"Not of the store, and left alone: {', '.join(done.strange[:_SHOWN])}{more}")
    say(
        f"{'Would delete' if dry_run else 'Deleted'} records of {len(records.runs)} run(s) and {records.feedback} "
        f"file(s) of feedback ({records.bytes:,} bytes)."
    )


def parse_age(text: str) -> timedelta:
    """A length of time.

    >>> parse_age("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    match = re.fullmatch(r"(\d{1,6})([hdw])", text.strip())
    if match is None:
        raise InvalidInput(f"'{text}' is no length of time.", hint="Examples: 36h, 7d, 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gc", short_help="Delete versions and screenshots that nobody needs.")(gc)
