"""Traces from publishing to delivery, sent to a real receiver on loopback; without configuration, there are none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.servers.application import served
from tests.support.servers.trace_receiver import Receiver
from tidings.delivery.dispatcher import DeliveryEvent
from tidings.errors import SetupError
from tidings.model import Publication
from tidings.operations import traces
from tidings.operations.settings import ServicePart
from tidings.service.delivery import DeliveryTelemetry
from tidings.service.pipeline_status import StreamTracer
from tidings.spark.stream.stream_events import StreamProgress, StreamStart
from tidings.store import telemetry as kept
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import open_store


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    opened = Receiver()
    yield opened
    opened.close()


@contextmanager
def tracing(receiver: Receiver) -> Iterator[None]:
    traces.configure_tracing(receiver.url, headers={"x-key": "k"})
    try:
        yield
    finally:
        traces.end_tracing()


def test_trace_of_publication_continues_in_other_processes(receiver: Receiver, tmp_path: Path) -> None:
    """The traceparent is stored with the publication, in the same transaction, for later work on it. Spans of a
    batch are sent when it is over, and those of a publication once, even if progress events arrive out of order.
    """
    with tracing(receiver), open_store(sqlite_url(tmp_path / "store.db")) as store:
        trace_event = StreamTracer(store)
        trace_event(StreamStart("journal", 0))
        with traces.start_span("publish"):
            store.journal.append([Publication("p-1", "application/json", b"{}")])
            store.journal.append([Publication("p-1", "application/json", b"{}")])
        store.journal.append([Publication("p-2", "application/json", b"{}")])
        assert store.traces.of("p-2") is None, "p-2 has no trace"
        trace_event(StreamProgress(batch=1, events=2, position=2, seconds=3.0, committing=1.0, ended=1_000.0))
        trace_event(StreamProgress(batch=2, events=0, position=0, seconds=0.5, ended=1_001.0))
        with traces.start_span(
            "deliver", parent=store.traces.of("p-1"), attributes={"tidings.channel": "webhook"}
        ):
            pass
    assert set(receiver.headers) == {"k"}
    [publish], [match, empty] = receiver.named("publish"), receiver.named("match batch")
    [notify], [deliver] = receiver.named("notify"), receiver.named("deliver")
    assert publish.trace_id == notify.trace_id == deliver.trace_id != match.trace_id
    assert notify.parent_span_id == deliver.parent_span_id == publish.span_id
    assert [link.span_id for link in match.links] == [publish.span_id] and not empty.links
    assert [link.span_id for link in notify.links] == [match.span_id]
    assert (match.start_time_unix_nano, match.end_time_unix_nano) == (997 * 10**9, 1_000 * 10**9)
    commit = next(one for one in receiver.named("commit") if one.parent_span_id == match.span_id)
    assert commit.end_time_unix_nano - commit.start_time_unix_nano == 10**9


def test_span_has_kind_status_and_attributes(receiver: Receiver, tmp_path: Path) -> None:
    """Programs that draw service maps rely on the kinds of spans, and highlight failed ones."""
    with tracing(receiver), served(tmp_path, frozenset({ServicePart.API})) as service:
        post, headers = f"{service.url}/v1/publications", {"authorization": f"Bearer {service.token}"}
        assert httpx.post(f"{post}?id=p-1", json={"price": 1}, headers=headers).status_code == 201
        assert httpx.post(f"{post}?id=p-1", json={"price": 2}, headers=headers).status_code == 409
        store = service.context.tidings.store
        store.notifications.commit_batch("test", 0, [MatchRow("p-1", "s-1", "ana")])
        [notification] = store.notifications.read("ana")
        for outcome, kind in (("delivered", "webhook"), ("failed", "kafka"), ("dead", "apprise")):
            DeliveryTelemetry(service.context)(
                DeliveryEvent(outcome, kind, "d-1", "s-1", (notification.id,), 0.2)
            )
    first, second = receiver.named("publish")
    assert first.kind == second.kind == Span.SPAN_KIND_SERVER
    assert attributes(first) == {
        "http.request.method": "POST",
        "http.route": "/v1/publications",
        "http.response.status_code": 201,
        "tidings.publication": "p-1",
    }
    assert attributes(second)["http.response.status_code"] == 409
    assert [(one.kind, one.status.code) for one in receiver.named("deliver")] == [
        (Span.SPAN_KIND_CLIENT, Status.STATUS_CODE_UNSET),
        (Span.SPAN_KIND_PRODUCER, Status.STATUS_CODE_ERROR),
        (Span.SPAN_KIND_CLIENT, Status.STATUS_CODE_ERROR),
    ]
    assert {one.trace_id for one in receiver.named("deliver")} == {first.trace_id}


def attributes(span: Span) -> dict[str, str | int]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_stored_traces_are_bounded(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    with (
        tracing(receiver),
        open_store(sqlite_url(tmp_path / "store.db")) as store,
        traces.start_span("publish"),
    ):
        store.journal.append([Publication(f"p-{n}", "application/json", b"{}") for n in range(10)])
        store.traces.forget()
        assert len(store.traces.read_range(0, 100, 100)) == 3 and store.traces.of("p-9")


def test_tracing_disabled_imports_no_sdk_and_stores_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from tidings.operations import traces; traces.configure_tracing(None)\n"
        "from tidings.api import app; from tidings.store.database import sqlite_url\n"
        "from tidings.store.store import open_store\n"
        "from tidings.model import Publication\n"
        f"store = open_store(sqlite_url(__import__('pathlib').Path({str(tmp_path)!r}) / 'store.db'))\n"
        "with traces.start_span('publish') as one:\n"
        "    store.journal.append([Publication('p', 'application/json', b'{}')])\n"
        "assert one is None and traces.current_traceparent() is None and store.traces.of('p') is None\n"
        "print(*(name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "\n"


def test_configure_tracing_without_extra_is_setup_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tidings.operations.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SetupError, match=r"pip install 'tidings\[traces\]'"):
        traces.configure_tracing("http://127.0.0.1:1")
    assert not traces.is_tracing()
