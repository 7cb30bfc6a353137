"""Changes of metadata within one transaction, which holds the lock of rules and metadata until it ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, insert

from tidings.metadata.documents import Document
from tidings.metadata.filter.changes import DocumentChanges
from tidings.metadata.log import LogDraft, LogEntry
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import (
    document_changes,
    log_rows,
    paused_rules,
    rule_filter,
    rule_notifications,
    trigger_evaluation,
)
from tidings.metadata.sql.log_tables import APPLIED_COUNTER, LOG_COUNTER, RULE_CHANGES_COUNTER
from tidings.metadata.sql.metadata_reader import ConnectionReader, SchemaFile, StoredRule
from tidings.metadata.sql.rule_base import ATOMIC_RULE_COUNTER, NamedRule, RuleRemoval
from tidings.metadata.sql.rule_filter import AddedRules, FilterOutcome
from tidings.metadata.sql.rule_notifications import MoveExplainer
from tidings.metadata.sql.tables import metadata_schema
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.model import Subscription
from tidings.store import counters
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.encoding import Clock, format_instant, utc_now
from tidings.store.subscriptions import suspension
from tidings.store.subscriptions.admission import admit_rules
from tidings.store.subscriptions.view import RULES

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex  # loads kernels, which readers do not need

_SCHEMA_COUNTER = "metadata_schema"
DEAD_LETTER_SOURCE = "metadata log"
"""The source of dead letters of the log."""


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """What registrations changed, by document and in the results of rules.

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
        new = replace(file, version=counters.step(self._connection, _SCHEMA_COUNTER))
        self._connection.execute(delete(metadata_schema))
        row = {"version": new.version, "media_type": new.media_type, "body": new.body}
        self._connection.execute(insert(metadata_schema), row)
        return new

    # The log

    def lock_log(self) -> None:
        """Block appends to the log until this transaction ends."""
        counters.lock(self._connection, LOG_COUNTER)

    def append(self, drafts: Sequence[LogDraft]) -> list[LogEntry]:
        """Append drafts to the log."""
        return log_rows.append_drafts(self._connection, drafts)

    def append_entries(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of another provider's log at their positions."""
        log_rows.write_entries(self._connection, entries)

    def entry_differs(self, entry: LogEntry) -> bool:
        """Whether the log has a different entry at the position of an entry of another log."""
        return log_rows.entry_differs(self._connection, entry)

    def advance(self, position: int) -> None:
        """Mark all entries up to a position as applied."""
        counters.advance(self._connection, APPLIED_COUNTER, position)

    def restart_log(self, position: int) -> None:
        """Delete all entries of the log and continue after a position."""
        log_rows.restart_log(self._connection, position)
        self.advance(position)

    def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Store entries of the log that cannot be applied."""
        add_dead_letters(self._connection, DEAD_LETTER_SOURCE, letters)

    # Documents

    def register(
        self, schema: Schema, documents: Sequence[Document], triggers: TriggerIndex
    ) -> RegistrationResult:
        """Replace documents by new versions and run the filter. A document without resources is removed."""
        changes, versions = document_changes.compare_with_stored(self._connection, documents)
        current = [version.resource for version in versions.values() if version is not None]
        satisfied = document_changes.find_satisfied_triggers(self._connection, triggers, current)
        outcome = rule_filter.run_filter(self._connection, schema, versions, satisfied)
        return RegistrationResult(changes, outcome)

    # Rules

    def are_results_current(
        self, schema: Schema, rules: Sequence[NamedRule], results: TriggerResults
    ) -> bool:
        """Whether results cover all new triggering rules of these, and all changes since they were computed."""
        new = self.new_triggering_rules(schema, rules)
        return trigger_evaluation.is_current(self._connection, results, new.keys())

    def add_rules(
        self, schema: Schema, rules: Sequence[NamedRule], results: TriggerResults | None = None
    ) -> AddedRules:
        """Add rules and compute their results, or use current `results` of their triggering rules."""
        return rule_filter.add_rules(self._connection, schema, rules, results)

    def admit_rules(self, names: Collection[str], owner: str, limit: int | None) -> None:
        """Raise an error if rules that were just added cannot be subscriptions of their owner."""
        admit_rules(self._connection, names, owner, limit)

    def remove_rules(self, names: Collection[str]) -> RuleRemoval:
        return rule_filter.remove_rules(self._connection, names)

    def pause(self, rule: StoredRule) -> None:
        """Save a rule that is about to be removed, with its current results, as paused."""
        subscription = Subscription(rule.name, rule.owner, RULES, rule.text, rule.within)
        suspension.add_paused(self._connection, subscription, format_instant(self._clock()))
        uris = {uri for _, uri in self.result_pairs([rule.name])}
        paused_rules.save_paused_results(self._connection, rule.name, uris)

    def is_paused(self, name: str) -> bool:
        return suspension.find_paused(self._connection, name) is not None

    def resume(self, schema: Schema, rule: NamedRule) -> None:
        """Add a paused rule again and notify its owner of what changed since."""
        added = self.add_rules(schema, [rule])
        outcome, changes = paused_rules.changes_since_pause(
            self._connection, schema, rule.name, added.entered
        )
        suspension.take_paused(self._connection, rule.name)
        self.notify_rule_change(schema, replace(outcome, ends=added.ends), [changes])

    # Notifications

    def notify_registration(self, schema: Schema, result: RegistrationResult) -> None:
        """Notify the owners of rules of changed results, with reasons. Called once for each position."""
        self._notify(str(self.position()), schema, result.outcome, result.changes.values())

    def notify_rule_change(
        self, schema: Schema, outcome: FilterOutcome, changes: Collection[DocumentChanges] = ()
    ) -> None:
        """Notify owners after a change of rules, of which there may be several at one position."""
        change = counters.step(self._connection, RULE_CHANGES_COUNTER)
        self._notify(f"{self.position()}.{change}", schema, outcome, changes)

    def _notify(
        self, at: str, schema: Schema, outcome: FilterOutcome, changes: Collection[DocumentChanges]
    ) -> None:
        if moves := rule_notifications.list_moves(outcome):
            explainer = MoveExplainer(self._connection, schema, outcome.ends, changes)
            rule_notifications.notify_owners(self._connection, at, moves, explainer.reasons, self._clock())
