"""Where did a request spend its time, across processes? OpenTelemetry spans, when the environment asks for them.

Off unless one of OpenTelemetry's own variables names where spans go: `OTEL_TRACES_EXPORTER` (`otlp`, `console`, or
another exporter that is installed) or an `OTEL_EXPORTER_OTLP_ENDPOINT`. All other `OTEL_*` variables are read by the
OpenTelemetry SDK itself (service name, sampler, headers, batch sizes).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from waygraph.errors import EnvironmentMissing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
#: The name that OpenTelemetry's specification has for the exporter that it calls `otlp`, in Python packages.
_OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


class Tracing:
    """Makes spans, or does nothing.

    Parameters
    ----------
    processor : takes the spans that have ended; nothing: there are none.

    """

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        self._tracer: Any = None
        if processor is None:
            return
        from opentelemetry import propagate  # noqa: PLC0415 - optional, and off by default
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

        name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "waygraph"}
        # Not the process' global provider: Ray Serve may have one of its own there.
        self._provider = TracerProvider(resource=Resource.create(name))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("waygraph")
        self._propagate = propagate

    @classmethod
    def from_environment(cls) -> Tracing:
        """What the OTEL_* variables ask for.

        Raises
        ------
        EnvironmentMissing
            When they name an exporter that is not installed.

        """
        wanted = _wanted_exporter(os.environ)
        if wanted is None:
            return cls()
        found = list(entry_points(group="opentelemetry_traces_exporter", name=wanted))
        if not found:
            raise EnvironmentMissing(
                f"There is no OpenTelemetry exporter '{wanted}'.",
                hint="pip install 'waygraph[otel]', or unset OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_ENDPOINT.",
            )
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        return cls(BatchSpanProcessor(found[0].load()()))

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A span inside of the current one."""
        if self._tracer is None:
            yield
            return
        with self._tracer.start_as_current_span(name):
            yield

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Callable[[str], None]]:
        """The span of a request, within the caller's trace when its headers name one (W3C `traceparent`).

        Yields what names its route once that is known.
        """
        if self._tracer is None:
            yield lambda _: None
            return
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        within = self._propagate.extract(headers)
        with self._tracer.start_as_current_span(method, context=within, kind=SpanKind.SERVER) as span:
            yield lambda route: span.update_name(f"{method} {route}")

    def close(self) -> None:
        """Send what is waiting."""
        if self._tracer is not None:
            self._provider.shutdown()


def _wanted_exporter(environment: Mapping[str, str]) -> str | None:
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    named = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    if not named and any(environment.get(each) for each in _ENDPOINTS):
        named = "otlp"
    if named in {"", "none"}:
        return None
    if named == "otlp":
        protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get(
            "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
        )
        return _OTLP.get(protocol, protocol)
    return named
