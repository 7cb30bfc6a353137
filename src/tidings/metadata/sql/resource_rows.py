"""Stored resources: their rows, with values that databases can compare, loading and writing.

Values are equal if their texts and kinds are, so texts are canonical: 5.0 is stored as 5, instants in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import ARRAY, Connection, Text, bindparam, delete, select, text

from tidings.metadata.documents import Document
from tidings.metadata.resources import Ref, Resource, Value, document_uri_of, resource_to_json
from tidings.metadata.schema.model import Property, Reference, Schema, format_instant
from tidings.metadata.sql.tables import (
    PAUSED_TABLES,
    metadata_atoms,
    metadata_classes,
    metadata_resources,
    paused_resources,
    paused_results,
)
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


def to_comparable(value: Value, declared: Property | None) -> ComparableValue:
    """Convert a value of a property; a text is an instant if the schema declares one."""
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
    rows = []
    for name, values in resource.values.items():
        declared = schema.property_of(cls, name)
        strong = declared.leads_to if declared and declared.reference is Reference.STRONG else None
        for place, value in enumerate(values):
            rows.append(AtomRow(uri, name, place, cls, *to_comparable(value, declared), strong))
    return rows


# Without the number: drivers return decimals, or doubles that lose digits of 64-bit integers.
_ATOMS = select(*(column for column in metadata_atoms.c if column.name != "number"))
_CLASSES = select(metadata_resources.c.uri, metadata_resources.c["class"])
_MEMBERS = select(metadata_resources.c.document, metadata_resources.c.uri)


def load_atom_rows(connection: Connection, uris: Iterable[str]) -> dict[str, list[AtomRow]]:
    """Load the rows of resources, by URI."""
    rows: dict[str, list[AtomRow]] = {}
    stored = bulk.select_among(connection, _ATOMS, metadata_atoms.c.uri, list(uris))
    for uri, name, place, cls, value, kind, strong in stored:
        number = _parse_number(value, kind)
        rows.setdefault(uri, []).append(AtomRow(uri, name, place, cls, value, kind, number, strong))
    return rows


def _parse_number(text: str, kind: int) -> int | float | None:
    if kind == Kind.INSTANT:
        moment = parse_instant(text)
        return moment.micros if moment else None
    return to_number(text) if kind == Kind.NUMBER else None


def load_classes(connection: Connection, uris: Iterable[str]) -> dict[str, str]:
    """Load the classes of stored resources, by URI."""
    rows = bulk.select_among(connection, _CLASSES, metadata_resources.c.uri, list(uris))
    return dict(tuple(row) for row in rows)


def load_document_members(connection: Connection, documents: Iterable[str]) -> dict[str, set[str]]:
    """Load the URIs of the resources of documents."""
    members: dict[str, set[str]] = {document: set() for document in documents}
    column = metadata_resources.c.document
    for document, uri in bulk.select_among(connection, _MEMBERS, column, list(members)):
        members[document].add(uri)
    return members


def load_resources(connection: Connection, uris: Iterable[str]) -> dict[str, Resource]:
    """Load those of the resources that are stored, ordered by URI."""
    uris = list(uris)
    rows, classes = load_atom_rows(connection, uris), load_classes(connection, uris)
    return {uri: Resource(uri, classes[uri], _values(rows.get(uri, ()))) for uri in sorted(classes)}


def load_documents(connection: Connection, documents: Iterable[str]) -> dict[str, list[Resource]]:
    """Load the stored resources of documents, ordered by URI."""
    members = load_document_members(connection, documents)
    stored = load_resources(connection, [uri for uris in members.values() for uri in uris])
    return {document: [stored[uri] for uri in sorted(uris)] for document, uris in members.items()}


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
    " AND c.class = t.class AND c.superclass = a.strong) SELECT uri FROM reached"
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
    return tuple(load_resources(connection, reached).values())


# Writing resources.


WRITE_BATCH = 5_000
"""Number of resources compared with stored ones at a time."""


@dataclass(slots=True)
class VersionDifference:
    """The differences between stored and new versions of resources.

    `now` and `before` are the new or changed, and the changed or deleted resources; `classes` has their classes in both
    versions. `touched` are properties of changed resources with other values, `removed` the removed values.
    """

    now: set[str] = field(default_factory=set)
    before: set[str] = field(default_factory=set)
    classes: set[tuple[str, str]] = field(default_factory=set)
    touched: list[tuple[str, str]] = field(default_factory=list)
    removed: list[AtomRow] = field(default_factory=list)


def check_document(document: Document) -> None:
    """Check, before anything is written, that databases can store a document."""
    for resource in document.resources:
        names.check("a resource's URI", resource.uri)
        for values in resource.values.values():
            for value in values:
                if not isinstance(value, bool | int | float):
                    names.check_text("a value", value if isinstance(value, str) else value.uri)


def store_classes(connection: Connection, schema: Schema) -> None:
    """Store the class hierarchy of a schema."""
    pairs = {(name, above) for name in schema.classes for above in schema.at_or_above(name)}
    if {tuple(row) for row in connection.execute(select(*metadata_classes.c))} != pairs:
        connection.execute(delete(metadata_classes))
        bulk.insert_rows(connection, metadata_classes, sorted(pairs))


def write_versions(
    connection: Connection, schema: Schema, versions: Mapping[str, Resource | None]
) -> VersionDifference:
    """Write new versions of resources (None if deleted), and return the differences. Equal versions are skipped."""
    difference = VersionDifference()
    for uris in bulk.iter_chunks(versions, WRITE_BATCH):
        classes = load_classes(connection, uris)
        rows = load_atom_rows(connection, classes)
        stale, fresh = list[str](), list[tuple[Resource, list[AtomRow]]]()
        for uri in uris:
            version, old = versions[uri], rows.get(uri, [])
            new = [] if version is None else build_atom_rows(version, schema)
            cls = None if version is None else version.cls
            if _note_difference(difference, uri, classes.get(uri), cls, old, new):
                stale += [uri] if uri in classes else []
                fresh += [(version, new)] if version else []
        delete_resources(connection, stale)
        places = [(each.uri, each.cls, document_uri_of(each.uri)) for each, _ in fresh]
        bulk.insert_rows(connection, metadata_resources, places)
        bulk.insert_rows(connection, metadata_atoms, [row for _, new in fresh for row in new])
    return difference


def _note_difference(
    difference: VersionDifference,
    uri: str,
    old_class: str | None,
    new_class: str | None,
    old: Collection[AtomRow],
    new: Collection[AtomRow],
) -> bool:
    """Record the difference of two versions; return whether there is one."""
    removed, added = set(old) - set(new), set(new) - set(old)
    if old_class == new_class and not removed and not added:
        return False
    if old_class is not None:
        difference.before.add(uri)
        difference.classes.add((uri, old_class))
    if new_class is not None:
        difference.now.add(uri)
        difference.classes.add((uri, new_class))
    if old_class is not None and new_class is not None:
        difference.touched += [(uri, name) for name in {row.property for row in removed | added}]
    difference.removed += removed
    return True


def delete_resources(connection: Connection, uris: Collection[str]) -> None:
    for table in (metadata_resources, metadata_atoms):
        bulk.delete_among(connection, table.c.uri, uris)


def save_paused_results(connection: Connection, rule: str, uris: Collection[str]) -> None:
    """Save the results of a rule with their current resources."""
    bulk.insert_rows(connection, paused_results, [(rule, uri) for uri in sorted(uris)])
    resources = [
        (rule, each.uri, json.dumps(resource_to_json(each))) for each in load_strong_closure(connection, uris)
    ]
    bulk.insert_rows(connection, paused_resources, resources)


def delete_paused_results(connection: Connection, rule: str) -> None:
    for table in PAUSED_TABLES:
        connection.execute(delete(table).where(table.c.rule == rule))
