"""Database connections and transactions, with the differences between SQLite and PostgreSQL.

The guarantees of the store rest on two methods: `read` gives a connection for reading, and `transact` runs a function
in one durable transaction and repeats it after a conflict with another transaction.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoneLeft

from tidings.core.atomic_files import private_file
from tidings.errors import InputError, StoreError
from tidings.store.write_queue import WriteQueue, queue_of_file

T = TypeVar("T")

_log = logging.getLogger("tidings.store")
_log.addHandler(logging.NullHandler())  # commands print errors themselves; services log them

ACCEPTED = "sqlite:///path/to/store.db or postgresql://user@host/database"
BUSY_SECONDS = 60
CACHE_KILOBYTES = 32_768
ATTEMPTS = 10
ROOM = 1 << 20
"""Free bytes that are required after a failed write; with less, writes would soon fail again."""
WRITE_CONNECTIONS = 8
"""Connections for writers to PostgreSQL, of SQLAlchemy's fifteen."""
# serialization_failure, deadlock_detected, unique_violation: another transaction was first, so retry.
RETRYABLE_SQLSTATES = frozenset({"40001", "40P01", "23505"})


class Database:
    """An SQLAlchemy engine with methods to read and to write."""

    def __init__(self, engine: Engine, writing: int = WRITE_CONNECTIONS) -> None:
        self.engine = engine
        self._turns = queue_of_file(str(engine.url.database)) if self.is_sqlite else WriteQueue(writing)
        self.refused: StoreError | None = None
        """Why the last write failed, until a write succeeds and there is room for larger ones."""

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        url = self.engine.url
        return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for reading."""
        with self._explain_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def moment(self) -> Iterator[Connection]:
        """Open a connection for reading in which all statements see one snapshot."""
        with self._explain_errors(), self.engine.connect() as connection:
            if not self.is_sqlite:  # where each transaction sees one snapshot anyway
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction: all of it is durable when this returns, none of it if it raises."""
        try:
            done = self._retry_transaction(work)
        except StoreError as problem:
            if self.refused is None:
                _log.error("the store rejects writes: %s", problem)
            self.refused = problem
            raise
        if self.refused is not None and self._has_room():
            self.refused = None
            _log.warning("the store accepts writes again")
        return done

    def _has_room(self) -> bool:
        """Return whether a larger write would succeed: a full disk often has room for a page or two."""
        if not self.is_sqlite:
            return True  # the files of a server are not visible here
        try:
            with TemporaryFile(dir=Path(str(self.engine.url.database)).parent, buffering=0) as file:
                return file.write(bytes(ROOM)) == ROOM
        except OSError:
            return False

    def _retry_transaction(self, work: Callable[[Connection], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            with self._turn(), self._explain_errors():
                try:
                    with (
                        self.engine.connect().execution_options(writes=True) as connection,
                        connection.begin(),
                    ):
                        return work(connection)
                except DBAPIError as error:
                    if (
                        attempt == ATTEMPTS
                        or getattr(error.orig, "sqlstate", None) not in RETRYABLE_SQLSTATES
                    ):
                        raise
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Limit concurrent writers, so that writers waiting for locks leave connections to readers."""
        turn = self._turns.begin(BUSY_SECONDS)
        if turn is None:
            raise StoreError("too many concurrent writers", where=self.name, hint="retry in a moment")
        try:
            yield
        finally:
            self._turns.end(turn)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise _store_error(self.name, error) from error
        except NoneLeft as error:
            hint = "retry in a moment; the log of the database shows what the connections wait for"
            raise StoreError("all connections are in use", where=self.name, hint=hint) from error


def sqlite_url(path: Path) -> str:
    """Return the URL of a store in a file."""
    if "?" in str(path):
        raise StoreError("a store's path cannot have a question mark in it", received=str(path))
    # Built by SQLAlchemy: its versions differ in the escapes that they write and read, such as %20.
    return URL.create("sqlite", database=str(path.absolute())).render_as_string()


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite store; None for a server."""
    parsed = _parse(url)
    return Path(str(parsed.database)) if parsed.get_backend_name() == "sqlite" else None


def open_database(url: str) -> Database:
    """Open the database at a URL, and connect once so that a wrong URL fails here."""
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        _make_private(Path(str(parsed.database)))
    database = Database(_engine(parsed))
    with database.read():
        return database


def _make_private(path: Path) -> None:
    """Create the file readable by its owner only; SQLite gives `-wal` and `-shm` the same mode.

    If the file cannot be created, SQLite reports why, and that error gets a hint.
    """
    with suppress(OSError):
        private_file(path)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreError(
            "invalid store address", received=_without_password(url), accepted=ACCEPTED
        ) from error
    backend = parsed.get_backend_name()
    if backend == "sqlite" and parsed.database not in (None, "", ":memory:"):
        return parsed.set(drivername="sqlite+pysqlite", database=str(Path(str(parsed.database)).absolute()))
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    shown = parsed.render_as_string(hide_password=True)
    raise StoreError("unsupported store address", received=shown, accepted=ACCEPTED)


def _without_password(url: str) -> str:
    """Return an invalid URL without everything before an @."""
    return url.rpartition("@")[2]


def _engine(url: URL) -> Engine:
    engine = _sqlite(url) if url.get_backend_name() == "sqlite" else _postgresql(url)
    event.listen(engine, "handle_error", _refuse_unstorable)
    return engine


def _refuse_unstorable(context: ExceptionContext) -> None:
    """Raise an input error for a value that no column can hold: the store works, and a retry would fail, too.

    Parameters are checked where they enter (`tidings.core.arguments`); this catches one that was missed.
    """
    error = context.original_exception
    if isinstance(error, OverflowError | UnicodeEncodeError) or isinstance(
        context.sqlalchemy_exception, DataError
    ):
        message = " ".join(str(error).split())[:200]
        raise InputError("a value that the store cannot hold", received=message) from error


def _postgresql(url: URL) -> Engine:
    timeout: dict[str, Any] = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
    try:
        return create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True, connect_args=timeout)
    except ModuleNotFoundError as error:
        raise StoreError(
            "the driver for PostgreSQL is not installed",
            where=url.render_as_string(hide_password=True),
            hint="pip install 'tidings[postgresql]'",
        ) from error


def _sqlite(url: URL) -> Engine:
    """Create an engine for SQLite with several processes: a write-ahead log, and write locks from the start.

    Python's sqlite3 would begin transactions late and as readers: two readers that become writers get "database is
    locked" at once, whatever the timeout. So its transactions are off, and `_begin` begins them.
    """
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    _write_ahead(connection)
    # FULL: a commit returns when it is on the disk. NORMAL would lose the last commits in a power failure.
    connection.execute("PRAGMA synchronous = FULL")
    # A batch of notifications touches many pages; the default cache of two megabytes halves its speed.
    connection.execute(f"PRAGMA cache_size = {-CACHE_KILOBYTES}")
    connection.execute("PRAGMA foreign_keys = ON")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, once in the lifetime of a file.

    If two processes do it at once, one gets "database is locked" immediately; it waits for the write lock of the other
    and checks again.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if attempt == ATTEMPTS or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


HINTS = (
    (
        "database is locked",
        f"another process has been writing for more than {BUSY_SECONDS} s; is one of them stuck?",
    ),
    ("unable to open", "does the folder exist, and may you write in it?"),
    ("readonly", "may you write the file and the folder it is in?"),
    ("not a database", "the file is something else; choose another one"),
    ("disk is full", "free some space; the unfinished write was rolled back"),
    ("connection refused", "is the server running, and are host and port right?"),
    ("authentication failed", "are user and password right?"),
    ("does not exist", "create the database first (createdb NAME), or correct its name"),
    ("resolve host", "is the host's name right?"),
    ("connection timeout", "is the host reachable from here?"),
)


def _store_error(name: str, error: DBAPIError) -> StoreError:
    message = " ".join(str(error.orig).split())
    hint = next((hint for words, hint in HINTS if words in message.lower()), None)
    return StoreError(f"the database reports: {message}", where=name, hint=hint)


SNAPSHOT_COUNTS = {
    "publications": "SELECT value FROM counters WHERE name = 'journal'",
    "notifications": "SELECT sum(last_sequence) FROM subscribers",
    "matched": "SELECT value FROM counters WHERE name IN ('match_position', 'matched')",
}
"""Facts about a copy. Earlier versions have another name for the matched position, or none."""


def copy_sqlite(path: Path, copy: Path) -> dict[str, int]:
    """Copy a store with SQLite's backup, in one step and without blocking writers; return facts about the copy."""
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # a single file, without a log
            return {name: _count(target, asked) for name, asked in SNAPSHOT_COUNTS.items()}
    except sqlite3.Error as error:
        raise StoreError(f"the store cannot be copied: {error}", where=str(path)) from error


def _count(database: sqlite3.Connection, statement: str) -> int:
    row = database.execute(statement).fetchone()
    return int(row[0] or 0) if row else 0
