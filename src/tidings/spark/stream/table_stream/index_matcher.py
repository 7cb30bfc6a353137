"""Matcher of micro-batches with an index: its versions are published for executors, and tasks match with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.spark.batch.table_job import MatchCounts, match_table
from tidings.spark.dataframe.match import OWN_COLUMNS, PublicationColumns
from tidings.spark.dataframe.subscription_set import Subscriptions
from tidings.spark.stream.table_stream.processor import PinnedVersion
from tidings.spark.stream.table_stream.subscription_publisher import SubscriptionPublisher
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store

if TYPE_CHECKING:
    from tidings.spark.stream.table_stream.definition import TableStream


class IndexMatcher:
    """Matches publications of every kind with an index in memory."""

    engine: ClassVar[str] = "index"

    def __init__(self, stream: TableStream, store: Store) -> None:
        self._stream = stream
        self._publisher = SubscriptionPublisher(stream.index, stream.location, store)

    @staticmethod
    def check(stream: TableStream) -> None:
        """Do nothing: it supports all options."""

    @staticmethod
    def check_columns(rows: DataFrame, stream: TableStream) -> None:
        """Raise `InputError` for columns that the rows do not have."""
        match_table(rows, stream, Subscriptions.compile(()))

    def has(self, version: int) -> bool:
        """Return true: a published version is kept as long as its micro-batch can be repeated."""
        return True

    def pin(self, session: SparkSession) -> PinnedVersion:
        """Publish the current subscriptions."""
        version = self._publisher.refresh()
        return PinnedVersion(version, self._publisher.subscriptions, self._publisher.segments)

    @contextmanager
    def match(self, rows: DataFrame, version: int) -> Iterator[IndexedBatch]:
        """Match a micro-batch with a published version."""
        yield IndexedBatch(rows, self._stream, Subscriptions.at(self._stream.location, version))

    def close(self) -> None:
        """Do nothing: the index is in files."""


class IndexedBatch(MatchCounts):
    """The matches of a micro-batch."""

    def __init__(self, rows: DataFrame, stream: TableStream, subscriptions: Subscriptions) -> None:
        super().__init__(rows, stream, subscriptions)
        self._rows, self._stream, self._subscriptions = rows, stream, subscriptions

    def read_letters(self) -> Iterator[DeadLetter]:
        """Match once more, and yield a dead letter with the body of each rejected publication."""
        rows, stream = self._rows, self._stream
        value = PublicationColumns.of(rows, stream.value, stream.value_format).value
        names = [value] if value else rows.columns
        kept = [name for name in names if name not in OWN_COLUMNS]
        columns = [F.col("`" + name.replace("`", "``") + "`") for name in kept]
        content: Any = (
            columns[0] if value and columns else F.to_json(F.struct(*columns)) if columns else F.lit(None)
        )
        problems = match_table(rows, stream, self._subscriptions, keep=kept).where("problem is not null")
        letters = problems.select("publication", "problem.*", content.cast("binary").alias("content"))
        for row in letters.toLocalIterator():
            body = None if row.content is None else bytes(row.content)
            yield build_letter(row.publication, row.reason, json.loads(row.facts), body, row.subscription)


def build_letter(
    publication: str, reason: str, facts: dict[str, Any], body: bytes | None, subscription: str | None = None
) -> DeadLetter:
    """Build a dead letter whose key depends on publication and body: written again, it changes nothing."""
    key = hashlib.blake2b(f"{publication}\0".encode("utf-8", "surrogatepass") + (body or b""), digest_size=16)
    return DeadLetter(publication, reason, facts, body=body, subscription=subscription, key=key.hexdigest())
