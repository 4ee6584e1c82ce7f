"""What did the run do, skip and fail at? Counters, and the fate of every element, that become its report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pipeline.explore.capture import DepthRow, ExploreReport, Failure, Skip
from pipeline.explore.journal_records import Fate

#: Entries shown of each list; the counters are complete, and so is the table of fates that is published.
MAX_LISTED = 2_000
MAX_ADVICE = 20


class Account:
    """Keeps count while a site is explored. Counter names are `area/name`; docs/counters.md explains each."""

    def __init__(self, start_url: str, counters: Counter[str]) -> None:
        self.start_url = start_url
        self.counters = counters
        self.planned = 0
        """Work items that were scheduled so far."""
        self.stopped_by = ""
        """The limit that ended the run; empty when all was explored."""
        self.partial = False
        """Ended by wall time, bytes or interrupt: what was found depends on how fast the machine is."""
        self.advice: dict[str, None] = {}
        """What a user should know of requests whose stopping broke a page; each once, in the order that it came up."""
        self.fates: list[Fate] = []
        """What became of elements since the last `take_fates`; those that became edges are not listed."""
        self._began = time.monotonic()
        self._seconds_before = 0.0
        self._depths: list[DepthRow] = []

    @property
    def seconds(self) -> float:
        """Wall time since this process took the run up."""
        return time.monotonic() - self._began

    @property
    def skipped(self) -> int:
        """Elements that were deliberately left alone."""
        return sum(count for name, count in self.counters.items() if name.startswith("skip/"))

    @property
    def failed(self) -> int:
        """Work items that did not work."""
        return self.counters["explore/failed"]

    def advise(self, text: str) -> None:
        """Keep a piece of advice, unless there is a lot already."""
        if len(self.advice) < MAX_ADVICE:
            self.advice[text] = None

    def skip(self, skip: Skip, item: int | None = None) -> None:
        """Record an element that is left alone; `item` is its place in its level when it was tried before that."""
        self.counters[f"skip/{skip.reason}"] += 1
        self.fates.append(
            Fate(
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
        """Record a work item that did not work."""
        self.counters["explore/failed"] += 1
        self.fates.append(Fate(failure.node_id, failure.action, "failed", failure.reason, item=item))

    def take_fates(self) -> tuple[Fate, ...]:
        """Fates since the last call."""
        taken, self.fates = tuple(self.fates), []
        return taken

    def interrupt(self, reason: str) -> None:
        """End the run early; what was found until now is kept."""
        self.partial = True
        self.stopped_by = reason

    def finish_depth(self, depth: int, states: int, activations: int, seconds: float) -> None:
        """Record what one level of the search found."""
        self._depths.append(DepthRow(depth, states, activations, round(seconds, 3)))

    def remember(self) -> dict[str, Any]:
        """What a resumed run must know besides the counters, as plain JSON."""
        return {
            "planned": self.planned,
            # Who goes on with an interrupted run is not interrupted.
            "stopped_by": "" if self.partial else self.stopped_by,
            "seconds": self._seconds_before + self.seconds,
            "depths": [[row.depth, row.states, row.activations, row.seconds] for row in self._depths],
            "advice": list(self.advice),
        }

    def recall(self, memory: Mapping[str, Any], counters: Mapping[str, int]) -> None:
        """Take over what `remember` gave."""
        self.counters.update(counters)
        self.planned, self.stopped_by = memory["planned"], memory["stopped_by"]
        self._seconds_before = memory["seconds"]
        self._depths = [DepthRow(*row) for row in memory["depths"]]
        self.advice = dict.fromkeys(memory["advice"])

    def report(self, fates: Iterable[Fate], *, table: str = "", record: str = "") -> ExploreReport:
        """The account as plain data; `fates` are all there are. `table` and `record` are blobs, see `ExploreReport`."""
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
            depths=tuple(self._depths),
            counters={name: count for name, count in sorted(self.counters.items()) if count},
            skips=tuple(skips),
            failures=tuple(failures),
            pending=pending,
            fates=table,
            record=record,
            explored=datetime.now(UTC).isoformat(timespec="seconds"),
            advice=tuple(self.advice),
        )
