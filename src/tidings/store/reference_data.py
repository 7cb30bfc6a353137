"""Event schema, declarations of reference tables, and taxonomies."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, Table, delete, insert, select

from tidings.events.schema.event_schema import EventSchema, SchemaParts
from tidings.events.schema.extension import ExtensionResult, extend
from tidings.events.schema.rows import SchemaRow, from_rows, to_rows
from tidings.reference_data.declarations import Reference
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.tables import event_schema, reference_tables, taxonomies

_SCHEMA_COLUMNS = tuple(event_schema.c[name] for name in ("section", "name", "part", "detail", "position"))


class _Versioned:
    """Rows with a version, which a counter holds: a reader at this version need not read them again."""

    counter: str

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """Return the version, which grows with each change."""
        with self._database.read() as connection:
            return counters.current(connection, self.counter)

    def _remove(self, table: Table, name: str) -> bool:
        def remove(connection: Connection) -> bool:
            version = counters.lock(connection, self.counter)
            removed = connection.execute(delete(table).where(table.c.name == name)).rowcount
            if removed:
                counters.advance(connection, self.counter, version + 1)
            return bool(removed)

        return self._database.transact(remove)


class EventSchemas(_Versioned):
    """The one event schema of a store; it starts empty and is only ever extended."""

    counter = "schema"

    def load(self) -> EventSchema:
        """Load the current schema."""
        with self._database.read() as connection:
            return _load_schema(connection)

    def extend(self, addition: SchemaParts) -> ExtensionResult:
        """Extend the schema; concurrent extensions are applied one after the other, or refused."""
        return self._database.transact(lambda connection: _extend_schema(connection, addition))


def _load_schema(connection: Connection) -> EventSchema:
    rows = connection.execute(select(*_SCHEMA_COLUMNS).order_by(event_schema.c.number))
    return from_rows(SchemaRow(*row) for row in rows)


def _extend_schema(connection: Connection, addition: SchemaParts) -> ExtensionResult:
    version = counters.lock(connection, "schema")
    extended = extend(_load_schema(connection), addition)
    if extended.changes:
        connection.execute(delete(event_schema))
        rows = [
            (number, row.section, row.name, row.part, row.detail, row.position)
            for number, row in enumerate(to_rows(extended.schema))
        ]
        bulk.insert_rows(connection, event_schema, rows)
        counters.advance(connection, "schema", version + 1)
    return extended


_REFERENCE_COLUMNS = tuple(
    reference_tables.c[name] for name in ("name", "file", "key", "path", "fields", "version")
)


class ReferenceTables(_Versioned):
    """The declarations of reference tables; their rows are in files."""

    counter = "references"

    def load(self) -> tuple[Reference, ...]:
        """Load the current declarations, in the order of their names."""
        with self._database.read() as connection:
            rows = connection.execute(select(*_REFERENCE_COLUMNS).order_by(reference_tables.c.name)).all()
        return tuple(
            Reference(name, file, key, path, tuple(json.loads(fields)), version)
            for name, file, key, path, fields, version in rows
        )

    def add(self, reference: Reference) -> Reference:
        """Add or replace a declaration; return it with its version."""
        return self._database.transact(lambda connection: _add_reference_table(connection, reference))

    def remove(self, name: str) -> bool:
        """Remove a declaration; return whether there was one."""
        return self._remove(reference_tables, name)


def _add_reference_table(connection: Connection, reference: Reference) -> Reference:
    made = replace(reference, version=counters.step(connection, "references"))
    connection.execute(delete(reference_tables).where(reference_tables.c.name == made.name))
    row = (made.name, made.file, made.key, made.on, json.dumps(made.fields), made.version)
    names = (column.name for column in _REFERENCE_COLUMNS)
    connection.execute(insert(reference_tables), dict(zip(names, row, strict=True)))
    return made


_TAXONOMY_COLUMNS = tuple(taxonomies.c[name] for name in ("name", "media_type", "body", "version"))


@dataclass(frozen=True, slots=True)
class TaxonomyFile:
    """The bytes of an RDFS file; `version` is when it was loaded."""

    name: str
    media_type: str
    body: bytes
    version: int = 0


class Taxonomies(_Versioned):
    """The taxonomies of a store."""

    counter = "taxonomies"

    def load(self) -> tuple[TaxonomyFile, ...]:
        """Load the current files, in the order of their names."""
        with self._database.read() as connection:
            return _load_taxonomies(connection)

    def add(self, file: TaxonomyFile, check: Callable[[Sequence[TaxonomyFile]], object]) -> TaxonomyFile:
        """Add or replace a file, unless `check` raises for the resulting files."""
        return self._database.transact(lambda connection: _add_taxonomy(connection, file, check))

    def remove(self, name: str) -> bool:
        """Remove a file; return whether there was one."""
        return self._remove(taxonomies, name)


def _load_taxonomies(connection: Connection) -> tuple[TaxonomyFile, ...]:
    rows = connection.execute(select(*_TAXONOMY_COLUMNS).order_by(taxonomies.c.name)).all()
    return tuple(
        TaxonomyFile(name, media_type, bytes(body), version) for name, media_type, body, version in rows
    )


def _add_taxonomy(
    connection: Connection, file: TaxonomyFile, check: Callable[[Sequence[TaxonomyFile]], object]
) -> TaxonomyFile:
    made = replace(file, version=counters.step(connection, "taxonomies"))
    check([*(each for each in _load_taxonomies(connection) if each.name != file.name), made])
    connection.execute(delete(taxonomies).where(taxonomies.c.name == made.name))
    row = (made.name, made.media_type, made.body, made.version)
    connection.execute(
        insert(taxonomies), {c.name: value for c, value in zip(_TAXONOMY_COLUMNS, row, strict=True)}
    )
    return made
