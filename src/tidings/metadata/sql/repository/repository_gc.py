"""What holds the resources of a repository, and which of them nothing holds any more.

A resource is held if a rule registers it, or if something that is held refers to it strongly. Counting references alone
would never let go of two resources that refer to each other, so what may have lost its hold is looked at as a whole:

    1. from each resource that lost something that held it, everything is collected that it reaches by strong
       references: the part. What is outside of it lost nothing, and is held as it was before;
    2. in the part, those are held that a rule registers or something outside of it refers to, and what these reach;
    3. the rest is garbage, circles included.

So the work is by the size of the part, not by that of the cache. Local resources hold nothing and are never garbage.
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
"""A strong reference: the URI that it leads to, and the class that has to be there."""


def strong_edges(rows: Iterable[AtomRow]) -> set[StrongEdge]:
    """The strong references among atoms."""
    return {(row.text, row.strong) for row in rows if row.strong is not None}


@dataclass(slots=True)
class _Part:
    """Resources that may have lost their hold, with the strong references between them."""

    targets: dict[str, set[str]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)


def find_garbage(
    connection: Connection, schema: Schema, candidates: Collection[str], local: Collection[str]
) -> set[str]:
    """What nothing holds any more, of the candidates and what they reach; `local` are documents."""
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
    """The classes of those of these resources that are stored and are not local."""
    places = resource_rows.load_places(connection, uris)
    return {uri: cls for uri, (cls, document) in places.items() if document not in local}


def _leading(edges: Iterable[StrongEdge], classes: Mapping[str, str], schema: Schema) -> Iterator[str]:
    """Where references lead to: what is there, and is of the class that it has to be of."""
    for uri, strong in edges:
        if uri in classes and strong in schema.at_or_above(classes[uri]):
            yield uri


def _members(connection: Connection, uris: Collection[str]) -> set[str]:
    wanted = select(repository_members.c.uri).distinct()
    return {row.uri for row in bulk.select_among(connection, wanted, repository_members.c.uri, uris)}


def _held_from_outside(
    connection: Connection, schema: Schema, part: _Part, local: Collection[str]
) -> set[str]:
    """What resources outside of the part refer to strongly: these are held."""
    found = {
        (source, uri)
        for source, uri, strong in strong_references_to(connection, part.classes)
        if source not in part.classes and strong in schema.at_or_above(part.classes[uri])
    }
    holding = _places(connection, {source for source, _ in found}, local)
    return {uri for source, uri in found if source in holding}


# Written out: SQLite knows the expression of an index again only without parameters in it.
_START = func.substr(metadata_atoms.c.value, text("1"), text(str(INDEXED_LENGTH)))


def strong_references_to(connection: Connection, uris: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """The strong references to these: who refers, to what, and the class that has to be there."""
    c = metadata_atoms.c
    wanted = select(c.uri, c.value, c.strong).where(c.strong.is_not(None))
    for row in bulk.select_among(connection, wanted, _START, {uri[:INDEXED_LENGTH] for uri in uris}):
        if row.value in uris:
            yield tuple(row)
