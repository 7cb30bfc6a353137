"""Admission control: how a streaming source bounds its batches, on every version of Spark that Tidings supports.

    class Reader(BoundedReader):             a source defines
        first_offset()                       where a stream without a checkpoint begins
        next_offset(start)                   the end of the batch that begins at `start`
        stop_at_head()                       makes the current head the last offset
        ranges(start, end)                   the ranges of a batch, one per task

    set_trigger(writer, once)                with `once` a query ends at the initial head of its source,
    stop_at_end(query, once)                 whose reader has the same option

Spark 4.2 and later versions pass the start of a batch to the source, and tell it about the trigger `availableNow`.
Spark 4.1 does neither: with that trigger it runs a single batch, of what `next_offset` returns first. So queries that
read everything in bounded batches have another trigger there. Only this module knows the difference.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from threading import Thread
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

try:
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
except ModuleNotFoundError:
    HAS_ADMISSION_CONTROL = False
else:
    HAS_ADMISSION_CONTROL = True

ONCE = "once"
"""The option of a source: whether it reads no further than to its initial head (`True` or `False`)."""

Offset = dict[str, Any]

_log = logging.getLogger("tidings.stream")


class BoundedReader(DataSourceStreamReader):  # type: ignore[misc]
    """Base of streaming sources that bound their batches."""

    def __init__(self, options: Any) -> None:
        self.is_once = options.get(ONCE) == str(True)
        self._first: Offset | None = None

    @abstractmethod
    def first_offset(self) -> Offset:
        """Return where a stream without a checkpoint begins."""

    def initialOffset(self) -> Offset:
        """Return the first offset. Spark asks again when it plans the first batch: rows may have been added since."""
        if self._first is None:
            self._first = self.first_offset()
        return self._first

    @abstractmethod
    def next_offset(self, start: Offset) -> Offset:
        """Return the end of the batch that begins at `start`; `start` itself if there is nothing new."""

    @abstractmethod
    def stop_at_head(self) -> None:
        """Read no further than the current head from now on."""

    @abstractmethod
    def ranges(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Divide a batch into ranges for tasks."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self.ranges(start, end)


class OffsetTrackingReader(BoundedReader):
    """A reader that remembers where the last batch ended, because Spark 4.1 does not pass it.

    When Spark restarts a query, it passes the last offset of the checkpoint as an empty range before anything else.
    """

    _position: Offset | None = None

    def latestOffset(self) -> Offset:
        if self._position is None:
            self._position = self.initialOffset()
        if self.is_once:
            self.is_once = False
            self.stop_at_head()
        self._position = self.next_offset(self._position)
        return self._position

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        self._position = end
        return super().partitions(start, end)


if HAS_ADMISSION_CONTROL:

    class StreamReader(BoundedReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
        """The base of sources with bounded batches. They have a limit of their own, and ignore that of Spark."""

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
            return self.next_offset(start)

        def prepareForTriggerAvailableNow(self) -> None:
            self.stop_at_head()

else:

    class StreamReader(OffsetTrackingReader):  # type: ignore[no-redef]
        """The base of sources with bounded batches."""


def set_trigger(writer: DataStreamWriter, once: bool, is_own_source: bool = True) -> DataStreamWriter:
    """Set the trigger of a query that runs continuously or, with `once`, ends at the initial head of its source."""
    if once and (HAS_ADMISSION_CONTROL or not is_own_source):
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime="0 seconds")


def stop_at_end(query: StreamingQuery, once: bool, is_own_source: bool = True) -> None:
    """Let a query with `once` stop when it has processed everything, where its trigger does not do that."""
    if once and is_own_source and not HAS_ADMISSION_CONTROL:
        Thread(target=_stop_when_idle, args=(query,), name="stop-at-end", daemon=True).start()


def _stop_when_idle(query: StreamingQuery) -> None:
    try:
        query.processAllAvailable()
        query.stop()
    except (PySparkException, Py4JError, ConnectionError) as problem:  # `awaitTermination` raises it again
        _log.info("the query ended before its last batch: %s", str(problem).partition("\n")[0])
