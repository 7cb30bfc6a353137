"""The tables of the data source: their columns, and how their rows are divided among tasks.

A table with positions can be a stream: its rows are numbered from one, in the order in which they came.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tidings.model import Notification
from tidings.notification_text import find_change
from tidings.spark.explanation_columns import (
    BINDINGS,
    BINDINGS_TYPE,
    EXPLANATION,
    EXPLANATION_TYPE,
    encode_bindings,
    encode_reasons,
)
from tidings.spark.sources.position_reader import PositionRange, cut_ranges
from tidings.store.dead_letters import DeadLetter
from tidings.store.journal import JournalEntry
from tidings.store.notifications.notification_log import SequenceRange
from tidings.store.notifications.notification_log import cut_ranges as cut_sequences
from tidings.store.store import Store
from tidings.store.subscriptions.snapshot import SubscriptionRange
from tidings.store.subscriptions.view import SubscriptionStatus

SUBSCRIPTIONS_A_TASK = 50_000
NOTIFICATIONS_A_TASK = 20_000

TIME = pa.timestamp("us", "UTC")


class Column(NamedTuple):
    """A column: its types in Spark's DDL and in Arrow, and its value for a row."""

    name: str
    ddl: str
    arrow: pa.DataType
    value: Callable[[Any], Any]


def _text(name: str, value: Callable[[Any], str | None]) -> Column:
    return Column(name, "string", pa.string(), value)


def _number(name: str, value: Callable[[Any], int | None]) -> Column:
    return Column(name, "long", pa.int64(), value)


def _bytes(name: str, value: Callable[[Any], bytes | None]) -> Column:
    return Column(name, "binary", pa.binary(), value)


def _time(name: str, value: Callable[[Any], str | None]) -> Column:
    return Column(name, "timestamp", TIME, value)


