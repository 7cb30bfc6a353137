"""Programs that update objects, one transaction per update: by a driver, and through SQLAlchemy's ORM."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from benchmarks.engine import Counts
from benchmarks.objects_databases import PRAGMAS, clear_outbox, count_subscribers
from benchmarks.workloads.university import ObjectId

Execute = Callable[[str, tuple[str, int]], object]


class Program(ABC):
    """A program that updates objects. If `notifies` is set, its notifications can be counted and cleared."""

    def __init__(self, name: str, engine: Engine, notifies: bool) -> None:
        self.name, self.engine, self.notifies = name, engine, notifies

    @abstractmethod
    def update(self, ones: Sequence[ObjectId], title: str) -> None: ...

    def count_subscribers(self) -> Counts:
        """Count the notified subscribers of each update since the last clear, in the order of updates."""
        return count_subscribers(self.engine)

    def clear_notifications(self) -> None:
        clear_outbox(self.engine)


class Driver(Program):
    """Updates by the driver alone: the minimum cost of an update."""

    def __init__(self, name: str, engine: Engine, notifies: bool, execute: Execute, mark: str) -> None:
        super().__init__(name, engine, notifies)
        self._execute = execute
        self._texts = f"UPDATE {{}} SET title = {mark} WHERE id = {mark}"

    def update(self, ones: Sequence[ObjectId], title: str) -> None:
        texts = {one.cls: self._texts.format(one.cls.__tablename__) for one in ones}
        for one in ones:
            self._execute(texts[one.cls], (title, one.key))


@contextmanager
def driver(name: str, engine: Engine, url: str, notifies: bool) -> Iterator[Driver]:
    """Open a driver in autocommit mode: each statement is a transaction."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.partition(":///")[2], isolation_level=None)
        try:
            for pragma in PRAGMAS:
                connection.execute(pragma)
            yield Driver(name, engine, notifies, connection.execute, "?")
        finally:
            connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            yield Driver(name, engine, notifies, _encoded(server), "%s")


def _encoded(server: psycopg.Connection[Any]) -> Execute:
    cursor = server.cursor()
    return lambda text, values: cursor.execute(text.encode(), values)


class Orm(Program):
    """Updates through an object-relational mapping, after section 4 of the paper: load, set, commit."""

    def session(self) -> Session:
        return Session(self.engine)

    def update(self, ones: Sequence[ObjectId], title: str) -> None:
        for cls, key in ones:
            with self.session() as session, session.begin():
                loaded: Any = session.get_one(cls, key)
                loaded.title = title
