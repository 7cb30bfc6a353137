"""The metadata of a store, and changes in one transaction, which holds the lock of rules and metadata until it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sqlalchemy import Connection, delete, func, select

from tidings.errors import SetupError
from tidings.metadata.documents import Document
from tidings.metadata.filter.changes import DocumentChanges, compare_versions
from tidings.metadata.resources import Resource, resource_from_json, strong_references
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows, rule_filter, rule_notifications, trigger_evaluation
from tidings.metadata.sql.log_rows import MetadataLog
from tidings.metadata.sql.metadata_reader import ConnectionReader, MetadataReader, SchemaFile, StoredRule
from tidings.metadata.sql.resource_rows import load_strong_closure
from tidings.metadata.sql.rule_base import ATOMIC_RULE_COUNTER, NamedRule
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.rule_notifications import MoveExplainer
from tidings.metadata.sql.tables import (
    APPLIED_COUNTER,
    LOG_COUNTER,
    RULE_CHANGES_COUNTER,
    metadata_resources,
    metadata_schema,
    paused_resources,
    paused_results,
)
from tidings.model import Subscription
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant, utc_now
from tidings.store.subscriptions import suspension
from tidings.store.subscriptions.view import RULES

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex  # loads kernels, which readers do not need


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """Changes by registrations, by document and in the results of rules.

    `position` is the last applied position of the log; `refused` counts entries that became dead letters.
    """

    changes: Mapping[str, DocumentChanges]
    outcome: FilterOutcome
    position: int = 0
    refused: int = 0


class MetadataTransaction(ConnectionReader):
    """Queries and changes of metadata in one transaction."""

    def __init__(self, connection: Connection, clock: Clock = utc_now) -> None:
        super().__init__(connection)
        self._clock = clock
        counters.lock(connection, ATOMIC_RULE_COUNTER)

    def set_schema(self, file: SchemaFile) -> SchemaFile:
        """Replace the schema."""
        return write_schema(self.connection, file)

    def lock_log(self) -> None:
        """Block appends to the log until this transaction ends."""
        counters.lock(self.connection, LOG_COUNTER)

    def advance(self, position: int) -> None:
        """Mark all entries of the log up to a position as applied."""
        counters.advance(self.connection, APPLIED_COUNTER, position)

    def register(
        self, schema: Schema, documents: Sequence[Document], triggers: TriggerIndex
    ) -> RegistrationResult:
        """Replace documents by new versions and run the filter. A document without resources is removed."""
        stored = resource_rows.load_documents(self.connection, [document.uri for document in documents])
        changes = {each.uri: compare_versions(stored[each.uri], each.resources) for each in documents}
        versions: dict[str, Resource | None] = {}
        for change in changes.values():
            versions |= dict.fromkeys(resource.uri for resource in change.deleted)
            written = (*change.new, *(each.after for each in change.changed))
            versions |= {resource.uri: resource for resource in written}
        current = [version for version in versions.values() if version is not None]
        satisfied = trigger_evaluation.find_satisfied_triggers(self.connection, triggers, current)
        outcome = rule_filter.run_filter(self.connection, schema, versions, satisfied)
        return RegistrationResult(changes, outcome)

    def pause(self, rule: StoredRule) -> None:
        """Save a rule that is about to be removed, with its current results, as paused."""
        subscription = Subscription(rule.name, rule.owner, RULES, rule.text, rule.within)
        suspension.add_paused(self.connection, subscription, format_instant(self._clock()))
        uris = {uri for _, uri in self.result_pairs([rule.name])}
        resource_rows.save_paused_results(self.connection, rule.name, uris)

    def resume(self, schema: Schema, rule: NamedRule) -> None:
        """Add a paused rule again and notify its owner of changes since the pause."""
        added = rule_filter.add_rules(self.connection, schema, [rule])
        outcome, changes = changes_since_pause(self.connection, schema, rule.name, added.entered)
        suspension.take_paused(self.connection, rule.name)
        self.notify_rule_change(schema, replace(outcome, ends=added.ends), [changes])

    def notify_registration(self, schema: Schema, result: RegistrationResult) -> None:
        """Notify the owners of rules of changed results, with reasons. Called once for each position."""
        self._notify(str(self.position()), schema, result.outcome, result.changes.values())

    def notify_rule_change(
        self, schema: Schema, outcome: FilterOutcome, changes: Collection[DocumentChanges] = ()
    ) -> None:
        """Notify owners after a change of rules; there may be several changes at one position."""
        change = counters.step(self.connection, RULE_CHANGES_COUNTER)
        self._notify(f"{self.position()}.{change}", schema, outcome, changes)

    def _notify(
        self, event: str, schema: Schema, outcome: FilterOutcome, changes: Collection[DocumentChanges]
    ) -> None:
        if moves := rule_notifications.list_moves(outcome):
            explainer = MoveExplainer(self.connection, schema, outcome.ends, changes)
            rule_notifications.notify_owners(self.connection, event, moves, explainer.reasons, self._clock())


def write_schema(connection: Connection, file: SchemaFile) -> SchemaFile:
    """Replace the stored schema, and return it with its version."""
    new = replace(file, version=counters.step(connection, "metadata_schema"))
    connection.execute(delete(metadata_schema))
    bulk.insert_rows(connection, metadata_schema, [(new.version, new.media_type, new.body)])
    return new


T = TypeVar("T")

SNAPSHOT_PAGE = 500


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """All metadata at a position of the log. `documents` can be iterated once."""

    position: int
    schema: SchemaFile
    count: int
    documents: Iterator[Document]


class MetadataStore(MetadataReader):
    """The metadata of a store: log, schema, documents, rules and results."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        super().__init__(database)
        self._clock, self.log = clock, MetadataLog(database)

    def transact(self, work: Callable[[MetadataTransaction], T]) -> T:
        """Run `work` in one transaction. All its changes are durable when this returns; if it raises, none are."""
        return self._database.transact(lambda connection: work(MetadataTransaction(connection, self._clock)))

    @contextmanager
    def snapshot(self) -> Iterator[MetadataSnapshot]:
        """Yield all metadata as of one moment."""
        with self._database.moment() as connection:
            reader = ConnectionReader(connection)
            schema = reader.schema()
            if schema is None:
                raise SetupError("there is no schema for metadata yet", hint="tidings provider schema FILE")
            query = select(func.count(func.distinct(metadata_resources.c.document)))
            count = connection.execute(query).scalar_one()
            yield MetadataSnapshot(reader.position(), schema, count, _read_documents(reader))


