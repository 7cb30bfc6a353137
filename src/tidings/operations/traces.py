"""Traces with OpenTelemetry. Without a configured endpoint nothing is imported and every call does nothing.

    with traces.start_span("publish"): ...            in the caller's trace, or in a new one
    with traces.start_span("deliver", parent=text):   in the trace of a traceparent
    traces.current_traceparent()                      the current traceparent, to be stored with a publication

One process publishes a publication, another matches it in a batch with thousands of others, and a third delivers it. So
the batch has its own trace, with links to those of its publications; each of those has `notify`, with a link to the
batch, and `deliver`. The process that runs the stream records the span of a batch when the batch is over, because Spark
Connect processes it elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from tidings.errors import SetupError

SpanKind = Literal["internal", "server", "client", "producer"]
Tracing = Any
"""An `OtlpTracer`; only `configure_tracing` imports its module, which imports OpenTelemetry."""

_tracing: Tracing | None = None


def configure_tracing(
    endpoint: str | None,
    service: str = "tidings",
    headers: Mapping[str, str] | None = None,
    ratio: float = 1.0,
) -> None:
    """Send traces to an OTLP endpoint over HTTP; without one, nothing is traced."""
    global _tracing
    if endpoint is None:
        return
    try:
        from tidings.operations.otlp import OtlpTracer  # noqa: PLC0415 - imports OpenTelemetry
    except ModuleNotFoundError as error:
        raise SetupError(
            "OpenTelemetry is not installed", where="traces.endpoint", hint="pip install 'tidings[traces]'"
        ) from error
    _tracing = OtlpTracer(endpoint, service, dict(headers or {}), ratio)


def end_tracing() -> None:
    """Send the remaining spans and stop tracing."""
    global _tracing
    if _tracing is not None:
        _tracing.close()
    _tracing = None


def is_tracing() -> bool:
    return _tracing is not None


def start_span(
    name: str,
    *,
    parent: str | None = None,
    links: Sequence[str] = (),
    attributes: Mapping[str, Any] | None = None,
    kind: SpanKind = "internal",
    lasted: float = 0.0,
    ended: float | None = None,
) -> AbstractContextManager[str | None]:
    """Start a span; the context manager returns its traceparent, or None if nothing is traced.

    A span that is recorded afterwards has a duration of `lasted` seconds and the end `ended`, in seconds since 1970, by
    default now. `kind` distinguishes incoming from outgoing calls, for service maps.
    """
    if _tracing is None:
        return nullcontext()
    end = None if ended is None else int(ended * 1e9)
    span: AbstractContextManager[str | None] = _tracing.span(
        name, parent, links, attributes or {}, kind, lasted, end
    )
    return span


def annotate_span(attributes: Mapping[str, Any], *, failed: bool = False) -> None:
    """Add attributes to the current span, and optionally mark it as failed."""
    if _tracing is not None:
        _tracing.note(attributes, failed)


def current_traceparent() -> str | None:
    """Return the traceparent of the current span."""
    return None if _tracing is None else _tracing.current()
