"""Outcomes of elements: those that were skipped, failed or are pending, with the reason, the rule and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from waygraph.cli.output import clean, print_json, say
from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.pipeline.explore.policies.explain import ExplainedElement, OutcomeKind
    from waygraph.pipeline.jobs.report.run_report import RunReport


@dataclass(frozen=True, slots=True)
class OutcomeSelection:
    """The outcomes to print.

    Attributes
    ----------
    kinds
        Kinds of outcomes; none: all kinds.
    reasons
        Reasons; none: all reasons.
    limit
        Largest number of outcomes to print.
    offset
        Number of outcomes to leave out first.
    """

    kinds: Sequence[OutcomeKind] = ()
    reasons: Sequence[str] = ()
    limit: int = 100
    offset: int = 0


def skipped_elements(report: RunReport, store: str) -> dict[str, list[ExplainedElement]]:
    """Return the skipped elements of each site that a run published, by site key."""
    from waygraph.pipeline.explore.policies.explain import select_elements

    return {
        outcome.site: list(select_elements(read_outcomes(store, outcome.site), kinds=("skipped",)))
        for outcome in report.sites
        if outcome.status == "published"
    }


def read_outcomes(store: str, site: str, *, done: bool = False) -> list[ExplainedElement]:
    """Read the element outcomes of the current version of a map.

    They are in a table that the exploration wrote. Versions without a table list the first outcomes of each kind in
    their report.

    Parameters
    ----------
    store
        Location of the store.
    site
        Key of the site.
    done
        Include the elements that were acted on.

    Returns
    -------
    list of ExplainedElement
        In the order in which they were found.
    """
    from waygraph.index.store import Store
    from waygraph.index.store.element_outcomes import read_element_outcomes
    from waygraph.pipeline.explore.policies.explain import elements_of_report, elements_of_table

    opened = Store.open(store)
    version = opened.read(site)
    report = version.manifest.report
    urls = {node.id: node.url for node in version.graph.nodes.values()}
    table = str(report.get("fates", ""))
    if not opened.blobs.has(table):
        return list(elements_of_report(report, urls))
    rows = (row for row in read_element_outcomes(opened.blobs.get(table)) if done or row["status"] != "done")
    return list(elements_of_table(rows, urls))


def print_selected_outcomes(
    outcomes: Sequence[ExplainedElement], selection: OutcomeSelection, *, as_json: bool
) -> None:
    """Print a selection of outcomes with the number of outcomes by reason.

    Parameters
    ----------
    outcomes
        Outcomes to select from.
    selection
        Kinds and reasons to print, and the page of them.
    as_json
        Print JSON.

    Raises
    ------
    InvalidInput
        If no outcome has one of the reasons.
    """
    from waygraph.pipeline.explore.policies.explain import select_elements

    of_kind = list(select_elements(outcomes, kinds=selection.kinds))
    counts = Counter(row.reason for row in of_kind)
    if unknown := [reason for reason in selection.reasons if reason not in counts]:
        known = ", ".join(f"{reason} ({count})" for reason, count in counts.most_common(20)) or "none"
        raise InvalidInput(f"No element has the reason '{unknown[0]}'.", hint=f"Reasons: {known}")
    selected = list(select_elements(of_kind, reasons=selection.reasons))
    page = list(islice(selected, selection.offset, selection.offset + selection.limit))
    end = selection.offset + len(page)
    if as_json:
        document = {
            "total": len(selected), "offset": selection.offset, "outcomes": [row.to_json() for row in page]
        }  # fmt: skip
        print_json({**document, "reasons": dict(counts.most_common())})
        return
    by_reason = Counter(row.reason for row in selected if row.reason)
    say(f"{len(selected)} {' or '.join(selection.kinds) or 'outcomes'}{', by reason:' if by_reason else ''}")
    for reason, count in by_reason.most_common():
        say(f"  {count:>7}  {clean(reason, one_line=True)}")
    say()
    print_outcomes(page)
    if end < len(selected):
        say(f"{len(selected) - end} more: --offset {end}")


def print_outcomes(outcomes: Iterable[ExplainedElement]) -> None:
    """Print outcomes as text, grouped by the URL of their state."""
    for url, rows in _by_url(outcomes).items():
        say(f"on {url or '(a state that is not in the map)'}")
        for row in rows:
            target = f" -> {row.target}" if row.target and row.kind == "pending" else ""
            reason = f", {row.reason}" if row.reason else ""
            detail = f": {row.detail}" if row.detail else ""
            line = clean(f"  {row.kind} {row.element}{target}{reason}{detail}", one_line=False)
            say(line.replace("\n", " "))
            if row.rule:
                say(f"      decided by {clean(row.rule, one_line=True)}")
            if row.remedy:
                say(f"      {clean(row.remedy, one_line=True)}")


def _by_url(outcomes: Iterable[ExplainedElement]) -> Mapping[str, list[ExplainedElement]]:
    groups: dict[str, list[ExplainedElement]] = {}
    for row in outcomes:
        groups.setdefault(row.url, []).append(row)
    return groups
