"""Traces from publishing to delivering, sent to a real receiver on loopback; and nothing of it if nobody asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.operating.receiver import Receiver
from tidings.errors import SetupError
from tidings.model import Publication
from tidings.operating import traces
from tidings.store import open_store, sqlite_url
from tidings.store import traces as kept


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    opened = Receiver()
    yield opened
    opened.close()


@contextmanager
def tracing(receiver: Receiver) -> Iterator[None]:
    traces.configure(receiver.url, headers={"x-key": "k"})
    try:
        yield
    finally:
        traces.end()


def test_the_trace_of_a_publication_goes_on_in_other_processes(receiver: Receiver, tmp_path: Path) -> None:
    """Its traceparent is kept with it, in the transaction that takes it; whoever works on it later looks there."""
    with tracing(receiver), open_store(sqlite_url(tmp_path / "store.db")) as store:
        with traces.span("publish"):
            store.journal.append([Publication("p-1", "application/json", b"{}")])
            store.journal.append([Publication("p-1", "application/json", b"{}")])
        store.journal.append([Publication("p-2", "application/json", b"{}")])
        assert store.traces.of("p-2") is None, "nobody traced that one"
        with traces.span("match batch") as batch:
            known = store.traces.among(1, 2, 10)
            traces.link(known)
        assert batch is not None
        for one in known:
            with traces.span("notify", parent=one, links=[batch]):
                pass
        with traces.span("deliver", parent=store.traces.of("p-1"), attributes={"tidings.channel": "webhook"}):
            pass
    assert set(receiver.headers) == {"k"}
    [publish], [match] = receiver.named("publish"), receiver.named("match batch")
    [notify], [deliver] = receiver.named("notify"), receiver.named("deliver")
    assert publish.trace_id == notify.trace_id == deliver.trace_id != match.trace_id
    assert notify.parent_span_id == deliver.parent_span_id == publish.span_id
    assert [link.span_id for link in match.links] == [publish.span_id]
    assert [link.span_id for link in notify.links] == [match.span_id]


def test_what_is_kept_of_traces_is_bounded(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    with tracing(receiver), open_store(sqlite_url(tmp_path / "store.db")) as store, traces.span("publish"):
        store.journal.append([Publication(f"p-{n}", "application/json", b"{}") for n in range(10)])
        store.traces.forget()
        assert len(store.traces.among(0, 100, 100)) == 3 and store.traces.of("p-9")


def test_nothing_is_imported_and_nothing_happens_if_nobody_asked(tmp_path: Path) -> None:
    code = (
        "import sys; from tidings.operating import traces; traces.configure(None)\n"
        "from tidings.interfaces.http import app; from tidings.store import open_store, sqlite_url\n"
        "from tidings.model import Publication\n"
        f"store = open_store(sqlite_url(__import__('pathlib').Path({str(tmp_path)!r}) / 'store.db'))\n"
        "with traces.span('publish') as one: store.journal.append([Publication('p', 'application/json', b'{}')])\n"
        "assert one is None and traces.current() is None and store.traces.of('p') is None\n"
        "print(*(name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_without_the_extra_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tidings.operating.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SetupError, match=r"pip install 'tidings\[traces\]'"):
        traces.configure("http://127.0.0.1:1")
    assert not traces.is_on()
