"""Exploration statistics of a site, for its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from waygraph.core.text import replace_surrogates
from waygraph.pipeline.explore.records.capture import RoundRow, SiteCapture
from waygraph.pipeline.jobs.report.outcomes import DepthRecord, Exploration, FailedItem, RoundRecord

#: Number of failures of a site in its report. The manifest holds all.
_SHOWN_FAILURES = 20
#: Number of records of its rounds.
_MAX_ROUNDS = 60


def exploration_statistics(capture: SiteCapture, *, seconds: float, waited_seconds: float) -> Exploration:
    """Return the statistics of an exploration.

    Parameters
    ----------
    capture
        The explored site.
    seconds
        Duration of the exploration.
    waited_seconds
        Time of it that handing states to encoders took.

    Returns
    -------
    Exploration
        Counts, and the first failures in full.
    """
    report = capture.report
    inherited = Counter(edge.inherited for edge in capture.graph.edges)
    return Exploration(
        site=capture.site,
        states=len(capture.graph),
        edges=inherited[False],
        inherited_edges=inherited[True],
        seconds=round(seconds, 3),
        waited_for_encoders=round(waited_seconds, 3),
        partial=report.partial,
        stopped_by=report.stopped_by,
        depths=tuple(
            DepthRecord(
                depth=row.depth,
                states=row.states,
                activations=row.activations,
                seconds=round(row.seconds, 3),
                states_per_minute=round(row.states_per_minute, 1),
            )
            for row in report.depths
        ),
        counters=dict(report.counters),
        skipped={
            name.removeprefix("skip/"): count for name, count in report.counters.items() if name.startswith("skip/")
        },
        failed=_by_reason(replace_surrogates(failure.reason) for failure in report.failures),
        rounds=tuple(_merged(report.rounds, _MAX_ROUNDS)),
        expected_gain=report.expected_gain,
        advice=tuple(map(replace_surrogates, report.advice)),
        stopped=_by_reason(
            replace_surrogates(f"{request.method} {request.url.partition('?')[0]}")
            for edge in capture.graph.edges
            if not edge.inherited
            for request in edge.state_changing_requests
        ),
        sent_by_visits=tuple(map(replace_surrogates, report.sent_by_visits)),
        over_budget=tuple(map(replace_surrogates, report.over_budget)),
        failures=tuple(
            FailedItem(node_id=f.node_id, action=replace_surrogates(f.action), reason=replace_surrogates(f.reason))
            for f in report.failures[:_SHOWN_FAILURES]
        ),
    )


def _by_reason(reasons: Iterable[str]) -> dict[str, int]:
    return dict(Counter(reasons).most_common())


def _merged(rounds: Sequence[RoundRow], most: int) -> Iterator[RoundRecord]:
    """Yield the rounds, or sums of as few consecutive ones as give at most `most` records."""
    size = -(-len(rounds) // most) or 1
    for start in range(0, len(rounds), size):
        part = rounds[start : start + size]
        yield RoundRecord(
            states=sum(row.states for row in part),
            activations=sum(row.activations for row in part),
            seconds=round(sum(row.seconds for row in part), 3),
            gain=round(sum(row.gain for row in part), 3),
        )
