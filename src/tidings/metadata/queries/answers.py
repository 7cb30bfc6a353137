"""Answers of queries: whole resources, or rows with a cell for each selected path.

search CycleProvider c where c.serverPort = 80            resources
search CycleProvider c select c.serverHost, c.tags?       rows such as ("pirates.uni-passau.de", ("fast", "new"))
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

from tidings.metadata.resources import Ref, Resource, Value, resource_to_json, value_to_json
from tidings.metadata.rules.normal_form import class_of
from tidings.metadata.rules.syntax import Path, Query, format_path
from tidings.metadata.schema.model import Property, Schema

Cell = Value | None | tuple[Value, ...]
"""A value or None; for a path with `?`, a tuple of all values."""

Binding = tuple[str, ...]
"""The URIs bound to the selected variables, in their order."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """Rows with `columns` named by the selected paths, or, without `select`, whole resources."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    resources: tuple[Resource, ...] = ()

    def __len__(self) -> int:
        return len(self.rows) + len(self.resources)


def selected_variables(query: Query) -> tuple[str, ...]:
    """Return the registered variable and the others with selected paths; each binding of them is a row."""
    named = {path.variable for path in query.select}
    others = (each.variable for each in query.searched if each.variable != query.of)
    return (query.of, *(variable for variable in others if variable in named))


def column_names(query: Query) -> tuple[str, ...]:
    return tuple(format_path(path) for path in query.select)


def is_multivalued(path: Path) -> bool:
    """Whether a cell of this path is a tuple."""
    return any(step.any for step in path.steps)


def evaluate_cell(path: Path, values: Iterable[Value]) -> Cell:
    """Return the distinct, sorted values at the end of a path."""
    distinct: list[Any] = sorted(set(values))  # all of one kind
    if is_multivalued(path):
        return tuple(distinct)
    return distinct[0] if distinct else None


def sort_bindings(
    bindings: Iterable[Binding],
    order: Sequence[tuple[Mapping[Binding, Any], bool]],
    limit: int | None,
) -> list[Binding]:
    """Sort bindings by values and return the first ones. Missing values come last in either direction.

    Stable sorts from the last key to the first; ties are ordered by URIs.
    """
    result = sorted(bindings)
    for keys, is_descending in reversed(order):
        with_value = sorted(
            (each for each in result if each in keys), key=keys.__getitem__, reverse=is_descending
        )
        result = with_value + [each for each in result if each not in keys]
    return result[:limit]


# A value of a property with the range `xsd:date` is stored as its midnight in UTC:
#
#     "2026-11-15"^^xsd:date       stored as 2026-11-15T00:00:00.000000Z, shown as 2026-11-15
#
# Comparisons and replication use the instant; only answers show dates. A date with a time zone in which it begins at
# another time, and a time of the day, are shown as instants.


_MIDNIGHT = "T00:00:00.000000Z"


def restore_dates(resource: Resource, schema: Schema) -> Resource:
    """Show the midnights of date properties of a resource as dates."""
    dates = {
        name: tuple(map(_date, values))
        for name, values in resource.values.items()
        if _has_dates(schema.property_of(resource.cls, name))
    }
    return replace(resource, values={**resource.values, **dates}) if dates else resource


def restore_answer_dates(
    answer: QueryAnswer, query: Query, schema: Schema, types: Mapping[str, str]
) -> QueryAnswer:
    """Show the midnights of date properties of an answer as dates."""
    classes = {each.variable: class_of(each.extension, schema, types) for each in query.searched}
    dates = [_has_dates(_end(path, classes, schema)) for path in query.select]
    resources = tuple(restore_dates(each, schema) for each in answer.resources)
    if not any(dates):
        return replace(answer, resources=resources)
    rows = (
        tuple(_cell(cell) if is_date else cell for cell, is_date in zip(row, dates, strict=True))
        for row in answer.rows
    )
    return replace(answer, rows=tuple(rows), resources=resources)


def _end(path: Path, classes: Mapping[str, str], schema: Schema) -> Property | None:
    """Return the property at the end of a valid path; None if it is a variable alone."""
    property, cls = None, classes[path.variable]
    for step in path.steps:
        property = schema.property_of(cls, step.property)
        cls = (property and property.leads_to) or cls
    return property


def _has_dates(property: Property | None) -> bool:
    return property is not None and property.dates


def _cell(cell: Cell) -> Cell:
    if isinstance(cell, tuple) and not isinstance(cell, Ref):
        return tuple(map(_date, cell))
    return None if cell is None else _date(cell)


def _date(value: Value) -> Value:
    return value.removesuffix(_MIDNIGHT) if isinstance(value, str) else value


# JSON and CSV, for the command line and HTTP. A cell of a path with `?` is a list, also with one value or none; in CSV
# it is that list as JSON. A reference is `{"ref": URI}` in JSON, and the URI in CSV.


def answer_to_records(answer: QueryAnswer) -> Iterator[dict[str, Any]]:
    """Yield a JSON object for each result."""
    yield from (resource_to_json(each) for each in answer.resources)
    for row in answer.rows:
        yield {name: cell_to_json(cell) for name, cell in zip(answer.columns, row, strict=True)}


def answer_to_json(answer: QueryAnswer) -> dict[str, Any]:
    """Convert an answer to one JSON object with resources, or with columns and rows."""
    if not answer.columns:
        return {"resources": [resource_to_json(each) for each in answer.resources]}
    rows = [[cell_to_json(cell) for cell in row] for row in answer.rows]
    return {"columns": list(answer.columns), "rows": rows}


def cell_to_json(cell: Cell) -> object:
    if cell is None or not isinstance(cell, tuple) or isinstance(cell, Ref):
        return None if cell is None else value_to_json(cell)
    return [value_to_json(value) for value in cell]


def answer_to_csv(answer: QueryAnswer, schema: Schema) -> str:
    """Format an answer as CSV. The columns are the selected paths, or URI, class and all properties in use."""
    names = sorted({name for each in answer.resources for name in each.values})
    header = answer.columns or ("uri", "class", *names)
    written = StringIO()
    writer = csv.writer(written)
    writer.writerow(header)
    writer.writerows([_format_cell(cell) for cell in row] for row in answer.rows)
    writer.writerows(_resource_row(each, names, schema) for each in answer.resources)
    return written.getvalue()


def _resource_row(resource: Resource, names: list[str], schema: Schema) -> list[str]:
    cells = [resource.uri, resource.cls]
    for name in names:
        declared, values = schema.property_of(resource.cls, name), resource.values.get(name, ())
        if declared is not None and declared.several:
            cells.append(_format_cell(tuple(values)))
        else:
            cells.append(_format_cell(values[0] if values else None))
    return cells


def _format_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Ref):
        return cell.uri
    if isinstance(cell, tuple):
        plain = [each.uri if isinstance(each, Ref) else each for each in cell]
        return json.dumps(plain, ensure_ascii=False)
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
