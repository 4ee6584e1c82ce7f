"""What does a bulk run leave behind? Its account, for people or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from waygraph.cli.index_progress import outcome_text
from waygraph.cli.output import print_json, print_table, say
from waygraph.cli.skips import print_outcomes

if TYPE_CHECKING:
    from pipeline.explore.explain import Outcome
    from pipeline.jobs.report.outcomes import Exploration, RunReport, SiteOutcome

#: A run of more sites is shown as one table; the details are in its report.
_SITES_IN_DETAIL = 5
#: And one of more sites by its failures, of which so many are shown.
_SITES_IN_A_TABLE, _SHOWN_SITES = 200, 30
#: So many failures of a site are shown.
_SHOWN_FAILURES = 3
_SHOWN_DUPLICATES = 10


def print_summary(
    report: RunReport, *, as_json: bool, explained: Mapping[str, Sequence[Outcome]] | None = None
) -> None:
    """Print the report of a run on stdout, with what was left alone on each site when that was asked for."""
    if as_json:
        document = report.model_dump(mode="json", by_alias=True)
        if explained is not None:
            document["skipped"] = {site: [row.to_json() for row in rows] for site, rows in explained.items()}
        print_json(document)
        return
    for site, rows in (explained or {}).items():
        say(f"{site}: {len(rows)} left alone")
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


def _print_end(report: RunReport) -> None:
    for url in report.duplicates[:_SHOWN_DUPLICATES]:
        say(f"left out, its site is already named: {url}")
    if len(report.duplicates) > _SHOWN_DUPLICATES:
        say(f"and {len(report.duplicates) - _SHOWN_DUPLICATES} more (the report names all)")
    totals = report.totals
    say(
        f"{totals.published} of {totals.sites} site(s) published, {totals.states} states and {totals.edges} edges "
        f"in {report.seconds:.1f} s{', interrupted' if report.interrupted else ''}."
    )
    if report.unfinished:
        say(f"The same command goes on with the {report.unfinished} site(s) that are left.")
    say(f"Report: {report.location}, for people: report.html beside it")
    if published := next((s for s in report.sites if s.status == "published"), None):
        option = "" if report.store == "maps" else f" --store {report.store}"
        say("Try next:")
        say(f'  waygraph search{option} {published.site} "where can I ..."')
        say(f"  waygraph show{option} {published.site}")


def _print_failures(report: RunReport) -> None:
    """Of many sites, why some failed, and the first of them."""
    for reason in report.findings.errors:
        say(f"{reason.count:,} failed: {reason.reason}, such as: {reason.example}")
    failed = list(islice((outcome for outcome in report.sites if outcome.error), _SHOWN_SITES))
    if failed:
        _print_table(failed)
    if (more := report.totals.failed - len(failed)) > 0:
        say(f"and {more:,} more that failed (the report names all)")


def _print_table(sites: Iterable[SiteOutcome]) -> None:
    rows = [
        (
            outcome.site,
            outcome.status,
            found.states if (found := outcome.exploration) else "",
            found.edges if found else "",
            f"{outcome.seconds:.1f}",
            outcome.error.message if outcome.error else "partial" if found and found.partial else "",
        )
        for outcome in sites
    ]
    print_table(("site", "outcome", "states", "edges", "seconds", ""), rows, right=("states", "edges", "seconds"))


def _print_site(outcome: SiteOutcome) -> None:
    say(f"{outcome.site}: {outcome_text(outcome)}")
    if outcome.error and outcome.error.hint:
        say(f"  hint: {outcome.error.hint}")
    if found := outcome.exploration:
        _print_exploration(found)
    if made := outcome.publication:
        say(
            f"  encoded {made.encoded} states in {made.encode_seconds:.1f} s ({made.reused} reused), "
            f"published in {made.publish_seconds:.1f} s"
        )
        for failure in made.failures[:_SHOWN_FAILURES]:
            say(f"  cannot be found by searching: {failure.url}: {failure.reason}")
        if made.without_vectors > _SHOWN_FAILURES:
            say(f"    and {made.without_vectors - _SHOWN_FAILURES} more states")
    say()


def _print_exploration(found: Exploration) -> None:
    say(
        f"  explored in {found.seconds:.1f} s: {found.counters.get('explore/activations', 0)} activations, "
        f"{found.counters.get('diff/saved', 0)} saved by differencing, {found.inherited_edges} edges inherited"
    )
    print_table(
        ("depth", "states", "activations", "seconds", "states/min"),
        [
            (f"  {d.depth}", d.states, d.activations, f"{d.seconds:.1f}", f"{d.states_per_minute:.0f}")
            for d in found.depths
        ],
        right=("states", "activations", "seconds", "states/min"),
    )
    for label, reasons in (("skipped", found.skipped), ("failed", found.failed)):
        if reasons:
            say(f"  {label}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items()))
    for item in found.failures[:_SHOWN_FAILURES]:
        say(f"    {item.action}: {item.reason}")
    for text in found.advice:
        say(textwrap.indent(text, "  "))
