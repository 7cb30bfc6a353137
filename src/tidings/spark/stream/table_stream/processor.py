"""Processor of micro-batches: matches the rows of a source, and writes matches to a sink and problems to the store.

    rows ── match ──▶ sink
          └─ problem ──▶ dead letters

The first attempt of a micro-batch records a version of the subscriptions, and then that the batch is matched. A
micro-batch that Spark repeats after a crash sees the same rows and the same subscriptions. What was complete before
is not done again: sinks of files have each micro-batch exactly once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.core.atomic_files import private_folder, write_atomically
from tidings.spark import checkpoint
from tidings.spark.batch.spark_table import Table
from tidings.spark.batch.table_job import MatchCounts, match_table
from tidings.spark.dataframe.match import OWN_COLUMNS, PublicationColumns
from tidings.spark.dataframe.subscription_set import Subscriptions
from tidings.spark.stream.query import explain_failure
from tidings.spark.stream.stream_events import TableProgress
from tidings.spark.stream.table_stream.sinks import open_sink
from tidings.spark.stream.table_stream.subscription_publisher import SubscriptionPublisher
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import open_store

if TYPE_CHECKING:
    from tidings.spark.stream.table_stream.definition import TableStream

KEPT_RECORDS = 20
LETTERS = 1_000
"""Dead letters in one transaction."""


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
        self._publisher = SubscriptionPublisher(stream.index, stream.location, self._store)
        name = checkpoint.read_stream_id(stream.checkpoint)
        self._records = BatchRecords(private_folder(stream.batches) / name)
        self._sink = open_sink(sink, name)
        self._progress = TableProgress()

    def close(self) -> None:
        self._store.close()

    def process(self, rows: DataFrame, batch: int) -> None:
        """Match a micro-batch, write its matches and problems, and report the progress."""
        began = perf_counter()
        with explain_failures():
            record = self._records.read(batch) or self._pin(batch)
            if not record.attempt:
                record = self._match(rows, batch, record)
            self._sink.publish(batch, record.attempt, record.matches)
        self._report(batch, record, perf_counter() - began)

    def _pin(self, batch: int) -> BatchRecord:
        """Publish the current subscriptions, and record the version for this micro-batch."""
        version = self._publisher.refresh()
        record = BatchRecord(version, self._publisher.subscriptions, self._publisher.segments)
        self._records.write(batch, record)
        return record

    def _match(self, rows: DataFrame, batch: int, record: BatchRecord) -> BatchRecord:
        """Write the matches to the sink, then the problems, if there are any, to the store."""
        subscriptions = Subscriptions.at(self._stream.location, record.version)
        counted = MatchCounts(rows, self._stream, subscriptions)
        attempt = uuid4().hex[:8]
        self._sink.write(counted.matches, batch, attempt)
        if counted.rejects:
            self._add_letters(read_letters(rows, self._stream, subscriptions))
        record = replace(
            record,
            attempt=attempt,
            publications=counted.publications,
            matches=counted.pairs,
            rejects=counted.rejects,
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


def read_letters(rows: DataFrame, stream: TableStream, subscriptions: Subscriptions) -> Iterator[DeadLetter]:
    """Match once more, and yield a dead letter with the body of each rejected publication."""
    value = PublicationColumns.of(rows, stream.value, stream.value_format).value
    names = [value] if value else rows.columns
    kept = [name for name in names if name not in OWN_COLUMNS]
    columns = [F.col("`" + name.replace("`", "``") + "`") for name in kept]
    content: Any = (
        columns[0] if value and columns else F.to_json(F.struct(*columns)) if columns else F.lit(None)
    )
    problems = match_table(rows, stream, subscriptions, keep=kept).where("problem is not null")
    letters = problems.select("publication", "problem.*", content.cast("binary").alias("content"))
    for row in letters.toLocalIterator():
        body = None if row.content is None else bytes(row.content)
        key = hashlib.blake2b(
            f"{row.publication}\0".encode("utf-8", "surrogatepass") + (body or b""), digest_size=16
        )
        yield DeadLetter(
            row.publication,
            row.reason,
            json.loads(row.facts),
            body=body,
            subscription=row.subscription,
            key=key.hexdigest(),
        )
