"""Stages are metrics, and spans if the environment configures an exporter."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from waygraph.core.errors import EnvironmentMissing
from waygraph.serve.telemetry.metrics import Metrics
from waygraph.serve.telemetry.tracing import Tracing, _exporter_name


@pytest.mark.parametrize(
    ("environment", "exporter"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "waygraph"}, None),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp_proto_http"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "otlp_proto_grpc"),
    ],
)
def test_spans_are_exported_when_the_standard_variables_say_so(environment, exporter):
    assert _exporter_name(environment) == exporter


def test_an_exporter_that_is_not_installed_is_an_error(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nobody-has-this")
    with pytest.raises(EnvironmentMissing, match="nobody-has-this"):
        Tracing.from_environment()


def test_stages_are_spans_of_the_callers_trace():
    exported = InMemorySpanExporter()
    tracing = Tracing(SimpleSpanProcessor(exported))
    metrics = Metrics(tracing)
    headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    with tracing.request("POST", headers) as name, metrics.stage("search"):
        name("/v1/sites/{site}/search")
    tracing.close()
    stage, request = exported.get_finished_spans()
    assert (stage.name, request.name) == ("search", "POST /v1/sites/{site}/search")
    assert stage.parent.span_id == request.context.span_id
    assert f"{request.context.trace_id:x}" == "af7651916cd43dd8448eb211c80319c"


def test_metrics_are_rendered_in_the_format_of_prometheus():
    metrics = Metrics()
    with metrics.stage("search"):
        pass
    metrics.count_lookup("answer", hit=True)
    metrics.count_refused("encode")
    metrics.observe_request("/v1/search", 200, 0.1)
    metrics.add_gauge("waygraph_open_sites", "Maps that are open.", lambda: 3)
    metrics.add_counter("waygraph_closed_for_room", "Closed.", lambda: 2)
    page = metrics.render().decode()
    for line in (
        'waygraph_stage_seconds_count{stage="search"} 1.0',
        'waygraph_cache_total{cache="answer",outcome="hit"} 1.0',
        'waygraph_refused_total{queue="encode"} 1.0',
        'waygraph_request_seconds_count{route="/v1/search",status="200"} 1.0',
        "waygraph_open_sites 3.0",
        "waygraph_closed_for_room_total 2.0",
    ):
        assert line in page
