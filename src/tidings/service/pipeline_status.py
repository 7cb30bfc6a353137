"""State of the pipeline, now and over time, and the telemetry that a running stream leaves for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidings.core import durations
from tidings.core.lifecycle import Worker
from tidings.operations import logs, traces
from tidings.spark.stream.stream_events import (
    DeferredRelease,
    StreamEvent,
    StreamListener,
    StreamProgress,
    StreamStart,
)
from tidings.store.encoding import utc_now
from tidings.store.store import Store
from tidings.store.telemetry import TimeSeriesPoint

if TYPE_CHECKING:
    from tidings.service.context import ServiceContext
    from tidings.service.stream_worker import StreamWorker

STEP = 10
"""The shortest interval between two points, in seconds: measurements are kept at this resolution."""
UP, STARTING = "stream_up", "stream_starting"
"""Measurements that a stream adds every ten seconds while it runs, and while it starts."""
SEEN = timedelta(seconds=60)
"""A stream without a heartbeat for this long does not run."""
BEAT_SECONDS = 10.0
LOGGED_FIELDS = (
    "batch",
    "events",
    "notifications",
    "deferred",
    "repeated",
    "dead_letters",
    "position",
    "lag",
    "segments",
)
"""The fields of a batch that are logged."""
MAX_TRACED = 100
"""Publications of a batch that are traced; sensible sampling rates stay below that."""

_log = logs.get_logger("tidings.stream")


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """Progress of the pipeline. `seen` is the time of the stream's last heartbeat.

    While a stream `starts`, publications are accepted, and are matched when it runs.
    """

    head: int
    position: int
    lag: int
    notifications: int
    dead_letters: int
    segments: int
    subscriptions: int
    seen: datetime | None
    runs: bool
    starts: bool = False


@dataclass(frozen=True, slots=True)
class PipelineReport:
    """The status now, and measurements since a time, one point for each `step` in seconds."""

    now: PipelineStatus
    since: datetime
    step: int
    series: Mapping[str, list[TimeSeriesPoint]]


def read_pipeline(store: Store, last: timedelta, points: int = 120) -> PipelineReport:
    """Read the status and the measurements of the last minutes or days, with at most this many points."""
    step = max(STEP, -(-int(last.total_seconds()) // points // STEP) * STEP)
    since = utc_now() - last
    series: dict[str, list[TimeSeriesPoint]] = {}
    for point in store.time_series.read(since, step):
        series.setdefault(point.name, []).append(point)
    return PipelineReport(read_status(store), since, step, series)


def read_status(store: Store) -> PipelineStatus:
    """Read the status of the pipeline from the store; any process can."""
    counts = count_totals(store)
    latest = store.time_series.latest((UP, STARTING, "segments", "subscriptions"))
    seen, starting = (latest[name].at if name in latest else None for name in (UP, STARTING))
    starts = _is_recent(starting) and (seen is None or (starting is not None and starting > seen))
    return PipelineStatus(
        head=int(counts["publications"]),
        position=int(counts["stream_position"]),
        lag=int(counts["stream_lag"]),
        notifications=int(counts["notifications"]),
        dead_letters=int(counts["dead_letters"]),
        segments=int(latest["segments"].most) if "segments" in latest else 0,
        subscriptions=int(latest["subscriptions"].most) if "subscriptions" in latest else 0,
        seen=seen,
        runs=_is_recent(seen) and not starts,
        starts=starts,
    )


def _is_recent(moment: datetime | None) -> bool:
    return moment is not None and utc_now() - moment < SEEN


def count_totals(store: Store) -> dict[str, float]:
    """Count everything that ever went through the pipeline of a store."""
    head, matched = store.journal.head(), store.notifications.matched()
    return {
        "publications": head,
        "notifications": store.notifications.count(),
        "dead_letters": store.dead_letters.count(),
        "stream_position": matched,
        "stream_lag": max(0, head - matched),
    }


def record_heartbeat(store: Store, retention: timedelta, *, starting: bool = False) -> None:
    """Record that a stream runs or starts, and its lag; delete measurements older than `retention`."""
    lag = max(0, store.journal.head() - store.notifications.matched())
    store.time_series.add({STARTING if starting else UP: 1, "lag": lag}, retention)


class Heartbeat(Worker):
    """A worker that records in the store every ten seconds that the stream runs or starts."""

    def __init__(self, context: ServiceContext, stream: StreamWorker) -> None:
        super().__init__("heartbeat", BEAT_SECONDS)
        self._store, self._stream = context.tidings.store, stream
        self._retention = timedelta(seconds=durations.parse(context.settings.retention.pipeline))

    def run_once(self) -> None:
        if self._stream.problem is None or self._stream.is_starting:
            record_heartbeat(self._store, self._retention, starting=self._stream.is_starting)
        self.stopping.wait(BEAT_SECONDS)


class StreamMetrics:
    """Counts, logs and traces the events of a stream, and passes them on to another listener."""

    def __init__(self, context: ServiceContext, listener: StreamListener) -> None:
        self._metrics, self._listener = context.metrics, listener
        self._tracer = StreamTracer(context.tidings.store)

    def __call__(self, event: StreamEvent) -> None:
        self._tracer(event)
        if isinstance(event, StreamProgress):
            matches = event.notifications + event.deferred + event.repeated
            self._metrics.batch(matches, event.seconds, event.latency, event.sizes)
            fields = asdict(event)
            logged = {name: fields[name] for name in LOGGED_FIELDS}
            _log.info("batch", seconds=round(event.seconds, 3), **logged)
        elif isinstance(event, DeferredRelease):
            _log.info("deferred notifications released", notifications=event.notifications)
        self._listener(event)


class StreamTracer:
    """Adds to the trace of each publication that it was matched, with a link to the trace of the batch.

    Of batches that end in quick succession only the last one may be reported: its span covers those before it.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._position = store, 0

    def __call__(self, event: StreamEvent) -> None:
        if isinstance(event, StreamStart):
            self._position = event.position
        elif isinstance(event, StreamProgress):
            if traces.is_tracing():
                self._trace(event)
            self._position = max(self._position, event.position)

    def _trace(self, batch: StreamProgress) -> None:
        publications = self._store.traces.read_range(self._position + 1, batch.position, MAX_TRACED)
        attributes = {
            "tidings.batch": batch.batch,
            "tidings.events": batch.events,
            "tidings.notifications": batch.notifications,
        }
        batch_span = traces.start_span(
            "match batch", links=publications, attributes=attributes, lasted=batch.seconds, ended=batch.ended
        )
        with batch_span as own, traces.start_span("commit", lasted=batch.committing, ended=batch.ended):
            links = [own] if own else []
        for parent in publications:
            with traces.start_span("notify", parent=parent, links=links, ended=batch.ended):
                pass
        self._store.traces.forget()
