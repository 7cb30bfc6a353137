"""Matcher of micro-batches with tables: for a stream of XML documents whose subscriptions do not fit into memory.

    <stream>/tables/      the tables (`table_store`), which follow the XPath subscriptions of the store

The list of files of the tables has the version of the store that they reflect, so a crash leaves an older version, and
the changes are applied again. A micro-batch that is repeated finds the tables as they were: only a new micro-batch
changes the subscriptions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.documents.kind import DOCUMENTS
from tidings.errors import InputError
from tidings.model import Subscription, content_id
from tidings.relational.branches import LANGUAGE
from tidings.relational.engine import Outcome, matching
from tidings.relational.engine_choice import suggest_layout
from tidings.relational.plans import CheckpointedTables, checkpointed_tables
from tidings.relational.table_store import SAMPLE, TableStore, hold_tables, tidy_tables
from tidings.relational.tables import LIST, StorePosition, Version
from tidings.spark.dataframe.match import FORMATS, ID, PublicationColumns, check_keep
from tidings.spark.sources.files import Location
from tidings.spark.stream.table_stream.definition import TableStream
from tidings.spark.stream.table_stream.index_matcher import build_letter
from tidings.spark.stream.table_stream.processor import PinnedVersion
from tidings.spark.stream.table_stream.subscription_publisher import reject_references
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store

XML = "xml"
KEY, NAME, BODY = "tidings_key", "tidings_name", "tidings_body"
"""Columns of a micro-batch. Ids of publications may occur twice, so documents are joined by a key."""


class RelationalMatcher:
    """Matches XML documents by joins with tables that follow the XPath subscriptions of a store."""

    engine: ClassVar[str] = "relational"

    def __init__(self, stream: TableStream, store: Store) -> None:
        self._stream, self._store = stream, store
        self._held = ExitStack()
        self._tables: TableStore | None = None

    @staticmethod
    def check(stream: TableStream) -> None:
        """Refuse what only the index supports."""
        if stream.explain:
            raise InputError(
                "the relational engine does not explain matches", received="--explain", hint="leave it out"
            )
        given = stream.value_format or XML
        if FORMATS.get(given, given) not in DOCUMENTS.media_types:
            raise InputError(
                "the relational engine only matches XML documents",
                received=f"--value-format {given}",
                accepted=", ".join((XML, *DOCUMENTS.media_types)),
                hint="--engine index matches events and graphs, too",
            )
        if stream.segments is not None and urlsplit(stream.segments).scheme not in ("", "file"):
            raise InputError(
                "the tables of the relational engine are in a folder that all executors can read",
                received=f"--segments {stream.segments}",
                accepted="a path",
            )

    @staticmethod
    def check_columns(rows: DataFrame, stream: TableStream) -> None:
        """Raise `InputError` for columns that the rows do not have."""
        _select_documents(rows, stream)

    def has(self, version: int) -> bool:
        """Return whether the tables reflect a version of the store."""
        follows = self._open().version.follows
        return follows is not None and follows.version == version

    def pin(self, session: SparkSession) -> PinnedVersion:
        """Apply changes in the store to the tables."""
        reject_references(self._store)
        tables = self._open()
        before = tables.version.follows
        since = before.version if before else 0
        version, removed = self._store.subscriptions.find_removed(since)
        if before is None or version != since:
            added = self._store.subscriptions.read_added(since, version, LANGUAGE)
            position = StorePosition(self._store.database.name, version)
            outcome = tables.follow(session, removed, map(_to_table, added), position)
            letters = [DeadLetter(reject.id, reject.reason, reject.facts) for reject in outcome.rejects]
            self._store.dead_letters.add("subscriptions", letters)
            tidy_tables(session, tables)
        return PinnedVersion(version, tables.version.subscriptions)

    @contextmanager
    def match(self, rows: DataFrame, version: int) -> Iterator[JoinedBatch]:
        """Match a micro-batch with the tables."""
        with checkpointed_tables() as kept:
            documents = kept(_select_documents(rows, self._stream))
            keyed = documents.select(F.col(KEY).alias("publication"), F.col(BODY).alias("body"))
            with matching(rows.sparkSession, self._open(), keyed) as outcome:
                yield JoinedBatch(documents, outcome, self._stream.keep, kept)

    def close(self) -> None:
        """Let other processes change the tables."""
        self._held.close()

    def _open(self) -> TableStore:
        """Open the tables; create them if there are none, or if they follow another store."""
        if self._tables is None:
            if not self._are_ours():
                rmtree(self._folder, ignore_errors=True)
                sample = next(self._store.subscriptions.read_added(0, self._version, LANGUAGE, SAMPLE), [])
                TableStore.create(self._folder, suggest_layout(_to_table(sample)))
            self._tables = self._held.enter_context(hold_tables(self._folder))
        return self._tables

    def _are_ours(self) -> bool:
        if not (self._folder / LIST).exists():
            return False
        follows = Version.read(self._folder).follows
        return (
            follows is not None
            and follows.store == self._store.database.name
            and follows.version <= self._version
        )

    @property
    def _version(self) -> int:
        return self._store.subscriptions.version()

    @property
    def _folder(self) -> Path:
        stream = self._stream
        return (stream.folder if stream.segments is None else Path(Location(stream.location).path)) / "tables"


class JoinedBatch:
    """The matches of a micro-batch."""

    def __init__(
        self, documents: DataFrame, outcome: Outcome, keep: tuple[str, ...], kept: CheckpointedTables
    ) -> None:
        self._documents, self._outcome = documents, outcome
        pairs = outcome.pairs.withColumnRenamed("publication", KEY).join(documents, KEY)
        name = F.col(NAME).alias("publication")
        self.matches = kept(pairs.select(name, "subscription", "subscriber", *map(_column, keep)))
        self._problems = kept(outcome.rejects.withColumnRenamed("publication", KEY))

    @property
    def publications(self) -> int:
        return self._outcome.documents

    @property
    def pairs(self) -> int:
        return int(self.matches.count())

    @property
    def rejects(self) -> int:
        return int(self._problems.count())

    def read_letters(self) -> Iterator[DeadLetter]:
        """Yield a dead letter with the body of each rejected document."""
        letters = self._problems.join(self._documents, KEY).select(NAME, BODY, "problem")
        for row in letters.toLocalIterator():
            problem = json.loads(row.problem)
            yield build_letter(row[NAME], problem["reason"], problem["facts"], bytes(row[BODY]))


def _select_documents(rows: DataFrame, stream: TableStream) -> DataFrame:
    """Select the documents of a micro-batch with key, name and body, and the columns that are passed through."""
    kept = check_keep(rows, stream.keep)
    columns = PublicationColumns.of(rows, stream.value, stream.value_format or XML)
    named = stream.id if stream.id in rows.columns else ID
    selected = columns.select(rows, named if named in rows.columns else None, named, kept, None)
    documents = selected.toDF(NAME, BODY, *kept)
    body = F.coalesce(F.col(BODY).cast("binary"), F.lit(bytearray()))
    name = F.coalesce(F.col(NAME), F.udf(_name_document, "string")(body))
    key = F.monotonically_increasing_id().cast("string")
    return documents.select(key.alias(KEY), name.alias(NAME), body.alias(BODY), *map(_column, kept))


def _name_document(body: bytes) -> str:
    return content_id(bytes(body))


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _to_table(subscriptions: list[Subscription]) -> Any:
    columns = {
        "id": [subscription.id for subscription in subscriptions],
        "text": [subscription.text for subscription in subscriptions],
        "subscriber": [subscription.subscriber for subscription in subscriptions],
    }
    return pa.table(columns, pa.schema([(name, pa.string()) for name in columns]))
