"""Summary of a finished run, as text or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from waygraph.cli.display.element_outcomes import print_outcomes
from waygraph.cli.display.run_progress import outcome_text
from waygraph.cli.output import clean, print_json, print_table, say

if TYPE_CHECKING:
    from waygraph.pipeline.explore.policies.explain import ExplainedElement
    from waygraph.pipeline.jobs.report.outcomes import Exploration, SiteOutcome
    from waygraph.pipeline.jobs.report.run_report import RunReport

#: Up to this number of sites each is printed in detail, beyond it as a row of a table.
_SITES_IN_DETAIL = 5
#: Beyond this number of sites only failed sites are printed, at most `_SHOWN_SITES` of them.
_SITES_IN_A_TABLE, _SHOWN_SITES = 200, 30
#: Limit of printed failures per site.
_SHOWN_FAILURES = 3
#: Limit of printed requests that pages sent while loading, and that actions sent.
_SHOWN_SENDS = 4
#: Limit of printed duplicate URLs.
_SHOWN_DUPLICATES = 10
#: Limit of printed sites at which a larger budget would find more.
_SHOWN_PROMISING = 3


def print_summary(
    report: RunReport, *, as_json: bool, skipped: Mapping[str, Sequence[ExplainedElement]] | None = None
) -> None:
    """Print the report of a run on stdout.

    Parameters
    ----------
    report
        The report.
    as_json
        Print the whole report as JSON.
    skipped
        Skipped elements by site key, to be printed as well.
    """
    if as_json:
        document = report.model_dump(mode="json", by_alias=True)
        if skipped is not None:
            document["skipped"] = {site: [row.to_json() for row in rows] for site, rows in skipped.items()}
        print_json(document)
        return
    for site, rows in (skipped or {}).items():
        say(f"{site}: {len(rows)} skipped")
        print_outcomes(rows)
        say()
    if len(report.sites) <= _SITES_IN_DETAIL:
        for outcome in report.sites:
            _print_site(outcome)
    elif len(report.sites) <= _SITES_IN_A_TABLE:
        _print_table(report.sites)
    else:
        _print_failures(report)
    _print_end(report)


def print_how_to_resume(report: RunReport) -> None:
    """Print how an unfinished run is resumed, and nothing for a finished one."""
    if report.unfinished:
        say(f"To resume with the {report.unfinished} remaining site(s), run the same command again.")


def print_report_location(report: RunReport) -> None:
    """Print where the report is."""
    say(f"Report: {report.location} (as a page: report.html in the same folder)")


def _print_end(report: RunReport) -> None:
    for url in report.duplicates[:_SHOWN_DUPLICATES]:
        say(f"duplicate, its site is already in the list: {url}")
    if len(report.duplicates) > _SHOWN_DUPLICATES:
        say(f"and {len(report.duplicates) - _SHOWN_DUPLICATES} more (the report lists all)")
    totals = report.totals
    say(
        f"{totals.published} of {totals.sites} site(s) published, {totals.states} states and {totals.edges} edges "
        f"in {report.seconds:.1f} s{', interrupted' if report.interrupted else ''}."
    )
    for each in report.findings.promising[:_SHOWN_PROMISING]:
        say(
            f"A larger budget would find more at {each.site}: 50 more actions are expected to find about "
            f"{each.expected_gain:.0f} pages of new kinds."
        )
    print_how_to_resume(report)
    print_report_location(report)
    if published := next((s for s in report.sites if s.status == "published"), None):
        option = "" if report.store == "maps" else f" --store {report.store}"
        say("Try next:")
        say(f'  waygraph search{option} {published.site} "where can I ..."')
        say(f"  waygraph show{option} {published.site}")


def _print_failures(report: RunReport) -> None:
    """Print the failed sites of a run of many sites, by reason and the first ones by name."""
    for reason in report.findings.errors:
        say(f"{reason.count:,} failed: {reason.reason}, for example {reason.example}")
    failed = list(islice((outcome for outcome in report.sites if outcome.error), _SHOWN_SITES))
    if failed:
        _print_table(failed)
    if (more := report.totals.failed - len(failed)) > 0:
        say(f"and {more:,} more that failed (the report lists all)")


def _print_table(sites: Iterable[SiteOutcome]) -> None:
    rows = [
        (
            outcome.site,
            outcome.status,
            exploration.states if (exploration := outcome.exploration) else "",
            exploration.edges if exploration else "",
            f"{outcome.seconds:.1f}",
            outcome.error.message if outcome.error else "partial" if exploration and exploration.partial else "",
        )
        for outcome in sites
    ]
    print_table(("site", "outcome", "states", "edges", "seconds", ""), rows, right=("states", "edges", "seconds"))


def _print_site(outcome: SiteOutcome) -> None:
    say(f"{outcome.site}: {outcome_text(outcome)}")
    if outcome.error and outcome.error.hint:
        say(f"  hint: {outcome.error.hint}")
    if exploration := outcome.exploration:
        _print_exploration(exploration)
    if publication := outcome.publication:
        say(
            f"  encoded {publication.encoded} states in {publication.encode_seconds:.1f} s "
            f"({publication.reused} reused), published in {publication.publish_seconds:.1f} s"
        )
        for failure in publication.failures[:_SHOWN_FAILURES]:
            say(f"  not encoded, so searches do not find it: {failure.url}: {failure.reason}")
        if publication.without_vectors > _SHOWN_FAILURES:
            say(f"    and {publication.without_vectors - _SHOWN_FAILURES} more states")
    say()


def _print_exploration(exploration: Exploration) -> None:
    say(
        f"  explored in {exploration.seconds:.1f} s: {exploration.counters.get('explore/activations', 0)} activations, "
        f"{exploration.counters.get('diff/saved', 0)} saved by differencing, "
        f"{exploration.inherited_edges} edges inherited"
    )
    print_table(
        ("depth", "states", "activations", "seconds", "states/min"),
        [
            (f"  {d.depth}", d.states, d.activations, f"{d.seconds:.1f}", f"{d.states_per_minute:.0f}")
            for d in exploration.depths
        ],
        right=("states", "activations", "seconds", "states/min"),
    )
    _print_requests(exploration)
    for label, reasons in (("skipped", exploration.skipped), ("failed", exploration.failed)):
        if reasons:
            say(f"  {label}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items()))
    for item in exploration.failures[:_SHOWN_FAILURES]:
        say(f"    {item.action}: {item.reason}")
    for label, requests in (
        ("sent by visiting, as any browser does", exploration.sent_by_visits),
        ("sent by actions, may change something", list(exploration.stopped)),
        ("scripts request more than they may, the rest was not sent", exploration.over_budget),
    ):
        if requests:
            more = f" and {len(requests) - _SHOWN_SENDS} more" if len(requests) > _SHOWN_SENDS else ""
            say(f"  {label}: {clean(', '.join(requests[:_SHOWN_SENDS]), one_line=True)}{more}")
    for text in exploration.advice:
        say(textwrap.indent(text, "  "))


def _print_requests(exploration: Exploration) -> None:
    """Print what the site's servers were asked for, per state."""
    counters, states = exploration.counters, exploration.states
    if not states or "requests/document" not in counters:
        return
    document, script, static = (
        counters.get(f"requests/{kind}", 0) / states for kind in ("document", "script", "static")
    )
    reused = counters.get("requests/static_reused", 0) + counters.get("requests/script_reused", 0)
    say(
        f"  requested per state: {document:.1f} documents, {script:.1f} by scripts, {static:.1f} static files "
        f"({reused / states:.1f} more answered from memory), "
        f"{counters.get('egress/bytes', 0) / states / 1e6:.2f} MB"
    )
