"""Metadata inside of one transaction. Whoever has a `Work` is alone with rules and metadata until it ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, insert, select

from tidings.metadata.documents import Document
from tidings.metadata.filter.changes import DocumentChanges
from tidings.metadata.log import LogDraft, LogEntry
from tidings.metadata.resources import Resource
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import (
    document_changes,
    log_rows,
    paused_rules,
    resource_rows,
    rule_base,
    rule_filter,
    rule_notifications,
    trigger_evaluation,
)
from tidings.metadata.sql.log_tables import APPLIED_COUNTER, LOG_COUNTER, RULE_CHANGES_COUNTER, rule_uses
from tidings.metadata.sql.rule_base import ATOMIC_RULE_COUNTER, NamedRule, RuleRemoval
from tidings.metadata.sql.rule_filter import AddedRules, FilterOutcome, RuleResult
from tidings.metadata.sql.rule_notifications import MoveExplainer
from tidings.metadata.sql.tables import (
    metadata_resources,
    metadata_rules,
    metadata_schema,
    rule_ends,
    rule_results,
)
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.model import Subscription
from tidings.store import bulk, counters
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.encoding import Clock, format_instant, utc_now
from tidings.store.subscriptions import suspension
from tidings.store.subscriptions.admission import admit_rules
from tidings.store.subscriptions.view import RULES

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import (
        TriggerIndex,  # with it comes the index, which whoever only reads does not need
    )

_SCHEMAS = "metadata_schema"
DEAD_LETTER_SOURCE = "metadata log"
"""What dead letters of the log belong to."""


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A schema as it was loaded; `version` tells how often one was."""

    media_type: str
    body: bytes
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A rule as it is stored; `name` begins with the scope."""

    name: str
    owner: str
    text: str
    scope: str = ""
    within: int | None = None


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """What registrations changed in the metadata, document by document, and in the results of rules; up to which
    position of the log everything is applied now, and how many entries became dead letters.
    """

    changes: Mapping[str, DocumentChanges]
    outcome: FilterOutcome
    position: int = 0
    refused: int = 0


class MetadataTransaction:
    """What can be done with metadata in one transaction."""

    def __init__(self, connection: Connection, clock: Clock = utc_now) -> None:
        self._connection, self._clock = connection, clock
        counters.lock(connection, ATOMIC_RULE_COUNTER)

    def schema(self) -> SchemaFile | None:
        return load_schema_file(self._connection)

    def set_schema(self, file: SchemaFile) -> SchemaFile:
        """Keep a schema in the place of the one before."""
        made = replace(file, version=counters.step(self._connection, _SCHEMAS))
        self._connection.execute(delete(metadata_schema))
        row = {"version": made.version, "media_type": made.media_type, "body": made.body}
        self._connection.execute(insert(metadata_schema), row)
        return made

    def position(self) -> int:
        """The last position of the log that was applied."""
        return counters.current(self._connection, APPLIED_COUNTER)

    def head(self) -> int:
        """The last position of the log."""
        return counters.current(self._connection, LOG_COUNTER)

    def close_log(self) -> None:
        """Let nobody append to the log until this transaction ends."""
        counters.lock(self._connection, LOG_COUNTER)

    def pending(self, most: int) -> list[LogEntry]:
        """Entries of the log that follow the position."""
        return log_rows.read_entries(self._connection, self.position(), most)

    def documents_among(self, uris: Collection[str]) -> set[str]:
        """Those of these documents that there are."""
        return find_documents(self._connection, uris)

    def append(self, drafts: Sequence[LogDraft]) -> list[LogEntry]:
        return log_rows.append_drafts(self._connection, drafts)

    def write(self, entries: Sequence[LogEntry]) -> None:
        """Write entries of another log into the own one."""
        log_rows.write_entries(self._connection, entries)

    def differs(self, entry: LogEntry) -> bool:
        """Whether something else stands in the log at the place of an entry of another one."""
        return log_rows.entry_differs(self._connection, entry)

    def advance(self, position: int) -> None:
        """All entries up to the position are applied."""
        counters.advance(self._connection, APPLIED_COUNTER, position)

    def restart(self, position: int) -> None:
        """Begin the log anew after a position, at which everything is."""
        log_rows.restart_log(self._connection, position)
        self.advance(position)

    def document_uris(self, after: str, limit: int) -> list[str]:
        """The URIs of documents after one, in order."""
        return list_document_uris(self._connection, after, limit)

    def register(
        self, schema: Schema, documents: Sequence[Document], triggers: TriggerIndex
    ) -> RegistrationResult:
        """Keep documents in the place of their versions before; one without resources is no more."""
        changes, versions = document_changes.compare_with_stored(self._connection, documents)
        now = [version.resource for version in versions.values() if version is not None]
        satisfied = document_changes.find_satisfied_triggers(self._connection, triggers, now)
        return RegistrationResult(
            changes, rule_filter.run_filter(self._connection, schema, versions, satisfied)
        )

    def stands(self, schema: Schema, rules: Sequence[NamedRule], found: TriggerResults) -> bool:
        """Whether all new triggering rules of these were asked, and nothing is unknown of what has changed since."""
        new = rule_base.find_new_triggering(self._connection, schema, rules)
        return trigger_evaluation.is_current(self._connection, found, new.keys())

    def add_rules(
        self, schema: Schema, rules: Sequence[NamedRule], found: TriggerResults | None = None
    ) -> AddedRules:
        """Keep rules; what they have as results among what is stored is entered. `found` has to stand."""
        return rule_filter.add_rules(self._connection, schema, rules, found)

    def admit_rules(self, names: Collection[str], owner: str, most: int | None) -> None:
        """Refuse rules that were added just now, if they cannot be subscriptions of their owner."""
        admit_rules(self._connection, names, owner, most)

    def remove_rules(self, names: Collection[str]) -> RuleRemoval:
        return rule_filter.remove_rules(self._connection, names)

    def pause(self, rule: StoredRule) -> None:
        """Keep a rule that will be removed among what is paused, and what its owner was last told."""
        kept = Subscription(rule.name, rule.owner, RULES, rule.text, rule.within)
        suspension.add_paused(self._connection, kept, format_instant(self._clock()))
        paused_rules.save_paused_results(
            self._connection, rule.name, {uri for _, uri in self.results([rule.name])}
        )

    def is_paused(self, name: str) -> bool:
        return suspension.find_paused(self._connection, name) is not None

    def resume(self, schema: Schema, rule: NamedRule) -> None:
        """Keep a rule that is paused, and tell what became of its results since."""
        added = self.add_rules(schema, [rule])
        outcome, changes = paused_rules.changes_since_pause(
            self._connection, schema, rule.name, added.entered
        )
        suspension.take_paused(self._connection, rule.name)
        self.tell_of_rules(schema, replace(outcome, ends=added.ends), [changes])

    def rules(self, names: Collection[str]) -> dict[str, StoredRule]:
        """Those of these rules that there are, by name."""
        return load_stored_rules(self._connection, names)

    def rules_of(self, owner: str, scope: str) -> dict[str, StoredRule]:
        """The rules of an owner in a scope, by name."""
        c = metadata_rules.c
        wanted = select(*c).where(c.owner == owner, func.coalesce(c.scope, "") == scope)
        return {row.name: stored_rule_from_row(tuple(row)) for row in self._connection.execute(wanted)}

    def uses(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Which rules these search, as pairs."""
        wanted = select(*rule_uses.c)
        return {tuple(row) for row in bulk.select_among(self._connection, wanted, rule_uses.c.name, names)}

    def users(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Which rules search these, as pairs."""
        wanted = select(*rule_uses.c)
        return {tuple(row) for row in bulk.select_among(self._connection, wanted, rule_uses.c.used, names)}

    def results(self, names: Collection[str]) -> set[RuleResult]:
        """What rules have as results."""
        wanted = select(rule_ends.c.name, rule_results.c.uri).where(rule_ends.c.rule == rule_results.c.rule)
        rows = bulk.select_among(self._connection, wanted, rule_ends.c.name, names)
        return {tuple(row) for row in rows}

    def tell(self, schema: Schema, done: RegistrationResult) -> None:
        """Tell the owners of rules what became of their results, and why. Done once at each position."""
        self._tell(str(self.position()), schema, done.outcome, done.changes.values())

    def tell_of_rules(
        self, schema: Schema, outcome: FilterOutcome, changes: Collection[DocumentChanges] = ()
    ) -> None:
        """The same after rules were changed, which may be often at one position."""
        change = counters.step(self._connection, RULE_CHANGES_COUNTER)
        self._tell(f"{self.position()}.{change}", schema, outcome, changes)

    def _tell(
        self, at: str, schema: Schema, outcome: FilterOutcome, changes: Collection[DocumentChanges]
    ) -> None:
        if told := rule_notifications.list_moves(outcome):
            explaining = MoveExplainer(self._connection, schema, outcome.ends, changes)
            rule_notifications.notify_owners(self._connection, at, told, explaining.reasons, self._clock())

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep entries of the log that cannot be applied."""
        add_dead_letters(self._connection, DEAD_LETTER_SOURCE, letters)


def load_schema_file(connection: Connection) -> SchemaFile | None:
    c = metadata_schema.c
    row = connection.execute(select(c.media_type, c.body, c.version)).first()
    return SchemaFile(row.media_type, bytes(row.body), row.version) if row else None


def load_stored_rules(connection: Connection, names: Collection[str]) -> dict[str, StoredRule]:
    rows = bulk.select_among(connection, select(*metadata_rules.c), metadata_rules.c.name, names)
    return {row.name: stored_rule_from_row(tuple(row)) for row in rows}


def stored_rule_from_row(row: tuple[str, str, str, str | None, int | None]) -> StoredRule:
    """Rules that are older than scopes have none."""
    name, owner, text, scope, within = row
    return StoredRule(name, owner, text, scope or "", within)


def find_documents(connection: Connection, uris: Collection[str]) -> set[str]:
    """Those of these documents that there are."""
    document = metadata_resources.c.document
    rows = bulk.select_among(connection, select(document).distinct(), document, uris)
    return {uri for (uri,) in rows}


def list_document_uris(connection: Connection, after: str, limit: int) -> list[str]:
    """The URIs of documents after one, in order."""
    document = metadata_resources.c.document
    wanted = select(document).where(document > after).distinct().order_by(document).limit(limit)
    return list(connection.execute(wanted).scalars())


def list_resources(connection: Connection, uris: Iterable[str]) -> tuple[Resource, ...]:
    """The resources that are stored of these, in the order of their URIs."""
    found = resource_rows.load_resources(connection, uris)
    return tuple(found[uri].resource for uri in sorted(found))
