"""The declarations of reference tables; the tables themselves stand elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace

from sqlalchemy import Connection, delete, insert, select

from tidings.publications.references import Reference
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.tables import reference_tables

_COLUMNS = tuple(reference_tables.c[name] for name in ("name", "file", "key", "place", "fields", "version"))


class References:
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
            rows = connection.execute(select(*_COLUMNS).order_by(reference_tables.c.name)).all()
        return tuple(
            Reference(name, file, key, place, tuple(json.loads(fields)), version)
            for name, file, key, place, fields, version in rows
        )

    def add(self, reference: Reference) -> Reference:
        """Keep a declaration, in the place of one with the same name; it has a version of its own afterwards."""
        return self._database.transact(lambda connection: _add(connection, reference))

    def remove(self, name: str) -> bool:
        """Forget a declaration, and say whether there was one."""
        return self._database.transact(lambda connection: _remove(connection, name))


def _add(connection: Connection, reference: Reference) -> Reference:
    made = replace(reference, version=counters.step(connection, "references"))
    connection.execute(delete(reference_tables).where(reference_tables.c.name == made.name))
    row = (made.name, made.file, made.key, made.on, json.dumps(made.fields), made.version)
    names = (column.name for column in _COLUMNS)
    connection.execute(insert(reference_tables), dict(zip(names, row, strict=True)))
    return made


def _remove(connection: Connection, name: str) -> bool:
    version = counters.lock(connection, "references")
    gone = connection.execute(delete(reference_tables).where(reference_tables.c.name == name)).rowcount
    if gone:
        counters.advance(connection, "references", version + 1)
    return bool(gone)
