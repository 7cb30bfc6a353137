"""The databases whose objects are watched and told about, each under a name with its model."""

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
    """A database under a name: the word that names its model, and its address, which has no password in it."""

    name: str
    model: str
    database: str


class ObjectSources:
    """The sources of a store, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> list[ObjectSource]:
        """All of them, in the order of their names."""
        with self._database.read() as connection:
            rows = connection.execute(select(*object_sources.c).order_by(object_sources.c.name)).all()
        return [ObjectSource(*row) for row in rows]

    def add(self, source: ObjectSource) -> None:
        """Keep a source, in the place of one of the same name."""
        names.check("a source's name", source.name)
        for what, text in (("a model's name", source.model), ("an address", source.database)):
            names.check_text(what, text)

        def put(connection: Connection) -> None:
            connection.execute(delete(object_sources).where(object_sources.c.name == source.name))
            connection.execute(insert(object_sources), asdict(source))

        self._database.transact(put)

    def remove(self, name: str) -> bool:
        """Forget a source, and say whether there was one."""
        gone = delete(object_sources).where(object_sources.c.name == name)
        return bool(self._database.transact(lambda connection: connection.execute(gone).rowcount))
