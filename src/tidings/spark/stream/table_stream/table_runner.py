"""The running stream from a source to a sink, or into the journal.

stream = TableStream(Path(".tidings"), url, Table.at("kafka://broker:9092/orders", SOURCE), Table("matches"))
run_table_stream(session, stream)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

from pyspark.sql import SparkSession

from tidings.core.atomic_files import private_folder
from tidings.spark import checkpoint
from tidings.spark.session import find_spark_ui
from tidings.spark.stream.live_index import repair_index
from tidings.spark.stream.query import Query, explain_dead_jvm
from tidings.spark.stream.runner import (
    DRAIN_SECONDS,
    end_previous_session,
    follow_queries,
    list_pauses,
    record_session,
    resolve_url,
)
from tidings.spark.stream.stream_events import (
    Activity,
    ActivityKind,
    StreamListener,
    StreamRepair,
    StreamStart,
    TableProgress,
)
from tidings.spark.stream.supervisor import POLL_SECONDS
from tidings.spark.stream.table_stream.definition import TableStream
from tidings.spark.stream.warm_up import WorkerKeepAlive


def run_table_stream(
    session: SparkSession,
    stream: TableStream,
    *,
    once: bool = False,
    drain: float = DRAIN_SECONDS,
    stop: Event | None = None,
    listener: StreamListener | None = None,
) -> TableProgress:
    """Run the stream until `stop` is set or, with `once`, until what the source has is processed.

    The current micro-batch then has `drain` seconds to finish. If it does not, it is repeated by the next run.
    """
    stream, tell = stream.resolve(), listener or (lambda event: None)
    stream = replace(stream, store=resolve_url(stream.store))
    stream.check()
    private_folder(stream.folder)
    with checkpoint.hold_run_lock(stream.folder):
        end_previous_session(session, stream.folder)
        for repair in (*checkpoint.repair_checkpoint(stream.checkpoint), *repair_index(stream.index)):
            tell(StreamRepair(repair))
        checkpoint.read_stream_id(stream.checkpoint)
        stream.status.unlink(missing_ok=True)
        with record_session(session, stream.folder):
            begin = partial(TableSupervisor, session, stream, once, drain)
            return _follow(begin, stop or Event(), tell, list_pauses(once))


def _follow(
    begin: Callable[[], TableSupervisor], stop: Event, tell: StreamListener, pauses: Iterable[float]
) -> TableProgress:
    def follow(query: TableSupervisor) -> TableProgress:
        return query.follow(stop, tell)

    return follow_queries(begin, follow, stop, pauses)


class TableSupervisor(ExitStack):
    """Runs the query of a stream and reports its progress."""

    def __init__(self, session: SparkSession, stream: TableStream, once: bool, drain: float) -> None:
        super().__init__()
        self._stream, self._once, self._last = stream, once, TableProgress()
        self._spark_ui = find_spark_ui(session)
        self._query = self.enter_context(closing(Query(session, stream, once, drain)))
        self._workers = WorkerKeepAlive(session)

    def follow(self, stop: Event, tell: StreamListener) -> TableProgress:
        """Report progress until the query ends or `stop` is set."""
        tell(StreamStart(self._stream.title, spark_ui=self._spark_ui))
        tell(Activity(ActivityKind.STARTING))
        with explain_dead_jvm():
            while not stop.is_set() and not self._query.has_ended(POLL_SECONDS):
                self._tell(tell, self._query.spark_progress() or {})
                if not self._once and self._last.batch >= 0:
                    self._workers.keep(self._last.batch, self._query.is_busy)
            finished = self._query.spark_progress() or {}
        self.close()
        self._tell(tell, finished, is_over=True)
        return self._last

    def _tell(self, tell: StreamListener, spark: dict[str, Any], is_over: bool = False) -> None:
        """Report a new batch, as soon as Spark has reported the lag after it."""
        if not self._stream.status.exists():
            return
        now = self._stream.progress(json.loads(self._stream.status.read_text()))
        if now.batch != self._last.batch and (is_over or spark.get("batchId", -1) >= now.batch):
            self._last = replace(now, lag=measure_lag(spark))
            tell(self._last)


def measure_lag(spark: dict[str, Any]) -> int | None:
    """Return how many publications a source has beyond the last batch; None unless it counts them, as Kafka does."""
    for source in spark.get("sources", ()):
        end, latest = source.get("endOffset"), source.get("latestOffset")
        if _counts(end) and _counts(latest):
            behind: list[int] = [
                offset - end.get(topic, {}).get(partition, 0)
                for topic, partitions in latest.items()
                for partition, offset in partitions.items()
            ]
            return sum(behind)
    return None


def _counts(offsets: Any) -> bool:
    """Return whether offsets are numbers by topic and partition."""
    return (
        isinstance(offsets, dict)
        and bool(offsets)
        and all(
            isinstance(partitions, dict) and all(isinstance(offset, int) for offset in partitions.values())
            for partitions in offsets.values()
        )
    )
