"""What do operators see of runs while they work? Prometheus metrics, which Ray exports on every machine as `ray_...`.

Numbers are those of the process that counts them, coordinator or publisher of a call, and begin at zero with it.
Ray hands them on every ten seconds, and tells a histogram's sum by the middle of its buckets.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from ray.util import metrics

from pipeline.jobs.events import JobEvent, SiteFinished, SitePhase, SiteWaits
from pipeline.jobs.report.outcomes import Publication
from waygraph.errors import WaygraphError

#: From nothing to an hour.
_WAITS_SECONDS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_600.0]
_WAITING = "waiting"


class RunMetrics:
    """Metrics of the coordinator of a call; told what happens to sites by events, to states and tries by calls.

    Parameters
    ----------
    work : `index`, `refresh`, `reencode`, or the function that explores instead.
    statuses : of each site what it became in earlier calls, or nothing.

    """

    def __init__(self, work: str, statuses: Iterable[str | None]) -> None:
        self._explored = metrics.Counter(
            "waygraph_explored_states", "States that exploring found, without those of earlier calls.", ("work",)
        )
        self._published = metrics.Counter("waygraph_published_maps", "Versions of maps that were published.", ("work",))
        self._failures = metrics.Counter(
            "waygraph_failed_tries",
            "Tries of sites that failed, by kind of error (docs/runs.md), and whether the site is tried again.",
            ("work", "kind", "again"),
        )
        self._sites = metrics.Gauge(
            "waygraph_run_sites",
            "Sites of the run, by where they are: waiting, exploring, encoding (and publishing), or their outcome.",
            ("work", "state"),
        )
        self._wait = metrics.Histogram(
            "waygraph_publisher_wait_seconds",
            "How long explored sites waited for the publisher, encoding and publishing aside.",
            _WAITS_SECONDS,
            ("work",),
        )
        self._work = {"work": work}
        self._states = 0
        self._places = Counter(status or _WAITING for status in statuses)
        self._of_site: dict[str, str] = {}
        self._handed_over: dict[str, float] = {}
        self._show(*self._places)

    def __call__(self, event: JobEvent) -> None:
        """Something happened to a site."""
        if isinstance(event, SitePhase):
            self._move(event.site, event.phase)
            if event.phase == "encoding":
                self._handed_over[event.site] = time.monotonic()
        elif isinstance(event, SiteWaits):
            self._move(event.site, _WAITING)
        elif isinstance(event, SiteFinished):
            outcome = event.outcome
            self._move(outcome.site, outcome.status)
            del self._of_site[outcome.site]
            handed_over = self._handed_over.pop(outcome.site, None)
            if outcome.publication is not None:
                self._publish(outcome.publication, handed_over)
            if outcome.error is not None:
                self._fail(outcome.error.type, again=False)

    def found(self, states: int) -> None:
        """Exploring has found so many states by now, in this call."""
        if states > self._states:
            self._explored.inc(states - self._states, self._work)
            self._states = states

    def tried_again(self, error: WaygraphError) -> None:
        """A try failed, and there will be another one."""
        self._fail(error.slug, again=True)

    def _publish(self, made: Publication, handed_over: float | None) -> None:
        self._published.inc(1, self._work)
        if handed_over is not None:
            worked = made.encode_seconds + made.publish_seconds
            self._wait.observe(max(0.0, time.monotonic() - handed_over - worked), self._work)

    def _fail(self, kind: str, *, again: bool) -> None:
        self._failures.inc(1, {**self._work, "kind": kind, "again": "yes" if again else "no"})

    def _move(self, site: str, place: str) -> None:
        before = self._of_site.get(site, _WAITING)
        self._of_site[site] = place
        self._places[before] -= 1
        self._places[place] += 1
        self._show(before, place)

    def _show(self, *places: str) -> None:
        for place in places:
            self._sites.set(self._places[place], {**self._work, "state": place})


class EncodingMetrics:
    """Metrics of the line of encoders, in the process of the publisher."""

    def __init__(self) -> None:
        self._encoded = metrics.Counter("waygraph_encoded_states", "States that encoders encoded.")
        self._waiting = metrics.Gauge("waygraph_encoder_waiting_states", "States that wait for an encoder.")
        self._encoders = metrics.Gauge("waygraph_encoders", "Encoders there are, those that load included.")
        self._wait = metrics.Histogram(
            "waygraph_encoder_room_wait_seconds",
            "How long exploring and publishing waited for room in the line of encoders.",
            _WAITS_SECONDS,
        )

    def encoded(self, states: int) -> None:
        """A batch came back."""
        self._encoded.inc(states)

    def line(self, states: int, encoders: int) -> None:
        """So many states wait now, for so many encoders."""
        self._waiting.set(states)
        self._encoders.set(encoders)

    def waited(self, seconds: float) -> None:
        """Somebody got a batch into the line after so long."""
        self._wait.observe(seconds)
