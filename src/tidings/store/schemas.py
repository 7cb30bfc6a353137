"""The event schema that publications and subscriptions are checked against."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from tidings.schema.event_schema import EventSchema, SchemaParts
from tidings.schema.extension import Extended, extend
from tidings.schema.rows import SchemaRow, from_rows, to_rows
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.tables import schema_rows

_COLUMNS = tuple(schema_rows.c[name] for name in ("section", "name", "part", "detail", "position"))


class Schemas:
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
            return _load(connection)

    def extend(self, addition: SchemaParts) -> Extended:
        """Extend the schema; two extensions at the same time come one after the other, or are refused."""
        return self._database.transact(lambda connection: _extend(connection, addition))


def _load(connection: Connection) -> EventSchema:
    rows = connection.execute(select(*_COLUMNS).order_by(schema_rows.c.place))
    return from_rows(SchemaRow(*row) for row in rows)


def _extend(connection: Connection, addition: SchemaParts) -> Extended:
    version = counters.lock(connection, "schema")
    extended = extend(_load(connection), addition)
    if extended.changes:
        connection.execute(delete(schema_rows))
        rows = [
            (place, row.section, row.name, row.part, row.detail, row.position)
            for place, row in enumerate(to_rows(extended.schema))
        ]
        bulk.insert_rows(connection, schema_rows, rows)
        counters.advance(connection, "schema", version + 1)
    return extended
