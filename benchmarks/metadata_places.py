"""Databases that are measured: SQLite in a file, and a PostgreSQL server started for the run."""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import psycopg
from sqlalchemy import text

from benchmarks.harness import Bench
from benchmarks.processes import TICKS, Cost, ticks
from tests.support.packages import Unavailable
from tests.support.servers.postgres import find_binaries, running_server
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

T = TypeVar("T")


class Place(ABC):
    """A kind of database."""

    name: str

    @abstractmethod
    def address(self) -> AbstractContextManager[str]:
        """Create an empty database, for as long as it is measured."""

    @contextmanager
    def empty(self) -> Iterator[Store]:
        """Open a Tidings store in a new database."""
        with self.address() as url, open_store(url) as store:
            yield store

    @abstractmethod
    def nbytes(self, store: Store) -> int:
        """Return the size of the database on disk."""

    def measure(self, call: Callable[[], T]) -> tuple[Cost, T]:
        """Return the cost of a call in this process, and its result."""
        cpu, wall = time.process_time(), time.perf_counter()
        answer = call()
        return Cost(time.process_time() - cpu, time.perf_counter() - wall), answer


class SQLite(Place):
    """A file in a temporary folder. All work is done in this process."""

    name = "SQLite"

    @contextmanager
    def address(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            self._file = Path(folder) / "store.db"
            yield sqlite_url(self._file)

    def nbytes(self, store: Store) -> int:
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._file.stat().st_size


class PostgreSQL(Place):
    """A running server; the CPU time of its processes is included. Each database is a schema."""

    name = "PostgreSQL"

    def __init__(self, empty: Callable[[], str], process: int) -> None:
        self._new, self._process = empty, process

    @contextmanager
    def address(self) -> Iterator[str]:
        url = self._new()
        yield url
        with psycopg.connect(url, autocommit=True) as connection:
            (name,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())

    def measure(self, call: Callable[[], T]) -> tuple[Cost, T]:
        before = ticks(self._process)
        own, answer = super().measure(call)
        server = sum(now - before.get(process, 0) for process, now in ticks(self._process).items())
        return own._replace(cpu=own.cpu + server / TICKS), answer

    def nbytes(self, store: Store) -> int:
        with store.database.read() as connection:
            return int(connection.execute(_TABLES).scalar_one())


_TABLES = text(
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'"
)


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Start a server with default durability: commits wait for the disk."""
    binaries = find_binaries()
    if binaries is None:
        raise Unavailable("no PostgreSQL")
    with running_server(binaries, durable=True) as server:
        yield PostgreSQL(server.empty, server.process())


def places(bench: Bench, name: str, with_server: bool, opened: ExitStack) -> Iterator[Place]:
    """Yield SQLite, and PostgreSQL if requested and installed; report if it is missing."""
    yield SQLite()
    if with_server:
        try:
            yield opened.enter_context(postgresql())
        except Unavailable as missing:
            bench.say(f"{name}: without PostgreSQL: {missing}")
