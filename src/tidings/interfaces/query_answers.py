"""Answers to queries as JSON and as CSV, the same on the command line and over HTTP.

A cell of a path with `?` is a list, also with one value in it or none; in CSV it is that list as JSON. A reference is
`{"ref": URI}` in JSON, and the URI in CSV.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

from tidings.metadata.answers import Answer, Cell
from tidings.metadata.as_json import to_json, value_to_json
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema import Schema


def records(answer: Answer) -> Iterator[dict[str, Any]]:
    """A record for each result."""
    yield from (to_json(each) for each in answer.resources)
    for row in answer.rows:
        yield {name: cell_to_json(cell) for name, cell in zip(answer.columns, row, strict=True)}


def whole(answer: Answer) -> dict[str, Any]:
    """The whole answer as one record: resources, or columns and rows."""
    if not answer.columns:
        return {"resources": [to_json(each) for each in answer.resources]}
    rows = [[cell_to_json(cell) for cell in row] for row in answer.rows]
    return {"columns": list(answer.columns), "rows": rows}


def cell_to_json(cell: Cell) -> object:
    if cell is None or not isinstance(cell, tuple) or isinstance(cell, Ref):
        return None if cell is None else value_to_json(cell)
    return [value_to_json(value) for value in cell]


def as_csv(answer: Answer, schema: Schema) -> str:
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
