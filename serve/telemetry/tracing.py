"""OpenTelemetry spans of requests and their stages, within the traces of callers.

Off unless one of OpenTelemetry's own variables names a destination: `OTEL_TRACES_EXPORTER` (`otlp`, `console`, or
another installed exporter) or an `OTEL_EXPORTER_OTLP_ENDPOINT`. The OpenTelemetry SDK itself reads all other `OTEL_*`
variables (service name, sampler, headers, batch sizes).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from waygraph.core.errors import EnvironmentMissing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
#: Entry points of the exporter that the OpenTelemetry specification calls `otlp`, by protocol.
_OTLP_EXPORTERS = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


class Tracing:
    """Records spans, if a processor is given.

    Parameters
    ----------
    processor
        Receives the ended spans; None disables tracing.
    """

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        self._tracer: Any = None
        if processor is None:
            return
        from opentelemetry import propagate  # noqa: PLC0415 - optional, and off by default
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

        name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "waygraph"}
        # Not set as the global provider: Ray Serve may have its own there.
        self._provider = TracerProvider(resource=Resource.create(name))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("waygraph")
        self._propagate = propagate

    @classmethod
    def from_environment(cls) -> Tracing:
        """Return the tracing that the OTEL_* variables configure.

        Returns
        -------
        Tracing
            Tracing with a batching exporter, or disabled.

        Raises
        ------
        EnvironmentMissing
            If they name an exporter that is not installed.
        """
        name = _exporter_name(os.environ)
        if name is None:
            return cls()
        exporters = list(entry_points(group="opentelemetry_traces_exporter", name=name))
        if not exporters:
            raise EnvironmentMissing(
                f"There is no OpenTelemetry exporter '{name}'.",
                hint="pip install 'waygraph[otel]', or unset OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_ENDPOINT.",
            )
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        return cls(BatchSpanProcessor(exporters[0].load()()))

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Record the block as a span inside the current one."""
        if self._tracer is None:
            yield
            return
        with self._tracer.start_as_current_span(name):
            yield

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Callable[[str], None]]:
        """Record the block as the span of a request, within the trace that its headers name (W3C `traceparent`).

        Parameters
        ----------
        method
            HTTP method: the span's name until the route is known.
        headers
            Headers of the request.

        Yields
        ------
        Callable[[str], None]
            Adds the route to the span's name.
        """
        if self._tracer is None:
            yield lambda _: None
            return
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        context = self._propagate.extract(headers)
        with self._tracer.start_as_current_span(method, context=context, kind=SpanKind.SERVER) as span:
            yield lambda route: span.update_name(f"{method} {route}")

    def close(self) -> None:
        """Export the remaining spans."""
        if self._tracer is not None:
            self._provider.shutdown()


def _exporter_name(environment: Mapping[str, str]) -> str | None:
    """Return the entry point of the configured exporter; None if tracing is off."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    name = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    if not name and any(environment.get(variable) for variable in _ENDPOINT_VARIABLES):
        name = "otlp"
    if name in {"", "none"}:
        return None
    if name == "otlp":
        protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get(
            "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
        )
        return _OTLP_EXPORTERS.get(protocol, protocol)
    return name
