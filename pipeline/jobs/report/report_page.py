"""The HTML page of a run: numbers, plots, failures and thumbnails, for any number of sites."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice

from waygraph.index.store import Store
from waygraph.pipeline.jobs.report.contact_sheet import Thumbnail, load_thumbnail, sample_sites
from waygraph.pipeline.jobs.report.html_page import data_url, render_page, render_table
from waygraph.pipeline.jobs.report.outcomes import Promising, Quartiles, Reason, SiteOutcome
from waygraph.pipeline.jobs.report.plots import (
    STYLE,
    bar_chart,
    discovery_chart,
    format_number,
    histogram_chart,
    velocity_chart,
)
from waygraph.pipeline.jobs.report.run_report import RunReport

PAGE_NAME = "report.html"
#: Maximal number of sites with a bar each. Of more sites, the distribution and the largest ones are drawn.
_MAX_BARS, _LARGEST_SITES = 40, 10
#: Maximal number of rows in the tables of failed sites and of other sites. The JSON has all.
_MAX_FAILURES, _MAX_ROWS = 200, 200
_MAX_REASONS = 15
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
_STOPPED_BY = {
    "": "",
    "signal": " It was interrupted.",
    "error": " An error ended it.",
    "max_total_states": " The budget of states is spent.",
    "max_total_seconds": " The budget of time is spent.",
}


def report_page(store: Store, report: RunReport) -> str:
    """Return the HTML page of a report. Texts of sites are escaped; the page loads nothing and has no script.

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
    return render_page(f"Run {report.run_id}", "".join(_body(store, report)), style=_STYLE)


def _body(store: Store, report: RunReport) -> Iterator[str]:
    findings = report.findings
    yield _summary(report)
    if findings.depths:
        yield "<h2>Discovery velocity by depth</h2>"
        yield '<p class="note">New states per minute. A box holds the middle half of the sites, its bar is the median, '
        yield "the line goes from the slowest to the fastest site.</p>"
        yield velocity_chart(findings.depths)
    yield from _promising(findings.promising)
    if findings.states_per_site is not None:
        yield f"<h2>States per site</h2>{_spread(findings.states_per_site, 'states')}"
        yield _states(report)
    yield from _reasons("Why sites failed", findings.errors, "bad")
    yield from _reasons("Maps that a limit made partial", findings.stopped, "pale")
    yield from _reasons("Elements that failed", findings.failed, "bad")
    yield from _reasons("Elements and URLs that were skipped", findings.skipped, "pale")
    yield from _times(report)
    yield from _contact_sheet(store, report)
    yield from _tables(report)


def _summary(report: RunReport) -> str:
    totals, findings = report.totals, report.findings
    numbers = [
        (totals.sites, "sites"),
        *((count, _STATUS[name]) for name in _STATUS if (count := getattr(totals, name))),
        (totals.states, "states"),
        (totals.edges, "actions"),
        (findings.retried, "sites retried"),
        (findings.without_vectors, "states without vectors"),
    ]
    items = "".join(f"<li><b>{count:,}</b>{escape(name)}</li>" for count, name in numbers if count)
    calls = f", in {len(report.calls)} invocations" if len(report.calls) > 1 else ""
    ended = _STOPPED_BY[report.stopped_by]
    resumable = f" The same command continues with {report.unfinished:,} sites." if report.unfinished else ""
    return (
        f"<p>{escape(report.work)} into {escape(report.store)}, begun {escape(report.started)}, ended "
        f"{escape(report.finished)}: {_duration(report.seconds)} of work{calls}.{ended}{resumable}</p>"
        f'<ul class="numbers">{items}</ul>'
    )


def _promising(sites: Sequence[Promising]) -> Iterator[str]:
    if not sites:
        return
    yield "<h2>Where a larger budget would find most</h2>"
    yield '<p class="note">Sites that a limit stopped. The expected number of pages of new kinds is predicted from the '
    yield "results of elements of the same kinds.</p>"
    rows = [(each.site, f"{each.states:,}", each.stopped_by, format_number(each.expected_gain)) for each in sites]
    yield render_table(
        ("site", "states", "stopped by", "expected from 50 more actions"),
        rows,
        right=("states", "expected from 50 more actions"),
    )
    yield discovery_chart([(each.site, each.rounds) for each in sites])


def _states(report: RunReport) -> str:
    mapped = report.totals.published + report.totals.unchanged
    if mapped > _MAX_BARS:
        largest = heapq.nlargest(_LARGEST_SITES, _sizes(report), key=lambda row: row[1])
        histogram = histogram_chart(report.findings.states_histogram, unit="states")
        return f"{histogram}<h3>Largest sites</h3>{bar_chart(largest)}"
    return bar_chart(sorted(_sizes(report), key=lambda row: -row[1]))


