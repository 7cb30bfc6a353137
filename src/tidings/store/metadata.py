"""Metadata as it is stored: a schema, resources by document, rules and results. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, insert, select

from tidings.metadata.changes import Changes, compare
from tidings.metadata.documents import Document
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.store import atom_rows, bulk, counters, rule_base, rule_filter
from tidings.store.atom_rows import Placed
from tidings.store.database import Database
from tidings.store.rule_base import COUNTER, NamedRule, Removed
from tidings.store.rule_filter import Added, Outcome
from tidings.store.rule_tables import (
    atomic_rules,
    metadata_resources,
    metadata_rules,
    metadata_schema,
    rule_ends,
    rule_results,
)

if TYPE_CHECKING:
    from tidings.metadata.triggers import (
        Triggers,
    )  # with it comes the index, which whoever only reads does not need

_SCHEMAS = "metadata_schema"


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A schema as it was loaded; `version` tells how often one was."""

    media_type: str
    body: bytes
    version: int = 0


@dataclass(frozen=True, slots=True)
class StoredRule:
    name: str
    owner: str
    text: str


@dataclass(frozen=True, slots=True)
class Registered:
    """What registrations changed in the metadata, document by document, and in the results of rules."""

    changes: Mapping[str, Changes]
    outcome: Outcome


class Metadata:
    """The metadata of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def schema(self) -> SchemaFile | None:
        with self._database.read() as connection:
            return _schema(connection)

    def set_schema(self, file: SchemaFile, check: Callable[[SchemaFile | None], object]) -> SchemaFile:
        """Keep a schema in the place of the one before, if `check` does not refuse that."""
        return self._database.transact(lambda connection: _set_schema(connection, file, check))

    def register(self, schema: Schema, documents: Sequence[Document], triggers: Triggers) -> Registered:
        """Keep documents in the place of their versions before; one without resources is no more."""
        return self._database.transact(lambda connection: _register(connection, schema, documents, triggers))

    def add_rules(self, schema: Schema, rules: Sequence[NamedRule]) -> Added:
        """Keep rules; what they have as results among what is stored is entered."""
        return self._database.transact(lambda connection: rule_filter.add_rules(connection, schema, rules))

    def remove_rules(self, names: Collection[str]) -> Removed:
        return self._database.transact(lambda connection: rule_filter.remove_rules(connection, names))

    def rules(self) -> tuple[StoredRule, ...]:
        """All rules in the order of their names."""
        with self._database.read() as connection:
            rows = connection.execute(select(*metadata_rules.c).order_by(metadata_rules.c.name))
            return tuple(StoredRule(*row) for row in rows)

    def texts(self, names: Collection[str]) -> dict[str, str]:
        """The texts of those of these rules that there are."""
        c = metadata_rules.c
        with self._database.read() as connection:
            rows = bulk.select_among(connection, select(c.name, c.text), c.name, names)
            return dict(row._tuple() for row in rows)

    def results(self, name: str) -> tuple[Resource, ...]:
        """The resources that a rule has as its results now, in the order of their URIs."""
        with self._database.read() as connection:
            ends, results = rule_ends.c, rule_results.c
            wanted = select(results.uri).where(ends.name == name, results.rule == ends.rule).distinct()
            uris = connection.execute(wanted).scalars().all()
            return _resources(connection, uris)

    def resources(self, document: str) -> tuple[Resource, ...]:
        """The resources of a document, in the order of their URIs."""
        with self._database.read() as connection:
            return _resources(connection, atom_rows.of_documents(connection, [document])[document])

    def documents(self) -> tuple[tuple[str, int], ...]:
        """The URIs of all documents, with how many resources each has."""
        document = metadata_resources.c.document
        wanted = select(document, func.count()).group_by(document).order_by(document)
        with self._database.read() as connection:
            return tuple(row._tuple() for row in connection.execute(wanted))


def _resources(connection: Connection, uris: Iterable[str]) -> tuple[Resource, ...]:
    found = atom_rows.load(connection, uris)
    return tuple(found[uri].resource for uri in sorted(found))


def _schema(connection: Connection) -> SchemaFile | None:
    c = metadata_schema.c
    row = connection.execute(select(c.media_type, c.body, c.version)).first()
    return SchemaFile(row.media_type, bytes(row.body), row.version) if row else None


def _set_schema(
    connection: Connection, file: SchemaFile, check: Callable[[SchemaFile | None], object]
) -> SchemaFile:
    made = replace(file, version=counters.step(connection, _SCHEMAS))
    check(_schema(connection))
    connection.execute(delete(metadata_schema))
    row = {"version": made.version, "media_type": made.media_type, "body": made.body}
    connection.execute(insert(metadata_schema), row)
    return made


def _register(
    connection: Connection, schema: Schema, documents: Sequence[Document], triggers: Triggers
) -> Registered:
    counters.lock(connection, COUNTER)
    before = _versions(connection, [document.uri for document in documents])
    changes = {document.uri: compare(before[document.uri], document.resources) for document in documents}
    versions: dict[str, Placed | None] = {}
    for uri, change in changes.items():
        versions |= dict.fromkeys((each.uri for each in change.deleted), None)
        written = (*change.new, *(each.after for each in change.changed))
        versions |= {each.uri: Placed(each, uri) for each in written}
    now = [version.resource for version in versions.values() if version is not None]
    outcome = rule_filter.run(connection, schema, versions, _satisfied(connection, triggers, now))
    return Registered(changes, outcome)


def _versions(connection: Connection, documents: Sequence[str]) -> dict[str, list[Resource]]:
    """The resources that are stored of each of these documents."""
    uris = atom_rows.of_documents(connection, documents)
    found = atom_rows.load(connection, [uri for each in uris.values() for uri in each])
    return {document: [found[uri].resource for uri in sorted(uris[document])] for document in documents}


def _satisfied(
    connection: Connection, triggers: Triggers, resources: Collection[Resource]
) -> list[tuple[str, int]]:
    """Which triggering rules resources satisfy. Others may have added and removed rules since the index was asked."""
    triggers.add(rule_base.load_triggering(connection, triggers.last))
    found = list(triggers.satisfied(resources))
    named = {number for _, number in found}
    rule = atomic_rules.c.rule
    there: set[int] = set()
    for piece in bulk.pieces(sorted(named), bulk.KEYS):
        there |= set(connection.execute(select(rule).where(rule.in_(piece))).scalars())
    gone = named - there
    triggers.remove(gone)
    return [(uri, number) for uri, number in found if number not in gone]