class Table(ABC):
    """A table of a store."""

    kind: str
    columns: Sequence[Column]

    @abstractmethod
    def partitions(self, store: Store) -> Sequence[InputPartition]:
        """Divide the rows that there are now. There is at least one partition: Spark would make one of its own."""

    @abstractmethod
    def pages(self, store: Store, partition: Any) -> Iterator[list[Any]]:
        """Read the rows of a partition."""

    def read(self, store: Store, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a partition as Arrow batches."""
        schema = pa.schema([(column.name, column.arrow) for column in self.columns])
        for page in self.pages(store, partition):
            arrays = [
                _build_array([column.value(row) for row in page], column.arrow) for column in self.columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @classmethod
    def ddl(cls) -> str:
        """Return the columns in Spark's DDL."""
        return ", ".join(f"{column.name} {column.ddl}" for column in cls.columns)


def _build_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Build a column; times are texts in the store."""
    return pa.array(values, pa.string()).cast(TIME) if kind == TIME else pa.array(values, kind)


class PositionTable(Table):
    """A table whose rows have positions. A batch may be limited to a range of them.

    `is_slow` tells whether `head` takes longer with more rows.
    """

    is_slow = False

    def __init__(self, after: int = 0, upto: int | None = None) -> None:
        self.after, self.upto = after, upto

    @abstractmethod
    def head(self, store: Store) -> int:
        """Return the last position."""

    def partitions(self, store: Store) -> Sequence[PositionRange]:
        head = self.head(store)
        upto = head if self.upto is None else min(head, self.upto)
        return cut_ranges(min(self.after, upto), upto) or [PositionRange(upto, upto)]


class JournalTable(PositionTable):
    """The publications."""

    kind = "journal"
    columns = (
        _number("position", lambda row: row.publication.position),
        _text("id", lambda row: row.publication.id),
        _text("media_type", lambda row: row.publication.media_type),
        _bytes("body", lambda row: row.publication.body),
        _time("time", lambda row: row.time),
        _text("audience", lambda row: row.publication.audience),
    )

    def head(self, store: Store) -> int:
        return store.journal.head()

    def pages(self, store: Store, partition: PositionRange) -> Iterator[list[JournalEntry]]:
        return store.journal.pages(partition.after, partition.upto)


class DeadLetterTable(PositionTable):
    """The publications that could not be processed. Their positions are called numbers."""

    kind = "dead_letters"
    columns = (
        _number("number", lambda row: row.number),
        _text("source", lambda row: row.source),
        _text("publication", lambda row: row.publication),
        _text("subscription", lambda row: row.subscription),
        _number("position", lambda row: row.position),
        _text("reason", lambda row: row.reason),
        _text("facts", lambda row: json.dumps(row.facts)),
        _bytes("body", lambda row: row.body),
        _time("time", lambda row: row.time),
        _text("audience", lambda row: row.audience),
    )

    def head(self, store: Store) -> int:
        return store.dead_letters.head()

    def pages(self, store: Store, partition: PositionRange) -> Iterator[list[DeadLetter]]:
        return store.dead_letters.pages(partition.after, partition.upto)


@dataclass
class SequencePartition(InputPartition):  # type: ignore[misc]
    """Notifications of some subscribers."""

    ranges: Sequence[SequenceRange]


class NotificationTable(PositionTable):
    """The notifications, of all subscribers or of one.

    A stream of one subscriber has sequence numbers as its positions, a stream of all those of `NotificationLog`.
    """

    kind = "notifications"
    columns = (
        _text("subscriber", lambda row: row.subscriber),
        _number("sequence", lambda row: row.sequence),
        _text("id", lambda row: row.id),
        _text("kind", lambda row: row.kind),
        _text("subscription", lambda row: row.subscription),
        _text("publication", lambda row: row.publication or None),
        Column("explanation", EXPLANATION_TYPE, EXPLANATION, lambda row: encode_reasons(row.because)),
        Column("bindings", BINDINGS_TYPE, BINDINGS, lambda row: _encode_bindings(row)),
        _text("change", lambda row: _encode_change(row)),
        _time("time", lambda row: row.time),
    )

    def __init__(self, after: int = 0, upto: int | None = None, subscriber: str | None = None) -> None:
        super().__init__(after, upto)
        self._subscriber = subscriber
        self.is_slow = subscriber is None

    def head(self, store: Store) -> int:
        if self._subscriber is None:
            return store.notification_log.catch_up()
        store.notifications.hand_over(self._subscriber)
        return store.notifications.last_sequence(self._subscriber)

    def partitions(self, store: Store) -> Sequence[InputPartition]:
        if self._subscriber is not None:
            return super().partitions(store)
        ranges = store.notification_log.all_ranges()
        groups = list(cut_sequences(ranges, NOTIFICATIONS_A_TASK)) or [()]
        return [SequencePartition(group) for group in groups]

    def pages(self, store: Store, partition: Any) -> Iterator[list[Notification]]:
        return store.notification_log.read(self._ranges(store, partition))

    def _ranges(self, store: Store, partition: Any) -> Iterable[SequenceRange]:
        if isinstance(partition, SequencePartition):
            return partition.ranges
        if self._subscriber is None:
            return store.notification_log.ranges(partition.after, partition.upto)
        return [SequenceRange(self._subscriber, partition.after, partition.upto)]


def _encode_bindings(one: Notification) -> list[list[tuple[str, str]]] | None:
    return None if find_change(one) else encode_bindings(one.bindings)


def _encode_change(one: Notification) -> str | None:
    change = find_change(one)
    return None if change is None else json.dumps(change)


@dataclass
class SubscriptionPartition(InputPartition):  # type: ignore[misc]
    """Active subscriptions in a range of ids; without a range, the other ones."""

    version: int
    range: SubscriptionRange | None = None


class SubscriptionTable(Table):
    """The subscriptions of all subscribers, rules included."""

    kind = "subscriptions"
    columns = (
        _text("id", lambda row: row.subscription.id),
        _text("subscriber", lambda row: row.subscription.subscriber),
        _text("language", lambda row: row.subscription.language),
        _text("text", lambda row: row.subscription.text),
        _text("state", lambda row: row.state),
        _number("within", lambda row: row.subscription.within),
        _text("reason", lambda row: row.reason),
    )

    def partitions(self, store: Store) -> Sequence[SubscriptionPartition]:
        ranges = store.subscription_snapshots.cut(SUBSCRIPTIONS_A_TASK)
        version = ranges[0].version
        return [*(SubscriptionPartition(version, each) for each in ranges), SubscriptionPartition(version)]

    def pages(self, store: Store, partition: SubscriptionPartition) -> Iterator[list[SubscriptionStatus]]:
        if partition.range is None:
            yield from store.subscription_snapshots.others(partition.version)
            return
        for page in store.subscription_snapshots.read(partition.range):
            yield [SubscriptionStatus(each) for each in page]


TABLES: dict[str, type[Table]] = {
    table.kind: table for table in (JournalTable, SubscriptionTable, NotificationTable, DeadLetterTable)
}
