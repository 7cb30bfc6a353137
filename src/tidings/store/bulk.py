"""Many rows at a time, in the fastest way each database has.

SQLAlchemy turns every row of parameters into a dictionary and back, which takes longer than SQLite's own work. So
rows go to the driver as plain tuples, in the order of the table's columns; PostgreSQL takes them through COPY.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

# Both databases take some 32,000 values in a statement; beyond a few hundred a longer list saves nothing.
KEYS = 500


def pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while piece := list(islice(rest, size)):
        yield piece


def select_among(
    connection: Connection,
    wanted: Select[*tuple[Any, ...]],
    column: ColumnElement[Any],
    keys: Collection[str],
) -> Iterator[Row[*tuple[Any, ...]]]:
    """The rows of `wanted` whose `column` is one of `keys`."""
    for piece in pieces(keys, KEYS):
        yield from connection.execute(wanted.where(column.in_(piece)))


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows that are known to be new; a row is a tuple in the order of the table's columns."""
    if rows:
        _INSERT_ROWS[connection.dialect.name](connection, table, rows)


def _execute_many(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.exec_driver_sql(str(insert(table).compile(dialect=connection.dialect)), list(rows))


def _copy(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    quoted = connection.dialect.identifier_preparer.quote
    columns = ", ".join(quoted(column.name) for column in table.columns)
    statement = f"COPY {quoted(table.name)} ({columns}) FROM STDIN"
    driver: Any = connection.connection.driver_connection
    base = connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except base as error:
        raise DBAPIError.instance(statement, None, error, base) from error


_INSERT_ROWS: dict[str, Callable[[Connection, Table, Sequence[tuple[Any, ...]]], None]] = {
    "sqlite": _execute_many,
    "postgresql": _copy,
}


def insert_missing(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> int:
    """Insert the rows whose key is not there yet, in the order given, and say how many those were.

    PostgreSQL waits for another transaction that is inserting the same key, so that the answer is final.
    """
    if not rows:
        return 0
    statement = _INSERT[connection.dialect.name](table).on_conflict_do_nothing()
    return connection.execute(statement, rows).rowcount


_INSERT: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
