"""How the pipeline is doing, now and over time, as any process over the same store can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidings.store import Measured, Store, utc

STEP = 10
"""The least seconds between two points: as long as what is kept is about."""
UP, STARTING = "stream_up", "stream_starting"
"""Measures that a stream adds to every ten seconds while it runs, and while it starts."""
SEEN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Now:
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
class Pipeline:
    """The present and the past, in steps of so many seconds."""

    now: Now
    since: datetime
    step: int
    series: Mapping[str, list[Measured]]


def pipeline(store: Store, last: timedelta, points: int = 120) -> Pipeline:
    """What happened in the last minutes or days, in so many points at most."""
    step = max(STEP, -(-int(last.total_seconds()) // points // STEP) * STEP)
    since = utc() - last
    series: dict[str, list[Measured]] = {}
    for one in store.measures.read(since, step):
        series.setdefault(one.name, []).append(one)
    return Pipeline(now(store), since, step, series)


def now(store: Store) -> Now:
    counts = counted(store)
    latest = store.measures.latest((UP, STARTING, "segments", "subscriptions"))
    seen, starting = (latest[name].at if name in latest else None for name in (UP, STARTING))
    starts = _is_recent(starting) and (seen is None or (starting is not None and starting > seen))
    return Now(
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
    return moment is not None and utc() - moment < SEEN


def counted(store: Store) -> dict[str, float]:
    """What a store knows of all that ever happened in it."""
    head, matched = store.journal.head(), store.notifications.matched()
    return {
        "publications": head,
        "notifications": store.notifications.count(),
        "dead_letters": store.dead_letters.count(),
        "stream_position": matched,
        "stream_lag": max(0, head - matched),
    }


def beat(store: Store, kept: timedelta, *, starting: bool = False) -> None:
    """Record that a stream runs or starts, and its lag; measures older than `kept` are deleted."""
    lag = max(0, store.journal.head() - store.notifications.matched())
    store.measures.add({STARTING if starting else UP: 1, "lag": lag}, kept)
