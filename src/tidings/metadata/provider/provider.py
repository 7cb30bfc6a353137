"""A provider: it registers metadata documents and notifies the owners of rules of matching resources.

    provider = Provider(store)
    provider.load_schema(body, "text/turtle")
    provider.add_rules({"large": "search ServerInformation s register s where s.memory > 64"}, "ana")
    provider.register("http://example.org/doc.rdf", body, "application/rdf+xml").outcome.entered

Every call is one durable transaction. Registrations are appended to a log; providers that apply the same log are equal
at equal positions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidings.core.lifecycle import without_gc
from tidings.errors import InputError, SetupError
from tidings.metadata.documents import Document
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider import log_applier, rule_changes
from tidings.metadata.provider.log_applier import EntryReader, SchemaCache, SchemaContext
from tidings.metadata.provider.snapshot import restore_snapshot, snapshot_lines, spool_snapshot
from tidings.metadata.resources import Resource
from tidings.metadata.rules.rule_errors import suggest_name
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.log_rows import MetadataLog, append_drafts, write_entries
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.transaction import MetadataTransaction, RegistrationResult
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.store.store import Store

DEFAULT_BATCH_SIZE = 1_000
"""Log entries applied in one transaction: documents share the cost of a filter run (section 4 of paper 001)."""
BATCH_SIZE_SETTING = "TIDINGS_METADATA_BATCH"


def batch_size() -> int:
    """Return the setting, or the default."""
    value = os.environ.get(BATCH_SIZE_SETTING, str(DEFAULT_BATCH_SIZE))
    if not re.fullmatch("[1-9][0-9]{0,8}", value):
        accepted = "a whole number from 1 to 999,999,999"
        raise SetupError(f"{BATCH_SIZE_SETTING} is not a batch size", received=value[:40], accepted=accepted)
    return int(value)


RuleEvaluator = Callable[[SchemaContext, Sequence[NamedRule]], TriggerResults | None]
"""Evaluates the triggering rules of new rules over stored resources; None leaves it to the store."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document to register."""

    uri: str
    body: bytes
    media_type: str


