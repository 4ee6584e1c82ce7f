"""How is a run shown to people? One HTML file: numbers, plots, failures and pictures, whatever the number of sites."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice

from index.store import Store
from pipeline.jobs.report.contact_sheet import Thumbnail, choose, thumbnail
from pipeline.jobs.report.html_page import inlined, page, table
from pipeline.jobs.report.outcomes import Quartiles, Reason, RunReport, SiteOutcome
from pipeline.jobs.report.plots import STYLE, bars, columns, number, velocity

PAGE_NAME = "report.html"
#: Up to so many sites have a bar each; of more, their distribution is drawn.
_BARS = 40
#: Sites in the tables of failures and of all; the JSON has every one.
_FAILURES, _LISTED = 200, 200
_REASONS = 15
_STYLE = f"""{STYLE}
ul.numbers {{ display: flex; flex-wrap: wrap; gap: 1.6rem; list-style: none; padding: 0; }}
ul.numbers li {{ color: #666; }} ul.numbers b {{ display: block; font-size: 1.6rem; color: #222; font-weight: 600; }}
div.sheet {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 1rem; }}
div.sheet img, div.sheet .none {{ width: 100%; aspect-ratio: 8 / 5; object-fit: cover; object-position: top;
  border: 1px solid #ccc; display: block; box-sizing: border-box; }}
div.sheet .none {{ background: #f3f3f3; color: #888; padding: 1rem; }}
h2 {{ margin-top: 2.4rem; border-top: 1px solid #ddd; padding-top: .8rem; font-size: 1.2rem; }}
p.note {{ color: #666; max-width: 46rem; }}
"""
_STATUS = {"published": "published", "unchanged": "unchanged", "failed": "failed", "interrupted": "left unfinished"}


def report_page(store: Store, report: RunReport) -> str:
    """The page of a report that is written. Everything that sites said is escaped; it loads nothing, and has no script.

    Parameters
    ----------
    store : where the maps are, for their pictures.

    """
    return page(f"Run {report.run_id}", "".join(_body(store, report)), style=_STYLE)


def _body(store: Store, report: RunReport) -> Iterator[str]:
    found = report.findings
    yield _summary(report)
    if found.depths:
        yield "<h2>Discovery velocity by depth</h2>"
        yield '<p class="note">New states per minute. A box holds the middle half of the sites, its bar is the median, '
        yield "the line goes from the slowest to the fastest site.</p>"
        yield velocity(found.depths)
    if found.states_per_site is not None:
        yield f"<h2>States per site</h2>{_spread(found.states_per_site, 'states')}"
        yield _states(report)
    yield from _reasons("Why sites failed", found.errors, "bad")
    yield from _reasons("Maps that were cut short by a limit", found.stopped, "pale")
    yield from _reasons("Elements that were tried in vain", found.failed, "bad")
    yield from _reasons("Elements and addresses that were left alone", found.skipped, "pale")
    yield from _times(report)
    yield from _sheet(store, report)
    yield from _tables(report)


def _summary(report: RunReport) -> str:
    totals, found = report.totals, report.findings
    numbers = [
        (totals.sites, "sites"),
        *((count, _STATUS[name]) for name in _STATUS if (count := getattr(totals, name))),
        (totals.states, "states"),
        (totals.edges, "actions"),
        (found.retried, "sites tried again"),
        (found.without_vectors, "states that no search finds"),
    ]
    shown = "".join(f"<li><b>{count:,}</b>{escape(name)}</li>" for count, name in numbers if count)
    calls = f", in {len(report.calls)} calls" if len(report.calls) > 1 else ""
    ended = {
        "": "",
        "signal": " It was told to stop.",
        "error": " It could not go on.",
        "max_total_states": " The states for this call are used up.",
        "max_total_seconds": " The time for this call is used up.",
    }[report.stopped_by]
    goes_on = f" The same command goes on with {report.unfinished:,} sites." if report.unfinished else ""
    return (
        f"<p>{escape(report.work)} into {escape(report.store)}, begun {escape(report.started)}, ended "
        f"{escape(report.finished)}: {_duration(report.seconds)} of work{calls}.{ended}{goes_on}</p>"
        f'<ul class="numbers">{shown}</ul>'
    )


def _states(report: RunReport) -> str:
    mapped = report.totals.published + report.totals.unchanged
    if mapped > _BARS:
        largest = heapq.nlargest(10, _sizes(report), key=lambda row: row[1])
        return f"{columns(report.findings.states_histogram, unit='states')}<h3>The largest</h3>{bars(largest)}"
    return bars(sorted(_sizes(report), key=lambda row: -row[1]))


def _sizes(report: RunReport) -> Iterator[tuple[str, float]]:
    return ((site.site, float(site.publication.states)) for site in report.sites if site.publication is not None)


def _reasons(title: str, reasons: Sequence[Reason], kind: str) -> Iterator[str]:
    if not reasons:
        return
    yield f"<h2>{escape(title)}</h2>"
    yield bars([(reason.reason, float(reason.count)) for reason in reasons[:_REASONS]], kind=kind)
    if len(reasons) > _REASONS:
        yield f'<p class="note">and {len(reasons) - _REASONS} other reasons, see the JSON</p>'


def _times(report: RunReport) -> Iterator[str]:
    spent = report.findings.seconds_per_site
    yield "<h2>Times</h2>"
    if spent is not None:
        yield _spread(spent, "seconds from when a site was begun until its outcome")
        if spent.count > 1:
            yield columns(report.findings.seconds_histogram, unit="seconds")
    rows = [(name.replace("_", " "), f"{seconds:,.1f}") for name, seconds in report.phases.items()]
    yield table(("of the last call", "seconds"), rows, right=("seconds",))
    if len(report.calls) > 1:
        calls = [(place, call.started, f"{call.seconds:,.1f}") for place, call in enumerate(report.calls, 1)]
        yield table(("call", "begun", "seconds"), calls[-_LISTED:], right=("call", "seconds"))


def _spread(numbers: Quartiles, what: str) -> str:
    if numbers.count == 1:
        return f'<p class="note">One site: {number(numbers.median)} {escape(what)}.</p>'
    half = f"half of the sites between {number(numbers.lower)} and {number(numbers.upper)}"
    ends = f"least {number(numbers.least)}, most {number(numbers.most)}"
    return (
        f'<p class="note">Median {number(numbers.median)} {escape(what)}, {half}, {ends}; {numbers.count:,} sites.</p>'
    )


def _sheet(store: Store, report: RunReport) -> Iterator[str]:
    mapped = report.totals.published + report.totals.unchanged
    shown = [
        thumbnail(store, site.map, site.publication.version, site.publication.states)
        for site in choose(report.sites, mapped)
        if site.publication is not None
    ]
    if shown:
        of = f" ({len(shown)} of {mapped:,}, evenly from the list)" if mapped > len(shown) else ""
        yield f'<h2>Start pages{of}</h2><div class="sheet">{"".join(map(_figure, shown))}</div>'


def _figure(shown: Thumbnail) -> str:
    image = (
        f'<img src="{inlined(shown.jpeg)}" alt="">'
        if shown.jpeg
        else f'<div class="none">{escape(shown.problem)}</div>'
    )
    return f"<figure>{image}<figcaption>{escape(shown.site)}, {shown.states:,} states</figcaption></figure>"


def _tables(report: RunReport) -> Iterator[str]:
    totals, listed = report.totals, ("site", "outcome", "tries", "states", "actions", "seconds", "")
    right = ("tries", "states", "actions", "seconds")
    if totals.failed:
        failed = list(islice((site for site in report.sites if site.error is not None), _FAILURES))
        yield "<h2>Sites that failed</h2>"
        rows = [
            (site.site, site.error.title, site.attempts, f"{site.error.message} {site.error.hint}".strip())
            for site in failed
            if site.error is not None
        ]
        yield table(("site", "error", "tries", "message"), rows, right=("tries",)) + _more(totals.failed - len(failed))
    yield "<h2>Sites</h2>"
    others = (site for site in report.sites if site.error is None)
    shown = list(islice(others, _LISTED))
    yield table(listed, map(_row, shown), right=right) + _more(totals.sites - totals.failed - len(shown))


def _row(site: SiteOutcome) -> tuple[object, ...]:
    found = site.exploration
    partial = f"partial ({found.stopped_by})" if found is not None and found.partial else ""
    return (
        site.site,
        _STATUS[site.status],
        site.attempts,
        f"{site.publication.states:,}" if site.publication is not None else "",
        f"{found.edges:,}" if found is not None else "",
        f"{site.seconds:,.1f}" if site.seconds else "",
        partial,
    )


def _more(count: int) -> str:
    return f'<p class="note">and {count:,} more, see the JSON</p>' if count > 0 else ""


def _duration(seconds: float) -> str:
    hours, minutes = int(seconds // 3_600), int(seconds % 3_600 // 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {seconds % 60:.0f} s" if minutes else f"{seconds:.1f} s"
