"""Streaming queries of a running stream, which report their progress through a file.

With Spark Connect a process of the server runs the batches. So a query is defined by values that can be sent there, and
opens its resources with the first batch.
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
from tidings.spark.sources.admission_control import set_trigger, stop_at_end
from tidings.spark.sources.files import Location
from tidings.spark.stream.failures import DISK_FULL, SLOW_START, is_slow_start

GONE = (Py4JError, ConnectionError)
"""Exceptions of calls to a JVM that has died."""

STARTS = 5
"""The number of attempts to start a query whose process for batches does not start in time."""

_log = logging.getLogger("tidings.stream")

ProgressCallback = Callable[[Any], None]


@contextmanager
def explain_dead_jvm() -> Iterator[None]:
    """Raise one `SetupError` when any call fails because the JVM has died."""
    try:
        yield
    except GONE as problem:
        raise SetupError(
            "Spark has ended", hint="look for the cause in spark.log in the home folder"
        ) from problem


class BatchHandler(Protocol):
    """Processor of batches, with the state that is kept between them."""

    def process(self, rows: DataFrame, batch: int) -> None: ...

    def close(self) -> None: ...


class QueryDefinition(Protocol):
    """Definition of a query, complete in every process that runs it."""

    @property
    def name(self) -> str: ...

    @property
    def checkpoint(self) -> Path: ...

    @property
    def status(self) -> Path: ...

    def rows(self, session: SparkSession) -> DataFrame: ...

    def open(self) -> BatchHandler: ...

    def progress(self, fields: dict[str, Any]) -> Any: ...


class BatchFunction:
    """The function for `foreachBatch`; opens its resources in the process of the first batch.

    `failure` is the `TidingsError` that ended the query, if it was raised in this process.
    """

    def __init__(self, work: QueryDefinition) -> None:
        self.work = work
        self.failure: TidingsError | None = None
        self._live: BatchHandler | None = None
        self._turn, self._is_over = Lock(), False

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the definition only: Spark Connect sends this to the server before the first batch."""
        return BatchFunction, (self.work,)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        with self._turn:
            if self._is_over:  # waiting here would keep Spark from stopping; the batch is planned again later
                raise SetupError("the stream is stopping; this batch was not started")
            try:
                self._live = self._live or self.work.open()
                self._live.process(rows, batch)
            except TidingsError as problem:
                self.failure = problem
                raise

    def drain(self, seconds: float) -> None:
        """Start no further batch, and wait up to `seconds` for the current one."""
        self._is_over = True
        if self._turn.acquire(timeout=seconds):
            self._turn.release()

    def close(self) -> None:
        """Close the processor and its store."""
        if self._live is not None:
            self._live.close()
            self._live = None


class Query:
    """A running query; `last` is the progress it reported last.

    With `is_own_source` it reads a source of ours (`admission_control`), whose option `once` is the same.
    """

    def __init__(
        self,
        session: SparkSession,
        work: QueryDefinition,
        once: bool,
        drain: float = 0.0,
        is_own_source: bool = False,
    ) -> None:
        self.last: Any = None
        self._drain = drain
        self._work, self._processor = work, BatchFunction(work)
        with _slow_starts():
            writer = work.rows(session).writeStream.foreachBatch(self._processor).queryName(work.name)
            writer = writer.option("checkpointLocation", Location.of(work.checkpoint).for_spark)
            self._query = _start(set_trigger(writer, once, is_own_source))
        stop_at_end(self._query, once, is_own_source)

    def has_ended(self, seconds: float) -> bool:
        """Wait up to `seconds` and return whether the query has ended; raise its failure."""
        with self._explain_failures():
            return bool(self._query.awaitTermination(seconds))

    def is_busy(self) -> bool:
        """Return whether the query has new data and is processing it."""
        with self._explain_failures():
            return bool(self._query.status["isDataAvailable"])

    def spark_progress(self) -> dict[str, Any] | None:
        """Return what Spark reports about the last batch, or None before the first one."""
        with self._explain_failures():
            progress = self._query.lastProgress
        return json.loads(progress.json) if progress else None

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        """Raise the failure of the query, or why it cannot be asked, as when a Spark Connect server has ended."""
        try:
            yield
        except PySparkException as problem:
            raise self._processor.failure or explain_failure(problem) from problem

    def tell(self, tell: ProgressCallback) -> None:
        """Report the progress if there is a new batch."""
        if not self._work.status.exists():
            return
        now = self._work.progress(json.loads(self._work.status.read_text()))
        if self.last is None or now.batch != self.last.batch:
            tell(now)
        self.last = now

    def close(self) -> None:
        """Stop the query after the current batch, or within it if that takes too long, and close it."""
        self._processor.drain(self._drain)
        try:
            if self._query.isActive:
                self._query.stop()
        except (*GONE, PySparkException) as problem:  # already reported if it is why the stream ends
            _log.info("cannot stop the query: Spark is gone: %s", str(problem).partition("\n")[0])
        finally:
            self._processor.close()


def explain_failure(problem: PySparkException | Py4JJavaError) -> TidingsError:
    """Build the error for a failed query from a `TidingsError` or a known cause in its message."""
    message = str(problem)
    if isinstance(problem, Py4JJavaError):  # its first line names a call of ours, not the cause
        message = message.partition("\n")[2].removeprefix(": ")
    ours = [line for line in message.splitlines() if line.startswith("tidings.errors.")]
    temporary = [line.strip() for line in message.splitlines() if DISK_FULL in line or SLOW_START in line]
    first = message.split("\n", 1)[0].rpartition("terminated with exception: ")[2]
    kind, _, reason = ours[-1].partition(": ") if ours else ("", "", "")
    error = (
        StoreError
        if kind.endswith(".StoreError")
        else SlowStart
        if SLOW_START in message and not ours
        else SetupError
    )
    return error("the stream ended", where="Spark", hint=reason or next(iter(temporary), first))


@contextmanager
def _slow_starts() -> Iterator[None]:
    """Raise `SlowStart` if the Python process that plans the source does not start in time."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        if not is_slow_start(problem):
            raise
        first = next(line.strip() for line in str(problem).splitlines() if SLOW_START in line)
        raise SlowStart("the stream does not start", where="Spark", hint=first) from problem


def _start(writer: DataStreamWriter, times: int = STARTS) -> StreamingQuery:
    """Start a query, again if its process for batches does not start in time.

    A Connect server allows ten seconds, which cannot be configured. If a busy machine needs longer, the next attempt
    finds the modules to import in memory.
    """
    try:
        return writer.start()
    except PySparkException as problem:
        if times == 1 or not is_slow_start(problem):
            raise
        _log.warning("Spark's process for batches did not start in time; starting it again")
        return _start(writer, times - 1)
