"""Application of change sets and states to a repository, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from tidings.errors import InputError, SchemaError
from tidings.metadata.change_sets import ChangeSet, Move, RepositoryState
from tidings.metadata.documents import DocumentReader
from tidings.metadata.resources import Resource, document_uri_of, strong_closure, strong_references
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import document_changes, resource_rows
from tidings.metadata.sql.repository import repository_gc
from tidings.metadata.sql.resource_rows import AtomRow
from tidings.metadata.sql.tables import (
    metadata_atoms,
    metadata_resources,
    metadata_schema,
    repository_documents,
    repository_members,
    repository_rules,
)
from tidings.store import bulk, counters

WRITE_BATCH = 5_000
"""How many resources are compared with stored ones at a time."""

LEFT = "left"
MemberPair = tuple[str, str]
"""The URI of a resource, and the name of a rule."""


@dataclass(frozen=True, slots=True)
class ApplyCounts:
    """Counts of added, changed and removed resources."""

    new: int = 0
    changed: int = 0
    gone: int = 0


@dataclass(slots=True)
class _Written:
    """The effect of writes, and the resources that may be unreachable now."""

    new: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    loosened: set[str] = field(default_factory=set)


def apply_moves(connection: Connection, schema: Schema, changes: ChangeSet) -> ApplyCounts:
    """Apply moves with their resources, and remove unreachable resources."""
    local = mark_shadowed_documents(connection, changes.resources)
    told = {each.uri: each for each in changes.resources if document_uri_of(each.uri) not in local}
    came, went = _net(connection, changes.moves)
    gone = _missing(connection, schema, {uri for uri, _ in came}, told, local)
    written = _write(connection, schema, dict.fromkeys(gone) | told)
    _enter(connection, came)
    _leave(connection, went)
    unsure = written.new - strong_closure({uri for uri, _ in came}, told, schema)
    loose = repository_gc.find_garbage(
        connection, schema, written.loosened | unsure | {uri for uri, _ in went}, local
    )
    delete_resources(connection, loose)
    went_out = (written.gone | loose) - written.new
    return ApplyCounts(len(written.new - loose), len(written.changed - loose), len(went_out))


def replace_state(connection: Connection, schema: Schema, state: RepositoryState) -> ApplyCounts:
    """Replace the cache by a state, writing only the differences."""
    local = mark_shadowed_documents(connection, state.resources)
    told = {each.uri: each for each in state.resources if document_uri_of(each.uri) not in local}
    pairs = {(uri, rule) for rule, uris in state.members.items() for uri in uris}
    held = strong_closure({uri for uri, _ in pairs}, told, schema)
    written = _write(connection, schema, {uri: told[uri] for uri in held})
    gone = _stored(connection, local) - held
    delete_resources(connection, gone)
    before = {tuple(row) for row in connection.execute(select(*repository_members.c))}
    _enter(connection, pairs - before)
    _leave(connection, before - pairs)
    return ApplyCounts(len(written.new), len(written.changed), len(gone))


def list_local_documents(connection: Connection) -> set[str]:
    return set(connection.execute(select(repository_documents.c.document)).scalars())


def mark_shadowed_documents(connection: Connection, told: Iterable[Resource]) -> set[str]:
    """Return the local documents. Those that the provider has, too, are marked: their removal needs a refresh."""
    local = list_local_documents(connection)
    met = {document_uri_of(each.uri) for each in told} & local
    if met:
        c = repository_documents.c
        noted = update(repository_documents).where(c.document == bindparam("d")).values(shadows=1)
        connection.execute(noted, [{"d": document} for document in sorted(met)])
    return local


def delete_resources(connection: Connection, uris: Collection[str]) -> None:
    """Remove resources."""
    for table in (metadata_resources, metadata_atoms):
        bulk.delete_among(connection, table.c.uri, uris)


def write_resources(connection: Connection, schema: Schema, resources: Iterable[Resource]) -> None:
    """Write resources."""
    _write(connection, schema, {each.uri: each for each in resources})


def _missing(
    connection: Connection,
    schema: Schema,
    members: Set[str],
    told: Mapping[str, Resource],
    local: Collection[str],
) -> set[str]:
    """Find stored resources that the provider would have sent if it still had them.

    Otherwise, a resource deleted at the provider would stay: strong references to it would keep it alive.
    """
    asked = members - told.keys()
    edges = {edge for each in told.values() for edge in strong_references(each, schema)}
    referred = {(uri, cls) for uri, cls in edges if uri not in told}
    places = resource_rows.load_places(connection, asked | {uri for uri, _ in referred})
    wrong = {uri for uri, cls in referred if uri in places and cls in schema.at_or_above(places[uri][0])}
    return {uri for uri in (asked & places.keys()) | wrong if places[uri][1] not in local}


def _net(connection: Connection, moves: Iterable[Move]) -> tuple[set[MemberPair], set[MemberPair]]:
    """Return the final members and non-members. Removed rules may still have moves."""
    rules = set(connection.execute(select(repository_rules.c.name)).scalars())
    last = {(move.uri, move.rule): move.kind for move in moves if move.rule in rules}
    went = {pair for pair, kind in last.items() if kind == LEFT}
    return last.keys() - went, went


def _enter(connection: Connection, pairs: Iterable[MemberPair]) -> None:
    rows = [{"uri": uri, "rule": rule} for uri, rule in sorted(pairs)]
    bulk.insert_missing(connection, repository_members, rows)


def _leave(connection: Connection, pairs: Iterable[MemberPair]) -> None:
    c = repository_members.c
    rows = [{"u": uri, "r": rule} for uri, rule in sorted(pairs)]
    if rows:
        gone = delete(repository_members).where(c.uri == bindparam("u"), c.rule == bindparam("r"))
        connection.execute(gone, rows)


def _stored(connection: Connection, local: Collection[str]) -> set[str]:
    c = metadata_resources.c
    rows = connection.execute(select(c.uri, c.document))
    return {uri for uri, document in rows if document not in local}


def _write(connection: Connection, schema: Schema, versions: Mapping[str, Resource | None]) -> _Written:
    """Write versions of resources that differ from the stored ones."""
    written = _Written()
    for piece in bulk.iter_chunks(versions, WRITE_BATCH):
        places = resource_rows.load_places(connection, piece)
        rows = resource_rows.load_atom_rows(connection, places)
        stale: list[str] = []
        fresh: list[tuple[Resource, list[AtomRow]]] = []
        for uri in piece:
            version, place = versions[uri], places.get(uri)
            new = [] if version is None else list(resource_rows.build_atom_rows(version, schema))
            if _note(written, uri, version, place, rows.get(uri, []), new):
                stale += [uri] if place else []
                fresh += [(version, new)] if version else []
        delete_resources(connection, stale)
        placed = [(each.uri, each.cls, document_uri_of(each.uri)) for each, _ in fresh]
        bulk.insert_rows(connection, metadata_resources, placed)
        bulk.insert_rows(connection, metadata_atoms, [row for _, new in fresh for row in new])
    return written


def _note(
    written: _Written,
    uri: str,
    version: Resource | None,
    place: tuple[str, str] | None,
    old: Collection[AtomRow],
    new: Collection[AtomRow],
) -> bool:
    """Record the changes of a version. After a change of class, references may no longer match."""
    if version is None or place is None:
        (written.gone if version is None else written.new).add(uri)
    elif place[0] == version.cls and set(old) == set(new):
        return False
    else:
        written.changed.add(uri)
        if place[0] != version.cls:
            written.loosened.add(uri)
    written.loosened |= {
        target for target, _ in repository_gc.strong_edges(old) - repository_gc.strong_edges(new)
    }
    return True


# The schema of a repository is that of its provider.


@dataclass(frozen=True, slots=True)
class RepositorySchema:
    """A provider's schema as a file and parsed."""

    media_type: str
    body: bytes
    schema: Schema


