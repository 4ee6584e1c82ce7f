"""What became of what is not in a map? Elements left alone, tried in vain, or not reached, each with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from waygraph.cli.output import clean, print_json, say
from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from pipeline.explore.explain import Kind, Outcome
    from pipeline.jobs.report.outcomes import RunReport

DEFAULT_LIMIT = 100


def explain_sites(report: RunReport, store: str) -> dict[str, list[Outcome]]:
    """What the published sites of a run left alone, by site."""
    from pipeline.explore.explain import choose

    return {
        outcome.site: list(choose(stored_outcomes(store, outcome.site), kinds=("skipped",)))
        for outcome in report.sites
        if outcome.status == "published"
    }


def stored_outcomes(store: str, site: str, *, done: bool = False) -> list[Outcome]:
    """All outcomes of the current version of a site, in the order they were found; with `done` those that worked too.

    From the table that its exploration wrote; versions without one have the first of each kind in their report.
    """
    from index.store import Store
    from index.store.fates import read_fates
    from pipeline.explore.explain import outcomes, tabled

    opened = Store.open(store)
    snapshot = opened.read(site)
    report = snapshot.manifest.report
    urls = {node.id: node.url for node in snapshot.graph.nodes.values()}
    table = str(report.get("fates", ""))
    if not opened.blobs.has(table):
        return list(outcomes(report, urls))
    rows = (row for row in read_fates(opened.blobs.get(table)) if done or row["status"] != "done")
    return list(tabled(rows, urls))


def show_outcomes(
    rows: Sequence[Outcome], *, kinds: Iterable[Kind], reasons: Sequence[str], limit: int, offset: int, as_json: bool
) -> None:
    """Print one page of the outcomes of the named kinds and reasons (none named: all).

    Raises
    ------
    InvalidInput
        When a reason is named that nothing has.

    """
    from pipeline.explore.explain import choose

    wanted = list(kinds)
    of_kind = list(choose(rows, kinds=wanted))
    counts = Counter(row.reason for row in of_kind)
    if unknown := [reason for reason in reasons if reason not in counts]:
        known = ", ".join(f"{reason} ({count})" for reason, count in counts.most_common(20)) or "none"
        raise InvalidInput(f"Nothing has the reason '{unknown[0]}'.", hint=f"Reasons: {known}")
    chosen = list(choose(of_kind, reasons=reasons))
    page = list(islice(chosen, offset, offset + limit))
    if as_json:
        document = {"total": len(chosen), "offset": offset, "outcomes": [row.to_json() for row in page]}
        print_json({**document, "reasons": dict(counts.most_common())})
        return
    say(f"{len(chosen)} {' or '.join(wanted) if wanted else 'outcomes'}, by reason:")
    for reason, count in Counter(row.reason for row in chosen).most_common():
        say(f"  {count:>7}  {clean(reason, one_line=True)}")
    say()
    print_outcomes(page)
    if offset + len(page) < len(chosen):
        say(f"{len(chosen) - offset - len(page)} more: --offset {offset + len(page)}")


def print_outcomes(rows: Iterable[Outcome]) -> None:
    """Print outcomes for people, those of one state together."""
    for url, here in _by_state(rows).items():
        say(f"on {url or '(a state that was not kept)'}")
        for row in here:
            detail = f": {row.detail}" if row.detail else ""
            say(clean(f"  {row.kind} {row.element}, {row.reason}{detail}", one_line=False).replace("\n", " "))
            if row.rule:
                say(f"      decided by {clean(row.rule, one_line=True)}")
            if row.remedy:
                say(f"      {clean(row.remedy, one_line=True)}")


def _by_state(rows: Iterable[Outcome]) -> Mapping[str, list[Outcome]]:
    states: dict[str, list[Outcome]] = {}
    for row in rows:
        states.setdefault(row.url, []).append(row)
    return states
