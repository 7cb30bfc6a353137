"""What a stream beside a server tells is counted, logged and traced; while it runs, the store hears of it every ten
seconds.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from tidings.core import durations
from tidings.core.lifecycle import Worker
from tidings.operations import logs, traces
from tidings.spark.stream.progress import (
    DeferredRelease,
    StreamEvent,
    StreamListener,
    StreamProgress,
    StreamStart,
)

if TYPE_CHECKING:
    from tidings.service.context import ServiceContext
    from tidings.service.stream_worker import StreamWorker
    from tidings.store.store import Store

BEAT_SECONDS = 10.0
SHOWN = (
    "batch",
    "events",
    "notifications",
    "held",
    "repeated",
    "dead_letters",
    "position",
    "lag",
    "segments",
)
"""What is logged of a batch."""
MAX_TRACED = 100
"""Of a batch: what is traced at a rate that people look at is not in batches of thousands."""

_log = logs.get_logger("tidings.stream")


class StreamMetrics:
    """Hears the stream, and passes on what it hears."""

    def __init__(self, context: ServiceContext, then: StreamListener) -> None:
        self._metrics, self._then = context.metrics, then
        self._traced = StreamTracer(context.tidings.store)

    def __call__(self, news: StreamEvent) -> None:
        self._traced(news)
        if isinstance(news, StreamProgress):
            matches = news.notifications + news.held + news.repeated
            self._metrics.batch(matches, news.seconds, news.latency, news.sizes)
            told = asdict(news)
            _log.info("batch", seconds=round(news.seconds, 3), **{name: told[name] for name in SHOWN})
        elif isinstance(news, DeferredRelease):
            _log.info("held notifications are handed over", notifications=news.notifications)
        self._then(news)


class StreamTracer:
    """Hears the stream, and tells in the trace of each publication of a batch that it was matched, with a link to the
    batch, which has a trace of its own.

    Of batches that end in quick succession only the last one may be heard: it stands for those before it, too.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._upto = store, 0

    def __call__(self, news: StreamEvent) -> None:
        if isinstance(news, StreamStart):
            self._upto = news.position
        elif isinstance(news, StreamProgress):
            if traces.is_tracing():
                self._trace(news)
            self._upto = max(self._upto, news.position)

    def _trace(self, batch: StreamProgress) -> None:
        known = self._store.traces.among(self._upto + 1, batch.position, MAX_TRACED)
        attributes = {
            "tidings.batch": batch.batch,
            "tidings.events": batch.events,
            "tidings.notifications": batch.notifications,
        }
        told = traces.start_span(
            "match batch", links=known, attributes=attributes, lasted=batch.seconds, ended=batch.ended
        )
        with told as own, traces.start_span("commit", lasted=batch.committing, ended=batch.ended):
            links = [own] if own else []
        for one in known:
            with traces.start_span("notify", parent=one, links=links, ended=batch.ended):
                pass
        self._store.traces.forget()


class Heartbeat(Worker):
    """A worker that records in the store every ten seconds that the stream runs or starts."""

    def __init__(self, context: ServiceContext, stream: StreamWorker) -> None:
        super().__init__("heartbeat", BEAT_SECONDS)
        self._store, self._stream = context.tidings.store, stream
        self._kept = _kept(context)

    def run_once(self) -> None:
        from tidings.service.pipeline import record_heartbeat

        if self._stream.problem is None or self._stream.is_starting:
            record_heartbeat(self._store, self._kept, starting=self._stream.is_starting)
        self.stopping.wait(BEAT_SECONDS)


def _kept(context: ServiceContext) -> timedelta:
    return timedelta(seconds=durations.parse(context.settings.retention.pipeline))
