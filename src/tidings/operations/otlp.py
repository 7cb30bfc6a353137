"""Exporter of spans over OTLP, in batches. Only this module imports OpenTelemetry, and only if it is configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import time_ns
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

PATH = "/v1/traces"
EXPORT_SECONDS = 10
"""Timeout of an export; spans that the endpoint does not accept are dropped."""

_carrier = TraceContextTextMapPropagator()


class OtlpTracer:
    """Tracer for the spans of this process."""

    def __init__(self, endpoint: str, service: str, headers: dict[str, str], ratio: float) -> None:
        address = endpoint if endpoint.endswith(PATH) else endpoint.rstrip("/") + PATH
        exporter = OTLPSpanExporter(endpoint=address, headers=headers, timeout=EXPORT_SECONDS)
        sampler = ParentBased(TraceIdRatioBased(ratio))
        self._provider = TracerProvider(sampler, Resource.create({"service.name": service}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("tidings")

    @contextmanager
    def span(
        self,
        name: str,
        parent: str | None,
        links: Sequence[str],
        attributes: Mapping[str, Any],
        kind: str,
        lasted: float,
        ended: int | None,
    ) -> Iterator[str | None]:
        span = self._tracer.start_span(
            name,
            kind=trace.SpanKind[kind.upper()],
            context=_context(parent) if parent else None,
            links=[trace.Link(_span_context(link)) for link in links],
            start_time=(ended or time_ns()) - int(lasted * 1e9),
            attributes={key: value for key, value in attributes.items() if value is not None},
        )
        try:
            with trace.use_span(span):
                yield self.current()
        finally:
            span.end(ended)

    def note(self, attributes: Mapping[str, Any], failed: bool) -> None:
        span = trace.get_current_span()
        span.set_attributes(attributes)
        if failed:
            span.set_status(trace.StatusCode.ERROR)

    def current(self) -> str | None:
        carried: dict[str, str] = {}
        _carrier.inject(carried)
        return carried.get("traceparent")

    def close(self) -> None:
        self._provider.shutdown()


def _context(traceparent: str) -> Context:
    return _carrier.extract({"traceparent": traceparent})


def _span_context(traceparent: str) -> trace.SpanContext:
    return trace.get_current_span(_context(traceparent)).get_span_context()
