"""The metadata store: log, schema, documents, rules and results. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, func, select

from tidings.errors import SetupError
from tidings.metadata.documents import Document
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.log_rows import MetadataLog
from tidings.metadata.sql.metadata_reader import ConnectionReader, MetadataReader, SchemaFile
from tidings.metadata.sql.tables import metadata_resources
from tidings.metadata.sql.transaction import MetadataTransaction
from tidings.store.database import Database
from tidings.store.encoding import Clock, utc_now

T = TypeVar("T")

SNAPSHOT_PAGE = 500


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """All metadata at a position of the log. `documents` can be iterated once."""

    position: int
    schema: SchemaFile
    count: int
    documents: Iterator[Document]


class MetadataStore(MetadataReader):
    """The metadata of a store."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database, self._clock = database, clock
        self.log = MetadataLog(database)

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._database.read()

    def transact(self, work: Callable[[MetadataTransaction], T]) -> T:
        """Run `work` in one transaction. All its changes are durable when this returns; if it raises, none are."""
        return self._database.transact(lambda connection: work(MetadataTransaction(connection, self._clock)))

    @contextmanager
    def snapshot(self) -> Iterator[MetadataSnapshot]:
        """Yield all metadata as of one moment."""
        with self._database.moment() as connection:
            yield _read_snapshot(connection)


def _read_snapshot(connection: Connection) -> MetadataSnapshot:
    """Start a snapshot on a connection that sees one moment while documents are read."""
    reader = ConnectionReader(connection)
    schema = reader.schema()
    if schema is None:
        raise SetupError("there is no schema for metadata yet", hint="tidings provider schema FILE")
    query = select(func.count(func.distinct(metadata_resources.c.document)))
    count = connection.execute(query).scalar_one()
    return MetadataSnapshot(reader.position(), schema, count, _read_documents(connection))


def _read_documents(connection: Connection) -> Iterator[Document]:
    reader, last = ConnectionReader(connection), ""
    while page := reader.document_uris(last, SNAPSHOT_PAGE):
        members = resource_rows.load_document_members(connection, page)
        stored = resource_rows.load_resources(connection, [uri for uris in members.values() for uri in uris])
        for document in page:
            yield Document(document, tuple(stored[uri].resource for uri in sorted(members[document])))
        last = page[-1]
