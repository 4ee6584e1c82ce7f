"""What did the run do, skip and fail at? Counters and lists that become its report."""

from __future__ import annotations

import time
from collections import Counter

from pipeline.explore.capture import DepthRow, ExploreReport, Failure, Skip

#: Entries kept of each list; the counters stay complete.
MAX_LISTED = 2_000


class Account:
    """Keeps count while a site is explored. Counter names are `area/name`; docs/counters.md explains each."""

    def __init__(self, start_url: str) -> None:
        self.start_url = start_url
        self.counters: Counter[str] = Counter()
        self.planned = 0
        """Work items that were scheduled so far."""
        self.stopped_by = ""
        """The limit that ended the run; empty when all was explored."""
        self.partial = False
        """Ended by wall time or interrupt: what was found depends on how fast the machine is."""
        self._began = time.monotonic()
        self._depths: list[DepthRow] = []
        self._skips: list[Skip] = []
        self._failures: list[Failure] = []

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return time.monotonic() - self._began

    @property
    def skipped(self) -> int:
        """Elements that were deliberately left alone."""
        return sum(count for name, count in self.counters.items() if name.startswith("skip/"))

    @property
    def failed(self) -> int:
        """Work items that did not work."""
        return self.counters["explore/failed"]

    def skip(self, skip: Skip) -> None:
        """Record an element that is left alone."""
        self.counters[f"skip/{skip.reason}"] += 1
        if len(self._skips) < MAX_LISTED:
            self._skips.append(skip)

    def fail(self, failure: Failure) -> None:
        """Record a work item that did not work."""
        self.counters["explore/failed"] += 1
        if len(self._failures) < MAX_LISTED:
            self._failures.append(failure)

    def interrupt(self, reason: str) -> None:
        """End the run early; what was found until now is kept."""
        self.partial = True
        self.stopped_by = reason

    def finish_depth(self, depth: int, states: int, activations: int, seconds: float) -> None:
        """Record what one level of the search found."""
        self._depths.append(DepthRow(depth, states, activations, round(seconds, 3)))

    def report(self) -> ExploreReport:
        """The account as plain data."""
        return ExploreReport(
            start_url=self.start_url,
            seconds=round(self.seconds, 3),
            partial=self.partial,
            stopped_by=self.stopped_by,
            depths=tuple(self._depths),
            counters={name: count for name, count in sorted(self.counters.items()) if count},
            skips=tuple(self._skips),
            failures=tuple(self._failures),
        )
