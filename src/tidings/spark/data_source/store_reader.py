"""Readers of the data source: batches, and streams of tables with positions.

    startingPosition     where to begin: `earliest` (default), `latest`, or the first position to read; a stream of the
                         journal also `matched`: after what the service's stream has matched
    endingPosition       of a batch: the last position to read (default: the last one there is)
    maxRowsPerBatch      of a stream: the most rows of a micro-batch (default: no limit)
    subscriber           of notifications: only those of one subscriber

The service's stream reads the journal with this source, too, and the further options of `sources.position_reader`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import monotonic

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tidings.errors import InputError
from tidings.spark.data_source.options import (
    END,
    JOURNAL,
    KIND,
    MAX_ROWS,
    START,
    SUBSCRIBER,
    Options,
    check_names,
    find_choice,
    find_existing_store,
    open_task_store,
)
from tidings.spark.data_source.store_tables import (
    TABLES,
    JournalTable,
    NotificationTable,
    PositionTable,
    Table,
)
from tidings.spark.sources.position_reader import PositionReader, find_start_position
from tidings.spark.worker_gc import freeze_memory
from tidings.store.store import open_existing_store

EARLIEST, LATEST, MATCHED = "earliest", "latest", "matched"
IDLE = 10
"""Where looking for new rows is slow, a stream pauses so many times as long: looking costs a tenth of a core."""


class StoreReader(DataSourceReader):  # type: ignore[misc]
    """Reader of a table in a batch."""

    def __init__(self, url: str, table: Table) -> None:
        self._url, self._table = url, table

    def partitions(self) -> Sequence[InputPartition]:
        with open_existing_store(self._url) as store:
            return self._table.partitions(store)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        freeze_memory()
        return self._table.read(open_task_store(self._url), partition)


class StoreStreamReader(PositionReader):
    """Reader of a table with positions as a stream."""

    def __init__(self, url: str, table: PositionTable, options: Options) -> None:
        most = options.get(MAX_ROWS)
        most_rows = _parse_count(MAX_ROWS, most, "a whole number from 1 on") if most else sys.maxsize
        super().__init__({"lock": "", **options, "publications": most_rows})
        self._url, self._table, self._start = url, table, options.get(START, EARLIEST)
        self._last_head, self._next_look = 0, 0.0

    def head(self) -> int:
        if not self._table.is_slow:
            return self._table.head(open_task_store(self._url))
        began = monotonic()
        if began >= self._next_look:
            self._last_head = self._table.head(open_task_store(self._url))
            ended = monotonic()
            self._next_look = ended + IDLE * (ended - began)
        return self._last_head

    def beginning(self) -> int:
        if self._start == EARLIEST:
            return 0
        if self._start == MATCHED and isinstance(self._table, JournalTable):
            return find_start_position(open_task_store(self._url))
        head = self.head()
        if self._start == LATEST:
            return head
        first = _parse_count(START, self._start, f"{EARLIEST}, {LATEST}, or a position from 1 on")
        if first > head + 1:
            raise InputError(
                "the stream would begin after the last position",
                where=START,
                received=self._start,
                accepted=f"{EARLIEST}, {LATEST}, or 1 to {head + 1}",
            )
        return first - 1

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        freeze_memory()
        return self._table.read(open_task_store(self._url), partition)


def find_columns(options: Options) -> str:
    """Return the columns of the table that the options name, in Spark's DDL."""
    return _find_table(options).ddl()


def build_reader(options: Options, schema: StructType) -> StoreReader:
    """Build the reader of a batch."""
    kind = _find_table(options)
    _check_schema(kind, schema)
    table = _build_table(kind, options)
    return StoreReader(find_existing_store(options), table)


def build_stream_reader(options: Options, schema: StructType) -> StoreStreamReader:
    """Build the reader of a stream."""
    kind = _find_table(options)
    if not issubclass(kind, PositionTable):
        raise InputError(
            f"{kind.kind} cannot be read as a stream: they change in place",
            where=KIND,
            accepted=", ".join(each.kind for each in TABLES.values() if issubclass(each, PositionTable)),
            hint="read them as a batch, or match with Subscriptions.from_store(url)",
        )
    if options.get(END):
        raise InputError(
            "a stream has no last position", where=END, hint=".trigger(availableNow=True) ends it"
        )
    _check_schema(kind, schema)
    subscriber = _find_subscriber(kind, options)
    table = NotificationTable(subscriber=subscriber) if issubclass(kind, NotificationTable) else kind()
    return StoreStreamReader(find_existing_store(options), table, options)


def _find_table(options: Options) -> type[Table]:
    check_names(options)
    return TABLES[find_choice(options, KIND, tuple(TABLES), JOURNAL)]


def _build_table(kind: type[Table], options: Options) -> Table:
    """Build the table for a batch, with the range of positions that is wanted."""
    subscriber = _find_subscriber(kind, options)
    start, end = options.get(START, EARLIEST), options.get(END)
    has_range = start != EARLIEST or end is not None
    if not issubclass(kind, PositionTable) or (issubclass(kind, NotificationTable) and subscriber is None):
        if has_range:
            raise InputError(
                "these rows have no positions in a batch",
                where=f"{START} and {END}",
                accepted=f"the kinds journal and dead_letters, or notifications of one {SUBSCRIBER}",
            )
        return kind()
    after = 0 if start == EARLIEST else _parse_count(START, start, f"{EARLIEST}, or a position from 1 on") - 1
    upto = None if end is None else _parse_count(END, end, "a position from 1 on")
    if issubclass(kind, NotificationTable):
        return NotificationTable(after, upto, subscriber)
    return kind(after, upto)


def _find_subscriber(kind: type[Table], options: Options) -> str | None:
    subscriber = options.get(SUBSCRIBER)
    if subscriber is not None and not issubclass(kind, NotificationTable):
        raise InputError(
            "this option is for notifications",
            where=SUBSCRIBER,
            received=f"{KIND} {kind.kind}",
            hint=f"filter the rows: .where(\"subscriber = '{subscriber}'\")",
        )
    return subscriber


def _check_schema(table: type[Table], schema: StructType) -> None:
    names = [column.name for column in table.columns]
    if schema.names != names:
        raise InputError(
            "the columns of a store are fixed",
            where="schema",
            received=", ".join(schema.names),
            accepted=", ".join(names),
            hint="leave out .schema(...), and select columns afterwards",
        )


def _parse_count(name: str, text: str, accepted: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if number < 1:
        raise InputError("invalid value", where=name, received=text, accepted=accepted)
    return number
