"""Traces with OpenTelemetry, if an endpoint is configured; else nothing is imported, and nothing happens.

    with traces.span("publish"): ...            in the trace of whoever called, or in a new one
    with traces.span("deliver", parent=text):   in the trace that a traceparent names
    traces.current()                            the traceparent of now, to be kept with a publication

A publication is published by one process, matched by another, with thousands of others in one batch, and delivered by a
third. So the batch has a trace of its own, with links to those of its publications; in each of those is `notify`, with
a link to the batch, and `deliver`. Of a batch the process that runs the stream tells, when it is over: through Spark
Connect it is processed elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from tidings.errors import SetupError

SpanKind = Literal["internal", "server", "client", "producer"]
Tracing = Any
"""What OpenTelemetry gives; it is imported by `configure` only."""

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
    """Send what is left, and trace no more."""
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
    """Something that takes time; gives its traceparent, or None if nobody traces. What is told when it is over has
    `lasted` for so many seconds, and has `ended` then, in seconds since 1970, if that was not just now. `kind` says
    whether we were called or call somebody: maps of services are drawn by it.
    """
    if _tracing is None:
        return nullcontext()
    over = None if ended is None else int(ended * 1e9)
    found: AbstractContextManager[str | None] = _tracing.span(
        name, parent, links, attributes or {}, kind, lasted, over
    )
    return found


def annotate_span(attributes: Mapping[str, Any], *, failed: bool = False) -> None:
    """Say of what is under way here what came of it."""
    if _tracing is not None:
        _tracing.note(attributes, failed)


def current_traceparent() -> str | None:
    """The traceparent of what is under way here."""
    return None if _tracing is None else _tracing.current()
