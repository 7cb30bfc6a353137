"""All metadata of a store as of one moment, some documents at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from tidings.errors import SetupError
from tidings.metadata.documents import Document
from tidings.store import atom_rows, counters, metadata_work
from tidings.store.metadata_tables import APPLIED
from tidings.store.metadata_work import SchemaFile
from tidings.store.rule_tables import metadata_resources

PAGE = 500


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far the log was applied, by which schema, and how many documents there are; these can be read once."""

    position: int
    schema: SchemaFile
    count: int
    documents: Iterator[Document]


def read(connection: Connection) -> Snapshot:
    """The metadata; the connection has to see one moment for as long as documents are read."""
    schema = metadata_work.schema(connection)
    if schema is None:
        hint = "tidings provider schema FILE"
        raise SetupError("there is no schema for metadata yet, and nothing else", hint=hint)
    counted = select(func.count(func.distinct(metadata_resources.c.document)))
    count = connection.execute(counted).scalar_one()
    return Snapshot(counters.current(connection, APPLIED), schema, count, _documents(connection))


def _documents(connection: Connection) -> Iterator[Document]:
    last = ""
    while page := metadata_work.document_uris(connection, last, PAGE):
        resources = atom_rows.of_documents(connection, page)
        found = atom_rows.load(connection, [uri for each in resources.values() for uri in each])
        for document in page:
            yield Document(document, tuple(found[uri].resource for uri in sorted(resources[document])))
        last = page[-1]
