"""The queries of a running stream: each takes its batches, tells how it is doing through a file, and ends by itself or
because all are to stop.

Through Spark Connect a batch is processed in a process of the server. So what a query does is made of values that can
be sent there, and opens what it needs with the first batch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from tidings.errors import SetupError, SlowStart, StoreError, TidingsError
from tidings.spark.sources.files import Location
from tidings.spark.stream.failures import DISK_FULL, SLOW_START, is_slow_start

GONE = (Py4JError, ConnectionError)
"""What calls to a JVM that has died end with."""

STARTS = 5
"""How often a query is started whose process for the batches does not come up in time."""

_log = logging.getLogger("tidings.stream")

ProgressCallback = Callable[[Any], None]


@contextmanager
def explain_dead_jvm() -> Iterator[None]:
    """Say in a sentence that the JVM has died, whatever call to it noticed that."""
    try:
        yield
    except GONE as problem:
        raise SetupError("Spark has ended", hint="spark.log in the home folder may say why") from problem


class BatchHandler(Protocol):
    """What works on batches, and keeps what it needs from one to the next."""

    def process(self, rows: DataFrame, batch: int) -> None: ...

    def close(self) -> None: ...


class QueryDefinition(Protocol):
    """What a query is to do: everything that has to be known, wherever it runs."""

    @property
    def name(self) -> str: ...

    @property
    def checkpoint(self) -> Path: ...

    @property
    def status(self) -> Path: ...

    def rows(self, session: SparkSession) -> DataFrame: ...

    def open(self) -> BatchHandler: ...

    def progress(self, told: dict[str, Any]) -> Any: ...


class BatchFunction:
    """The function for `foreachBatch`: it opens what it needs with the first batch, in the process that has it.

    `failure` is the error of ours that ended the query, if that happened in this process.
    """

    def __init__(self, work: QueryDefinition) -> None:
        self.work = work
        self.failure: TidingsError | None = None
        self._live: BatchHandler | None = None
        self._turn, self._is_over = Lock(), False

    def __reduce__(self) -> tuple[object, ...]:
        """Spark Connect sends it to the server before its first batch."""
        return BatchFunction, (self.work,)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        with self._turn:
            if self._is_over:  # waiting here would keep Spark from ending; what is not begun is planned again
                raise SetupError("the stream ends before this batch")
            try:
                self._live = self._live or self.work.open()
                self._live.process(rows, batch)
            except TidingsError as problem:
                self.failure = problem
                raise

    def drain(self, seconds: float) -> None:
        """Begin no further batch, and let the one under way end, if it does within so many seconds."""
        self._is_over = True
        if self._turn.acquire(timeout=seconds):
            self._turn.release()

    def close(self) -> None:
        """Let go of the store."""
        if self._live is not None:
            self._live.close()
            self._live = None


class Query:
    """A query that runs; `last` is what it told last."""

    def __init__(self, session: SparkSession, work: QueryDefinition, once: bool, drain: float = 0.0) -> None:
        self.last: Any = None
        self._drain = drain
        self._work, self._processor = work, BatchFunction(work)
        with _slow_starts():
            writer = work.rows(session).writeStream.foreachBatch(self._processor).queryName(work.name)
            writer = writer.option("checkpointLocation", Location.of(work.checkpoint).for_spark)
            writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")
            self._query = _started(writer)

    def has_ended(self, seconds: float) -> bool:
        """Whether it has ended, after at most so many seconds. What went wrong in it is raised."""
        try:
            return bool(self._query.awaitTermination(seconds))
        except PySparkException as problem:
            raise self._processor.failure or _explained(problem) from problem

    def is_busy(self) -> bool:
        """Whether it has found something new, and works on it."""
        return bool(self._query.status["isDataAvailable"])

    def tell(self, tell: ProgressCallback) -> None:
        """Pass on how it is doing, if there is news."""
        if not self._work.status.exists():
            return
        now = self._work.progress(json.loads(self._work.status.read_text()))
        if self.last is None or now.batch != self.last.batch:
            tell(now)
        self.last = now

    def close(self) -> None:
        """End it after the batch under way, or where it is if that takes too long, and let go of what it has."""
        self._processor.drain(self._drain)
        try:
            if self._query.isActive:
                self._query.stop()
        except (*GONE, PySparkException) as problem:  # said already, if that is why it ends
            _log.info("the query cannot be stopped: its Spark is gone: %s", str(problem).partition("\n")[0])
        finally:
            self._processor.close()


def _explained(problem: PySparkException) -> TidingsError:
    """The error of ours that a query ended with, else the line of Spark's that names a cause that passes."""
    said = str(problem)
    ours = [line for line in said.splitlines() if line.startswith("tidings.errors.")]
    known = [line.strip() for line in said.splitlines() if DISK_FULL in line or SLOW_START in line]
    first = said.split("\n", 1)[0].rpartition("terminated with exception: ")[2]
    kind, _, words = ours[-1].partition(": ") if ours else ("", "", "")
    made = (
        StoreError
        if kind.endswith(".StoreError")
        else SlowStart
        if SLOW_START in said and not ours
        else SetupError
    )
    return made("the stream ended", where="Spark", hint=words or next(iter(known), first))


@contextmanager
def _slow_starts() -> Iterator[None]:
    """Raise `SlowStart` for a Python process that is too slow: one plans the source, before there is a query."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        if not is_slow_start(problem):
            raise
        first = next(line.strip() for line in str(problem).splitlines() if SLOW_START in line)
        raise SlowStart("the stream does not start", where="Spark", hint=first) from problem


def _started(writer: DataStreamWriter, times: int = STARTS) -> StreamingQuery:
    """A Connect server gives the process for the batches ten seconds to come up, which cannot be changed; where that is
    too short, because the machine is busy, it is asked again: by then the modules that it reads are in memory.
    """
    try:
        return writer.start()
    except PySparkException as problem:
        if times == 1 or not is_slow_start(problem):
            raise
        _log.warning("Spark's process for the batches did not come up in time, and is started again")
        return _started(writer, times - 1)