class Provider:
    """The metadata of a store. Several processes may be providers over the same store."""

    def __init__(self, store: Store, batch: int | None = None) -> None:
        self._metadata, self._leader = store.metadata, store.replication.leader
        self._schemas = SchemaCache()
        self.batch = batch or batch_size()

    @property
    def id(self) -> str:
        """The unique id of this provider."""
        return self._metadata.identity()

    @property
    def log(self) -> MetadataLog:
        """The log of registrations."""
        return self._metadata.log

    @property
    def position(self) -> int:
        """The last position of the log that is applied here."""
        return self._metadata.position()

    @property
    def schema(self) -> Schema:
        return self._schemas.context(self._metadata.schema()).schema

    def load_schema(self, body: bytes, media_type: str, base: str | None = None) -> Schema:
        """Load a schema, which must extend the current one."""
        self._add([log_applier.build_schema_draft(body, media_type, base)])
        return self.schema

    def register(self, uri: str, body: bytes, media_type: str) -> RegistrationResult:
        """Register a document or a new version of it."""
        return self.register_many([DocumentSource(uri, body, media_type)])

    def register_many(self, sources: Iterable[DocumentSource]) -> RegistrationResult:
        """Register documents, all or none, with one run of the filter."""
        return self._add(
            [LogDraft(Operation.REGISTER, each.uri, each.media_type, each.body) for each in sources]
        )

    def remove(self, uri: str) -> RegistrationResult:
        """Remove a document with all its resources; raise NotFound if it does not exist."""
        return self._add([LogDraft(Operation.REMOVE, uri)])

    def check(self, drafts: Iterable[LogDraft]) -> list[Document | None]:
        """Parse drafts by the schema after all entries of the log; None for a schema."""
        reader = self._pending_reader()
        return [reader.read(draft) for draft in drafts]

    def check_removals(self, drafts: Sequence[LogDraft], log: log_applier.ReadableLog) -> None:
        """Check that documents to remove exist after all entries of a log: its own, or a shared one."""
        log_applier.check_pending_removals(self._metadata, log, drafts)

    def append(self, drafts: Iterable[LogDraft]) -> list[int]:
        """Append drafts to the log, all or none, and return their positions. `catch_up` applies them later."""
        drafts = list(drafts)
        self._check_leading()
        self.check(drafts)
        self.check_removals(drafts, self.log)
        return self.log.append(drafts)

    def append_valid(self, drafts: Iterable[LogDraft]) -> list[int | InputError]:
        """Append the valid drafts to the log; return the position or the error of each draft."""
        self._check_leading()
        reader = self._pending_reader()
        checked = [(draft, _find_problem(reader, draft)) for draft in drafts]
        positions = iter(self.log.append([draft for draft, problem in checked if problem is None]))
        return [next(positions) if problem is None else problem for _, problem in checked]

    def catch_up(self, batch: int | None = None) -> list[RegistrationResult]:
        """Apply all pending entries of the log, `batch` entries in each transaction."""
        results = []
        self._warm_up()
        while result := self._metadata.transact(partial(self._apply_next, batch=batch or self.batch)):
            results.append(result)
        return results

    def apply(self, entries: Sequence[LogEntry]) -> RegistrationResult:
        """Apply entries of another provider's log and append them to its own log, in one transaction.

        They must follow the position without a gap. Entries that were applied before are skipped.
        """
        self._warm_up()
        return self._metadata.transact(lambda transaction: self._follow(transaction, entries))

    def snapshot(self) -> Iterator[dict[str, Any]]:
        """Yield all metadata as of one moment, as JSON objects for the `restore` of another provider."""
        with self._metadata.snapshot() as metadata:
            yield from snapshot_lines(metadata)

    def restore(self, lines: Iterable[Mapping[str, Any]]) -> int:
        """Make the metadata equal to a snapshot in one transaction, and return its position. Rules stay.

        For a provider that is empty, or so far behind that entries it needs were trimmed from the log.
        """
        with spool_snapshot(lines) as spool:
            return self._metadata.transact(
                lambda transaction: restore_snapshot(transaction, self._schemas, spool, self.batch)
            )

    def add_rules(
        self,
        texts: Mapping[str, str],
        owner: str,
        scope: str = "",
        within: int | None = None,
        evaluate: RuleEvaluator | None = None,
        most: int | None = None,
    ) -> frozenset[RuleResult]:
        """Add rules by name in a scope, all or none, and return their current results.

        The store computes the results, unless `evaluate` does (see `metadata.spark.rule_evaluation`). With `most`, the
        owner may have no more subscriptions than that.
        """
        rules = rule_changes.build_stored_rules(texts, owner, scope, within)
        while True:
            context = self._schemas.context(self._metadata.schema())
            prepared = rule_changes.prepare_rules(rules, context, self._metadata.rules_named)
            if evaluate:
                self._metadata.check_names_free(prepared.rules)
            results = evaluate(context, prepared.rules) if evaluate else None
            entered = self._metadata.transact(
                partial(rule_changes.add_prepared_rules, prepared=prepared, results=results, limit=most)
            )
            if entered is not None:
                return entered

    def set_rules(
        self, texts: Mapping[str, str], owner: str, scope: str = "", within: int | None = None
    ) -> FilterOutcome:
        """Replace all rules of an owner in a scope, and return the changes of their results.

        The lost results of removed rules are not included.
        """
        rules = rule_changes.build_stored_rules(texts, owner, scope, within)
        return self._metadata.transact(
            lambda transaction: rule_changes.replace_rules(
                transaction, rules, owner, scope, self._schemas.context(transaction.schema()).schema
            )
        )

    def remove_rules(self, names: Collection[str], scope: str = "") -> tuple[str, ...]:
        """Remove rules and return the names of those that existed; raise InputError if another rule searches one."""
        full_names = [scope + name for name in names]
        return self._metadata.transact(
            lambda transaction: rule_changes.remove_unused_rules(transaction, full_names)
        )

    def rules(self) -> tuple[StoredRule, ...]:
        return self._metadata.rules()

    def results(self, name: str) -> tuple[Resource, ...]:
        """Return the current results of a rule, whose name starts with its scope."""
        if not self._metadata.rules_named([name]):
            close = suggest_name(name, (rule.name for rule in self.rules()))
            raise InputError("there is no such rule", received=name, hint=close or "tidings provider rules")
        return self._metadata.results(name)

    def closure(self, uris: Collection[str]) -> tuple[Resource, ...]:
        """Return resources with everything they strongly refer to, as it is sent to repositories."""
        return self._metadata.closure(uris)

    def documents(self) -> tuple[tuple[str, int], ...]:
        """List the URIs of all documents with the number of their resources."""
        return self._metadata.documents()

    def _check_leading(self) -> None:
        """Reject appends while following another provider, whose log would have other entries at these positions."""
        if leader := self._leader():
            hint = "register it there, or with `tidings serve` of this one; `tidings provider lead` stops following"
            raise InputError("this provider follows another one", received=leader, hint=hint)

    def _pending_reader(self) -> EntryReader:
        """Return a reader with the schema after all entries of the log."""
        reader = EntryReader(self._metadata.schema(), self._schemas)
        return reader.read_schemas(self._metadata.pending_schemas())

    @without_gc()
    def _add(self, drafts: Sequence[LogDraft]) -> RegistrationResult:
        self._check_leading()
        documents = self.check(drafts)
        self._warm_up()
        return self._metadata.transact(lambda transaction: self._append(transaction, drafts, documents))

    def _warm_up(self) -> None:
        """Load the index kernels before a transaction that blocks others, if there are rules."""
        if self._metadata.last_rule_number():
            from tidings.metadata.filter.trigger_index import warm_up  # noqa: PLC0415 - only rules need the index

            warm_up()

    def _append(
        self,
        transaction: MetadataTransaction,
        drafts: Sequence[LogDraft],
        documents: Sequence[Document | None],
    ) -> RegistrationResult:
        """Apply pending entries, then append and apply drafts, with the log locked."""
        transaction.lock_log()
        log_applier.apply_pending(transaction, self._schemas, self.batch)
        if not drafts:
            return RegistrationResult({}, FilterOutcome(), transaction.position())
        log_applier.check_schemas(transaction, self._schemas, drafts)
        log_applier.check_removals(transaction, drafts)
        entries = append_drafts(transaction.connection, drafts)
        pairs = zip(entries, documents, strict=True)
        parsed = {entry.position: document for entry, document in pairs if document is not None}
        return log_applier.apply_entries(transaction, self._schemas, entries, parsed)

    @without_gc()
    def _apply_next(self, transaction: MetadataTransaction, batch: int) -> RegistrationResult | None:
        entries = transaction.pending(batch)
        return log_applier.apply_entries(transaction, self._schemas, entries) if entries else None

    @without_gc()
    def _follow(self, transaction: MetadataTransaction, entries: Sequence[LogEntry]) -> RegistrationResult:
        transaction.lock_log()
        log_applier.apply_pending(transaction, self._schemas, self.batch)
        new = log_applier.entries_after_position(transaction, entries)
        if not new:
            return RegistrationResult({}, FilterOutcome(), transaction.position())
        write_entries(transaction.connection, new)
        return log_applier.apply_entries(transaction, self._schemas, new)


def _find_problem(reader: EntryReader, draft: LogDraft) -> InputError | None:
    try:
        reader.read(draft)
    except InputError as problem:
        return problem
    return None


# The JSON form of results, for HTTP and for followers.


def schema_to_json(schema: Schema, position: int) -> dict[str, Any]:
    """Convert a loaded schema to a JSON object."""
    return {"position": position, "classes": sorted(schema.classes), "properties": sorted(schema.properties)}


def registration_to_json(uri: str, result: RegistrationResult) -> dict[str, Any]:
    """Convert the registration or removal of a document to a JSON object: position, changes and moves."""
    change, outcome = result.changes[uri], result.outcome
    counts = {name: len(getattr(change, name)) for name in ("new", "changed", "deleted", "unchanged")}
    moves = [
        {"rule": rule, "uri": resource, "kind": kind}
        for kind in ("entered", "changed", "left")
        for rule, resource in sorted(getattr(outcome, kind))
    ]
    return {"uri": uri, "position": result.position, "changes": counts, "moves": moves}