def save_schema(connection: Connection, known: RepositorySchema) -> bool:
    """Store a schema if it has changed, and return whether it has.

    Local documents are parsed again by it; if one breaks the schema, the schema is rejected.
    """
    c = metadata_schema.c
    before = connection.execute(select(c.media_type, c.body)).first()
    if before is not None and (before.media_type, bytes(before.body)) == (known.media_type, known.body):
        return False
    connection.execute(delete(metadata_schema))
    version = counters.step(connection, "metadata_schema")
    row = {"version": version, "media_type": known.media_type, "body": known.body}
    connection.execute(insert(metadata_schema), row)
    document_changes.store_classes(connection, known.schema)
    _read_again(connection, known.schema)
    return True


def _read_again(connection: Connection, schema: Schema) -> None:
    c, reader = repository_documents.c, DocumentReader(schema)
    for uri, media_type, body in connection.execute(select(c.document, c.media_type, c.body)).all():
        try:
            document = reader.read(bytes(body), media_type, uri)
        except InputError as problem:
            what, hint = (
                "the provider's schema does not fit a local document",
                f"tidings repository remove {uri}",
            )
            raise SchemaError(f"{what}: {problem.what}", where=uri, hint=hint) from problem
        delete_resources(connection, resource_rows.load_document_members(connection, [uri])[uri])
        write_resources(connection, schema, document.resources)
