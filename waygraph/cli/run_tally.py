"""How far is a run of many sites? One line: sites done, failed and left, states a second, and how long it will take."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

from pipeline.jobs.events import JobEvent, RunStarted, SiteFinished, SitePhase, SiteProgress, SiteWaits

#: From so many sites on, a line for each of them tells nobody anything.
BULK_SITES = 50
#: States a second are those of the last so many seconds.
_WINDOW_SECONDS = 60.0


class RunTally:
    """Counts the events of a run, each in constant time.

    Parameters
    ----------
    clock : seconds, monotonic.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._total = 0
        self._before: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._states: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._found = 0
        self._window: deque[tuple[float, int]] = deque([(clock(), 0)])

    @property
    def is_bulk(self) -> bool:
        """Whether the run has so many sites that they are counted rather than named."""
        return self._total >= BULK_SITES

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self._clock() - self._started

    def take(self, event: JobEvent) -> None:
        """Count an event."""
        match event:
            case RunStarted(sites=sites, done=done):
                self._total = len(sites)
                self._before = Counter(done)
                self._counts = Counter(done)
            case SitePhase(site=site):
                self._states.setdefault(site, 0)
                self._waiting.discard(site)
            case SiteWaits(site=site):
                self._waiting.add(site)
            case SiteProgress(site=site, progress=progress):
                self._has(site, progress.states)
            case SiteFinished(outcome=outcome):
                if outcome.exploration is not None:
                    self._has(outcome.site, outcome.exploration.states)
                self._states.pop(outcome.site, None)
                self._waiting.discard(outcome.site)
                self._counts[outcome.status] += 1

    def _has(self, site: str, states: int) -> None:
        known = self._states.get(site, 0)
        if states > known:
            self._found += states - known
            self._states[site] = states
        now = self._clock()
        if now - self._window[-1][0] >= 1:
            self._window.append((now, self._found))
        while len(self._window) > 2 and now - self._window[1][0] > _WINDOW_SECONDS:
            self._window.popleft()

    @property
    def done(self) -> int:
        """Sites with an outcome."""
        return self._counts.total()

    @property
    def states_per_second(self) -> float:
        """New states a second of late."""
        since, states = self._window[0]
        return (self._found - states) / max(1.0, self._clock() - since)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate of this call; nothing when there is none yet."""
        done = self.done - self._before.total()
        left = self._total - self.done
        return self.seconds * left / done if done else None

    def line(self) -> str:
        """The dashboard line."""
        left = self._total - self.done
        parts = [f"{self.done:,} of {self._total:,} sites"]
        parts += [f"{self._counts[status]:,} {status}" for status in ("failed", "interrupted") if self._counts[status]]
        parts.append(f"{left:,} left")
        if in_work := len(self._states.keys() - self._waiting):
            parts.append(f"{in_work:,} in work")
        parts.append(f"{self.states_per_second:.1f} states/s")
        parts.append(f"{duration(self.seconds)} so far")
        if left and (seconds := self.seconds_left) is not None:
            parts.append(f"about {duration(seconds)} to go")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """A length of time in its two largest units.

    >>> duration(7), duration(83), duration(7_500), duration(200_000)
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
