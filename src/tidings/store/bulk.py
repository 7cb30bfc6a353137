"""Bulk statements, in the fastest way of each database.

SQLAlchemy converts every row of parameters to a dictionary and back, which takes longer than the work of SQLite. So
rows go to the driver as tuples in the order of the table's columns; PostgreSQL gets them with COPY.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Integer,
    Row,
    Select,
    Subquery,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from tidings.store.tables import Whole

T = TypeVar("T")

KEYS = 5_000
"""Maximum number of keys in one statement. They are one array parameter, so only memory limits them."""


PAGE_ROWS, PAGE_BYTES = 1_000, 8 << 20
"""Rows of a page, and bytes of bodies in it; a larger body is a page by itself."""


def end_of_page(connection: Connection, number: Column[int], body: Column[Any], after: int, upto: int) -> int:
    """Return the last number of a page of rows with bodies, which begins after a number and ends at `upto`."""
    end, last, total = min(after + PAGE_ROWS, upto), None, 0
    sizes = select(number, func.length(body)).where(number > after, number <= end).order_by(number)
    for place, size in connection.execute(sizes):
        total += size or 0
        if total > PAGE_BYTES and last is not None:
            return int(last)
        last = place
    return end


def iter_chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def select_among(
    connection: Connection,
    query: Select[*tuple[Any, ...]],
    column: ColumnElement[Any],
    keys: Collection[str | int],
    *,
    numbers: bool = False,
) -> Iterator[Row[*tuple[Any, ...]]]:
    """Select the rows of `wanted` whose `column` is one of `keys`, which are integers with `numbers`."""
    statement, as_array = _select_statement(query, column, connection.dialect.name, numbers)
    for piece in iter_chunks(keys, KEYS):
        yield from connection.execute(statement, {"keys": as_array(piece)}).all()


@lru_cache(maxsize=500)
def _select_statement(
    query: Select[*tuple[Any, ...]], column: ColumnElement[Any], dialect: str, numbers: bool
) -> tuple[Select[*tuple[Any, ...]], Callable[[list[Any]], Any]]:
    """Build the statement once per query object: building it takes longer than a few rows."""
    among, as_array = _AMONG[dialect]
    if numbers and dialect == "postgresql":
        return query.where(column == any_(bindparam("keys", type_=ARRAY(BigInteger)))), as_array
    return query.where(among(column)), as_array


def delete_among(connection: Connection, column: Column[Any], keys: Collection[str]) -> None:
    """Delete the rows whose `column` is one of `keys`."""
    if not keys:
        return
    statement, as_array = _delete_statement(column, connection.dialect.name)
    for piece in iter_chunks(keys, KEYS):
        connection.execute(statement, {"keys": as_array(piece)})


@lru_cache(maxsize=100)
def _delete_statement(column: Column[Any], dialect: str) -> tuple[Delete, Callable[[list[Any]], Any]]:
    among, as_array = _AMONG[dialect]
    return delete(column.table).where(among(column)), as_array


def _in_json(column: ColumnElement[Any]) -> ColumnElement[bool]:
    listed = func.json_each(bindparam("keys", type_=Text)).table_valued("value")
    return column.in_(select(listed.c.value))


def _in_array(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return column == any_(bindparam("keys", type_=ARRAY(Text)))


# A list of single parameters would work in both, but SQLAlchemy takes three times as long to render it.
_AMONG: dict[str, tuple[Callable[[ColumnElement[Any]], ColumnElement[bool]], Callable[[list[Any]], Any]]] = {
    "sqlite": (_in_json, json.dumps),
    "postgresql": (_in_array, list),
}


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert new rows; a row is a tuple in the order of the table's columns."""
    if rows:
        _INSERT_ROWS[connection.dialect.name](connection, table, rows)


def _execute_many(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.exec_driver_sql(_insert_statement(table, connection.dialect), list(rows))


@lru_cache(maxsize=500)
def _insert_statement(table: Table, dialect: Dialect) -> str:
    return str(insert(table).compile(dialect=dialect))


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
    """Insert the rows with new keys in the given order; return how many.

    PostgreSQL waits for another transaction that inserts the same key, so the count is final.
    """
    if not rows:
        return 0
    columns = ", ".join(rows[0])
    values = ", ".join(f":{name}" for name in rows[0])
    statement = f"INSERT INTO {table.name} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING"
    return connection.execute(text(statement), rows).rowcount


# Rows as one parameter, which is a table in the statement.
#
# A statement for each row would take a round trip each. Both databases parse JSON, with different functions.


class _Elements(GenericFunction[Any]):
    """SQL function: the elements of a JSON array, as rows with a `value`."""

    name = "elements_of"
    inherit_cache = True


class _Item(GenericFunction[str]):
    """SQL function: one element of a JSON array."""

    name, type = "item_of", Text()
    inherit_cache = True


@compiles(_Elements, "sqlite")
def _elements_sqlite(element: _Elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_Elements, "postgresql")
def _elements_postgresql(element: _Elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array_elements(CAST({compiler.process(element.clauses, **options)} AS json))"


@compiles(_Item, "sqlite")
def _item_sqlite(element: _Item, compiler: SQLCompiler, **options: Any) -> str:
    value, number = element.clauses
    return f"json_extract({compiler.process(value, **options)}, '$[{compiler.process(number, **options)}]')"


@compiles(_Item, "postgresql")
def _item_postgresql(element: _Item, compiler: SQLCompiler, **options: Any) -> str:
    value, number = element.clauses
    return f"({compiler.process(value, **options)} ->> {compiler.process(number, **options)})"


def json_rows(*texts: str, numbers: Sequence[str] = ()) -> Subquery:
    """Build a subquery over the JSON rows in the parameter `given`: text columns, then integer columns."""
    rows = _Elements(bindparam("given", type_=Text)).table_valued("value", name="elements")
    items: list[ColumnElement[Any]] = []
    for place, name in enumerate((*texts, *numbers)):
        item = _Item(rows.c.value, literal_column(str(place), Integer))
        items.append((item if name in texts else cast(item, Whole)).label(name))
    return select(*items).subquery("given")


def json_rows_parameter(rows: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Build the parameter of `json_rows`; values are in the order of the columns."""
    return {"given": json.dumps([list(row) for row in rows])}
