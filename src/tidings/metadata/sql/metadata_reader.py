"""Read access to stored metadata, shared by the store and by its transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from tidings.metadata.log import LogEntry
from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import log_rows, resource_rows, rule_base
from tidings.metadata.sql.log_tables import APPLIED_COUNTER, LOG_COUNTER, metadata_identity, rule_uses
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_filter import RuleResult
from tidings.metadata.sql.tables import (
    metadata_resources,
    metadata_rules,
    metadata_schema,
    rule_ends,
    rule_results,
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


class MetadataReader(ABC):
    """Queries over stored metadata. Subclasses provide the connection."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """Return a connection for one query."""

    def identity(self) -> str:
        """Return the id of this store among providers."""
        with self._reading() as connection:
            return str(connection.execute(select(metadata_identity.c.id)).scalar_one())

    def schema(self) -> SchemaFile | None:
        c = metadata_schema.c
        with self._reading() as connection:
            row = connection.execute(select(c.media_type, c.body, c.version)).first()
        return SchemaFile(row.media_type, bytes(row.body), row.version) if row else None

    # The log

    def position(self) -> int:
        """Return the last position of the log that was applied."""
        with self._reading() as connection:
            return counters.current(connection, APPLIED_COUNTER)

    def head(self) -> int:
        """Return the last position of the log."""
        with self._reading() as connection:
            return counters.current(connection, LOG_COUNTER)

    def pending(self, limit: int) -> list[LogEntry]:
        """Return entries of the log that are not applied yet."""
        with self._reading() as connection:
            return log_rows.read_entries(connection, counters.current(connection, APPLIED_COUNTER), limit)

    def pending_schemas(self) -> list[LogEntry]:
        """Return the schemas in the log that are not applied yet."""
        with self._reading() as connection:
            return log_rows.read_schema_entries(connection, counters.current(connection, APPLIED_COUNTER))

    # Documents and resources

    def documents(self) -> tuple[tuple[str, int], ...]:
        """List the URIs of all documents with the number of their resources."""
        document = metadata_resources.c.document
        query = select(document, func.count()).group_by(document).order_by(document)
        with self._reading() as connection:
            return tuple(tuple(row) for row in connection.execute(query))

    def document_uris(self, after: str, limit: int) -> list[str]:
        """List the URIs of documents after one, in order."""
        document = metadata_resources.c.document
        query = select(document).where(document > after).distinct().order_by(document).limit(limit)
        with self._reading() as connection:
            return list(connection.execute(query).scalars())

    def existing_documents(self, uris: Collection[str]) -> set[str]:
        """Return those of the documents that exist."""
        document = metadata_resources.c.document
        with self._reading() as connection:
            rows = bulk.select_among(connection, select(document).distinct(), document, uris)
            return {uri for (uri,) in rows}

    def resources(self, document: str) -> tuple[Resource, ...]:
        """Return the resources of a document, ordered by URI."""
        with self._reading() as connection:
            uris = resource_rows.load_document_members(connection, [document])[document]
            return _load_ordered(connection, uris)

    def closure(self, uris: Collection[str]) -> tuple[Resource, ...]:
        """Return those of the resources that exist, with everything they strongly refer to."""
        with self._reading() as connection:
            return resource_rows.load_strong_closure(connection, uris)

    def count_resources(self) -> int:
        with self._reading() as connection:
            return connection.execute(select(func.count()).select_from(metadata_resources)).scalar_one()

    def resource_ranges(self, size: int) -> list[tuple[str, str | None]]:
        """Split all resources into ranges of about `size`: after a URI, up to and including another, or to the end."""
        uri = metadata_resources.c.uri
        numbered = select(uri, func.row_number().over(order_by=uri).label("place")).subquery()
        query = select(numbered.c.uri).where(numbered.c.place % size == 0).order_by(numbered.c.uri)
        with self._reading() as connection:
            cuts = connection.execute(query).scalars().all()
        return list(pairwise(["", *cuts, None]))

    def resources_between(self, after: str, upto: str | None) -> tuple[Resource, ...]:
        """Return the resources of a range."""
        uri = metadata_resources.c.uri
        query = select(uri).where(uri > after, *([] if upto is None else [uri <= upto]))
        with self._reading() as connection:
            return _load_ordered(connection, connection.execute(query).scalars().all())

    # Rules

    def rules(self) -> tuple[StoredRule, ...]:
        """Return all rules, ordered by name."""
        with self._reading() as connection:
            rows = connection.execute(select(*metadata_rules.c).order_by(metadata_rules.c.name))
            return tuple(map(_rule_from_row, rows))

    def rules_named(self, names: Collection[str]) -> dict[str, StoredRule]:
        """Return those of the rules that exist, by name."""
        with self._reading() as connection:
            rows = bulk.select_among(connection, select(*metadata_rules.c), metadata_rules.c.name, names)
            return {row.name: _rule_from_row(row) for row in rows}

    def rules_of(self, owner: str, scope: str) -> dict[str, StoredRule]:
        """Return the rules of an owner in a scope, by name."""
        c = metadata_rules.c
        query = select(*c).where(c.owner == owner, func.coalesce(c.scope, "") == scope)
        with self._reading() as connection:
            return {row.name: _rule_from_row(row) for row in connection.execute(query)}

    def has_rules(self, owner: str) -> bool:
        query = select(metadata_rules.c.name).where(metadata_rules.c.owner == owner).limit(1)
        with self._reading() as connection:
            return connection.execute(query).first() is not None

    def uses_by(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Return (rule, searched rule) for all rules that these search."""
        with self._reading() as connection:
            return _pairs(connection, select(*rule_uses.c), rule_uses.c.name, names)

    def uses_of(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Return (rule, searched rule) for all rules that search these."""
        with self._reading() as connection:
            return _pairs(connection, select(*rule_uses.c), rule_uses.c.used, names)

    def check_names_free(self, rules: Sequence[NamedRule]) -> None:
        """Raise IdTaken for names that other rules or subscriptions have."""
        own = [rule for rule in rules if not rule.scope]
        with self._reading() as connection:
            rule_base.check_names_free(connection, rules)
            if own:
                refuse_taken_ids(connection, [rule.name for rule in own], own[0].owner)

    def results(self, name: str) -> tuple[Resource, ...]:
        """Return the current results of a rule, ordered by URI."""
        ends, results = rule_ends.c, rule_results.c
        query = select(results.uri).where(ends.name == name, results.rule == ends.rule).distinct()
        with self._reading() as connection:
            return _load_ordered(connection, connection.execute(query).scalars().all())

    def result_pairs(self, names: Collection[str]) -> set[RuleResult]:
        """Return (rule, URI) for the current results of rules."""
        query = select(rule_ends.c.name, rule_results.c.uri).where(rule_ends.c.rule == rule_results.c.rule)
        with self._reading() as connection:
            return _pairs(connection, query, rule_ends.c.name, names)

    def last_rule_number(self) -> int:
        """Return the greatest number that an atomic rule ever had."""
        with self._reading() as connection:
            return counters.current(connection, rule_base.ATOMIC_RULE_COUNTER)

    def triggering_rules(self, after: int = 0) -> dict[int, TriggeringRule]:
        """Return the triggering rules with greater numbers, for an index."""
        with self._reading() as connection:
            return rule_base.load_triggering(connection, after)

    def new_triggering_rules(self, schema: Schema, rules: Sequence[NamedRule]) -> dict[str, TriggeringRule]:
        """Return the triggering rules that these rules would add, by key."""
        with self._reading() as connection:
            return rule_base.find_new_triggering(connection, schema, rules)


class ConnectionReader(MetadataReader):
    """Queries on one connection, such as that of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _reading(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._connection)


def _rule_from_row(row: Row[*tuple[Any, ...]]) -> StoredRule:
    """Convert a row. Rules that are older than scopes have none."""
    name, owner, text, scope, within = row
    return StoredRule(name, owner, text, scope or "", within)


def _pairs(
    connection: Connection,
    query: Select[*tuple[Any, ...]],
    column: ColumnElement[Any],
    names: Collection[str],
) -> set[tuple[str, str]]:
    return {tuple(row) for row in bulk.select_among(connection, query, column, names)}


def _load_ordered(connection: Connection, uris: Iterable[str]) -> tuple[Resource, ...]:
    stored = resource_rows.load_resources(connection, uris)
    return tuple(stored[uri].resource for uri in sorted(stored))