def _read_documents(reader: ConnectionReader) -> Iterator[Document]:
    last = ""
    while page := reader.document_uris(last, SNAPSHOT_PAGE):
        for uri, resources in resource_rows.load_documents(reader.connection, page).items():
            yield Document(uri, tuple(resources))
        last = page[-1]


# Saved results of paused rules. When a rule is resumed, its subscriber is notified of the difference to its current
# results. The log could give the changes in between only while it is not trimmed, and would report resources that
# changed back.

ResourcesByUri = Mapping[str, Resource]


class ChangesSincePause(NamedTuple):
    """Changes of a rule's results while it was paused, and of the resources they consist of."""

    outcome: FilterOutcome
    changes: DocumentChanges


def changes_since_pause(
    connection: Connection, schema: Schema, rule: str, current_results: Collection[RuleResult]
) -> ChangesSincePause:
    """Compare the saved results of a rule with its current results."""
    statement = select(paused_results.c.uri).where(paused_results.c.rule == rule)
    previous_results = {(rule, uri) for uri in connection.execute(statement).scalars()}
    remaining = previous_results.intersection(current_results)
    saved = select(paused_resources.c.uri, paused_resources.c.content).where(paused_resources.c.rule == rule)
    saved_resources = {uri: resource_from_json(json.loads(text)) for uri, text in connection.execute(saved)}
    current = {each.uri: each for each in load_strong_closure(connection, [uri for _, uri in remaining])}
    current |= resource_rows.load_resources(connection, saved_resources.keys() - current.keys())
    changes = compare_versions(saved_resources.values(), current.values())
    different = [*changes.new, *changes.deleted, *(each.after for each in changes.changed)]
    affected = _find_referring({each.uri for each in different}, (saved_resources, current), schema)
    changed = frozenset(pair for pair in remaining if pair[1] in affected)
    outcome = FilterOutcome(
        frozenset(current_results).difference(previous_results),
        changed,
        frozenset(previous_results.difference(current_results)),
    )
    return ChangesSincePause(outcome, _select_reported(changes, saved_resources, current, schema))


def _find_referring(touched: set[str], states: Iterable[ResourcesByUri], schema: Schema) -> set[str]:
    """Return touched resources with all that strongly refer to them in one of the states."""
    referring: dict[str, set[str]] = {}
    for state in states:
        for uri, target in _references(state.values(), state, schema):
            referring.setdefault(target, set()).add(uri)
    affected, queue = set(touched), list(touched)
    while queue:
        newly_affected = referring.get(queue.pop(), set()) - affected
        affected |= newly_affected
        queue += newly_affected
    return affected


def _select_reported(
    changes: DocumentChanges, earlier: ResourcesByUri, current: ResourcesByUri, schema: Schema
) -> DocumentChanges:
    """Return the changes to report as reasons.

    A resource that is referred to only since then may have existed before. It is reported as new only if an unchanged
    resource referred to it.
    """
    unchanged = [each for uri, each in earlier.items() if current.get(uri) == each]
    referred = {target for _, target in _references(unchanged, current, schema)}
    new = tuple(each for each in changes.new if each.uri in referred)
    return DocumentChanges(new, changes.changed, changes.deleted, changes.unchanged)


def _references(
    resources: Iterable[Resource], existing: ResourcesByUri, schema: Schema
) -> Iterable[tuple[str, str]]:
    """Yield the strong references of resources to existing ones."""
    for resource in resources:
        for target, cls in strong_references(resource, schema):
            if target in existing and cls in schema.at_or_above(existing[target].cls):
                yield resource.uri, target