def _sizes(report: RunReport) -> Iterator[tuple[str, float]]:
    return ((site.site, float(site.publication.states)) for site in report.sites if site.publication is not None)


def _reasons(title: str, reasons: Sequence[Reason], kind: str) -> Iterator[str]:
    if not reasons:
        return
    yield f"<h2>{escape(title)}</h2>"
    yield bar_chart([(reason.reason, float(reason.count)) for reason in reasons[:_MAX_REASONS]], kind=kind)
    if len(reasons) > _MAX_REASONS:
        yield f'<p class="note">and {len(reasons) - _MAX_REASONS} other reasons, see the JSON</p>'


def _times(report: RunReport) -> Iterator[str]:
    seconds_per_site = report.findings.seconds_per_site
    yield "<h2>Times</h2>"
    if seconds_per_site is not None:
        yield _spread(seconds_per_site, "seconds from the begin of a site until its outcome")
        if seconds_per_site.count > 1:
            yield histogram_chart(report.findings.seconds_histogram, unit="seconds")
    rows = [(name.replace("_", " "), f"{seconds:,.1f}") for name, seconds in report.phases.items()]
    yield render_table(("phase of the last invocation", "seconds"), rows, right=("seconds",))
    if len(report.calls) > 1:
        calls = [(number, call.started, f"{call.seconds:,.1f}") for number, call in enumerate(report.calls, 1)]
        yield render_table(("invocation", "begun", "seconds"), calls[-_MAX_ROWS:], right=("invocation", "seconds"))


def _spread(numbers: Quartiles, what: str) -> str:
    if numbers.count == 1:
        return f'<p class="note">One site: {format_number(numbers.median)} {escape(what)}.</p>'
    half = f"half of the sites between {format_number(numbers.lower)} and {format_number(numbers.upper)}"
    ends = f"least {format_number(numbers.least)}, most {format_number(numbers.most)}"
    median = f"Median {format_number(numbers.median)} {escape(what)}"
    return f'<p class="note">{median}, {half}, {ends}; {numbers.count:,} sites.</p>'


def _contact_sheet(store: Store, report: RunReport) -> Iterator[str]:
    mapped = report.totals.published + report.totals.unchanged
    thumbnails = [
        load_thumbnail(store, site.map, site.publication.version, site.publication.states)
        for site in sample_sites(report.sites, mapped)
        if site.publication is not None
    ]
    if thumbnails:
        of = f" ({len(thumbnails)} of {mapped:,}, evenly from the list)" if mapped > len(thumbnails) else ""
        yield f'<h2>Start pages{of}</h2><div class="sheet">{"".join(map(_figure, thumbnails))}</div>'


def _figure(thumbnail: Thumbnail) -> str:
    image = (
        f'<img src="{data_url(thumbnail.jpeg)}" alt="">'
        if thumbnail.jpeg
        else f'<div class="none">{escape(thumbnail.problem)}</div>'
    )
    return f"<figure>{image}<figcaption>{escape(thumbnail.site)}, {thumbnail.states:,} states</figcaption></figure>"


def _tables(report: RunReport) -> Iterator[str]:
    totals = report.totals
    if totals.failed:
        failed = list(islice((site for site in report.sites if site.error is not None), _MAX_FAILURES))
        rows = [
            (site.site, site.error.title, site.attempts, f"{site.error.message} {site.error.hint}".strip())
            for site in failed
            if site.error is not None
        ]
        yield "<h2>Sites that failed</h2>"
        yield render_table(("site", "error", "attempts", "message"), rows, right=("attempts",))
        yield _more(totals.failed - len(failed))
    others = list(islice((site for site in report.sites if site.error is None), _MAX_ROWS))
    yield "<h2>Sites</h2>"
    yield render_table(
        ("site", "outcome", "attempts", "states", "actions", "seconds", ""),
        map(_row, others),
        right=("attempts", "states", "actions", "seconds"),
    )
    yield _more(totals.sites - totals.failed - len(others))


def _row(site: SiteOutcome) -> tuple[object, ...]:
    exploration = site.exploration
    partial = f"partial ({exploration.stopped_by})" if exploration is not None and exploration.partial else ""
    return (
        site.site,
        _STATUS[site.status],
        site.attempts,
        f"{site.publication.states:,}" if site.publication is not None else "",
        f"{exploration.edges:,}" if exploration is not None else "",
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
