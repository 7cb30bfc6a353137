"""What a running stream reports to its listener: that it runs, what it does, each batch, what was repaired.

Nothing here needs Spark: a listener can tell news apart without loading it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """How the stream is doing: the last batch, and all batches since it was started.

    `latency` is how long the oldest publication of the batch has waited for its notifications; in a folder nothing says
    when a file was published. `sizes` are the subscriptions of each segment. `committing` is the part of its `seconds`
    that the store took, and `ended` when it was done, since 1970.
    """

    batch: int = -1
    events: int = 0
    notifications: int = 0
    held: int = 0
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
    total_held: int = 0
    total_dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class MetadataProgress:
    """How the stream of metadata is doing: the last batch, and all batches since it was started."""

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
class StreamRepair:
    """What had to be mended in the checkpoint or the index before the stream could start."""

    what: str


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The stream runs: publications from now on are matched within moments. This is where it is."""

    source: str
    position: int = 0
    lag: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class DeferredRelease:
    """Notifications that were held have become due, and their subscribers have them now."""

    notifications: int


class ActivityKind(StrEnum):
    """What a stream may be doing between two batches that it reports."""

    STARTING = "starting"
    MATCHING = "matching"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Activity:
    """What the stream does now; told when it changes. `publications` wait to be matched, 0 if that is not known."""

    doing: ActivityKind
    publications: int = 0


StreamEvent = StreamRepair | StreamStart | StreamProgress | MetadataProgress | DeferredRelease | Activity
StreamListener = Callable[[StreamEvent], None]


class StreamEventRelay:
    """Passes news on. Where the first batch is the news that the stream runs, `Started` is told with it."""

    def __init__(self, source: str, then: StreamListener, *, starts_with_batch: bool) -> None:
        self._source, self._then = source, then
        self._has_said = not starts_with_batch

    def __call__(self, news: StreamEvent) -> None:
        if isinstance(news, StreamProgress) and not self._has_said:
            self._has_said = True
            self._then(StreamStart(self._source, news.position, news.lag, news.segments))
        self._then(news)
