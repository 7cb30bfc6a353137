"""Events that a running stream reports to its listener: start, activity, batches, repairs.

Nothing here needs Spark: a listener can distinguish the events without importing it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """Progress of the stream: the last batch, and totals since the start.

    `latency` is the time from publishing the oldest publication of the batch to its notifications; it is None for
    folders, where the time of publishing is unknown. `sizes` are the numbers of subscriptions per segment. `committing`
    is the part of `seconds` spent in the store, `ended` the end of the batch in seconds since 1970.
    """

    batch: int = -1
    events: int = 0
    notifications: int = 0
    deferred: int = 0
    repeated: int = 0
    dead_letters: int = 0
    position: int = 0
    lag: int = 0
    seconds: float = 0.0
    committing: float = 0.0
    ended: float = 0.0
    subscriptions: int = 0
    segments: int = 0
    sizes: Sequence[int] = ()
    latency: float | None = None
    total_events: int = 0
    total_notifications: int = 0
    total_deferred: int = 0
    total_dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class MetadataProgress:
    """Progress of the metadata stream: the last batch, and totals since the start."""

    batch: int = -1
    entries: int = 0
    entered: int = 0
    changed: int = 0
    left: int = 0
    dead_letters: int = 0
    position: int = 0
    lag: int = 0
    seconds: float = 0.0
    rules: int = 0
    segments: int = 0
    total_entries: int = 0
    total_entered: int = 0
    total_changed: int = 0
    total_left: int = 0
    total_dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class TableProgress:
    """Progress of a stream from any source: the last batch, and totals since the start.

    `lag` is the number of publications that the source has beyond the batch, None if it does not tell. `version` is
    that of the published subscriptions. Tables of the relational engine have no segments.
    """

    batch: int = -1
    publications: int = 0
    matches: int = 0
    rejects: int = 0
    lag: int | None = None
    seconds: float = 0.0
    version: int = 0
    subscriptions: int = 0
    segments: int = 0
    total_publications: int = 0
    total_matches: int = 0
    total_rejects: int = 0


@dataclass(frozen=True, slots=True)
class StreamRepair:
    """A repair of the checkpoint or the index before the stream could start."""

    what: str


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The stream is running and matches new publications within moments; its position and lag.

    `spark_ui` is the address of Spark's user interface, if the session has one.
    """

    source: str
    position: int = 0
    lag: int = 0
    segments: int = 0
    spark_ui: str | None = None


@dataclass(frozen=True, slots=True)
class DeferredRelease:
    """Deferred notifications that became due and were released to their subscribers."""

    notifications: int


class ActivityKind(StrEnum):
    """Activities of a stream between two reported batches."""

    STARTING = "starting"
    MATCHING = "matching"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Activity:
    """The current activity, reported when it changes; `publications` are waiting, 0 if unknown."""

    doing: ActivityKind
    publications: int = 0


StreamEvent = (
    StreamRepair
    | StreamStart
    | StreamProgress
    | MetadataProgress
    | TableProgress
    | DeferredRelease
    | Activity
)
StreamListener = Callable[[StreamEvent], None]


class StreamEventRelay:
    """Forwards events; with `starts_with_batch` the first batch also reports `StreamStart`."""

    def __init__(self, start: StreamStart, then: StreamListener, *, starts_with_batch: bool) -> None:
        self._start, self._then = start, then
        self._has_started = not starts_with_batch

    def __call__(self, event: StreamEvent) -> None:
        if isinstance(event, StreamProgress) and not self._has_started:
            self._has_started = True
            self._then(replace(self._start, position=event.position, lag=event.lag, segments=event.segments))
        self._then(event)
