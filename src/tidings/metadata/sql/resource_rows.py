"""Conversion of resources to rows of atoms and back, with values that databases can compare.

Values are equal if their texts and kinds are, so texts are canonical: 5.0 is stored as 5, instants in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ARRAY, Connection, Text, bindparam, select, text

from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema.literals import format_instant
from tidings.metadata.schema.model import Property, Reference, Schema
from tidings.metadata.sql.tables import metadata_atoms, metadata_resources
from tidings.store import bulk, names
from tidings.values import INT64_MAX, INT64_MIN, Kind, parse_instant, to_number

REFERENCE_KIND = 4
"""The kind of references, after those of `Kind`."""


class ComparableValue(NamedTuple):
    """A value in the form that databases compare."""

    text: str
    kind: int
    number: int | float | None


class AtomRow(NamedTuple):
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
class StoredResource:
    """A resource and the URI of its document."""

    resource: Resource
    document: str


def to_comparable(value: Value, declared: Property | None) -> ComparableValue:
    """Convert a value of a property; a text is an instant where the schema says so."""
    if isinstance(value, Ref):
        return ComparableValue(names.check_text("a reference", value.uri), REFERENCE_KIND, None)
    if isinstance(value, str):
        moment = parse_instant(value) if declared and declared.kind is Kind.INSTANT else None
        text = format_instant(moment) if moment else None
        if moment and text:
            return ComparableValue(text, Kind.INSTANT, moment.micros)
        return ComparableValue(names.check_text("a value", value), Kind.STRING, None)
    if isinstance(value, bool):
        return ComparableValue("true" if value else "false", Kind.BOOLEAN, None)
    return _number(value)


def _number(value: int | float) -> ComparableValue:
    """Convert a number so that integers and doubles compare exactly.

    SQLite does so by itself. PostgreSQL gets decimals: the shortest decimal of a double below 2**53 is on the right
    side of every integer, and all doubles above are integers.
    """
    if isinstance(value, float) and value.is_integer() and INT64_MIN <= value <= INT64_MAX:
        value = int(value)
    return ComparableValue(repr(value), Kind.NUMBER, value)


def from_comparable(text: str, kind: int) -> Value:
    """Convert a text of `to_comparable` back to a value."""
    if kind == REFERENCE_KIND:
        return Ref(text)
    if kind == Kind.BOOLEAN:
        return text == "true"
    number = to_number(text) if kind == Kind.NUMBER else None
    return text if number is None else number


def build_atom_rows(resource: Resource, schema: Schema) -> list[AtomRow]:
    """Build the rows of a resource."""
    uri, cls = names.check("a resource's URI", resource.uri), resource.cls
    found = []
    for name, values in resource.values.items():
        declared = schema.property_of(cls, name)
        strong = declared.leads_to if declared and declared.reference is Reference.STRONG else None
        for place, value in enumerate(values):
            found.append(AtomRow(uri, name, place, cls, *to_comparable(value, declared), strong))
    return found


def load_atom_rows(connection: Connection, uris: Iterable[str]) -> dict[str, list[AtomRow]]:
    """Load the rows of resources, by URI."""
    found: dict[str, list[AtomRow]] = {}
    for uri, name, place, cls, value, kind, strong in bulk.select_among(
        connection, _STORED, metadata_atoms.c.uri, list(uris)
    ):
        number = _number_from(value, kind)
        found.setdefault(uri, []).append(AtomRow(uri, name, place, cls, value, kind, number, strong))
    return found


# Without the number: drivers return decimals, or doubles that lose digits of 64-bit integers.
_STORED = select(*(column for column in metadata_atoms.c if column.name != "number"))


def _number_from(text: str, kind: int) -> int | float | None:
    if kind == Kind.INSTANT:
        moment = parse_instant(text)
        return moment.micros if moment else None
    return to_number(text) if kind == Kind.NUMBER else None


def load_places(connection: Connection, uris: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Load the class and the document of stored resources, by URI."""
    found = bulk.select_among(connection, _PLACES, metadata_resources.c.uri, list(uris))
    return {uri: (cls, document) for uri, cls, document in found}


_PLACES = select(*metadata_resources.c)


def load_document_members(connection: Connection, documents: Iterable[str]) -> dict[str, set[str]]:
    """Load the URIs of the resources of documents."""
    found: dict[str, set[str]] = {document: set() for document in documents}
    for document, uri in bulk.select_among(connection, _HELD, metadata_resources.c.document, list(found)):
        found[document].add(uri)
    return found


_HELD = select(metadata_resources.c.document, metadata_resources.c.uri)


def load_resources(connection: Connection, uris: Iterable[str]) -> dict[str, StoredResource]:
    """Load those of the resources that are stored, by URI."""
    asked = list(uris)
    rows = load_atom_rows(connection, asked)
    places = load_places(connection, asked)
    return {
        uri: StoredResource(Resource(uri, cls, _values(rows.get(uri, ()))), document)
        for uri, (cls, document) in places.items()
    }


def _values(rows: Iterable[AtomRow]) -> dict[str, tuple[Value, ...]]:
    values: dict[str, tuple[Value, ...]] = {}
    for row in sorted(rows):
        values[row.property] = (*values.get(row.property, ()), from_comparable(row.text, row.kind))
    return values


# The strong closure (section 2.4 of paper 001). References to missing resources, or to those of another class than the
# schema says, are ignored. UNION instead of UNION ALL: references may form a cycle.
_REACHED = (
    "WITH RECURSIVE reached (uri) AS ({given} UNION"
    " SELECT t.uri FROM reached r CROSS JOIN metadata_atoms a CROSS JOIN metadata_resources t"
    " CROSS JOIN metadata_classes c WHERE a.uri = r.uri AND a.strong IS NOT NULL AND t.uri = a.value"
    " AND c.class = t.class AND c.above = a.strong) SELECT uri FROM reached"
)
_STATEMENTS = {
    "sqlite": text(_REACHED.format(given="SELECT value FROM json_each(:keys)")),
    "postgresql": text(_REACHED.format(given="SELECT unnest(:keys)")).bindparams(
        bindparam("keys", type_=ARRAY(Text(collation="C")))
    ),
}


def load_strong_closure(connection: Connection, uris: Collection[str]) -> tuple[Resource, ...]:
    """Load those of the resources that are stored, with everything they strongly refer to, ordered by URI."""
    reached: set[str] = set()
    for piece in bulk.iter_chunks(uris, bulk.KEYS):
        keys = json.dumps(piece) if connection.dialect.name == "sqlite" else piece
        reached |= set(connection.execute(_STATEMENTS[connection.dialect.name], {"keys": keys}).scalars())
    found = load_resources(connection, reached)
    return tuple(found[uri].resource for uri in sorted(found))
