"""Statistics of a running exploration: counters, element outcomes, and the report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from waygraph.pipeline.explore.records.capture import DepthRow, ExploreReport, Failure, RoundRow, Skip
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome

#: Number of entries of each list in a report. The counters and the published table of element outcomes are complete.
MAX_LISTED = 2_000
MAX_ADVICE = 20


class ExplorationStats:
    """Count while a site is explored.

    Parameters
    ----------
    start_url
        Start page.
    counters
        Counters named `area/name`, see docs/counters.md.
    sent_by_visits
        Numbers of requests by description, see `ExploreReport.sent_by_visits`; others add to it.
    over_budget
        URLs of pages, see `ExploreReport.over_budget`; others add to it.
    """

    def __init__(
        self,
        start_url: str,
        counters: Counter[str],
        *,
        sent_by_visits: Counter[str] | None = None,
        over_budget: set[str] | None = None,
    ) -> None:
        self.start_url = start_url
        self.counters = counters
        self.planned = 0
        """Number of planned work items."""
        self.gain = 0.0
        """Sum of the gains of new states, see `ExplorationOrder.learn`."""
        self.stopped_by = ""
        """The limit that ended the run; empty if everything was explored."""
        self.partial = False
        """Whether wall time, bytes or an interruption ended the run. The result depends on the machine's speed then."""
        self.advice: dict[str, None] = {}
        """Advice about stopped requests that seem to have broken a page, each once, in order."""
        self._sent_by_visits = sent_by_visits if sent_by_visits is not None else Counter()
        self._over_budget = over_budget if over_budget is not None else set()
        self.fates: list[ElementOutcome] = []
        """Element outcomes since the last `take_fates`, without elements that became edges."""
        self._began = time.monotonic()
        self._seconds_before = 0.0
        self._rounds: list[RoundRow] = []
        self._work: dict[int, tuple[float, float]] = {}
        """Activations and seconds spent to find the states at a depth."""

    @property
    def seconds(self) -> float:
        """Wall time of this process, in seconds."""
        return time.monotonic() - self._began

    @property
    def skipped(self) -> int:
        """Number of skipped elements."""
        return sum(count for name, count in self.counters.items() if name.startswith("skip/"))

    @property
    def failed(self) -> int:
        """Number of failed work items."""
        return self.counters["explore/failed"]

    def advise(self, text: str) -> None:
        """Add advice, up to a maximal number."""
        if len(self.advice) < MAX_ADVICE:
            self.advice[text] = None

    def skip(self, skip: Skip, item: int | None = None) -> None:
        """Record a skipped element. `item` is its index in its round if it was a work item."""
        self.counters[f"skip/{skip.reason}"] += 1
        self.fates.append(
            ElementOutcome(
                skip.node_id,
                skip.element,
                "skipped",
                skip.reason,
                skip.detail,
                item,
                rule=skip.rule,
                target=skip.target,
                xpath=skip.xpath,
            )
        )

    def fail(self, failure: Failure, item: int | None = None) -> None:
        """Record a failed work item."""
        self.counters["explore/failed"] += 1
        self.fates.append(ElementOutcome(failure.node_id, failure.action, "failed", failure.reason, item=item))

    def take_fates(self) -> tuple[ElementOutcome, ...]:
        """Return the element outcomes since the last call."""
        taken, self.fates = tuple(self.fates), []
        return taken

    def interrupt(self, reason: str) -> None:
        """Record that the run ends early, with a partial result."""
        self.partial = True
        self.stopped_by = reason

    def finish_round(self, result: RoundRow, depths: Mapping[int, int]) -> None:
        """Record the results of a round.

        Parameters
        ----------
        result
            New states, activations and seconds.
        depths
            Number of items by the depth at which they may find states. Work is divided in their proportion.
        """
        self._rounds.append(result)
        items = sum(depths.values())
        for depth, count in depths.items():
            activations, seconds = self._work.get(depth, (0.0, 0.0))
            share = count / items
            self._work[depth] = (activations + share * result.activations, seconds + share * result.seconds)

    def _depth_rows(self, states: Mapping[int, int]) -> Iterator[DepthRow]:
        for depth in sorted({*states, *self._work}):
            activations, seconds = self._work.get(depth, (0.0, 0.0))
            yield DepthRow(depth, states.get(depth, 0), round(activations), round(seconds, 3))

    def to_checkpoint(self) -> dict[str, Any]:
        """Return what a resumed run needs besides the counters, as plain JSON."""
        return {
            "planned": self.planned,
            # A resumed run is not interrupted.
            "stopped_by": "" if self.partial else self.stopped_by,
            "seconds": self._seconds_before + self.seconds,
            "rounds": [[row.states, row.activations, row.seconds, row.gain] for row in self._rounds],
            "gain": self.gain,
            "work": [[depth, *spent] for depth, spent in self._work.items()],
            "advice": list(self.advice),
            "sent_by_visits": sorted(self._sent_by_visits),
            "over_budget": sorted(self._over_budget),
        }

    def load_checkpoint(self, memory: Mapping[str, Any], counters: Mapping[str, int]) -> None:
        """Restore the result of `to_checkpoint`."""
        self.counters.update(counters)
        self.planned, self.stopped_by = memory["planned"], memory["stopped_by"]
        self._seconds_before = memory["seconds"]
        self._rounds = [RoundRow(*row) for row in memory["rounds"]]
        self.gain = memory["gain"]
        self._work = {depth: (activations, seconds) for depth, activations, seconds in memory["work"]}
        self.advice = dict.fromkeys(memory["advice"])
        self._sent_by_visits.update(memory.get("sent_by_visits", ()))  # checkpoints of earlier versions have none
        self._over_budget.update(memory.get("over_budget", ()))

    def report(
        self,
        fates: Iterable[ElementOutcome],
        states: Mapping[int, int],
        *,
        table: str = "",
        record: str = "",
        expected_gain: float = 0.0,
    ) -> ExploreReport:
        """Return the report.

        Parameters
        ----------
        fates
            All element outcomes.
        states
            Number of states by depth.
        table
            Blob of the element outcomes, see `ExploreReport.fates`.
        record
            Blob of the exploration record, see `ExploreReport.record`.
        expected_gain
            See `ExploreReport.expected_gain`.

        Returns
        -------
        ExploreReport
            Everything that was counted.
        """
        skips: list[Skip] = []
        failures: list[Failure] = []
        pending = 0
        for fate in fates:
            if fate.status == "skipped" and len(skips) < MAX_LISTED:
                skips.append(
                    Skip(fate.state, fate.reason, fate.element, fate.detail, fate.rule, fate.target, fate.xpath)
                )
            elif fate.status == "failed" and len(failures) < MAX_LISTED:
                failures.append(Failure(fate.state, fate.element, fate.reason))
            pending += fate.status == "pending"
        return ExploreReport(
            start_url=self.start_url,
            seconds=round(self._seconds_before + self.seconds, 3),
            partial=self.partial,
            stopped_by=self.stopped_by,
            depths=tuple(self._depth_rows(states)),
            rounds=tuple(self._rounds),
            expected_gain=expected_gain,
            counters={name: count for name, count in sorted(self.counters.items()) if count},
            skips=tuple(skips),
            failures=tuple(failures),
            pending=pending,
            fates=table,
            record=record,
            explored=datetime.now(UTC).isoformat(timespec="seconds"),
            advice=tuple(self.advice),
            sent_by_visits=tuple(sorted(self._sent_by_visits)),
            over_budget=tuple(sorted(self._over_budget)[:MAX_LISTED]),
        )
