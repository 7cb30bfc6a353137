"""The store of a repository: cached resources with what holds them, local documents, rules, and the cursor.

Each change is one transaction with the cursor, so a killed process has applied a change set completely or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, delete, func, insert, select, update

from tidings.metadata.change_sets import UNSETTLED, ChangeSet, Cursor, RepositoryState
from tidings.metadata.documents import Document
from tidings.metadata.resources import Resource
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.repository import change_application, repository_gc
from tidings.metadata.sql.repository.change_application import ApplyCounts, RepositorySchema, save_schema
from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.metadata.sql.tables import (
    metadata_resources,
    repository_documents,
    repository_members,
    repository_rules,
    repository_state,
)
from tidings.store import bulk, counters, names
from tidings.store.database import Database

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


class RepositoryStore:
    """The repository of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def name(self, wanted: str | None = None) -> str:
        """Return the name of the repository; one is generated once if none is given.

        With another name, it is a new repository for its provider.
        """
        if wanted is not None:
            repository_scope(wanted)
        return self._database.transact(lambda connection: _name(connection, wanted))

    def cursor(self) -> Cursor | None:
        with self._database.moment() as connection:
            return _cursor(connection)

    def rules(self) -> dict[str, str]:
        """Return the rules of the members, by name."""
        with self._database.moment() as connection:
            return _rules(connection)

    def version(self) -> int:
        """Return a number that differs after each change."""
        with self._database.moment() as connection:
            return counters.current(connection, REPOSITORY_COUNTER)

    def counts(self) -> RepositoryCounts:
        with self._database.moment() as connection:
            return _counts(connection)

    def apply(self, known: RepositorySchema, changes: ChangeSet, since: Cursor) -> ApplyCounts | None:
        """Apply a change set after the cursor `since`; None if the cursor has moved."""
        return self._database.transact(lambda connection: _apply(connection, known, changes, since))

    def replace(
        self, known: RepositorySchema, rules: Mapping[str, str], state: RepositoryState, mark: str
    ) -> ApplyCounts:
        """Replace the cache by a state of rules; `mark` is that of the last move."""
        return self._database.transact(lambda connection: _replace(connection, known, rules, state, mark))

    def unsettle(self) -> None:
        """Unsettle the cursor before rules change, so that the whole state is fetched next."""
        self._database.transact(_unsettle)

    def register_local(self, schema: Schema, document: Document, media_type: str, body: bytes) -> None:
        """Register a local document, replacing one with the same URI."""
        self._database.transact(lambda c: _register_local(c, schema, document, media_type, body))

    def remove_local(self, uri: str) -> bool:
        """Remove a local document; return whether it existed."""
        return self._database.transact(lambda connection: _remove_local(connection, uri))

    def local_documents(self) -> tuple[LocalDocument, ...]:
        """Return the local documents, ordered by URI."""
        d, r = repository_documents.c, metadata_resources.c
        counted = select(func.count()).where(r.document == d.document).scalar_subquery()
        wanted = select(d.document, counted, d.shadows).order_by(d.document)
        with self._database.moment() as connection:
            return tuple(
                LocalDocument(uri, count, bool(shadows)) for uri, count, shadows in connection.execute(wanted)
            )

    def resources(self, classes: Sequence[str] | None = None) -> tuple[Resource, ...]:
        """Return all resources, or those of some classes, ordered by URI, including local ones."""
        c = metadata_resources.c
        wanted = select(c.uri) if classes is None else select(c.uri).where(c["class"].in_(classes))
        with self._database.moment() as connection:
            return _loaded(connection, list(connection.execute(wanted).scalars()))

    def resource(self, uri: str) -> Resource | None:
        with self._database.moment() as connection:
            return next(iter(_loaded(connection, [uri])), None)

    def members(self, rule: str) -> tuple[Resource, ...]:
        """Return the resources that a rule registers, ordered by URI."""
        c = repository_members.c
        with self._database.moment() as connection:
            return _loaded(
                connection, list(connection.execute(select(c.uri).where(c.rule == rule)).scalars())
            )

    def member_counts(self) -> dict[str, int]:
        """Count the resources of each rule."""
        r, m = repository_rules.c, repository_members.c
        counted = select(func.count()).where(m.rule == r.name).scalar_subquery()
        with self._database.moment() as connection:
            rows = connection.execute(select(r.name, counted).order_by(r.name))
            return dict(tuple(row) for row in rows)

    def why(self, schema: Schema, uris: Collection[str]) -> dict[str, ResourceOrigin]:
        """Explain why resources are in the repository; missing ones are omitted."""
        with self._database.moment() as connection:
            return _why(connection, schema, uris)


def _name(connection: Connection, wanted: str | None) -> str:
    found = connection.execute(select(repository_state.c.name)).scalar()
    if found is not None and wanted in (None, found):
        return str(found)
    made = wanted or names.new_id("repository", 16)
    if found is None:
        connection.execute(insert(repository_state), {"name": made})
    else:
        connection.execute(update(repository_state).values(name=made))
        _unsettle(connection)
    return made


