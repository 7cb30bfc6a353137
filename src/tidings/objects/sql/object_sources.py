"""Table of the registered databases with watched objects."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Column, Connection, Table, Text, delete, insert, select

from tidings.store import names
from tidings.store.database import Database
from tidings.store.tables import Name, metadata

object_sources = Table(
    "object_sources",
    metadata,
    Column("name", Name, primary_key=True),
    Column("model", Text, nullable=False),
    Column("database", Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A registered database: its name, where to read its model, and its URL without a password."""

    name: str
    model: str
    database: str


class ObjectSources:
    """Rows of the table of sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> list[ObjectSource]:
        """Load all sources, sorted by name."""
        with self._database.read() as connection:
            rows = connection.execute(select(*object_sources.c).order_by(object_sources.c.name)).all()
        return [ObjectSource(*row) for row in rows]

    def add(self, source: ObjectSource) -> None:
        """Add a source; it replaces a source of the same name."""
        names.check("a source's name", source.name)
        for what, text in (("a model's name", source.model), ("a URL", source.database)):
            names.check_text(what, text)

        def replace_row(connection: Connection) -> None:
            connection.execute(delete(object_sources).where(object_sources.c.name == source.name))
            connection.execute(insert(object_sources), asdict(source))

        self._database.transact(replace_row)

    def remove(self, name: str) -> bool:
        """Remove a source, and return whether there was one."""
        statement = delete(object_sources).where(object_sources.c.name == name)
        return bool(self._database.transact(lambda connection: connection.execute(statement).rowcount))
