"""Dates as people wrote them: a value of a property whose range is `xsd:date` is kept as its midnight in UTC.

    "2026-11-15"^^xsd:date       kept as 2026-11-15T00:00:00.000000Z, shown as 2026-11-15

What is compared and what travels between providers and repositories is the moment; this is for answers alone. A date
with a zone in which it begins at another time, and a time of the day, are shown as the moments they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidings.languages.rules_tree import Path, Query
from tidings.metadata.answers import Answer, Cell
from tidings.metadata.normal import class_of
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Property, Schema

_MIDNIGHT = "T00:00:00.000000Z"


def dated(resource: Resource, schema: Schema) -> Resource:
    """A resource with its dates as dates."""
    found = {
        name: tuple(map(_date, values))
        for name, values in resource.values.items()
        if _has_dates(schema.property_of(resource.cls, name))
    }
    return replace(resource, values={**resource.values, **found}) if found else resource


def dated_answer(answer: Answer, query: Query, schema: Schema, types: Mapping[str, str]) -> Answer:
    """An answer with its dates as dates."""
    classes = {each.variable: class_of(each.extension, schema, types) for each in query.searched}
    dates = [_has_dates(_end(path, classes, schema)) for path in query.select]
    resources = tuple(dated(each, schema) for each in answer.resources)
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
