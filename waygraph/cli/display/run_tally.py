"""Counts of a run of many sites as one line: sites done, failed and left, states per second, remaining time."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

from waygraph.pipeline.jobs.events import (
    JobEvent,
    RunStarted,
    SiteAttemptFailed,
    SiteFinished,
    SitePhase,
    SiteProgress,
    SiteTurnEnded,
)

#: From this number of sites on, a run is shown by counts only: lines about every site would be too many to read.
BULK_SITES = 50
#: Window over which states per second are averaged, in seconds.
_WINDOW_SECONDS = 60.0


class RunTally:
    """Counts of the events of a run, updated in constant time per event.

    Parameters
    ----------
    clock
        Monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._total = 0
        self._done_before: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._states: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._all_states = 0
        self._window: deque[tuple[float, int]] = deque([(clock(), 0)])

    @property
    def is_bulk(self) -> bool:
        """Whether the run has so many sites that they are counted rather than listed."""
        return self._total >= BULK_SITES

    @property
    def seconds(self) -> float:
        """Seconds since this call began."""
        return self._clock() - self._started

    def add(self, event: JobEvent) -> None:
        """Count an event."""
        match event:
            case RunStarted(sites=sites, done=done):
                self._total = len(sites)
                self._done_before = Counter(done)
                self._done = Counter(done)
            case SitePhase(site=site):
                self._states.setdefault(site, 0)
                self._waiting.discard(site)
            case SiteAttemptFailed(site=site):
                self._waiting.add(site)
            case SiteProgress(site=site, progress=progress):
                self._set_states(site, progress.states)
            case SiteTurnEnded(outcome=outcome):
                self._waiting.add(outcome.site)
            case SiteFinished(outcome=outcome):
                if outcome.exploration is not None:
                    self._set_states(outcome.site, outcome.exploration.states)
                self._states.pop(outcome.site, None)
                self._waiting.discard(outcome.site)
                self._done[outcome.status] += 1

    def _set_states(self, site: str, states: int) -> None:
        known = self._states.get(site, 0)
        if states > known:
            self._all_states += states - known
            self._states[site] = states
        now = self._clock()
        if now - self._window[-1][0] >= 1:
            self._window.append((now, self._all_states))
        while len(self._window) > 2 and now - self._window[1][0] > _WINDOW_SECONDS:
            self._window.popleft()

    @property
    def done(self) -> int:
        """Number of sites with an outcome."""
        return self._done.total()

    @property
    def states_per_second(self) -> float:
        """New states per second, averaged over the last minute."""
        since, states = self._window[0]
        return (self._all_states - states) / max(1.0, self._clock() - since)

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the run ends, at the rate of this call; None before its first outcome."""
        done = self.done - self._done_before.total()
        left = self._total - self.done
        return self.seconds * left / done if done else None

    def line(self) -> str:
        """Return the counts as one line."""
        left = self._total - self.done
        parts = [f"{self.done:,} of {self._total:,} sites"]
        parts += [f"{self._done[status]:,} {status}" for status in ("failed", "interrupted") if self._done[status]]
        parts.append(f"{left:,} left")
        if running := len(self._states.keys() - self._waiting):
            parts.append(f"{running:,} in progress")
        parts.append(f"{self.states_per_second:.1f} states/s")
        parts.append(f"{format_duration(self.seconds)} so far")
        if left and (seconds := self.seconds_left) is not None:
            parts.append(f"about {format_duration(seconds)} to go")
        return ", ".join(parts)


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> format_duration(7), format_duration(83), format_duration(7_500), format_duration(200_000)
    ('7 s', '1 min 23 s', '2 h 5 min', '2 d 7 h')
    """
    whole = round(seconds)
    for (large, size), (small, below) in (
        (("d", 86_400), ("h", 3_600)),
        (("h", 3_600), ("min", 60)),
        (("min", 60), ("s", 1)),
    ):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size:,} {large}{f' {rest} {small}' if rest else ''}"
    return f"{whole} s"
