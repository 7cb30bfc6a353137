"""Resources as rows of atoms, and back; values as what databases compare.

Two values are equal if their texts and kinds are, so texts are written in one way: 5.0 as 5, instants in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select

from tidings.metadata.literals import instant_text
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Property, Reference, Schema
from tidings.store import bulk, names
from tidings.store.rule_tables import metadata_atoms, metadata_resources
from tidings.values import INT64_MAX, INT64_MIN, Kind, parse_instant, to_number

REF = 4
"""The kind of references, after those of `Kind`."""


class Compared(NamedTuple):
    """A value as databases compare it."""

    text: str
    kind: int
    number: int | float | None


class Row(NamedTuple):
    """A row of `metadata_atoms`."""

    uri: str
    property: str
    place: int
    cls: str
    text: str
    kind: int
    number: int | float | None
    strong: str | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A resource, and the document it is of."""

    resource: Resource
    document: str


def compared(value: Value, declared: Property | None) -> Compared:
    """A value of a property; a text is an instant where the schema says so."""
    if isinstance(value, Ref):
        return Compared(names.check_text("a reference", value.uri), REF, None)
    if isinstance(value, str):
        moment = parse_instant(value) if declared and declared.kind is Kind.INSTANT else None
        text = instant_text(moment) if moment else None
        if moment and text:
            return Compared(text, Kind.INSTANT, moment.micros)
        return Compared(names.check_text("a value", value), Kind.STRING, None)
    if isinstance(value, bool):
        return Compared("true" if value else "false", Kind.BOOLEAN, None)
    return _number(value)


def _number(value: int | float) -> Compared:
    """SQLite compares integers with doubles exactly. PostgreSQL gets decimals: of a double below 2**53 the shortest one
    is on the right side of every integer, and above all are integers."""
    if isinstance(value, float) and value.is_integer() and INT64_MIN <= value <= INT64_MAX:
        value = int(value)
    return Compared(repr(value), Kind.NUMBER, value)


def value_from(text: str, kind: int) -> Value:
    """The value that `compared` made a text of."""
    if kind == REF:
        return Ref(text)
    if kind == Kind.BOOLEAN:
        return text == "true"
    number = to_number(text) if kind == Kind.NUMBER else None
    return text if number is None else number


def rows_of(resource: Resource, schema: Schema) -> list[Row]:
    """The atoms of a resource."""
    uri, cls = names.check("a resource's URI", resource.uri), resource.cls
    found = []
    for name, values in resource.values.items():
        declared = schema.property_of(cls, name)
        strong = declared.leads_to if declared and declared.reference is Reference.STRONG else None
        for place, value in enumerate(values):
            found.append(Row(uri, name, place, cls, *compared(value, declared), strong))
    return found


def stored_rows(connection: Connection, uris: Iterable[str]) -> dict[str, list[Row]]:
    """The atoms that are stored of these resources, by URI."""
    found: dict[str, list[Row]] = {}
    for uri, name, place, cls, text, kind, strong in bulk.select_among(
        connection, _STORED, metadata_atoms.c.uri, list(uris)
    ):
        number = _number_from(text, kind)
        found.setdefault(uri, []).append(Row(uri, name, place, cls, text, kind, number, strong))
    return found


# Not the number: drivers would give decimals, or doubles that 64 bits do not fit in.
_STORED = select(*(column for column in metadata_atoms.c if column.name != "number"))


def _number_from(text: str, kind: int) -> int | float | None:
    if kind == Kind.INSTANT:
        moment = parse_instant(text)
        return moment.micros if moment else None
    return to_number(text) if kind == Kind.NUMBER else None


def stored_places(connection: Connection, uris: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Class and document of those of these resources that are stored."""
    found = bulk.select_among(connection, _PLACES, metadata_resources.c.uri, list(uris))
    return {uri: (cls, document) for uri, cls, document in found}


_PLACES = select(*metadata_resources.c)


def of_documents(connection: Connection, documents: Iterable[str]) -> dict[str, set[str]]:
    """The URIs of the resources that are stored of each of these documents."""
    found: dict[str, set[str]] = {document: set() for document in documents}
    for document, uri in bulk.select_among(connection, _HELD, metadata_resources.c.document, list(found)):
        found[document].add(uri)
    return found


_HELD = select(metadata_resources.c.document, metadata_resources.c.uri)


def load(connection: Connection, uris: Iterable[str]) -> dict[str, Placed]:
    """The resources that are stored of these, by URI."""
    asked = list(uris)
    rows = stored_rows(connection, asked)
    places = stored_places(connection, asked)
    return {
        uri: Placed(Resource(uri, cls, _values(rows.get(uri, ()))), document)
        for uri, (cls, document) in places.items()
    }


def _values(rows: Iterable[Row]) -> dict[str, tuple[Value, ...]]:
    values: dict[str, tuple[Value, ...]] = {}
    for row in sorted(rows):
        values[row.property] = (*values.get(row.property, ()), value_from(row.text, row.kind))
    return values
