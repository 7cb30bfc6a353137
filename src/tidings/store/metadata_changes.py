"""What is different in the metadata that is stored: written, and kept for the filter run that follows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, select

from tidings.metadata.schema import Schema
from tidings.store import atom_rows, bulk
from tidings.store.atom_rows import Placed, Row
from tidings.store.rule_tables import (
    metadata_atoms,
    metadata_classes,
    metadata_resources,
    run_changed,
    run_gone,
    run_touched,
)


@dataclass(slots=True)
class Difference:
    """What new versions change: resources that are there now, and are new or different; those that were there before,
    and are different or no more; with the classes they have or had. Then properties with other values, and the values
    that are no more; last what is to be written.
    """

    now: set[str] = field(default_factory=set)
    before: set[str] = field(default_factory=set)
    classes: set[tuple[str, str]] = field(default_factory=set)
    touched: list[tuple[str, str]] = field(default_factory=list)
    gone: list[Row] = field(default_factory=list)
    atoms: list[Row] = field(default_factory=list)
    places: list[tuple[str, str, str]] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)


def declare(connection: Connection, schema: Schema) -> None:
    """Make the classes of a schema known to the database."""
    wanted = {(name, above) for name in schema.classes for above in schema.at_or_above(name)}
    if {tuple(row) for row in connection.execute(select(*metadata_classes.c))} != wanted:
        connection.execute(delete(metadata_classes))
        bulk.insert_rows(connection, metadata_classes, sorted(wanted))


def store(connection: Connection, schema: Schema, versions: Mapping[str, Placed | None]) -> Difference:
    """Write the new versions of resources (None is one that is no more) and say what is different.

    Those that are given and are as they were count as nothing.
    """
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


def _compare(connection: Connection, schema: Schema, versions: Mapping[str, Placed | None]) -> Difference:
    found = Difference()
    places = atom_rows.stored_places(connection, versions)
    rows = atom_rows.stored_rows(connection, places)
    for uri, version in versions.items():
        place, old = places.get(uri), rows.get(uri, [])
        new = [] if version is None else atom_rows.rows_of(version.resource, schema)
        if place is None and version is not None:
            _enter(found, version, new)
        elif place is not None and version is None:
            _leave(found, uri, place[0], old)
        elif place is not None and version is not None:
            _change(found, version, place, old, new)
    return found


def _enter(found: Difference, version: Placed, new: Iterable[Row]) -> None:
    uri, cls = version.resource.uri, version.resource.cls
    found.now.add(uri)
    found.classes.add((uri, cls))
    found.places.append((uri, cls, version.document))
    found.atoms += new


def _leave(found: Difference, uri: str, cls: str, old: Collection[Row]) -> None:
    found.before.add(uri)
    found.classes.add((uri, cls))
    found.unplaced.append(uri)
    found.gone += old


def _change(
    found: Difference, version: Placed, place: tuple[str, str], old: Collection[Row], new: Collection[Row]
) -> None:
    """A resource of another class differs in all its properties; one that went to another document is the same."""
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
