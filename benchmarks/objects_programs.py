"""Programs that update objects, each update a transaction of its own: by a driver, and through SQLAlchemy's ORM."""

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
from benchmarks.objects_databases import WITHOUT_WAITING, forget, told
from benchmarks.workloads.university import One

Execute = Callable[[str, tuple[str, int]], object]


class Program(ABC):
    """`tells` says whether somebody is told about updates; then `told` and `forget` are of what was told."""

    def __init__(self, name: str, engine: Engine, tells: bool) -> None:
        self.name, self.engine, self.tells = name, engine, tells

    @abstractmethod
    def update(self, ones: Sequence[One], title: str) -> None: ...

    def told(self) -> Counts:
        """How many subscribers are told by each update since they were forgotten, in the order of the updates."""
        return told(self.engine)

    def forget(self) -> None:
        forget(self.engine)


class Driver(Program):
    """What the driver does, and nothing else: the least that an update can cost."""

    def __init__(self, name: str, engine: Engine, tells: bool, execute: Execute, mark: str) -> None:
        super().__init__(name, engine, tells)
        self._execute = execute
        self._texts = f"UPDATE {{}} SET title = {mark} WHERE id = {mark}"

    def update(self, ones: Sequence[One], title: str) -> None:
        texts = {one.cls: self._texts.format(one.cls.__tablename__) for one in ones}
        for one in ones:
            self._execute(texts[one.cls], (title, one.key))


@contextmanager
def driver(name: str, engine: Engine, url: str, tells: bool) -> Iterator[Driver]:
    """A statement outside of any transaction is one of its own."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.partition(":///")[2], isolation_level=None)
        try:
            for pragma in WITHOUT_WAITING:
                connection.execute(pragma)
            yield Driver(name, engine, tells, connection.execute, "?")
        finally:
            connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            yield Driver(name, engine, tells, _encoded(server), "%s")


def _encoded(server: psycopg.Connection[Any]) -> Execute:
    cursor = server.cursor()
    return lambda text, values: cursor.execute(text.encode(), values)


class Orm(Program):
    """As a program with an object-relational mapping does it, after section 4 of the paper: load, set, commit."""

    def session(self) -> Session:
        return Session(self.engine)

    def update(self, ones: Sequence[One], title: str) -> None:
        for cls, key in ones:
            with self.session() as session, session.begin():
                loaded: Any = session.get_one(cls, key)
                loaded.title = title
