"""The schema of a repository: that of its provider, kept with what came under it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from tidings.errors import InputError, SchemaError
from tidings.metadata.documents import Reader
from tidings.metadata.schema import Schema
from tidings.store import atom_rows, counters, metadata_changes, repository_changes
from tidings.store.repository_tables import repository_documents
from tidings.store.rule_tables import metadata_schema


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema as the provider has it written, and what it says."""

    media_type: str
    body: bytes
    schema: Schema


def keep_schema(connection: Connection, known: KnownSchema) -> bool:
    """Keep a schema if it is another one than before, and say whether it is.

    Local documents are read again by it: one that says what the schema does not know any more is refused, and the
    schema with it.
    """
    c = metadata_schema.c
    before = connection.execute(select(c.media_type, c.body)).first()
    if before is not None and (before.media_type, bytes(before.body)) == (known.media_type, known.body):
        return False
    connection.execute(delete(metadata_schema))
    version = counters.step(connection, "metadata_schema")
    row = {"version": version, "media_type": known.media_type, "body": known.body}
    connection.execute(insert(metadata_schema), row)
    metadata_changes.declare(connection, known.schema)
    _read_again(connection, known.schema)
    return True


def _read_again(connection: Connection, schema: Schema) -> None:
    c, reader = repository_documents.c, Reader(schema)
    for uri, media_type, body in connection.execute(select(c.document, c.media_type, c.body)).all():
        try:
            document = reader.read(bytes(body), media_type, uri)
        except InputError as problem:
            what, hint = (
                "the provider's schema does not fit a local document",
                f"tidings repository remove {uri}",
            )
            raise SchemaError(f"{what}: {problem.what}", where=uri, hint=hint) from problem
        repository_changes.forget(connection, atom_rows.of_documents(connection, [uri])[uri])
        repository_changes.keep(connection, schema, document.resources)
