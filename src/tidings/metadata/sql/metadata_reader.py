"""Read access to stored metadata, shared by the store and by its transactions, and queries for browsing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, and_, func, literal_column, select

from tidings.metadata.log import LogEntry, Operation
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import log_rows, resource_rows, rule_base
from tidings.metadata.sql.connections import StorePart, reading, reading_snapshot
from tidings.metadata.sql.resource_rows import REFERENCE_KIND
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_filter import RuleResult
from tidings.metadata.sql.tables import (
    APPLIED_COUNTER,
    INDEXED_LENGTH,
    LOG_COUNTER,
    metadata_atoms,
    metadata_log,
    metadata_resources,
    metadata_rules,
    metadata_schema,
    rule_ends,
    rule_results,
    rule_uses,
)
from tidings.store import bulk, counters
from tidings.store.subscriptions.admission import refuse_taken_ids


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A schema as it was loaded; `version` counts loads."""

    media_type: str
    body: bytes
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A stored rule; `name` starts with the scope."""

    name: str
    owner: str
    text: str
    scope: str = ""
    within: int | None = None


class MetadataReader(StorePart):
    """Queries over stored metadata."""

    def identity(self) -> str:
        """Return the id of this store among providers."""
        return self._call(log_rows.load_identity)

    def schema(self) -> SchemaFile | None:
        c = metadata_schema.c
        rows = self._rows(select(c.media_type, c.body, c.version))
        return next(
            (SchemaFile(media_type, bytes(body), version) for media_type, body, version in rows), None
        )

    # The log

    def position(self) -> int:
        """Return the last position of the log that was applied."""
        return self._call(counters.current, APPLIED_COUNTER)

    def head(self) -> int:
        """Return the last position of the log."""
        return self._call(counters.current, LOG_COUNTER)

    @reading
    def pending(self, connection: Connection, limit: int) -> list[LogEntry]:
        """Return entries of the log that are not applied yet."""
        return log_rows.read_entries(connection, counters.current(connection, APPLIED_COUNTER), limit)

    @reading
    def pending_schemas(self, connection: Connection) -> list[LogEntry]:
        """Return the schemas in the log that are not applied yet."""
        is_schema = metadata_log.c.operation == Operation.SCHEMA.value
        return log_rows.read_entries(
            connection, counters.current(connection, APPLIED_COUNTER), None, is_schema
        )

    # Documents and resources

    def documents(self) -> tuple[tuple[str, int], ...]:
        """List the URIs of all documents with the number of their resources."""
        return tuple((uri, count) for uri, count in self._rows(_DOCUMENTS))

    def document_uris(self, after: str, limit: int) -> list[str]:
        """List the URIs of documents after one, in order."""
        query = select(_document).where(_document > after).distinct().order_by(_document).limit(limit)
        return [row.document for row in self._rows(query)]

    @reading
    def existing_documents(self, connection: Connection, uris: Collection[str]) -> set[str]:
        """Return those of the documents that exist."""
        rows = bulk.select_among(connection, select(_document).distinct(), _document, uris)
        return {row.document for row in rows}

    def resources(self, document: str) -> tuple[Resource, ...]:
        """Return the resources of a document, ordered by URI."""
        return tuple(self._call(resource_rows.load_documents, [document])[document])

    def closure(self, uris: Collection[str]) -> tuple[Resource, ...]:
        """Return those of the resources that exist, with everything they strongly refer to."""
        return self._call(resource_rows.load_strong_closure, uris)

    def count_resources(self) -> int:
        return int(self._rows(select(func.count()).select_from(metadata_resources))[0][0])

    def resource_ranges(self, size: int) -> list[tuple[str, str | None]]:
        """Split all resources into ranges of about `size`: after a URI, up to and including another, or to the end."""
        numbered = select(_uri, func.row_number().over(order_by=_uri).label("place")).subquery()
        query = select(numbered.c.uri).where(numbered.c.place % size == 0).order_by(numbered.c.uri)
        return list(pairwise(["", *(row.uri for row in self._rows(query)), None]))

    def resources_between(self, after: str, upto: str | None) -> tuple[Resource, ...]:
        """Return the resources of a range."""
        return self._load(select(_uri).where(_uri > after, *([] if upto is None else [_uri <= upto])))

    @reading
    def _load(self, connection: Connection, uris: Select[str]) -> tuple[Resource, ...]:
        return tuple(resource_rows.load_resources(connection, connection.execute(uris).scalars()).values())

    # Rules

    def rules(self) -> tuple[StoredRule, ...]:
        """Return all rules, ordered by name."""
        return tuple(map(_rule_from_row, self._rows(select(*_RULES).order_by(_RULES.name))))

    @reading
    def rules_named(self, connection: Connection, names: Collection[str]) -> dict[str, StoredRule]:
        """Return those of the rules that exist, by name."""
        rows = bulk.select_among(connection, select(*_RULES), _RULES.name, names)
        return {row.name: _rule_from_row(row) for row in rows}

    def rules_of(self, owner: str, scope: str) -> dict[str, StoredRule]:
        """Return the rules of an owner in a scope, by name."""
        query = select(*_RULES).where(_RULES.owner == owner, func.coalesce(_RULES.scope, "") == scope)
        return {row.name: _rule_from_row(row) for row in self._rows(query)}

    def has_rules(self, owner: str) -> bool:
        return bool(self._rows(select(_RULES.name).where(_RULES.owner == owner).limit(1)))

    def uses_by(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Return (rule, searched rule) for all rules that these search."""
        return self._pairs(select(*rule_uses.c), rule_uses.c.name, names)

    def uses_of(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Return (rule, searched rule) for all rules that search these."""
        return self._pairs(select(*rule_uses.c), rule_uses.c.used, names)

    @reading
    def check_names_free(self, connection: Connection, rules: Sequence[NamedRule]) -> None:
        """Raise IdConflict for names that other rules or subscriptions have."""
        rule_base.check_names_free(connection, rules)
        if own := [rule for rule in rules if not rule.scope]:
            refuse_taken_ids(connection, [rule.name for rule in own], own[0].owner)

    def results(self, name: str) -> tuple[Resource, ...]:
        """Return the current results of a rule, ordered by URI."""
        ends, results = rule_ends.c, rule_results.c
        return self._load(select(results.uri).where(ends.name == name, results.rule == ends.rule).distinct())

    def result_pairs(self, names: Collection[str]) -> set[RuleResult]:
        """Return (rule, URI) for the current results of rules."""
        query = select(rule_ends.c.name, rule_results.c.uri).where(rule_ends.c.rule == rule_results.c.rule)
        return self._pairs(query, rule_ends.c.name, names)

    @reading
    def _pairs(
        self,
        connection: Connection,
        query: Select[*tuple[Any, ...]],
        column: ColumnElement[Any],
        names: Collection[str],
    ) -> set[tuple[str, str]]:
        return {tuple(row) for row in bulk.select_among(connection, query, column, names)}

    def last_rule_number(self) -> int:
        """Return the greatest number that an atomic rule ever had."""
        return self._call(counters.current, rule_base.ATOMIC_RULE_COUNTER)

    def triggering_rules(self, after: int = 0) -> dict[int, TriggeringRule]:
        """Return the triggering rules with greater numbers, for an index."""
        return self._call(rule_base.load_triggering, after)

    def new_triggering_rules(self, schema: Schema, rules: Sequence[NamedRule]) -> dict[str, TriggeringRule]:
        """Return the triggering rules that these rules would add, by key."""
        return self._call(rule_base.find_new_triggering, schema, rules)


class ConnectionReader(MetadataReader):
    """Queries on one connection, such as that of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def _read(self) -> AbstractContextManager[Connection]:
        return nullcontext(self.connection)


_RULES = metadata_rules.c
_uri, _document = metadata_resources.c.uri, metadata_resources.c.document
_DOCUMENTS = select(_document, func.count()).group_by(_document).order_by(_document)


def _rule_from_row(row: Row[*tuple[Any, ...]]) -> StoredRule:
    """Convert a row. Rules that are older than scopes have none."""
    name, owner, text, scope, within = row
    return StoredRule(name, owner, text, scope or "", within)


class InstanceRow(NamedTuple):
    """A resource of a class or a subclass."""

    uri: str
    cls: str


class ReferrerRow(NamedTuple):
    """A resource that refers to another, with the property and the strength of the reference."""

    property: str
    uri: str
    cls: str
    is_strong: bool


class ReferrerCursor(NamedTuple):
    """The last referrer of a page."""

    property: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """A resource with the classes of its existing targets, and with its referrers."""

    resource: Resource
    classes: Mapping[str, str]
    referrers: tuple[ReferrerRow, ...]


class BrowseQueries(StorePart):
    """Browsing queries over the metadata of a store."""

    def counts(self) -> dict[str, int]:
        """Count the resources of each class, without those of subclasses."""
        cls = metadata_resources.c["class"]
        return dict(tuple(row) for row in self._rows(select(cls, func.count()).group_by(cls)))

    @reading
    def instances(
        self, connection: Connection, classes: Iterable[str], after: str, limit: int
    ) -> tuple[InstanceRow, ...]:
        """Return the first `limit` resources of classes after a URI."""
        c = metadata_resources.c
        query = select(c.uri, c["class"]).where(c.uri > after).order_by(c.uri).limit(limit)
        # One class at a time: for several at once, SQLite would scan the resources of all classes.
        pages = (connection.execute(query.where(c["class"] == cls)) for cls in classes)
        return tuple(sorted(InstanceRow(*row) for page in pages for row in page)[:limit])

    @reading_snapshot
    def resource(
        self, connection: Connection, uri: str, properties: Iterable[str], after: ReferrerCursor, limit: int
    ) -> ResourceRecord | None:
        """Load a resource, and its first `limit` referrers by these properties after a cursor."""
        resource = resource_rows.load_resources(connection, [uri]).get(uri)
        if resource is None:
            return None
        values = resource.values.values()
        targets = {value.uri for each in values for value in each if isinstance(value, Ref)}
        classes = resource_rows.load_classes(connection, targets)
        return ResourceRecord(resource, classes, _referrers(connection, uri, properties, after, limit))

    def referrers(self, uri: str, properties: Iterable[str], limit: int) -> tuple[ReferrerRow, ...]:
        """Return the referrers of a resource, which need not exist."""
        return self._call(_referrers, uri, properties, ReferrerCursor(), limit)

    def neighbours(self, document: str, limit: int) -> tuple[str, ...]:
        """Return the URIs of the first resources of a document."""
        c = metadata_resources.c
        query = select(c.uri).where(c.document == document).order_by(c.uri).limit(limit)
        return tuple(row.uri for row in self._rows(query))


def _referrers(
    connection: Connection, uri: str, properties: Iterable[str], after: ReferrerCursor, limit: int
) -> tuple[ReferrerRow, ...]:
    c = metadata_atoms.c
    # Written exactly as in the index, without parameters. With `value = ?` next to it, SQLite would substitute
    # the parameter in the indexed expression, and not find the index.
    start = literal_column(f"substr(metadata_atoms.value, 1, {INDEXED_LENGTH})", Text) == uri[:INDEXED_LENGTH]
    same = and_(c.value >= uri, c.value <= uri)
    query = select(c.property, c.uri, c["class"], c.strong).where(start, same, c.kind == REFERENCE_KIND)
    referrers: list[ReferrerRow] = []
    for name in sorted(properties):
        if name < after.property or len(referrers) == limit:
            continue
        seen = after.uri if name == after.property else ""
        page = query.where(c.property == name, c.uri > seen).order_by(c.uri).limit(limit - len(referrers))
        referrers += (ReferrerRow(*row[:3], row.strong is not None) for row in connection.execute(page))
    return tuple(referrers)
