"""How the pipeline is doing, now and over time, as any process over the same store can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidings.store.encoding import utc_now
from tidings.store.store import Store
from tidings.store.telemetry import TimeSeriesPoint

STEP = 10
"""The least seconds between two points: as long as what is kept is about."""
UP, STARTING = "stream_up", "stream_starting"
"""Measures that a stream adds to every ten seconds while it runs, and while it starts."""
SEEN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """Where everything is. `seen` is when a stream was last at work; one not seen for a minute does not run.

    `starts` is true while a stream starts: publications are accepted, and matched when it runs.
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
    """The present and the past, in steps of so many seconds."""

    now: PipelineStatus
    since: datetime
    step: int
    series: Mapping[str, list[TimeSeriesPoint]]


def read_pipeline(store: Store, last: timedelta, points: int = 120) -> PipelineReport:
    """What happened in the last minutes or days, in so many points at most."""
    step = max(STEP, -(-int(last.total_seconds()) // points // STEP) * STEP)
    since = utc_now() - last
    series: dict[str, list[TimeSeriesPoint]] = {}
    for one in store.time_series.read(since, step):
        series.setdefault(one.name, []).append(one)
    return PipelineReport(read_status(store), since, step, series)


def read_status(store: Store) -> PipelineStatus:
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
    """What a store knows of all that ever happened in it."""
    head, matched = store.journal.head(), store.notifications.matched()
    return {
        "publications": head,
        "notifications": store.notifications.count(),
        "dead_letters": store.dead_letters.count(),
        "stream_position": matched,
        "stream_lag": max(0, head - matched),
    }


def record_heartbeat(store: Store, kept: timedelta, *, starting: bool = False) -> None:
    """Record that a stream runs or starts, and its lag; measures older than `kept` are deleted."""
    lag = max(0, store.journal.head() - store.notifications.matched())
    store.time_series.add({STARTING if starting else UP: 1, "lag": lag}, kept)
