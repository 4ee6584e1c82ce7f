"""Prometheus metrics of one replica: counters, gauges, and times of every stage, which are also spans of a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from waygraph.serve.telemetry.tracing import Tracing

__all__ = ["CONTENT_TYPE", "Metrics"]

#: Upper bounds of the buckets in seconds, from a cached answer to the longest request that is allowed.
_BUCKETS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.035, 0.07, 0.15, 0.4, 1.0, 2.5, 10.0, 30.0)


class _ExternalMetric(Collector):
    """A metric whose values are kept elsewhere, by the value of its label.

    Parameters
    ----------
    empty
        Creates the metric without values.
    read
        Returns the values; with the label "" if the metric has none.
    """

    def __init__(
        self,
        empty: Callable[[], CounterMetricFamily | GaugeMetricFamily],
        read: Callable[[], Mapping[str, float]],
    ) -> None:
        self._empty, self._read = empty, read

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        family = self._empty()
        for label, value in sorted(self._read().items()):
            family.add_metric([label] if label else [], value)
        yield family


class Metrics:
    """The metrics of one replica; docs/serving.md lists their names.

    Parameters
    ----------
    tracing
        Records stages as spans too; None records none.
    """

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.tracing = tracing or Tracing()
        self._registry = CollectorRegistry()
        self._stages = Histogram(
            "waygraph_stage_seconds", "Time of a stage of an answer.", ["stage"], registry=self._registry,
            buckets=_BUCKETS,
        )  # fmt: skip
        self._requests = Histogram(
            "waygraph_request_seconds", "Time from a request to its answer.", ["route", "status"],
            registry=self._registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._refused = Counter(
            "waygraph_refused_total", "Requests refused because of overload.", ["queue"], registry=self._registry
        )
        self._cache = Counter("waygraph_cache_total", "Cache look-ups.", ["cache", "outcome"], registry=self._registry)
        self._batch = Histogram(
            "waygraph_encode_batch", "Queries encoded in one batch.", registry=self._registry,
            buckets=(1, 2, 4, 8, 16, 32),
        )  # fmt: skip

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, also if it fails."""
        started = time.perf_counter()
        try:
            with self.tracing.span(name):
                yield
        finally:
            self._stages.labels(name).observe(time.perf_counter() - started)

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Record an answered request; `route` is a path template, which limits the number of time series."""
        self._requests.labels(route, str(status)).observe(seconds)

    def count_refused(self, queue: str) -> None:
        """Count a request that found a queue full, or reached its time limit."""
        self._refused.labels(queue).inc()

    def count_lookup(self, cache: str, *, hit: bool) -> None:
        """Count a look-up in a cache."""
        self._cache.labels(cache, "hit" if hit else "miss").inc()

    def observe_batch(self, queries: int) -> None:
        """Record the size of a batch of queries."""
        self._batch.observe(queries)

    def add_gauge(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """Add a gauge whose value is read whenever the metrics are."""
        Gauge(name, documentation, registry=self._registry).set_function(read)

    def add_counter(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """Add a counter whose value is read whenever the metrics are."""
        self._registry.register(_ExternalMetric(lambda: CounterMetricFamily(name, documentation), lambda: {"": read()}))

    def add_labelled_gauge(
        self, name: str, documentation: str, label: str, read: Callable[[], Mapping[str, float]]
    ) -> None:
        """Add a gauge with one label, whose values by label are read whenever the metrics are."""
        self._registry.register(_ExternalMetric(lambda: GaugeMetricFamily(name, documentation, labels=[label]), read))

    def add_labelled_counter(
        self, name: str, documentation: str, label: str, read: Callable[[], Mapping[str, float]]
    ) -> None:
        """Add a counter with one label, whose values by label are read whenever the metrics are."""
        self._registry.register(_ExternalMetric(lambda: CounterMetricFamily(name, documentation, labels=[label]), read))

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
