"""A database by its address: that of SQLite or of PostgreSQL, whose driver is an extra."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tidings.errors import InputError
from tidings.objects.model.relational_view import quote_name
from tidings.objects.outbox.object_lookup import ObjectLookup, ValueReader
from tidings.objects.outbox.tables import OutboxReader, WatchTable
from tidings.objects.triggers.dialect import Dialect, SchemaObjectKind
from tidings.objects.triggers.sqlite_dialect import SqliteDialect

DATABASE_URL_FORMS = "sqlite:///path/to/database.db or postgresql://user@host/database"
CONNECT_TIMEOUT_SECONDS = 10
SchemaObjectKey = tuple[SchemaObjectKind, str]
InstalledObjects = Mapping[SchemaObjectKey, tuple[str | None, str | None]]
"""What is there: of each the table that it is on, and its mark."""


class Away(InputError):
    """A database that cannot be opened, or not be used any more."""


class ObjectDatabase(OutboxReader, WatchTable, ObjectLookup, ValueReader):
    """An open database: what of ours is in it, and what is asked of that."""

    @abstractmethod
    def found(self) -> InstalledObjects:
        """Everything whose name begins with tidings_, but of tables any: they may be somebody else's."""

    @abstractmethod
    def run(self, statements: Sequence[str]) -> None:
        """All of them or none."""

    def count(self, table: str) -> int:
        return int(self.ask(f"SELECT count(*) FROM {quote_name(table)}")[0][0])


def redact_url(url: str) -> str:
    """What may be shown of an address: nothing of it before an @ or after a ?, where a password may be, too."""
    return url.partition("?")[0].rpartition("@")[2]


@contextmanager
def open_sqlite(url: str) -> Iterator[ObjectDatabase]:
    """A file that is there: SQLite would make a new one, and nothing would ever be changed in it.

    SQLite takes any bytes for a text. One that is none must not keep the others from being told.
    """
    path = Path(url.partition(":///")[2])
    try:
        address = f"file:{quote(str(path.absolute()))}?mode=rw"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=CONNECT_TIMEOUT_SECONDS)
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    except sqlite3.Error as error:
        raise Away(
            "the database cannot be opened", where=str(path), received=str(error), accepted=DATABASE_URL_FORMS
        ) from error
    try:
        yield SqliteDatabase(connection)
    except sqlite3.Error as error:
        raise Away("the database refuses it", where=str(path), received=str(error)) from error
    finally:
        connection.close()


class SqliteDatabase(ObjectDatabase):
    """SQLite keeps the text of a trigger as it was written."""

    dialect: Dialect = SqliteDialect()
    refusal = sqlite3.IntegrityError
    unfit = sqlite3.DataError

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def found(self) -> InstalledObjects:
        ours = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name LIKE 'tidings\\_%' ESCAPE '\\'"
        rows = self._connection.execute(f"{ours} AND type IN ('index', 'trigger')").fetchall()
        return {(SchemaObjectKind(what), name): (on, sql) for what, name, on, sql in rows}

    def ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, _numbered(values)).fetchall()

    def do(self, sql: str, *values: str) -> int:
        return self._connection.execute(sql, _numbered(values)).rowcount

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def columns(self, table: str) -> list[str]:
        schema, _, name = table.rpartition(".")
        within = f"{quote_name(schema)}." if schema else ""
        # table_xinfo has generated columns, too
        rows = self._connection.execute(f"PRAGMA {within}table_xinfo({quote_name(name)})").fetchall()
        return [str(row[1]) for row in rows]

    def run(self, statements: Sequence[str]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                self._connection.execute(statement)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _numbered(values: Sequence[str]) -> dict[str, str]:
    """For SQLite, $1 is a parameter of the name 1."""
    return {str(number): value for number, value in enumerate(values, 1)}


SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
"""What an address begins with, and which database it is then."""

POSTGRESQL_EXTRA = "pip install 'tidings[postgresql]'"


def detect_dialect(url: str) -> str:
    """Which database is at an address; any other is refused."""
    there = SCHEMES.get(urlsplit(url).scheme.partition("+")[0])
    if there is None:
        shown = redact_url(url)
        raise InputError("no database can be at this address", received=shown, accepted=DATABASE_URL_FORMS)
    return there


def open_database(url: str) -> AbstractContextManager[ObjectDatabase]:
    """The database, until the end of a `with`."""
    if detect_dialect(url) == "sqlite":
        return open_sqlite(url)
    try:
        from tidings.objects.outbox.postgresql_database import (  # noqa: PLC0415 - its driver is an extra
            open_postgresql,
        )
    except ModuleNotFoundError as error:
        raise InputError("the driver for PostgreSQL is not installed", hint=POSTGRESQL_EXTRA) from error
    return open_postgresql(url)


def get_database_name(url: str) -> str:
    """What people call the database at an address: the name without its folder and its ending."""
    return PurePosixPath(unquote(urlsplit(url).path)).stem


def has_password(url: str) -> bool:
    """Whether somebody who reads the address could log in."""
    parts = urlsplit(url)
    return parts.password is not None or "password" in parse_qs(parts.query)
