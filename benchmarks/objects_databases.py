"""The university of paper 000 in a database, with and without triggers; and whom they told."""

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

TOLD = text("""
SELECT c.id, count(DISTINCT h.subscriber_family || ':' || h.subscriber_key)
FROM tidings_changes AS c LEFT JOIN tidings_hits AS h ON h.change = c.id GROUP BY c.id ORDER BY c.id
""")


def not_waiting(url: str) -> str:
    """Commits do not wait for the disk, which takes the same time whatever is told. SQLite: see `WITHOUT_WAITING`."""
    return url if url.startswith("sqlite") else f"{url}%20-csynchronous_commit%3Doff"


WITHOUT_WAITING = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL")
"""What each connection to SQLite says."""


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    if url.startswith("sqlite"):
        event.listen(engine, "connect", _say_not_to_wait)
    try:
        yield engine
    finally:
        engine.dispose()


def _say_not_to_wait(connection: Any, _: object) -> None:
    for pragma in WITHOUT_WAITING:
        connection.execute(pragma)


def fill(engine: Engine, university: University) -> None:
    """All objects and links. Nobody watches anything yet."""
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        for cls in CLASSES:
            mapper: Mapper[Any] = class_mapper(cls)
            keys = [{"id": each.key, "title": "new"} for each in university.objects() if each.cls is cls]
            connection.execute(insert(mapper.local_table), keys)
        for table, pairs in ((attends, university.attends), (used_in, university.used_in)):
            names = [column.name for column in table.columns]
            connection.execute(insert(table), [dict(zip(names, pair, strict=True)) for pair in pairs])
    settle(engine)


def add_triggers(engine: Engine, url: str, university: University) -> None:
    """As `tidings model triggers --install` does, and then the watches as SQL."""
    with _site(url) as site:
        install_triggers(site, read_sqlalchemy(Base))
    watch = text("INSERT INTO tidings_watches VALUES ('Student', :person, :cls, :key)")
    with engine.begin() as connection:
        connection.execute(watch, watches(university))
    settle(engine)


def watches(university: University) -> list[dict[str, str | None]]:
    return [
        {
            "person": str(each.person),
            "cls": each.cls.__name__,
            "key": None if each.key is None else str(each.key),
        }
        for each in university.watches
    ]


def _site(url: str) -> AbstractContextManager[ObjectDatabase]:
    return open_sqlite(url) if url.startswith("sqlite") else open_postgresql(url)


def settle(engine: Engine) -> None:
    """What PostgreSQL would do sooner or later by itself, in the middle of a measurement perhaps."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")


def told(engine: Engine) -> Counts:
    """How many subscribers each change in the outbox tells."""
    with engine.connect() as connection:
        found: Sequence[Any] = connection.execute(TOLD).all()
    return np.array([count for _, count in found], np.int64)


def forget(engine: Engine) -> None:
    """Empty the outbox, as somebody who has read it does."""
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM tidings_changes"))
    settle(engine)
