"""The ORM program with a listener on its sessions: the paper's aspect, after section 4.1.

Watches are in a table, as with triggers, and a notification is stored for each subscriber, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    select,
    union_all,
)
from sqlalchemy.orm import Session, sessionmaker

from benchmarks.engine import Counts
from benchmarks.objects_databases import vacuum, watches
from benchmarks.objects_programs import Orm
from benchmarks.objects_settings import ASPECT
from benchmarks.workloads.university import Base, University
from tidings.objects.listener.session_listener import notice
from tidings.objects.model.relational_view import RelationalView
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import Object, Watch
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy
from tidings.objects.triggers.fanout_trigger import generate_indexes

OWN = MetaData()
WATCH = Table(
    "watch",
    OWN,
    Column("id", Integer, primary_key=True),
    Column("person", Text, nullable=False),
    Column("cls", Text, nullable=False),
    Column("key", Text),
    Index("watch_by_class", "cls", "key"),
)
NOTIFICATION = Table(
    "notification",
    OWN,
    Column("id", Integer, primary_key=True),
    Column("change", Integer, nullable=False),
    Column("subscriber", Text, nullable=False),
    Column("changed", Text, nullable=False),
)


class Aspect(Orm):
    """Updates through a `sessionmaker` with a listener."""

    def __init__(self, engine: Engine, university: University) -> None:
        super().__init__(ASPECT, engine, notifies=True)
        OWN.create_all(engine)
        with engine.begin() as connection:
            for piece in generate_indexes(
                RelationalView(read_sqlalchemy(Base))
            ):  # the same indexes as with triggers
                connection.exec_driver_sql(piece.sql)
            connection.execute(insert(WATCH), watches(university))
        vacuum(engine)
        self._sessions, self._changes = sessionmaker(engine), 0
        notice(self._sessions, Base, report=self._store, watches=find_watches)

    def session(self) -> Session:
        return self._sessions()

    def _store(self, changes: Sequence[ObjectChange]) -> None:
        rows: list[dict[str, Any]] = []
        for change in changes:
            subscribers = {str(hit.subscriber) for hit in change.propagation.hits}
            changed = str(change.change.object)
            rows += (
                {"change": self._changes, "subscriber": subscriber, "changed": changed}
                for subscriber in subscribers
            )
            self._changes += 1
        if rows:
            with self.engine.begin() as connection:
                connection.execute(insert(NOTIFICATION), rows)

    def count_subscribers(self) -> Counts:
        with self.engine.connect() as connection:
            changes = connection.execute(select(NOTIFICATION.c.change)).scalars().all()
        return np.bincount(np.array(changes, np.int64), minlength=self._changes)

    def clear_notifications(self) -> None:
        with self.engine.begin() as connection:
            connection.execute(delete(NOTIFICATION))
        self._changes = 0
        vacuum(self.engine)


def find_watches(connection: Connection, objects: Iterable[Object]) -> Iterable[Watch]:
    """Find watches of these objects or their classes in one query; some extra where keys of two classes are equal."""
    families, keys = ({getattr(one, name) for one in objects} for name in ("family", "key"))
    of_classes = select(WATCH.c.person, WATCH.c.cls, WATCH.c.key).where(WATCH.c.cls.in_(families))
    rows = connection.execute(
        union_all(of_classes.where(WATCH.c.key.in_(keys)), of_classes.where(WATCH.c.key.is_(None)))
    )
    return [Watch(Object("Student", person), cls, key) for person, cls, key in rows]
