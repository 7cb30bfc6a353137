"""Documents as rows: what the paper's SAX parser puts into SAX_Parse_Result (section 3.3).

Each node that some linear path asks for is a row with its tag path, its id path and its value. Beyond the paper
elements have rows, too, because an XPath may ask for them or compare them. Nodes are numbered in the order of the
document: an element, its attributes, its content.

Every document has one more row, without a tag path. It says that the document was read, or why it was not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import isnan
from typing import Any, NamedTuple

import pyarrow as pa

from tidings.documents import Node, show_node, steps_of
from tidings.errors import DecodeProblem
from tidings.publications import xml
from tidings.relational.linear import PathMatch
from tidings.relational.versions import Version
from tidings.xpath_numbers import xpath_number

COLUMNS = ("event_id", "tagpath", "idpath", "value", "number", "problem")
SCHEMA = pa.schema(
    [(name, pa.float64() if name == "number" else pa.string()) for name in COLUMNS],
)
SPARK_SCHEMA = ", ".join(f"{name} {'double' if name == 'number' else 'string'}" for name in COLUMNS)

ROWS = 10_000
"""Rows that go to Spark together."""


class Row(NamedTuple):
    """`number` is null for what is no number. `problem` is the JSON of a reason and its facts."""

    event_id: str
    tagpath: str | None = None
    idpath: str | None = None
    value: str | None = None
    number: float | None = None
    problem: str | None = None


class Wanted:
    """Which tag paths some linear path asks for, found out once for each."""

    def __init__(self, linear: Iterable[str]) -> None:
        self._match = PathMatch()
        for path in linear:
            self._match.add_linear(path)
        self._known: dict[str, bool] = {}

    def __contains__(self, tagpath: str) -> bool:
        if tagpath not in self._known:
            self._known[tagpath] = next(self._match.at(steps_of(tagpath)), None) is not None
        return self._known[tagpath]


def parse(event_id: str, body: bytes, wanted: Wanted) -> Iterator[Row]:
    """The rows of a document."""
    try:
        document = xml.decode(body)
    except DecodeProblem as problem:
        said = {"reason": problem.headline(), "facts": problem.facts()}
        yield Row(event_id, problem=json.dumps(said))
        return
    yield Row(event_id)
    yield from rows_of(event_id, document, wanted)


def rows_of(event_id: str, document: Node, wanted: Wanted) -> Iterator[Row]:
    """The rows of the nodes that are wanted, in the order of the document."""
    last = 0
    ahead = [(document, "", "")]
    while ahead:
        node, tags, ids = ahead.pop()
        last += 1
        tagpath, idpath = f"{tags}/{show_node(node.kind, node.name)}", f"{ids}.{last}" if ids else str(last)
        if tagpath in wanted:
            number = xpath_number(node.value)
            yield Row(event_id, tagpath, idpath, node.value, None if isnan(number) else number + 0.0)
        ahead.extend((child, tagpath, idpath) for child in reversed(node.children))


@lru_cache(maxsize=2)
def _wanted(version: Version) -> Wanted:
    """Kept, because a worker process runs many tasks."""
    return Wanted(version.rows("query_linear_path", ["linearpath"])["linearpath"].to_pylist())


def stage(version: Version) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: documents (publication, body) in, rows out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        wanted = _wanted(version)
        rows: list[Row] = []
        for batch in batches:
            for event_id, body in zip(batch.column(0), batch.column(1), strict=True):
                rows.extend(parse(event_id.as_py(), body.as_py(), wanted))
                if len(rows) >= ROWS:
                    yield to_batch(rows)
                    rows = []
        yield to_batch(rows)

    return run


def to_batch(rows: list[Row]) -> Any:
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, type) for column, type in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )
