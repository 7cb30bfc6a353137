"""The event schema that publications and subscriptions are checked against."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, delete, insert, select

from tidings.events.schema.event_schema import EventSchema, SchemaParts
from tidings.events.schema.extension import ExtensionResult, extend
from tidings.events.schema.rows import SchemaRow, from_rows, to_rows
from tidings.reference_data.declarations import Reference
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.tables import reference_tables, schema_rows, taxonomies

_SCHEMA_COLUMNS = tuple(schema_rows.c[name] for name in ("section", "name", "part", "detail", "position"))


class EventSchemas:
    """The one event schema of a store; it starts empty and is only ever extended."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """How often the schema was extended: who has read it at this version need not read it again."""
        with self._database.read() as connection:
            return counters.current(connection, "schema")

    def load(self) -> EventSchema:
        """The schema of now."""
        with self._database.read() as connection:
            return _load_schema(connection)

    def extend(self, addition: SchemaParts) -> ExtensionResult:
        """Extend the schema; two extensions at the same time come one after the other, or are refused."""
        return self._database.transact(lambda connection: _extend_schema(connection, addition))


def _load_schema(connection: Connection) -> EventSchema:
    rows = connection.execute(select(*_SCHEMA_COLUMNS).order_by(schema_rows.c.place))
    return from_rows(SchemaRow(*row) for row in rows)


def _extend_schema(connection: Connection, addition: SchemaParts) -> ExtensionResult:
    version = counters.lock(connection, "schema")
    extended = extend(_load_schema(connection), addition)
    if extended.changes:
        connection.execute(delete(schema_rows))
        rows = [
            (place, row.section, row.name, row.part, row.detail, row.position)
            for place, row in enumerate(to_rows(extended.schema))
        ]
        bulk.insert_rows(connection, schema_rows, rows)
        counters.advance(connection, "schema", version + 1)
    return extended


# The declarations of reference tables; the tables themselves stand elsewhere.


_REFERENCE_COLUMNS = tuple(
    reference_tables.c[name] for name in ("name", "file", "key", "place", "fields", "version")
)


class ReferenceTables:
    """The declared tables of a store, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """How often a declaration was made or withdrawn: who has read them at this version need not read them again."""
        with self._database.read() as connection:
            return counters.current(connection, "references")

    def load(self) -> tuple[Reference, ...]:
        """The declarations of now, in the order of their names."""
        with self._database.read() as connection:
            rows = connection.execute(select(*_REFERENCE_COLUMNS).order_by(reference_tables.c.name)).all()
        return tuple(
            Reference(name, file, key, place, tuple(json.loads(fields)), version)
            for name, file, key, place, fields, version in rows
        )

    def add(self, reference: Reference) -> Reference:
        """Keep a declaration, in the place of one with the same name; it has a version of its own afterwards."""
        return self._database.transact(lambda connection: _add_reference_table(connection, reference))

    def remove(self, name: str) -> bool:
        """Forget a declaration, and say whether there was one."""
        return self._database.transact(lambda connection: _remove_reference_table(connection, name))


def _add_reference_table(connection: Connection, reference: Reference) -> Reference:
    made = replace(reference, version=counters.step(connection, "references"))
    connection.execute(delete(reference_tables).where(reference_tables.c.name == made.name))
    row = (made.name, made.file, made.key, made.on, json.dumps(made.fields), made.version)
    names = (column.name for column in _REFERENCE_COLUMNS)
    connection.execute(insert(reference_tables), dict(zip(names, row, strict=True)))
    return made


def _remove_reference_table(connection: Connection, name: str) -> bool:
    version = counters.lock(connection, "references")
    gone = connection.execute(delete(reference_tables).where(reference_tables.c.name == name)).rowcount
    if gone:
        counters.advance(connection, "references", version + 1)
    return bool(gone)


# Taxonomies as they were loaded: the bytes of RDFS files, by name.


_TAXONOMY_COLUMNS = tuple(taxonomies.c[name] for name in ("name", "media_type", "body", "version"))


@dataclass(frozen=True, slots=True)
class TaxonomyFile:
    """A file that says which classes stand above which; `version` tells when it was loaded."""

    name: str
    media_type: str
    body: bytes
    version: int = 0


class Taxonomies:
    """The taxonomies of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """How often one was loaded or removed: who has read them at this version need not read them again."""
        with self._database.read() as connection:
            return counters.current(connection, "taxonomies")

    def load(self) -> tuple[TaxonomyFile, ...]:
        """The files of now, in the order of their names."""
        with self._database.read() as connection:
            return _load_taxonomies(connection)

    def add(self, file: TaxonomyFile, check: Callable[[Sequence[TaxonomyFile]], object]) -> TaxonomyFile:
        """Keep a file, in the place of one with the same name, if `check` does not refuse what there is then."""
        return self._database.transact(lambda connection: _add_taxonomy(connection, file, check))

    def remove(self, name: str) -> bool:
        """Forget a file, and say whether there was one."""
        return self._database.transact(lambda connection: _remove_taxonomy(connection, name))


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


def _remove_taxonomy(connection: Connection, name: str) -> bool:
    version = counters.lock(connection, "taxonomies")
    gone = connection.execute(delete(taxonomies).where(taxonomies.c.name == name)).rowcount
    if gone:
        counters.advance(connection, "taxonomies", version + 1)
    return bool(gone)
