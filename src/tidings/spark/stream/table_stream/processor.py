"""Processor of micro-batches: matches the rows of a source, and writes matches to a sink and problems to the store.

    rows ── match ──▶ sink
          └─ problem ──▶ dead letters

A matcher follows the subscriptions of the store: `IndexMatcher`, or that of the relational engine. The first
attempt of a micro-batch records a version of the subscriptions, and then that the batch is matched. A
micro-batch that Spark repeats after a crash sees the same rows and the same subscriptions. What was complete before
is not done again: sinks of files have each micro-batch exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Protocol
from uuid import uuid4

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidings.core.atomic_files import private_folder, write_atomically
from tidings.spark import checkpoint
from tidings.spark.batch.spark_table import Table
from tidings.spark.stream.query import explain_failure
from tidings.spark.stream.stream_events import TableProgress
from tidings.spark.stream.table_stream.sinks import open_sink
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store, open_store

if TYPE_CHECKING:
    from tidings.spark.stream.table_stream.definition import TableStream

KEPT_RECORDS = 20
LETTERS = 1_000
"""Dead letters in one transaction."""


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """A version of the subscriptions that a matcher can match with, and its size."""

    version: int
    subscriptions: int
    segments: int = 0


class MatchedBatch(Protocol):
    """The matches of a micro-batch. The counts are known when the matches are written."""

    @property
    def matches(self) -> DataFrame: ...

    @property
    def publications(self) -> int: ...

    @property
    def pairs(self) -> int: ...

    @property
    def rejects(self) -> int: ...

    def read_letters(self) -> Iterator[DeadLetter]:
        """Yield a dead letter with the body of each rejected publication."""


class BatchMatcher(Protocol):
    """Matches micro-batches with the subscriptions of a store."""

    engine: ClassVar[str]

    def __init__(self, stream: TableStream, store: Store) -> None: ...

    @staticmethod
    def check(stream: TableStream) -> None:
        """Raise `InputError` for options that the matcher does not support."""

    @staticmethod
    def check_columns(rows: DataFrame, stream: TableStream) -> None:
        """Raise `InputError` for columns that the rows do not have."""

    def has(self, version: int) -> bool:
        """Return whether a version that was pinned can still be matched with."""

    def pin(self, session: SparkSession) -> PinnedVersion:
        """Apply changes in the store, and return the version with them."""

    def match(self, rows: DataFrame, version: int) -> AbstractContextManager[MatchedBatch]:
        """Match a micro-batch with a version. The matches can be read within the context."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """What is known about a micro-batch: the version that it is matched with, and once it is matched, the counts."""

    version: int
    subscriptions: int
    segments: int
    attempt: str = ""
    publications: int = 0
    matches: int = 0
    rejects: int = 0
    engine: str = "index"


class BatchRecords:
    """The records of the last micro-batches, as files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, batch: int) -> BatchRecord | None:
        path = self._path(batch)
        return BatchRecord(**json.loads(path.read_text())) if path.exists() else None

    def write(self, batch: int, record: BatchRecord) -> None:
        write_atomically(self._path(batch), json.dumps(asdict(record)), private=True)
        self._path(batch - KEPT_RECORDS).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.json"


class TableProcessor:
    """Processor of the micro-batches of a stream to a sink."""

    def __init__(self, stream: TableStream, sink: Table) -> None:
        self._stream = stream
        self._store = open_store(stream.store)
        self._matcher = stream.matcher(stream, self._store)
        name = checkpoint.read_stream_id(stream.checkpoint)
        self._records = BatchRecords(private_folder(stream.batches) / name)
        self._sink = open_sink(sink, name)
        self._progress = TableProgress()

    def close(self) -> None:
        self._matcher.close()
        self._store.close()

    def process(self, rows: DataFrame, batch: int) -> None:
        """Match a micro-batch, write its matches and problems, and report the progress."""
        began = perf_counter()
        with explain_failures():
            record = self._find_record(batch) or self._pin(rows.sparkSession, batch)
            if not record.attempt:
                record = self._match(rows, batch, record)
            self._sink.publish(batch, record.attempt, record.matches)
        self._report(batch, record, perf_counter() - began)

    def _find_record(self, batch: int) -> BatchRecord | None:
        """Return the record of an earlier attempt, unless it has to start again because another engine began it."""
        record = self._records.read(batch)
        if record is None or record.attempt:
            return record
        is_usable = record.engine == self._matcher.engine and self._matcher.has(record.version)
        return record if is_usable else None

    def _pin(self, session: SparkSession, batch: int) -> BatchRecord:
        """Bring the subscriptions up to date, and record the version for this micro-batch."""
        pinned = self._matcher.pin(session)
        record = BatchRecord(**asdict(pinned), engine=self._matcher.engine)
        self._records.write(batch, record)
        return record

    def _match(self, rows: DataFrame, batch: int, record: BatchRecord) -> BatchRecord:
        """Write the matches to the sink, then the problems, if there are any, to the store."""
        attempt = uuid4().hex[:8]
        with self._matcher.match(rows, record.version) as matched:
            self._sink.write(matched.matches, batch, attempt)
            if matched.rejects:
                self._add_letters(matched.read_letters())
            record = replace(
                record,
                attempt=attempt,
                publications=matched.publications,
                matches=matched.pairs,
                rejects=matched.rejects,
            )
        self._records.write(batch, record)
        return record

    def _add_letters(self, letters: Iterator[DeadLetter]) -> None:
        while chunk := [*islice(letters, LETTERS)]:
            self._store.dead_letters.add(self._stream.title, chunk)

    def _report(self, batch: int, record: BatchRecord, seconds: float) -> None:
        self._progress = add_batch(
            self._progress,
            TableProgress(
                batch=batch,
                publications=record.publications,
                matches=record.matches,
                rejects=record.rejects,
                seconds=seconds,
                version=record.version,
                subscriptions=record.subscriptions,
                segments=record.segments,
            ),
        )
        write_atomically(self._stream.status, json.dumps(asdict(self._progress)), private=True)


@contextmanager
def explain_failures() -> Iterator[None]:
    """Raise failures of Spark as errors with a cause. The query would name the call of the function instead."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        raise explain_failure(problem) from problem


def add_batch(before: TableProgress, now: TableProgress) -> TableProgress:
    """Return the progress of a batch with the totals since the start."""
    return replace(
        now,
        total_publications=before.total_publications + now.publications,
        total_matches=before.total_matches + now.matches,
        total_rejects=before.total_rejects + now.rejects,
    )
