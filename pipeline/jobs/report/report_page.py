"""The page of a run as a file: numbers, plots, failures and start pages, for any number of sites."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any

from waygraph.core.report_file import ReportFile
from waygraph.core.text import shortened
from waygraph.index.store import Store
from waygraph.pipeline.jobs.report.contact_sheet import load_thumbnail, sample_sites
from waygraph.pipeline.jobs.report.outcomes import SiteOutcome
from waygraph.pipeline.jobs.report.run_report import RunReport

PAGE_NAME = "report.html"
#: Maximal number of sites with a bar each. Of more sites, the distribution and the largest ones are drawn.
MAX_BARS, LARGEST_SITES = 40, 10
#: Maximal number of rows in the tables of failed sites, of other sites, and of invocations. The JSON has all.
MAX_ROWS = 200
_MAX_TEXT = 600
#: Fields of a report that its page shows as they are.
_FIELDS = (
    "run_id",
    "store",
    "work",
    "started",
    "finished",
    "seconds",
    "stopped_by",
    "unfinished",
    "phases",
    "findings",
)


def report_page(store: Store, report: RunReport) -> str:
    """Return the page of a report as one HTML document.

    Parameters
    ----------
    store
        Where the maps are, for thumbnails.
    report
        A written report.

    Returns
    -------
    str
        HTML.
    """
    sheet, images = _contact_sheet(store, report)
    failed = islice((site for site in report.sites if site.error is not None), MAX_ROWS)
    others = islice((site for site in report.sites if site.error is None), MAX_ROWS)
    calls = [{"number": number, **call.model_dump()} for number, call in enumerate(report.calls, 1)]
    content = {
        **report.model_dump(mode="json", include=set(_FIELDS)),
        "calls": calls[-MAX_ROWS:],
        "calls_total": len(calls),
        "sizes": _sizes(report),
        "sheet": sheet,
        "failed": list(map(_failed_row, failed)),
        "others": list(map(_row, others)),
    }
    return ReportFile("run", f"Run {report.run_id}", content, images).html()


def _contact_sheet(store: Store, report: RunReport) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    mapped = report.totals.published + report.totals.unchanged
    sheet: list[dict[str, Any]] = []
    images: dict[str, bytes] = {}
    for site in sample_sites(report.sites, mapped):
        if site.publication is None:
            continue
        shown = load_thumbnail(store, site.map, site.publication.version, site.publication.states)
        key = f"start-{len(sheet)}" if shown.jpeg else None
        if key is not None:
            images[key] = shown.jpeg
        sheet.append({"site": shown.site, "states": shown.states, "image": key, "problem": shown.problem})
    return sheet, images


def _sizes(report: RunReport) -> list[tuple[str, int]]:
    """Return the numbers of states of all maps, or of the largest if there are many, the largest first."""
    mapped = report.totals.published + report.totals.unchanged
    most = LARGEST_SITES if mapped > MAX_BARS else MAX_BARS
    return heapq.nlargest(most, _all_sizes(report), key=lambda row: row[1])


def _all_sizes(report: RunReport) -> Iterator[tuple[str, int]]:
    return ((site.site, site.publication.states) for site in report.sites if site.publication is not None)


def _failed_row(site: SiteOutcome) -> dict[str, Any]:
    error = site.error
    if error is None:
        raise ValueError("a failed site has an error")
    message = shortened(f"{error.message} {error.hint}".strip(), _MAX_TEXT)
    return {"site": site.site, "title": error.title, "attempts": site.attempts, "message": message}


def _row(site: SiteOutcome) -> dict[str, Any]:
    exploration, publication = site.exploration, site.publication
    return {
        "site": site.site,
        "status": site.status,
        "attempts": site.attempts,
        "states": publication.states if publication is not None else None,
        "actions": exploration.edges if exploration is not None else None,
        "seconds": round(site.seconds, 1),
        "partial": f"partial ({exploration.stopped_by})" if exploration is not None and exploration.partial else "",
    }
