"""Application of change sets and states to a repository, in the caller's transaction, and its garbage collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, select, text, update

from tidings.errors import InputError, SchemaError
from tidings.metadata.change_sets import ChangeSet, Move, RepositoryState
from tidings.metadata.documents import DocumentReader
from tidings.metadata.resources import Resource, document_uri_of, strong_closure, strong_references
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.metadata_reader import ConnectionReader, SchemaFile
from tidings.metadata.sql.resource_rows import AtomRow, delete_resources, write_versions
from tidings.metadata.sql.tables import (
    INDEXED_LENGTH,
    metadata_atoms,
    metadata_resources,
    repository_documents,
    repository_members,
    repository_rules,
)
from tidings.metadata.sql.transaction import write_schema
from tidings.store import bulk

LEFT = "left"
MemberPair = tuple[str, str]
"""The URI of a resource, and the name of a rule."""


@dataclass(frozen=True, slots=True)
class ApplyCounts:
    """Counts of added, changed and removed resources."""

    new: int = 0
    changed: int = 0
    gone: int = 0


def apply_moves(connection: Connection, schema: Schema, changes: ChangeSet) -> ApplyCounts:
    """Apply moves with their resources, and remove unreachable resources."""
    local = mark_shadowed_documents(connection, changes.resources)
    received = {each.uri: each for each in changes.resources if document_uri_of(each.uri) not in local}
    entered, left = _net_moves(connection, changes.moves)
    members = {uri for uri, _ in entered}
    missing = _find_missing(connection, schema, members, received, local)
    written = write_versions(connection, schema, dict.fromkeys(missing) | received)
    new, changed = written.now - written.before, written.now & written.before
    _add_members(connection, entered)
    _remove_members(connection, left)
    # After a change of class, references to a resource may no longer match.
    classes = Counter(uri for uri, _ in written.classes)
    weakened = {uri for uri in changed if classes[uri] > 1} | {
        uri for uri, _ in strong_edges(written.removed)
    }
    unreferenced = new - strong_closure(members, received, schema)
    garbage = find_garbage(connection, schema, weakened | unreferenced | {uri for uri, _ in left}, local)
    delete_resources(connection, garbage)
    removed = (written.before - written.now | garbage) - new
    return ApplyCounts(len(new - garbage), len(changed - garbage), len(removed))


def replace_state(connection: Connection, schema: Schema, state: RepositoryState) -> ApplyCounts:
    """Replace the cache by a state, writing only the differences."""
    local = mark_shadowed_documents(connection, state.resources)
    received = {each.uri: each for each in state.resources if document_uri_of(each.uri) not in local}
    pairs = {(uri, rule) for rule, uris in state.members.items() for uri in uris}
    reachable = strong_closure({uri for uri, _ in pairs}, received, schema)
    written = write_versions(connection, schema, {uri: received[uri] for uri in reachable})
    stored = connection.execute(select(metadata_resources.c.uri)).scalars()
    removed = {uri for uri in stored if document_uri_of(uri) not in local} - reachable
    delete_resources(connection, removed)
    members_before = {tuple(row) for row in connection.execute(select(*repository_members.c))}
    _add_members(connection, pairs - members_before)
    _remove_members(connection, members_before - pairs)
    return ApplyCounts(len(written.now - written.before), len(written.now & written.before), len(removed))


def list_local_documents(connection: Connection) -> set[str]:
    return set(connection.execute(select(repository_documents.c.document)).scalars())


def mark_shadowed_documents(connection: Connection, received: Iterable[Resource]) -> set[str]:
    """Return the local documents. Those that the provider has, too, are marked: their removal needs a refresh."""
    local = list_local_documents(connection)
    shadowed = {document_uri_of(each.uri) for each in received} & local
    if shadowed:
        c = repository_documents.c
        mark = update(repository_documents).where(c.document == bindparam("d")).values(shadows=1)
        connection.execute(mark, [{"d": document} for document in sorted(shadowed)])
    return local


def write_resources(connection: Connection, schema: Schema, resources: Iterable[Resource]) -> None:
    write_versions(connection, schema, {each.uri: each for each in resources})


def _find_missing(
    connection: Connection,
    schema: Schema,
    members: Set[str],
    received: Mapping[str, Resource],
    local: Collection[str],
) -> set[str]:
    """Find stored resources that the provider would have sent if it still had them.

    Otherwise, a resource deleted at the provider would stay: strong references to it would keep it alive.
    """
    not_received = members - received.keys()
    edges = {edge for each in received.values() for edge in strong_references(each, schema)}
    referred = {(uri, cls) for uri, cls in edges if uri not in received}
    classes = _load_classes(connection, not_received | {uri for uri, _ in referred}, local)
    return (not_received & classes.keys()) | set(_matching_targets(referred, classes, schema))


def _net_moves(connection: Connection, moves: Iterable[Move]) -> tuple[set[MemberPair], set[MemberPair]]:
    """Return the final members and non-members. Removed rules may still have moves."""
    rules = set(connection.execute(select(repository_rules.c.name)).scalars())
    last = {(move.uri, move.rule): move.kind for move in moves if move.rule in rules}
    left = {pair for pair, kind in last.items() if kind == LEFT}
    return last.keys() - left, left


def _add_members(connection: Connection, pairs: Iterable[MemberPair]) -> None:
    rows = [{"uri": uri, "rule": rule} for uri, rule in sorted(pairs)]
    bulk.insert_missing(connection, repository_members, rows)


def _remove_members(connection: Connection, pairs: Iterable[MemberPair]) -> None:
    c = repository_members.c
    if rows := [{"u": uri, "r": rule} for uri, rule in sorted(pairs)]:
        members = delete(repository_members).where(c.uri == bindparam("u"), c.rule == bindparam("r"))
        connection.execute(members, rows)


def save_schema(connection: Connection, file: SchemaFile, schema: Schema) -> bool:
    """Store the provider's schema if it has changed, and return whether it has.

    Local documents are parsed again by it; if one breaks the schema, the schema is rejected.
    """
    if ConnectionReader(connection).schema() == file:
        return False
    write_schema(connection, file)
    resource_rows.store_classes(connection, schema)
    c, reader = repository_documents.c, DocumentReader(schema)
    for uri, media_type, body in connection.execute(select(c.document, c.media_type, c.body)).all():
        try:
            document = reader.read(bytes(body), media_type, uri)
        except InputError as problem:
            message = f"the provider's schema does not fit a local document: {problem.what}"
            raise SchemaError(message, where=uri, hint=f"tidings repository remove {uri}") from problem
        delete_resources(connection, resource_rows.load_document_members(connection, [uri])[uri])
        write_resources(connection, schema, document.resources)
    return True


# Garbage collection. A resource is live if a rule registers it, or if a live resource strongly refers to it. Counting
# references would never collect two resources that refer to each other, so resources that may be dead are traced:
#
#     1. collect the part: everything that strong references reach from resources that lost a rule or a reference.
#        Resources outside of the part lost nothing, and stay live;
#     2. in the part, resources are live that a rule registers or a resource outside refers to, and what these reach;
#     3. the rest is garbage, including cycles.
#
# The cost depends on the size of the part, not of the cache. Local resources keep nothing alive, and are never garbage.

StrongEdge = tuple[str, str]
"""A strong reference: the URI and the required class of its target."""


def strong_edges(rows: Iterable[AtomRow]) -> set[StrongEdge]:
    """Return the strong references among atoms."""
    return {(row.text, row.strong) for row in rows if row.strong is not None}


def find_garbage(
    connection: Connection, schema: Schema, candidates: Collection[str], local: Collection[str]
) -> set[str]:
    """Find unreachable resources among candidates and the resources they reach; `local` are documents."""
    classes, targets = _collect_part(connection, schema, candidates, local)
    members = select(repository_members.c.uri).distinct()
    live = {row.uri for row in bulk.select_among(connection, members, repository_members.c.uri, classes)}
    live |= _referred_from_outside(connection, schema, classes, local)
    pending = list(live)
    while pending:
        reached = targets[pending.pop()] - live
        live |= reached
        pending += reached
    return classes.keys() - live


def _collect_part(
    connection: Connection, schema: Schema, candidates: Collection[str], local: Collection[str]
) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the classes of the part's resources, and the strong references between them."""
    classes: dict[str, str] = {}
    targets: dict[str, set[str]] = {}
    fresh = _load_classes(connection, candidates, local)
    while fresh:
        classes |= fresh
        atoms = resource_rows.load_atom_rows(connection, fresh)
        edges = {uri: strong_edges(atoms.get(uri, ())) for uri in fresh}
        referred = {uri for each in edges.values() for uri, _ in each}
        new = _load_classes(connection, referred - classes.keys(), local)
        reachable = classes | new
        targets |= {uri: set(_matching_targets(edges[uri], reachable, schema)) for uri in fresh}
        reached = set[str]().union(*(targets[uri] for uri in fresh))
        fresh = {uri: cls for uri, cls in new.items() if uri in reached}
    return classes, targets


