"""Taxonomies as they were loaded: the bytes of RDFS files, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, delete, insert, select

from tidings.store import counters
from tidings.store.database import Database
from tidings.store.tables import taxonomies

_COLUMNS = tuple(taxonomies.c[name] for name in ("name", "media_type", "body", "version"))


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
            return _load(connection)

    def add(self, file: TaxonomyFile, check: Callable[[Sequence[TaxonomyFile]], object]) -> TaxonomyFile:
        """Keep a file, in the place of one with the same name, if `check` does not refuse what there is then."""
        return self._database.transact(lambda connection: _add(connection, file, check))

    def remove(self, name: str) -> bool:
        """Forget a file, and say whether there was one."""
        return self._database.transact(lambda connection: _remove(connection, name))


def _load(connection: Connection) -> tuple[TaxonomyFile, ...]:
    rows = connection.execute(select(*_COLUMNS).order_by(taxonomies.c.name)).all()
    return tuple(
        TaxonomyFile(name, media_type, bytes(body), version) for name, media_type, body, version in rows
    )


def _add(
    connection: Connection, file: TaxonomyFile, check: Callable[[Sequence[TaxonomyFile]], object]
) -> TaxonomyFile:
    made = replace(file, version=counters.step(connection, "taxonomies"))
    check([*(each for each in _load(connection) if each.name != file.name), made])
    connection.execute(delete(taxonomies).where(taxonomies.c.name == made.name))
    row = (made.name, made.media_type, made.body, made.version)
    connection.execute(insert(taxonomies), {c.name: value for c, value in zip(_COLUMNS, row, strict=True)})
    return made


def _remove(connection: Connection, name: str) -> bool:
    version = counters.lock(connection, "taxonomies")
    gone = connection.execute(delete(taxonomies).where(taxonomies.c.name == name)).rowcount
    if gone:
        counters.advance(connection, "taxonomies", version + 1)
    return bool(gone)
