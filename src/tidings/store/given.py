"""Rows that a statement is given: however many, they travel as one parameter and are a table in it.

A statement for each of them would be a way to the server and back for each, and takes longer there than its work. Both
databases read JSON; what differs is what they call it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Integer, Subquery, Text, bindparam, cast, literal_column, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from tidings.store.tables import Whole


class _Elements(GenericFunction[Any]):
    """The elements of a JSON array, as rows with a `value`."""

    name = "elements_of"
    inherit_cache = True


class _Item(GenericFunction[str]):
    """One element of a JSON array."""

    name, type = "item_of", Text()
    inherit_cache = True


@compiles(_Elements, "sqlite")
def _elements_sqlite(element: _Elements, compiler: SQLCompiler, **more: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **more)})"


@compiles(_Elements, "postgresql")
def _elements_postgresql(element: _Elements, compiler: SQLCompiler, **more: Any) -> str:
    return f"json_array_elements(CAST({compiler.process(element.clauses, **more)} AS json))"


@compiles(_Item, "sqlite")
def _item_sqlite(element: _Item, compiler: SQLCompiler, **more: Any) -> str:
    value, number = element.clauses
    return f"json_extract({compiler.process(value, **more)}, '$[{compiler.process(number, **more)}]')"


@compiles(_Item, "postgresql")
def _item_postgresql(element: _Item, compiler: SQLCompiler, **more: Any) -> str:
    value, number = element.clauses
    return f"({compiler.process(value, **more)} ->> {compiler.process(number, **more)})"


def given(*texts: str, numbers: Sequence[str] = ()) -> Subquery:
    """A table of what the parameter `given` holds: columns of texts, then of whole numbers."""
    rows = _Elements(bindparam("given", type_=Text)).table_valued("value", name="elements")
    items: list[ColumnElement[Any]] = []
    for place, name in enumerate((*texts, *numbers)):
        item = _Item(rows.c.value, literal_column(str(place), Integer))
        items.append((item if name in texts else cast(item, Whole)).label(name))
    return select(*items).subquery("given")


def as_given(rows: Iterable[Sequence[Any]]) -> dict[str, str]:
    """The parameter for rows, each with its values in the order of the columns."""
    return {"given": json.dumps([list(row) for row in rows])}