def _load_classes(connection: Connection, uris: Iterable[str], local: Collection[str]) -> dict[str, str]:
    """Load the classes of resources that are stored and not local."""
    classes = resource_rows.load_classes(connection, uris)
    return {uri: cls for uri, cls in classes.items() if document_uri_of(uri) not in local}


def _matching_targets(
    edges: Iterable[StrongEdge], classes: Mapping[str, str], schema: Schema
) -> Iterator[str]:
    """Yield the existing targets of references that have the required class."""
    return (uri for uri, cls in edges if uri in classes and cls in schema.at_or_above(classes[uri]))


def _referred_from_outside(
    connection: Connection, schema: Schema, classes: Mapping[str, str], local: Collection[str]
) -> set[str]:
    """Return the resources that others outside of the part strongly refer to: these are reachable."""
    pairs = {
        (source, uri)
        for source, uri, strong in load_referrers(connection, classes.keys())
        if source not in classes and strong in schema.at_or_above(classes[uri])
    }
    outside = _load_classes(connection, {source for source, _ in pairs}, local)
    return {uri for source, uri in pairs if source in outside}


# Written inline: SQLite recognizes an indexed expression only without parameters.
_START = func.substr(metadata_atoms.c.value, text("1"), text(str(INDEXED_LENGTH)))


def load_referrers(connection: Connection, uris: Set[str]) -> Iterator[tuple[str, str, str]]:
    """Load the strong references to resources: source, target, and the required class."""
    c = metadata_atoms.c
    query = select(c.uri, c.value, c.strong).where(c.strong.is_not(None))
    for row in bulk.select_among(connection, query, _START, {uri[:INDEXED_LENGTH] for uri in uris}):
        if row.value in uris:
            yield tuple(row)
