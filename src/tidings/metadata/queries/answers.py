"""What a query answers: whole resources, or rows with a cell for each path that is selected.

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
from tidings.metadata.rules.syntax import format_path
from tidings.metadata.rules.tree import Path, Query
from tidings.metadata.schema.model import Property, Schema

Cell = Value | None | tuple[Value, ...]
"""One value or none; of a path with `?`, all its values."""

Binding = tuple[str, ...]
"""The URIs that the shown variables stand for, in the order of `shown`."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """`columns` are the paths as they are written; without `select` there are none, and whole resources instead."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    resources: tuple[Resource, ...] = ()

    def __len__(self) -> int:
        return len(self.rows) + len(self.resources)


def selected_variables(query: Query) -> tuple[str, ...]:
    """What is asked for, and the other variables that something is selected of: a row for each binding of these."""
    named = {path.variable for path in query.select}
    others = (each.variable for each in query.searched if each.variable != query.of)
    return (query.of, *(variable for variable in others if variable in named))


def column_names(query: Query) -> tuple[str, ...]:
    return tuple(format_path(path) for path in query.select)


def is_multivalued(path: Path) -> bool:
    """Whether a cell of this path is a tuple."""
    return any(step.any for step in path.steps)


def evaluate_cell(path: Path, values: Iterable[Value]) -> Cell:
    """The values at the end of a path: each once, in order."""
    every: list[Any] = sorted(set(values))  # of one kind, all of them
    if is_multivalued(path):
        return tuple(every)
    return every[0] if every else None


def sort_bindings(
    bindings: Iterable[Binding],
    order: Sequence[tuple[Mapping[Binding, Any], bool]],
    limit: int | None,
) -> list[Binding]:
    """Bindings in the order of values, of which some may be missing: those come last, whichever way it goes.

    Sorted from the last key to the first: each sort leaves what it finds equal as it is. Ties are in the order of
    the URIs.
    """
    found = sorted(bindings)
    for keys, falls in reversed(order):
        there = sorted((each for each in found if each in keys), key=keys.__getitem__, reverse=falls)
        found = there + [each for each in found if each not in keys]
    return found[:limit]


# Dates as people wrote them: a value of a property whose range is `xsd:date` is kept as its midnight in UTC.
#
#     "2026-11-15"^^xsd:date       kept as 2026-11-15T00:00:00.000000Z, shown as 2026-11-15
#
# What is compared and what travels between providers and repositories is the moment; this is for answers alone. A
# date with a zone in which it begins at another time, and a time of the day, are shown as the moments they are.


_MIDNIGHT = "T00:00:00.000000Z"


def restore_dates(resource: Resource, schema: Schema) -> Resource:
    """A resource with its dates as dates."""
    found = {
        name: tuple(map(_date, values))
        for name, values in resource.values.items()
        if _has_dates(schema.property_of(resource.cls, name))
    }
    return replace(resource, values={**resource.values, **found}) if found else resource


def restore_answer_dates(
    answer: QueryAnswer, query: Query, schema: Schema, types: Mapping[str, str]
) -> QueryAnswer:
    """An answer with its dates as dates."""
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
    """The property at the end of a path that was checked; none if it is a variable alone."""
    found, cls = None, classes[path.variable]
    for step in path.steps:
        found = schema.property_of(cls, step.property)
        cls = (found and found.leads_to) or cls
    return found


def _has_dates(property: Property | None) -> bool:
    return property is not None and property.dates


def _cell(cell: Cell) -> Cell:
    if isinstance(cell, tuple) and not isinstance(cell, Ref):
        return tuple(map(_date, cell))
    return None if cell is None else _date(cell)


def _date(value: Value) -> Value:
    return value.removesuffix(_MIDNIGHT) if isinstance(value, str) else value


# Answers to queries as JSON and as CSV, the same on the command line and over HTTP.
#
# A cell of a path with `?` is a list, also with one value in it or none; in CSV it is that list as JSON. A reference
# is `{"ref": URI}` in JSON, and the URI in CSV.


def answer_to_records(answer: QueryAnswer) -> Iterator[dict[str, Any]]:
    """A record for each result."""
    yield from (resource_to_json(each) for each in answer.resources)
    for row in answer.rows:
        yield {name: cell_to_json(cell) for name, cell in zip(answer.columns, row, strict=True)}


def answer_to_json(answer: QueryAnswer) -> dict[str, Any]:
    """The whole answer as one record: resources, or columns and rows."""
    if not answer.columns:
        return {"resources": [resource_to_json(each) for each in answer.resources]}
    rows = [[cell_to_json(cell) for cell in row] for row in answer.rows]
    return {"columns": list(answer.columns), "rows": rows}


def cell_to_json(cell: Cell) -> object:
    if cell is None or not isinstance(cell, tuple) or isinstance(cell, Ref):
        return None if cell is None else value_to_json(cell)
    return [value_to_json(value) for value in cell]


def answer_to_csv(answer: QueryAnswer, schema: Schema) -> str:
    """A table with a header: the selected paths, or the class and all properties that some resource has."""
    names = sorted({name for each in answer.resources for name in each.values})
    header = answer.columns or ("uri", "class", *names)
    written = StringIO()
    writer = csv.writer(written)
    writer.writerow(header)
    writer.writerows([_written(cell) for cell in row] for row in answer.rows)
    writer.writerows(_of_resource(each, names, schema) for each in answer.resources)
    return written.getvalue()


def _of_resource(resource: Resource, names: list[str], schema: Schema) -> list[str]:
    cells = [resource.uri, resource.cls]
    for name in names:
        declared, values = schema.property_of(resource.cls, name), resource.values.get(name, ())
        if declared is not None and declared.several:
            cells.append(_written(tuple(values)))
        else:
            cells.append(_written(values[0] if values else None))
    return cells


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Ref):
        return cell.uri
    if isinstance(cell, tuple):
        plain = [each.uri if isinstance(each, Ref) else each for each in cell]
        return json.dumps(plain, ensure_ascii=False)
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
