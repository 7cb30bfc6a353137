"""Connections to databases with triggers, by URL: SQLite, or PostgreSQL, whose driver is an extra.

They use the drivers directly. A store's connection would change settings of the user's database.
"""

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
"""Installed objects: the table of each, and its mark."""


class DatabaseUnavailable(InputError):
    """A database that cannot be opened or used."""


class ObjectDatabase(OutboxReader, WatchTable, ObjectLookup, ValueReader):
    """An open database: installed objects, outbox, watches, and lookup of the user's objects."""

    @abstractmethod
    def installed_objects(self) -> InstalledObjects:
        """Return all indexes, functions and triggers whose names begin with tidings_, on any table."""

    @abstractmethod
    def run(self, statements: Sequence[str]) -> None:
        """Execute statements in one transaction."""

    def count(self, table: str) -> int:
        return int(self.query(f"SELECT count(*) FROM {quote_name(table)}")[0][0])


def redact_url(url: str) -> str:
    """Remove the parts that may contain a password: everything before `@` and after `?`."""
    return url.partition("?")[0].rpartition("@")[2]


@contextmanager
def open_sqlite(url: str) -> Iterator[ObjectDatabase]:
    """Open an existing file: SQLite would create a new one, in which nothing ever changes.

    SQLite stores any bytes as text. Text that is not UTF-8 must not block the notifications of other changes.
    """
    path = Path(url.partition(":///")[2])
    try:
        address = f"file:{quote(str(path.absolute()))}?mode=rw"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=CONNECT_TIMEOUT_SECONDS)
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    except sqlite3.Error as error:
        raise DatabaseUnavailable(
            "the database cannot be opened", where=str(path), received=str(error), accepted=DATABASE_URL_FORMS
        ) from error
    try:
        yield SqliteDatabase(connection)
    except sqlite3.Error as error:
        raise DatabaseUnavailable(
            "the database rejects the operation", where=str(path), received=str(error)
        ) from error
    finally:
        connection.close()


class SqliteDatabase(ObjectDatabase):
    """A SQLite file; SQLite stores the text of a trigger unchanged."""

    dialect: Dialect = SqliteDialect()
    rejection = sqlite3.IntegrityError
    conversion_error = sqlite3.DataError

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def installed_objects(self) -> InstalledObjects:
        selection = (
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name LIKE 'tidings\\_%' ESCAPE '\\'"
        )
        rows = self._connection.execute(f"{selection} AND type IN ('index', 'trigger')").fetchall()
        return {(SchemaObjectKind(kind), name): (table, sql) for kind, name, table, sql in rows}

    def query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, _number_parameters(values)).fetchall()

    def execute(self, sql: str, *values: str) -> int:
        return self._connection.execute(sql, _number_parameters(values)).rowcount

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def columns(self, table: str) -> list[str]:
        schema, _, name = table.rpartition(".")
        prefix = f"{quote_name(schema)}." if schema else ""
        # table_xinfo has generated columns, too
        rows = self._connection.execute(f"PRAGMA {prefix}table_xinfo({quote_name(name)})").fetchall()
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


def _number_parameters(values: Sequence[str]) -> dict[str, str]:
    """Name parameters for SQLite, to which $1 is a parameter called 1."""
    return {str(number): value for number, value in enumerate(values, 1)}


SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
"""Dialects by the scheme of a URL."""

POSTGRESQL_EXTRA = "pip install 'tidings[postgresql]'"


def detect_dialect(url: str) -> str:
    """Return the dialect of a database URL, or raise if it is not supported."""
    dialect = SCHEMES.get(urlsplit(url).scheme.partition("+")[0])
    if dialect is None:
        received = redact_url(url)
        raise InputError("not a supported database URL", received=received, accepted=DATABASE_URL_FORMS)
    return dialect


def open_database(url: str) -> AbstractContextManager[ObjectDatabase]:
    """Open a database for the length of a `with` block."""
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
    """Return the name of a database: without folder and suffix."""
    return PurePosixPath(unquote(urlsplit(url).path)).stem


def has_password(url: str) -> bool:
    """Return whether a URL contains a password."""
    parts = urlsplit(url)
    return parts.password is not None or "password" in parse_qs(parts.query)
