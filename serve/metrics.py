"""How is the service doing? Counters and times of every stage, as Prometheus reads them, and as spans of a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from serve.tracing import Tracing

__all__ = ["CONTENT_TYPE", "Metrics"]

#: Upper ends of the buckets in seconds: from what a cache answers in to what a request may take at most.
_BUCKETS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.035, 0.07, 0.15, 0.4, 1.0, 2.5, 10.0, 30.0)


class _CountedElsewhere(Collector):
    """A counter whose value somebody else keeps."""

    def __init__(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        self._name, self._documentation, self._read = name, documentation, read

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily(self._name, self._documentation, value=self._read())


class Metrics:
    """What one replica counts, under names that docs/serving.md lists.

    Parameters
    ----------
    tracing : stages become spans as well.

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
            "waygraph_refused_total", "Requests refused because too much was asked.", ["queue"], registry=self._registry
        )
        self._cache = Counter(
            "waygraph_cache_total", "Look-ups in a cache.", ["cache", "outcome"], registry=self._registry
        )
        self._batch = Histogram(
            "waygraph_encode_batch", "Questions that were encoded together.", registry=self._registry,
            buckets=(1, 2, 4, 8, 16, 32),
        )  # fmt: skip

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, also when it fails."""
        began = time.perf_counter()
        try:
            with self.tracing.span(name):
                yield
        finally:
            self._stages.labels(name).observe(time.perf_counter() - began)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is a template, so that there are few of them."""
        self._requests.labels(route, str(status)).observe(seconds)

    def refused(self, queue: str) -> None:
        """Count a request that found a queue full, or waited too long."""
        self._refused.labels(queue).inc()

    def looked_up(self, cache: str, *, hit: bool) -> None:
        """Count a look into a cache."""
        self._cache.labels(cache, "hit" if hit else "miss").inc()

    def encoded(self, questions: int) -> None:
        """Count questions that were encoded at once."""
        self._batch.observe(questions)

    def watch(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """Report a value that somebody else keeps, whenever it is asked for."""
        Gauge(name, documentation, registry=self._registry).set_function(read)

    def watch_counter(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """The same for one that only grows."""
        self._registry.register(_CountedElsewhere(name, documentation, read))

    def page(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)
