"""The report file: one JSON document with one line per site, written and read as a stream."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import dropwhile, takewhile
from typing import Any, overload

from pydantic import ValidationError

from waygraph.core.errors import StoreError
from waygraph.index.store import Store
from waygraph.index.store.upkeep.retention import RUN_ID
from waygraph.pipeline.jobs.report.outcomes import SiteOutcome
from waygraph.pipeline.jobs.report.run_report import RunReport

REPORT_NAME = "report.json"
#: Maximal number of outcomes held in memory. Those of larger runs are read on access.
MAX_SITES_IN_MEMORY = 1_000
_SITES = '  "sites": ['
_END = "  ]\n}\n"


def write_report(store: Store, report: RunReport, outcomes: Iterable[SiteOutcome]) -> None:
    """Write a report, with one outcome in memory at a time.

    Parameters
    ----------
    store
        Where to write.
    report
        The report without its sites.
    outcomes
        The sites.

    Raises
    ------
    StoreError
        If the store cannot be written.
    """
    store.write_run_stream(report.run_id, REPORT_NAME, _chunks(report, outcomes))


def _chunks(report: RunReport, outcomes: Iterable[SiteOutcome]) -> Iterator[bytes]:
    head = report.model_dump_json(indent=2, exclude={"sites"})
    yield f"{head.rstrip().removesuffix('}').rstrip()},\n{_SITES}\n".encode()
    between, end = "", ""
    for outcome in outcomes:
        yield f"{between}{outcome.model_dump_json()}".encode()
        between, end = ",\n", "\n"
    yield f"{end}{_END}".encode()


def read_report_head(store: Store, run_id: str) -> RunReport:
    """Read a report without its sites. Raise NotFound if there is none, StoreError if it cannot be read."""
    with closing(_lines(store, run_id)) as lines:
        head = "\n".join(takewhile(lambda line: line != _SITES, lines))
    try:
        known: dict[str, Any] = json.loads(f"{head.rstrip().removesuffix(',')}}}")
    except ValueError as error:
        return _whole(store, run_id, f"it is no JSON document: {error}")
    if "findings" not in known:
        return _whole(store, run_id, "it has no findings")
    try:
        return RunReport.model_validate({**known, "sites": ()})
    except ValidationError as error:
        raise _unreadable(run_id, "its numbers are not those of a report", error) from error


def _whole(store: Store, run_id: str, reason: str) -> RunReport:
    """Read a report of an earlier version, which does not have one site per line."""
    try:
        document = json.loads(store.read_run(run_id, REPORT_NAME))
        document["sites"] = tuple(SiteOutcome.model_validate(site) for site in document["sites"])
        return RunReport.model_validate(document)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise _unreadable(run_id, reason, error) from error


def _unreadable(run_id: str, reason: str, error: Exception) -> StoreError:
    return StoreError(
        f"The report of run {run_id} cannot be read: {reason}; {str(error).splitlines()[0]}.",
        hint="It is damaged, or another version wrote it.",
    )


def read_report(store: Store, run_id: str) -> RunReport:
    """Read a report with its sites. Raise NotFound if there is none."""
    report = read_report_head(store, run_id)
    if report.sites:
        return report
    return report.model_copy(update={"sites": stored_sites(store, report)})


def stored_sites(store: Store, report: RunReport) -> Sequence[SiteOutcome]:
    """Return the sites of a written report, in memory if they are few."""
    stored = StoredSites(store, report.run_id, report.totals.sites)
    return tuple(stored) if len(stored) <= MAX_SITES_IN_MEMORY else stored


class StoredSites(Sequence[SiteOutcome]):
    """The sites of a written report. Iteration and access by index each take one pass over the file."""

    def __init__(self, store: Store, run_id: str, count: int) -> None:
        self._store = store
        self._run_id = run_id
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SiteOutcome]:
        with closing(_lines(self._store, self._run_id)) as lines:
            for line in dropwhile(lambda line: line != _SITES, lines):
                if line.startswith("{"):
                    yield SiteOutcome.model_validate_json(line.removesuffix(","))

    @overload
    def __getitem__(self, index: int) -> SiteOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SiteOutcome]: ...
    def __getitem__(self, index: int | slice) -> SiteOutcome | Sequence[SiteOutcome]:
        wanted = range(self._count)[index]
        if isinstance(wanted, int):
            return next(site for place, site in enumerate(self) if place == wanted)
        places = set(wanted)
        found = {place: site for place, site in enumerate(self) if place in places}
        return [found[place] for place in wanted]


def _lines(store: Store, run_id: str) -> Generator[str, None, None]:
    rest = b""
    for chunk in store.read_run_stream(run_id, REPORT_NAME):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode() for line in whole)
    if rest:
        yield rest.decode()


def list_run_ids(store: Store) -> list[str]:
    """Return the ids of the runs in a store, newest first."""
    return sorted(filter(RUN_ID.fullmatch, store.runs()), reverse=True)
