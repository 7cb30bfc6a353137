"""The store of a repository: cached resources with the holders of each, local documents, rules, and the cursor.

Each change is one transaction with the cursor, so a killed process has applied a change set completely or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from tidings.metadata.change_sets import UNSETTLED, ChangeSet, Cursor, RepositoryState
from tidings.metadata.documents import Document
from tidings.metadata.resources import Resource, document_uri_of
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.connections import StorePart, reading_snapshot, transacting
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.repository.change_application import (
    ApplyCounts,
    apply_moves,
    find_garbage,
    list_local_documents,
    load_referrers,
    replace_state,
    save_schema,
    strong_edges,
    write_resources,
)
from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.metadata.sql.resource_rows import delete_resources
from tidings.metadata.sql.tables import (
    metadata_resources,
    repository_documents,
    repository_members,
    repository_rules,
    repository_state,
)
from tidings.store import bulk, counters, names

REPOSITORY_COUNTER = "repository"


@dataclass(frozen=True, slots=True)
class RepositoryCounts:
    """Counts of all resources, of those of local documents, and of members."""

    resources: int
    local: int
    members: int


@dataclass(frozen=True, slots=True)
class ResourceOrigin:
    """Why a resource is in the repository: rules that register it, cached resources that strongly refer to it, or
    because it is local.
    """

    rules: tuple[str, ...]
    referred: tuple[str, ...]
    local: bool


@dataclass(frozen=True, slots=True)
class LocalDocument:
    """A local document. `shadows` if the provider has one with the same URI."""

    uri: str
    resources: int
    shadows: bool


class RepositoryStore(StorePart):
    """The repository of a store."""

    @transacting
    def name(self, connection: Connection, requested: str | None = None) -> str:
        """Return the name of the repository; one is generated once if none is given.

        With another name, it is a new repository for its provider.
        """
        if requested is not None:
            repository_scope(requested)
        name = connection.execute(select(repository_state.c.name)).scalar()
        if name is not None and requested in (None, name):
            return str(name)
        new = requested or names.new_id("repository", 16)
        if name is None:
            connection.execute(insert(repository_state), {"name": new})
        else:
            connection.execute(update(repository_state).values(name=new))
            _mark_unsettled(connection)
        return new

    def cursor(self) -> Cursor | None:
        return self._call(_load_cursor)

    def rules(self) -> dict[str, str]:
        """Return the rules of the members, by name."""
        rows = self._rows(select(*repository_rules.c).order_by(repository_rules.c.name))
        return dict(tuple(row) for row in rows)

    def version(self) -> int:
        """Return a number that differs after each change."""
        return self._call(counters.current, REPOSITORY_COUNTER)

    @reading_snapshot
    def counts(self, connection: Connection) -> RepositoryCounts:
        local = metadata_resources.c.document.in_(select(repository_documents.c.document))
        every = select(func.count()).select_from(metadata_resources)
        members = select(func.count()).select_from(repository_members)
        queries = (every, every.where(local), members)
        return RepositoryCounts(*(connection.execute(query).scalar_one() for query in queries))

    @transacting
    def apply(
        self, connection: Connection, file: SchemaFile, schema: Schema, changes: ChangeSet, since: Cursor
    ) -> ApplyCounts | None:
        """Apply a change set after the cursor `since`; None if the cursor has moved."""
        counters.lock(connection, REPOSITORY_COUNTER)
        if _load_cursor(connection) != since:
            return None
        is_new = save_schema(connection, file, schema)
        counts = apply_moves(connection, schema, changes)
        _set_cursor(connection, since.after(changes))
        if changes.moves or is_new:
            counters.step(connection, REPOSITORY_COUNTER)
        return counts

    @transacting
    def replace(
        self,
        connection: Connection,
        file: SchemaFile,
        schema: Schema,
        rules: Mapping[str, str],
        state: RepositoryState,
        mark: str,
    ) -> ApplyCounts:
        """Replace the cache by a state of rules; `mark` is that of the last move."""
        counters.step(connection, REPOSITORY_COUNTER)
        save_schema(connection, file, schema)
        counts = replace_state(connection, schema, state)
        connection.execute(delete(repository_rules))
        bulk.insert_rows(connection, repository_rules, sorted(rules.items()))
        _set_cursor(connection, Cursor(state.provider, state.sequence, state.position, mark))
        return counts

    @transacting
    def unsettle(self, connection: Connection) -> None:
        """Unsettle the cursor before rules change, so that the whole state is fetched next."""
        _mark_unsettled(connection)

    @transacting
    def register_local(
        self, connection: Connection, schema: Schema, document: Document, media_type: str, body: bytes
    ) -> None:
        """Register a local document; it replaces one with the same URI, also of the provider, with its resources."""
        counters.step(connection, REPOSITORY_COUNTER)
        c = repository_documents.c
        shadowing = connection.execute(select(c.shadows).where(c.document == document.uri)).scalar()
        members = resource_rows.load_document_members(connection, [document.uri])[document.uri]
        atoms = resource_rows.load_atom_rows(connection, members) if shadowing is None else {}
        shadows = int(bool(members)) if shadowing is None else shadowing
        delete_resources(connection, members)
        connection.execute(delete(repository_documents).where(c.document == document.uri))
        bulk.insert_rows(connection, repository_documents, [(document.uri, media_type, body, shadows)])
        write_resources(connection, schema, document.resources)
        loosened = {target for rows in atoms.values() for target, _ in strong_edges(rows)}
        local = list_local_documents(connection)
        delete_resources(connection, find_garbage(connection, schema, loosened, local))

    @transacting
    def remove_local(self, connection: Connection, uri: str) -> bool:
        """Remove a local document; return whether it existed.

        The cursor is unsettled if the provider has a document with the same URI, which must be fetched again.
        """
        counters.step(connection, REPOSITORY_COUNTER)
        c = repository_documents.c
        shadows = connection.execute(select(c.shadows).where(c.document == uri)).scalar()
        if shadows is None:
            return False
        delete_resources(connection, resource_rows.load_document_members(connection, [uri])[uri])
        connection.execute(delete(repository_documents).where(c.document == uri))
        if shadows:
            _mark_unsettled(connection)
        return True

    def local_documents(self) -> tuple[LocalDocument, ...]:
        """Return the local documents, ordered by URI."""
        d, r = repository_documents.c, metadata_resources.c
        count = select(func.count()).where(r.document == d.document).scalar_subquery()
        rows = self._rows(select(d.document, count, d.shadows).order_by(d.document))
        return tuple(LocalDocument(uri, resources, bool(shadows)) for uri, resources, shadows in rows)

    def resources(self, classes: Sequence[str] | None = None) -> tuple[Resource, ...]:
        """Return all resources, or those of some classes, ordered by URI, including local ones."""
        c = metadata_resources.c
        return self._load(select(c.uri) if classes is None else select(c.uri).where(c["class"].in_(classes)))

    def resource(self, uri: str) -> Resource | None:
        return next(
            iter(self._load(select(metadata_resources.c.uri).where(metadata_resources.c.uri == uri))), None
        )

    def members(self, rule: str) -> tuple[Resource, ...]:
        """Return the resources that a rule registers, ordered by URI."""
        return self._load(select(repository_members.c.uri).where(repository_members.c.rule == rule))

    @reading_snapshot
    def _load(self, connection: Connection, uris: Select[str]) -> tuple[Resource, ...]:
        return tuple(resource_rows.load_resources(connection, connection.execute(uris).scalars()).values())

    def member_counts(self) -> dict[str, int]:
        """Count the resources of each rule."""
        r, m = repository_rules.c, repository_members.c
        count = select(func.count()).where(m.rule == r.name).scalar_subquery()
        return dict(tuple(row) for row in self._rows(select(r.name, count).order_by(r.name)))

    @reading_snapshot
    def explain_origins(
        self, connection: Connection, schema: Schema, uris: Collection[str]
    ) -> dict[str, ResourceOrigin]:
        """Explain why resources are in the repository; missing ones are omitted."""
        classes = resource_rows.load_classes(connection, uris)
        local = list_local_documents(connection)
        rules: dict[str, set[str]] = {uri: set() for uri in classes}
        members = repository_members.c
        for uri, rule in bulk.select_among(connection, select(*members), members.uri, list(classes)):
            rules[uri].add(rule)
        referrers: dict[str, set[str]] = {uri: set() for uri in classes}
        for source, uri, strong in load_referrers(connection, classes.keys()):
            if strong in schema.at_or_above(classes[uri]) and document_uri_of(source) not in local:
                referrers[uri].add(source)
        return {
            uri: ResourceOrigin(
                tuple(sorted(rules[uri])),
                tuple(sorted(referrers[uri] - {uri})),
                document_uri_of(uri) in local,
            )
            for uri in classes
        }


def _load_cursor(connection: Connection) -> Cursor | None:
    c = repository_state.c
    row = connection.execute(select(c.provider, c.sequence, c.position, c.mark)).first()
    return None if row is None or row.provider is None else Cursor(*row)


def _set_cursor(connection: Connection, cursor: Cursor) -> None:
    connection.execute(update(repository_state).values(asdict(cursor)))


def _mark_unsettled(connection: Connection) -> None:
    counters.lock(connection, REPOSITORY_COUNTER)
    if cursor := _load_cursor(connection):
        _set_cursor(connection, replace(cursor, sequence=UNSETTLED, mark=""))
