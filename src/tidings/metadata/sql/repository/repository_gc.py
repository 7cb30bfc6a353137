"""Garbage collection of a repository: resources that nothing holds any more.

A resource is live if a rule registers it, or if a live resource strongly refers to it. Reference counting would never
collect two resources that refer to each other, so resources that may be dead are traced together:

    1. collect the part: everything that strong references reach from resources that lost a rule or a reference.
       Resources outside of the part lost nothing, and stay live;
    2. in the part, resources are live that a rule registers or a resource outside refers to, and what these reach;
    3. the rest is garbage, including cycles.

So the cost depends on the size of the part, not of the cache. Local resources keep nothing alive and are never garbage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select, text

from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.resource_rows import AtomRow
from tidings.metadata.sql.tables import INDEXED_LENGTH, metadata_atoms, repository_members
from tidings.store import bulk

StrongEdge = tuple[str, str]
"""A strong reference: the URI and the required class of its target."""


def strong_edges(rows: Iterable[AtomRow]) -> set[StrongEdge]:
    """Return the strong references among atoms."""
    return {(row.text, row.strong) for row in rows if row.strong is not None}


@dataclass(slots=True)
class _Part:
    """Resources that may be unreachable, with the strong references between them."""

    targets: dict[str, set[str]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)


def find_garbage(
    connection: Connection, schema: Schema, candidates: Collection[str], local: Collection[str]
) -> set[str]:
    """Find unreachable resources among candidates and what they reach; `local` are documents."""
    part = _part(connection, schema, candidates, local)
    held = _members(connection, part.classes) | _held_from_outside(connection, schema, part, local)
    waiting = list(held)
    while waiting:
        for uri in part.targets[waiting.pop()] - held:
            held.add(uri)
            waiting.append(uri)
    return part.classes.keys() - held


def _part(
    connection: Connection, schema: Schema, candidates: Collection[str], local: Collection[str]
) -> _Part:
    part = _Part()
    found = _places(connection, candidates, local)
    while found:
        part.classes |= found
        edges = {
            uri: strong_edges(rows) for uri, rows in resource_rows.load_atom_rows(connection, found).items()
        }
        wanted = {uri for each in edges.values() for uri, _ in each}
        new = _places(connection, wanted - part.classes.keys(), local)
        there = part.classes | new
        for uri in found:
            part.targets[uri] = set(_leading(edges.get(uri, ()), there, schema))
        reached = {uri for source in found for uri in part.targets[source]}
        found = {uri: cls for uri, cls in new.items() if uri in reached}
    return part


def _places(connection: Connection, uris: Iterable[str], local: Collection[str]) -> dict[str, str]:
    """Return the classes of resources that are stored and not local."""
    places = resource_rows.load_places(connection, uris)
    return {uri: cls for uri, (cls, document) in places.items() if document not in local}


def _leading(edges: Iterable[StrongEdge], classes: Mapping[str, str], schema: Schema) -> Iterator[str]:
    """Return the existing targets of references that have the required class."""
    for uri, strong in edges:
        if uri in classes and strong in schema.at_or_above(classes[uri]):
            yield uri


def _members(connection: Connection, uris: Collection[str]) -> set[str]:
    wanted = select(repository_members.c.uri).distinct()
    return {row.uri for row in bulk.select_among(connection, wanted, repository_members.c.uri, uris)}


def _held_from_outside(
    connection: Connection, schema: Schema, part: _Part, local: Collection[str]
) -> set[str]:
    """Return the resources that others outside of the part strongly refer to: these are reachable."""
    found = {
        (source, uri)
        for source, uri, strong in strong_references_to(connection, part.classes)
        if source not in part.classes and strong in schema.at_or_above(part.classes[uri])
    }
    holding = _places(connection, {source for source, _ in found}, local)
    return {uri for source, uri in found if source in holding}


# Written inline: SQLite recognizes an indexed expression only without parameters.
_START = func.substr(metadata_atoms.c.value, text("1"), text(str(INDEXED_LENGTH)))


def strong_references_to(connection: Connection, uris: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Load the strong references to resources: source, target, and the required class."""
    c = metadata_atoms.c
    wanted = select(c.uri, c.value, c.strong).where(c.strong.is_not(None))
    for row in bulk.select_among(connection, wanted, _START, {uri[:INDEXED_LENGTH] for uri in uris}):
        if row.value in uris:
            yield tuple(row)
