"""Metrics of a run: gauges of sites and encoders, counters of attempts."""

from collections import Counter

import pytest
import ray.util.metrics

from waygraph.core.errors import SiteUnreachable
from waygraph.pipeline.jobs import metrics
from waygraph.pipeline.jobs.events import Notice, SiteAttemptFailed, SiteFinished, SitePhase, SiteTurnEnded
from waygraph.pipeline.jobs.report.outcomes import ErrorRecord, Publication, SiteOutcome

MADE = Publication(version=1, encoded=3, reused=0, encode_seconds=0.0, publish_seconds=0.0, states=3)
UNREACHABLE = SiteUnreachable("It does not answer.")


@pytest.fixture
def seen(monkeypatch):
    """Values of metrics by name and labels; for histograms the number of observations."""
    numbers = Counter()

    class Metric:
        def __init__(self, name, description, *rest):
            assert description
            self._name, self._labels = name, set(rest[-1] if rest and isinstance(rest[-1], tuple) else ())

        def _key(self, labels):
            assert set(labels or ()) == self._labels
            return self._name.removeprefix("waygraph_"), *(labels or {}).values()

        def inc(self, by, labels=None):
            numbers[self._key(labels)] += by

        def set(self, to, labels=None):
            numbers[self._key(labels)] = to

        def observe(self, value, labels=None):
            assert value >= 0
            numbers[self._key(labels)] += 1

    for kind in ("Counter", "Gauge", "Histogram"):
        monkeypatch.setattr(ray.util.metrics, kind, Metric)
    return numbers


def finished(site, status, **more):
    return SiteFinished(SiteOutcome(site=site, start_url=f"http://{site}/", status=status, **more))


def test_every_site_is_counted_in_one_phase_and_failed_attempts_by_reason(seen):
    run = metrics.RunMetrics("index", [None, None, None, "published", "failed"])
    begun = {"waiting": 3, "published": 1, "failed": 1}
    assert {key[2]: number for key, number in seen.items() if key[0] == "run_sites"} == begun
    run(SitePhase("a", "exploring", 1))
    run(SitePhase("b", "exploring", 1))
    run(Notice("something", "a"))
    run.set_explored_states(2)
    run.set_explored_states(2)
    run.set_explored_states(5)
    run.count_retry(UNREACHABLE)
    run(SiteAttemptFailed("b"))
    run(SitePhase("a", "encoding", 1))
    assert (seen["run_sites", "index", "waiting"], seen["run_sites", "index", "encoding"]) == (2, 1)
    run(finished("a", "published", publication=MADE))
    run(finished("b", "failed", error=ErrorRecord.of(UNREACHABLE)))
    run(finished("c", "interrupted"))
    places = {key[2]: number for key, number in seen.items() if key[0] == "run_sites"}
    assert places == {"waiting": 0, "exploring": 0, "encoding": 0, "published": 2, "failed": 2, "interrupted": 1}
    assert seen["explored_states", "index"] == 5
    assert seen["published_maps", "index"] == seen["publisher_wait_seconds", "index"] == 1
    assert seen["failed_tries", "index", "site-unreachable", "yes"] == 1
    assert seen["failed_tries", "index", "site-unreachable", "no"] == 1


def test_a_site_that_waits_for_another_turn_is_waiting_and_its_versions_are_counted_once(seen):
    run = metrics.RunMetrics("index", [None])
    for published in (MADE, None):  # the second turn leaves a better map
        run(SitePhase("a", "exploring", 1))
        run(SitePhase("a", "encoding", 1))
        run(SiteTurnEnded(finished("a", "published", publication=MADE).outcome, published))
        assert (seen["run_sites", "index", "waiting"], seen["run_sites", "index", "encoding"]) == (1, 0)
    run(finished("a", "published", publication=MADE))
    assert (seen["run_sites", "index", "waiting"], seen["run_sites", "index", "published"]) == (0, 1)
    assert seen["published_maps", "index"] == seen["publisher_wait_seconds", "index"] == 1


def test_encoder_queue_metrics_are_exported(seen):
    encoding = metrics.EncodingMetrics()
    encoding.set_queue(7, encoders=2)
    encoding.count_states(3)
    encoding.count_states(4)
    encoding.observe_wait(0.5)
    assert (seen["encoder_waiting_states",], seen["encoders",], seen["encoded_states",]) == (7, 2, 7)
    assert seen["encoder_room_wait_seconds",] == 1
