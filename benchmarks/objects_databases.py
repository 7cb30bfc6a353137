"""The university of paper 000 in a database, with and without triggers, and the contents of the outbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from sqlalchemy import Engine, create_engine, event, insert, text
from sqlalchemy.orm import Mapper, class_mapper

from benchmarks.engine import Counts
from benchmarks.workloads.university import CLASSES, Base, University, attends, used_in
from tidings.objects.outbox.database import ObjectDatabase, open_sqlite
from tidings.objects.outbox.installation import install_triggers
from tidings.objects.outbox.postgresql_database import open_postgresql
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy

SUBSCRIBER_COUNTS = text("""
SELECT c.id, count(DISTINCT h.subscriber_family || ':' || h.subscriber_key)
FROM tidings_changes AS c LEFT JOIN tidings_hits AS h ON h.change = c.id GROUP BY c.id ORDER BY c.id
""")


def without_sync(url: str) -> str:
    """Return the URL with commits that do not wait for the disk. For SQLite, see `PRAGMAS`."""
    return url if url.startswith("sqlite") else f"{url}%20-csynchronous_commit%3Doff"


PRAGMAS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL")
"""Executed on each connection to SQLite: commits do not wait for the disk."""


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    if url.startswith("sqlite"):
        event.listen(engine, "connect", _set_pragmas)
    try:
        yield engine
    finally:
        engine.dispose()


def _set_pragmas(connection: Any, _: object) -> None:
    for pragma in PRAGMAS:
        connection.execute(pragma)


def fill(engine: Engine, university: University) -> None:
    """Insert all objects and links, without watches."""
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        for cls in CLASSES:
            mapper: Mapper[Any] = class_mapper(cls)
            keys = [{"id": each.key, "title": "new"} for each in university.objects() if each.cls is cls]
            connection.execute(insert(mapper.local_table), keys)
        for table, pairs in ((attends, university.attends), (used_in, university.used_in)):
            names = [column.name for column in table.columns]
            connection.execute(insert(table), [dict(zip(names, pair, strict=True)) for pair in pairs])
    vacuum(engine)


def add_triggers(engine: Engine, url: str, university: University) -> None:
    """Install triggers as `tidings model triggers --install` does, and insert the watches."""
    with _open_database(url) as database:
        install_triggers(database, read_sqlalchemy(Base))
    watch = text("INSERT INTO tidings_watches VALUES ('Student', :person, :cls, :key)")
    with engine.begin() as connection:
        connection.execute(watch, watches(university))
    vacuum(engine)


def watches(university: University) -> list[dict[str, str | None]]:
    return [
        {
            "person": str(each.person),
            "cls": each.cls.__name__,
            "key": None if each.key is None else str(each.key),
        }
        for each in university.watches
    ]


def _open_database(url: str) -> AbstractContextManager[ObjectDatabase]:
    return open_sqlite(url) if url.startswith("sqlite") else open_postgresql(url)


def vacuum(engine: Engine) -> None:
    """Run VACUUM ANALYZE, which PostgreSQL might otherwise start by itself during a measurement."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")


def count_subscribers(engine: Engine) -> Counts:
    """Count the subscribers of each change in the outbox."""
    with engine.connect() as connection:
        rows: Sequence[Any] = connection.execute(SUBSCRIBER_COUNTS).all()
    return np.array([count for _, count in rows], np.int64)


def clear_outbox(engine: Engine) -> None:
    """Empty the outbox, as its reader does."""
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM tidings_changes"))
    vacuum(engine)