def _cursor(connection: Connection) -> Cursor | None:
    c = repository_state.c
    row = connection.execute(select(c.provider, c.sequence, c.position, c.mark)).first()
    return None if row is None or row.provider is None else Cursor(*row)


def _set_cursor(connection: Connection, cursor: Cursor) -> None:
    connection.execute(
        update(repository_state).values(
            provider=cursor.provider,
            sequence=cursor.sequence,
            position=cursor.position,
            mark=cursor.mark,
        )
    )


def _rules(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(*repository_rules.c).order_by(repository_rules.c.name))
    return dict(tuple(row) for row in rows)


def _counts(connection: Connection) -> RepositoryCounts:
    r, d = metadata_resources.c, repository_documents.c
    of_local = select(func.count()).where(r.document.in_(select(d.document)))
    every = select(func.count()).select_from(metadata_resources)
    members = select(func.count()).select_from(repository_members)
    return RepositoryCounts(
        *(int(connection.execute(wanted).scalar() or 0) for wanted in (every, of_local, members))
    )


def _apply(
    connection: Connection, known: RepositorySchema, changes: ChangeSet, since: Cursor
) -> ApplyCounts | None:
    counters.lock(connection, REPOSITORY_COUNTER)
    if _cursor(connection) != since:
        return None
    is_new = save_schema(connection, known)
    done = change_application.apply_moves(connection, known.schema, changes)
    _set_cursor(connection, since.after(changes))
    if changes.moves or is_new:
        counters.step(connection, REPOSITORY_COUNTER)
    return done


def _replace(
    connection: Connection,
    known: RepositorySchema,
    rules: Mapping[str, str],
    state: RepositoryState,
    mark: str,
) -> ApplyCounts:
    counters.step(connection, REPOSITORY_COUNTER)
    save_schema(connection, known)
    done = change_application.replace_state(connection, known.schema, state)
    connection.execute(delete(repository_rules))
    bulk.insert_rows(connection, repository_rules, sorted(rules.items()))
    _set_cursor(connection, Cursor(state.provider, state.sequence, state.position, mark))
    return done


def _unsettle(connection: Connection) -> None:
    counters.lock(connection, REPOSITORY_COUNTER)
    found = _cursor(connection)
    if found is not None:
        _set_cursor(connection, replace(found, sequence=UNSETTLED, mark=""))


def _register_local(
    connection: Connection, schema: Schema, document: Document, media_type: str, body: bytes
) -> None:
    """Remove the provider's document with the same URI, and what only it held."""
    counters.step(connection, REPOSITORY_COUNTER)
    c = repository_documents.c
    known = connection.execute(select(c.shadows).where(c.document == document.uri)).scalar()
    before = resource_rows.load_document_members(connection, [document.uri])[document.uri]
    rows = resource_rows.load_atom_rows(connection, before) if known is None else {}
    shadows = int(bool(before)) if known is None else known
    change_application.delete_resources(connection, before)
    connection.execute(delete(repository_documents).where(c.document == document.uri))
    bulk.insert_rows(connection, repository_documents, [(document.uri, media_type, body, shadows)])
    change_application.write_resources(connection, schema, document.resources)
    loosened = {target for each in rows.values() for target, _ in repository_gc.strong_edges(each)}
    local = change_application.list_local_documents(connection)
    change_application.delete_resources(
        connection, repository_gc.find_garbage(connection, schema, loosened, local)
    )


def _remove_local(connection: Connection, uri: str) -> bool:
    """Unsettle the cursor: the provider's document with the same URI must be fetched again."""
    counters.step(connection, REPOSITORY_COUNTER)
    c = repository_documents.c
    shadows = connection.execute(select(c.shadows).where(c.document == uri)).scalar()
    if shadows is None:
        return False
    change_application.delete_resources(
        connection, resource_rows.load_document_members(connection, [uri])[uri]
    )
    connection.execute(delete(repository_documents).where(c.document == uri))
    if shadows:
        _unsettle(connection)
    return True


def _why(connection: Connection, schema: Schema, uris: Collection[str]) -> dict[str, ResourceOrigin]:
    places = resource_rows.load_places(connection, uris)
    local = change_application.list_local_documents(connection)
    rules: dict[str, set[str]] = {uri: set() for uri in places}
    members = repository_members.c
    for uri, rule in bulk.select_among(connection, select(*members), members.uri, list(places)):
        rules[uri].add(rule)
    referred: dict[str, set[str]] = {uri: set() for uri in places}
    for source, uri, strong in repository_gc.strong_references_to(connection, places.keys()):
        if strong in schema.at_or_above(places[uri][0]) and source != uri:
            referred[uri].add(source)
    sources = resource_rows.load_places(connection, set[str]().union(*referred.values()))
    holds = {source for source, (_, document) in sources.items() if document not in local}
    return {
        uri: ResourceOrigin(
            tuple(sorted(rules[uri])), tuple(sorted(referred[uri] & holds)), document in local
        )
        for uri, (_, document) in places.items()
    }


def _loaded(connection: Connection, uris: Sequence[str]) -> tuple[Resource, ...]:
    found = resource_rows.load_resources(connection, uris)
    return tuple(found[uri].resource for uri in sorted(found))
