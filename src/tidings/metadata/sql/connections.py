"""Decorators for the methods of a part of a store, which give them a connection.

class MetadataLog(StorePart):
    @reading
    def head(self, connection: Connection) -> int: ...

store.metadata.log.head()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Row, Select

from tidings.store.database import Database

P = ParamSpec("P")
S = TypeVar("S", bound="StorePart")
T = TypeVar("T")
Method = Callable[Concatenate[S, Connection, P], T]


class StorePart:
    """A part of a store: tables with their queries and changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self) -> AbstractContextManager[Connection]:
        """Return a connection for reading."""
        return self._database.read()

    def _rows(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        with self._read() as connection:
            return connection.execute(query).all()

    def _call(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function with a connection for reading."""
        with self._read() as connection:
            return query(connection, *args, **options)


def reading(method: Method[S, P, T]) -> Callable[Concatenate[S, P], T]:
    """Run a method on a connection for reading."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        with self._read() as connection:
            return method(self, connection, *args, **options)

    return run


def reading_snapshot(method: Method[S, P, T]) -> Callable[Concatenate[S, P], T]:
    """Run a method on a connection whose statements all see one moment."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        with self._database.moment() as connection:
            return method(self, connection, *args, **options)

    return run


def transacting(method: Method[S, P, T]) -> Callable[Concatenate[S, P], T]:
    """Run a method in a transaction: all its changes are durable when it returns, none if it raises."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        return self._database.transact(lambda connection: method(self, connection, *args, **options))

    return run
