"""Storing new versions of documents: differences, and the triggering rules that resources satisfy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, select

from tidings.metadata.documents import Document
from tidings.metadata.filter.changes import DocumentChanges, compare_versions
from tidings.metadata.resources import Resource
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows, rule_base
from tidings.metadata.sql.resource_rows import AtomRow, StoredResource
from tidings.metadata.sql.tables import (
    atomic_rules,
    metadata_atoms,
    metadata_classes,
    metadata_resources,
    run_changed,
    run_gone,
    run_touched,
)
from tidings.store import bulk, counters, names

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex  # loads kernels, which readers do not need


def check_document(document: Document) -> None:
    """Check, before anything is written, that databases can store a document."""
    for resource in document.resources:
        names.check("a resource's URI", resource.uri)
        for values in resource.values.values():
            for value in values:
                if not isinstance(value, bool | int | float):
                    names.check_text("a value", value if isinstance(value, str) else value.uri)


def compare_with_stored(
    connection: Connection, documents: Sequence[Document]
) -> tuple[dict[str, DocumentChanges], dict[str, StoredResource | None]]:
    """Compare documents with their stored versions; return the changes and the versions to write."""
    before = _versions(connection, [document.uri for document in documents])
    changes = {
        document.uri: compare_versions(before[document.uri], document.resources) for document in documents
    }
    versions: dict[str, StoredResource | None] = {}
    for uri, change in changes.items():
        versions |= dict.fromkeys((each.uri for each in change.deleted), None)
        written = (*change.new, *(each.after for each in change.changed))
        versions |= {each.uri: StoredResource(each, uri) for each in written}
    return changes, versions


def _versions(connection: Connection, documents: Sequence[str]) -> dict[str, list[Resource]]:
    """Load the stored resources of documents."""
    uris = resource_rows.load_document_members(connection, documents)
    found = resource_rows.load_resources(connection, [uri for each in uris.values() for uri in each])
    return {document: [found[uri].resource for uri in sorted(uris[document])] for document in documents}


def find_satisfied_triggers(
    connection: Connection, triggers: TriggerIndex, resources: Collection[Resource]
) -> list[tuple[str, int]]:
    """Find the triggering rules that resources satisfy, after updating the index with added and removed rules."""
    _catch_up(connection, triggers)
    found = list(triggers.satisfied(resources))
    named = {number for _, number in found}
    there = bulk.select_numbered(connection, _THERE, atomic_rules.c.rule, sorted(named))
    gone = named.difference(row.rule for row in there)
    if not gone:
        return found
    triggers.remove(gone)
    return [(uri, number) for uri, number in found if number not in gone]


def _catch_up(connection: Connection, triggers: TriggerIndex) -> None:
    """Add new rules to the index. The counter tells cheaply whether there are any."""
    upto = counters.current(connection, rule_base.ATOMIC_RULE_COUNTER)
    if upto > triggers.known:
        triggers.add(rule_base.load_triggering(connection, triggers.last))
        triggers.known = upto


_THERE = select(atomic_rules.c.rule)


@dataclass(slots=True)
class VersionDifference:
    """The differences between stored and new versions, for the filter run that follows.

    `now` and `before` are the new or changed, and the changed or deleted resources; `classes` has their classes in both
    versions. `touched` are properties with other values, `gone` the removed values. The other fields are to be written.
    """

    now: set[str] = field(default_factory=set)
    before: set[str] = field(default_factory=set)
    classes: set[tuple[str, str]] = field(default_factory=set)
    touched: list[tuple[str, str]] = field(default_factory=list)
    gone: list[AtomRow] = field(default_factory=list)
    atoms: list[AtomRow] = field(default_factory=list)
    places: list[tuple[str, str, str]] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)


def store_classes(connection: Connection, schema: Schema) -> None:
    """Store the class hierarchy of a schema."""
    wanted = {(name, above) for name in schema.classes for above in schema.at_or_above(name)}
    if {tuple(row) for row in connection.execute(select(*metadata_classes.c))} != wanted:
        connection.execute(delete(metadata_classes))
        bulk.insert_rows(connection, metadata_classes, sorted(wanted))


def store_versions(
    connection: Connection, schema: Schema, versions: Mapping[str, StoredResource | None]
) -> VersionDifference:
    """Write new versions of resources (None if deleted), and return the differences. Equal versions are skipped."""
    found = _compare(connection, schema, versions)
    for table in (metadata_resources, metadata_atoms):
        bulk.delete_among(connection, table.c.uri, found.unplaced)
    bulk.insert_rows(connection, metadata_resources, found.places)
    bulk.insert_rows(connection, metadata_atoms, found.atoms)
    bulk.insert_rows(connection, run_changed, sorted(found.classes))
    bulk.insert_rows(connection, run_touched, found.touched)
    gone = [(row.uri, row.property, row.text, row.kind, row.number) for row in found.gone]
    bulk.insert_rows(connection, run_gone, gone)
    return found


def _compare(
    connection: Connection, schema: Schema, versions: Mapping[str, StoredResource | None]
) -> VersionDifference:
    found = VersionDifference()
    places = resource_rows.load_places(connection, versions)
    rows = resource_rows.load_atom_rows(connection, places)
    for uri, version in versions.items():
        place, old = places.get(uri), rows.get(uri, [])
        new = [] if version is None else resource_rows.build_atom_rows(version.resource, schema)
        if place is None and version is not None:
            _enter(found, version, new)
        elif place is not None and version is None:
            _leave(found, uri, place[0], old)
        elif place is not None and version is not None:
            _change(found, version, place, old, new)
    return found


def _enter(found: VersionDifference, version: StoredResource, new: Iterable[AtomRow]) -> None:
    uri, cls = version.resource.uri, version.resource.cls
    found.now.add(uri)
    found.classes.add((uri, cls))
    found.places.append((uri, cls, version.document))
    found.atoms += new


def _leave(found: VersionDifference, uri: str, cls: str, old: Collection[AtomRow]) -> None:
    found.before.add(uri)
    found.classes.add((uri, cls))
    found.unplaced.append(uri)
    found.gone += old


def _change(
    found: VersionDifference,
    version: StoredResource,
    place: tuple[str, str],
    old: Collection[AtomRow],
    new: Collection[AtomRow],
) -> None:
    """Record a changed resource. One of another class differs in all properties; one of another document does not."""
    uri, cls = version.resource.uri, version.resource.cls
    touched = {row.property for row in set(old) ^ set(new)}
    if touched or place != (cls, version.document):
        found.unplaced.append(uri)
        found.places.append((uri, cls, version.document))
        found.atoms += new
    if touched or place[0] != cls:
        found.now.add(uri)
        found.before.add(uri)
        found.classes |= {(uri, place[0]), (uri, cls)}
        found.touched += [(uri, name) for name in touched]
        found.gone += set(old) - set(new)
