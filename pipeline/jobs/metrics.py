"""Prometheus metrics of runs, which Ray exports on every machine as `ray_...`.

Values belong to the process that counts them, coordinator or publisher of an invocation, and start at zero with it. Ray
exports them every ten seconds, and computes the sum of a histogram from the middle of its buckets.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from waygraph.core.errors import WaygraphError
from waygraph.pipeline.jobs.events import JobEvent, SiteAttemptFailed, SiteFinished, SitePhase, SiteTurnEnded
from waygraph.pipeline.jobs.report.outcomes import Publication

#: Histogram buckets, from 0.1 s to one hour.
_WAIT_BUCKETS_SECONDS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_600.0]
_WAITING = "waiting"


class RunMetrics:
    """Metrics of a coordinator. Events update the sites, methods the states and attempts.

    Parameters
    ----------
    work
        `index`, `refresh`, `reencode`, or the function that explores instead.
    statuses
        Outcome of each site in earlier invocations, or None.
    """

    def __init__(self, work: str, statuses: Iterable[str | None]) -> None:
        from ray.util import metrics  # noqa: PLC0415 - runs without Ray have no metrics

        self._explored = metrics.Counter(
            "waygraph_explored_states", "States that exploring found, without those of earlier invocations.", ("work",)
        )
        self._published = metrics.Counter("waygraph_published_maps", "Versions of maps that were published.", ("work",))
        self._failures = metrics.Counter(
            "waygraph_failed_tries",
            "Attempts of sites that failed, by kind of error (docs/runs.md), and whether the site is tried again.",
            ("work", "kind", "again"),
        )
        self._sites = metrics.Gauge(
            "waygraph_run_sites",
            "Sites of the run by state: waiting, exploring, encoding (and publishing), or their outcome.",
            ("work", "state"),
        )
        self._wait = metrics.Histogram(
            "waygraph_publisher_wait_seconds",
            "Time that explored sites waited for the publisher, without encoding and publishing.",
            _WAIT_BUCKETS_SECONDS,
            ("work",),
        )
        self._work = {"work": work}
        self._states = 0
        self._sites_by_state = Counter(status or _WAITING for status in statuses)
        self._state_by_site: dict[str, str] = {}
        self._handed_over: dict[str, float] = {}
        self._update_gauge(*self._sites_by_state)

    def __call__(self, event: JobEvent) -> None:
        """Update the metrics with an event."""
        if isinstance(event, SitePhase):
            self._move(event.site, event.phase)
            if event.phase == "encoding":
                self._handed_over[event.site] = time.monotonic()
        elif isinstance(event, SiteAttemptFailed):
            self._move(event.site, _WAITING)
        elif isinstance(event, SiteTurnEnded):
            self._move(event.outcome.site, _WAITING)
            self._count_publication(event.outcome.site, event.publication)
        elif isinstance(event, SiteFinished):
            outcome = event.outcome
            self._move(outcome.site, outcome.status)
            del self._state_by_site[outcome.site]
            self._count_publication(outcome.site, outcome.publication)
            if outcome.error is not None:
                self._count_failure(outcome.error.type, again=False)

    def set_explored_states(self, states: int) -> None:
        """Set the number of states that explorations found in this invocation."""
        if states > self._states:
            self._explored.inc(states - self._states, self._work)
            self._states = states

    def count_retry(self, error: WaygraphError) -> None:
        """Count a failed attempt that will be retried."""
        self._count_failure(error.slug, again=True)

    def _count_publication(self, site: str, publication: Publication | None) -> None:
        """Count a version that was published since its site was handed over, and not one of an earlier turn."""
        handed_over = self._handed_over.pop(site, None)
        if publication is not None and handed_over is not None:
            self._published.inc(1, self._work)
            worked = publication.encode_seconds + publication.publish_seconds
            self._wait.observe(max(0.0, time.monotonic() - handed_over - worked), self._work)

    def _count_failure(self, kind: str, *, again: bool) -> None:
        self._failures.inc(1, {**self._work, "kind": kind, "again": "yes" if again else "no"})

    def _move(self, site: str, state: str) -> None:
        before = self._state_by_site.get(site, _WAITING)
        self._state_by_site[site] = state
        self._sites_by_state[before] -= 1
        self._sites_by_state[state] += 1
        self._update_gauge(before, state)

    def _update_gauge(self, *states: str) -> None:
        for state in states:
            self._sites.set(self._sites_by_state[state], {**self._work, "state": state})


class EncodingMetrics:
    """Metrics of the encoder queue, in the process of the publisher."""

    def __init__(self) -> None:
        from ray.util import metrics  # noqa: PLC0415 - as above

        self._encoded = metrics.Counter("waygraph_encoded_states", "States that encoders encoded.")
        self._waiting = metrics.Gauge("waygraph_encoder_waiting_states", "States that wait for an encoder.")
        self._encoders = metrics.Gauge("waygraph_encoders", "Encoders, including those that load.")
        self._wait = metrics.Histogram(
            "waygraph_encoder_room_wait_seconds",
            "Time that exploring and publishing waited for room in the encoder queue.",
            _WAIT_BUCKETS_SECONDS,
        )

    def count_states(self, states: int) -> None:
        """Count encoded states."""
        self._encoded.inc(states)

    def set_queue(self, states: int, *, encoders: int) -> None:
        """Set the number of waiting states and of encoders."""
        self._waiting.set(states)
        self._encoders.set(encoders)

    def observe_wait(self, seconds: float) -> None:
        """Observe the time that a batch waited for room in the queue."""
        self._wait.observe(seconds)
