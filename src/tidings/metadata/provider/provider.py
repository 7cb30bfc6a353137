"""A provider: metadata documents are registered with it, and rules say who wants to know of which resources.

    provider = Provider(store)
    provider.load_schema(body, "text/turtle")
    provider.add_rules({"large": "search ServerInformation s register s where s.memory > 64"}, "ana")
    provider.register("http://example.org/doc.rdf", body, "application/rdf+xml").outcome.entered

Every call is one transaction: what it returns is durable. What is registered stands in a log, and providers that apply
the same log are equal at equal positions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidings.core.gc_pause import without_gc
from tidings.errors import InputError, SetupError
from tidings.metadata.documents import Document
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider import log_applier, rule_changes
from tidings.metadata.provider import snapshot as snapshots
from tidings.metadata.provider.log_reader import EntryReader, SchemaCache, SchemaContext, build_schema_draft
from tidings.metadata.resources import Resource
from tidings.metadata.rules.syntax_errors import suggest_name
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.log_rows import MetadataLog
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.transaction import MetadataTransaction, RegistrationResult, StoredRule
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.store.store import Store

# How many entries of the log are applied in one transaction: a setting, `TIDINGS_METADATA_BATCH`.
#
# Section 4 of paper 001 measures why: of the cost of a document much is that of the run of the filter that it is in.


DEFAULT_BATCH_SIZE = 1_000
BATCH_SIZE_SETTING = "TIDINGS_METADATA_BATCH"


def batch_size() -> int:
    """What the setting says, or else 1,000."""
    given = os.environ.get(BATCH_SIZE_SETTING, str(DEFAULT_BATCH_SIZE))
    if not re.fullmatch("[1-9][0-9]{0,8}", given):
        accepted = "a whole number from 1 to 999,999,999"
        raise SetupError(f"{BATCH_SIZE_SETTING} is not a batch size", received=given[:40], accepted=accepted)
    return int(given)


RuleEvaluator = Callable[[SchemaContext, Sequence[NamedRule]], TriggerResults | None]
"""What finds out which stored resources satisfy the triggering rules of new rules; None leaves it to the store."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document to be registered: its URI, and what it says."""

    uri: str
    body: bytes
    media_type: str


class Provider:
    """The metadata of a store. Several processes may be providers over the same one."""

    def __init__(self, store: Store, batch: int | None = None) -> None:
        self._metadata, self._leader = store.metadata, store.replication.leader
        self._schemas = SchemaCache()
        self.batch = batch or batch_size()

    @property
    def id(self) -> str:
        """What this provider is called, among all that there are."""
        return self._metadata.identity()

    @property
    def log(self) -> MetadataLog:
        """What was registered, in one order."""
        return self._metadata.log

    @property
    def position(self) -> int:
        """How far the log is applied here."""
        return self._metadata.position()

    @property
    def schema(self) -> Schema:
        return self._schemas.known(self._metadata.schema()).schema

    def load_schema(self, body: bytes, media_type: str, base: str | None = None) -> Schema:
        """Keep a schema. One that takes away what the schema before had is refused: something may depend on it."""
        self._add([build_schema_draft(body, media_type, base)])
        return self.schema

    def register(self, uri: str, body: bytes, media_type: str) -> RegistrationResult:
        """Register a document, or a new version of it."""
        return self.register_many([DocumentSource(uri, body, media_type)])

    def register_many(self, sources: Iterable[DocumentSource]) -> RegistrationResult:
        """Register documents in one go: the filter runs once. If one is refused, none of them is kept."""
        return self._add(
            [LogDraft(Operation.REGISTER, each.uri, each.media_type, each.body) for each in sources]
        )

    def remove(self, uri: str) -> RegistrationResult:
        """Remove a document with all its resources. One that is not there is refused, and not in the log then."""
        return self._add([LogDraft(Operation.REMOVE, uri)])

    def check(self, drafts: Iterable[LogDraft]) -> list[Document | None]:
        """What drafts say, if nothing is wrong with them after all that stands in the log; a schema is no document."""
        reading = self._reading()
        return [reading.read(draft) for draft in drafts]

    def refuse_absent(self, drafts: Sequence[LogDraft], log: log_applier.ReadableLog) -> None:
        """Refuse to remove what is not there behind all that stands in a log: the own one, or one that is shared."""
        log_applier.check_pending_removals(self._metadata, log, drafts)

    def append(self, drafts: Iterable[LogDraft]) -> list[int]:
        """Put drafts into the log, all or none, and say where they stand. They are applied later (`apply_pending`)."""
        given = list(drafts)
        self._refuse_following()
        self.check(given)
        self.refuse_absent(given, self.log)
        return self.log.append(given)

    def offer(self, drafts: Iterable[LogDraft]) -> list[int | InputError]:
        """Put those drafts into the log that nothing is wrong with: where each of them stands, or why it does not."""
        self._refuse_following()
        reading = self._reading()
        outcomes = [(draft, _problem(reading, draft)) for draft in drafts]
        positions = iter(self.log.append([draft for draft, problem in outcomes if problem is None]))
        return [next(positions) if problem is None else problem for _, problem in outcomes]

    def catch_up(self, most: int | None = None) -> list[RegistrationResult]:
        """Apply what stands in the log and is not applied yet, `most` entries in each transaction."""
        done = []
        self._warm()
        while found := self._metadata.transact(partial(self._next, most=most or self.batch)):
            done.append(found)
        return done

    def apply(self, entries: Sequence[LogEntry]) -> RegistrationResult:
        """Apply entries of another provider's log, and keep them in the own one: in one transaction.

        They follow the position without a gap. Those that were applied before are passed over.
        """
        self._warm()
        return self._metadata.transact(lambda work: self._follow(work, entries))

    def snapshot(self) -> Iterator[dict[str, Any]]:
        """All metadata as of one moment, as what JSON lines are made of; for another provider's `restore`."""
        with self._metadata.snapshot() as found:
            yield from snapshots.snapshot_lines(found)

    def restore(self, lines: Iterable[Mapping[str, Any]]) -> int:
        """Make the metadata equal to a snapshot's, in one transaction, and say at which position that is.

        For a provider that is empty, or so far behind that the log does not reach back to it any more. Its rules stay.
        """
        with snapshots.spool_snapshot() as file:
            spooled = snapshots.SnapshotSpool(file, lines)
            return self._metadata.transact(
                lambda work: snapshots.restore_snapshot(work, self._schemas, spooled, self.batch)
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
        """Keep rules by their names in a scope, all or none; what they have as results now is entered.

        The store finds that out, unless `evaluate` has done it before (`metadata.spark.rule_evaluation`). With `most`,
        their owner may have no more subscriptions than that.
        """
        given = rule_changes.build_stored_rules(texts, owner, scope, within)
        while True:
            known = self._schemas.known(self._metadata.schema())
            made = rule_changes.prepare_rules(given, known, self._metadata.named)
            if evaluate:
                self._metadata.refuse_taken(made.rules)
            found = evaluate(known, made.rules) if evaluate else None
            done = self._metadata.transact(
                partial(rule_changes.add_prepared_rules, made=made, found=found, most=most)
            )
            if done is not None:
                return done

    def set_rules(
        self, texts: Mapping[str, str], owner: str, scope: str = "", within: int | None = None
    ) -> FilterOutcome:
        """Make these exactly the rules of an owner in a scope, and say what that does to their results.

        What a rule had that is no more is not told: who takes a rule away knows.
        """
        given = rule_changes.build_stored_rules(texts, owner, scope, within)
        return self._metadata.transact(
            lambda work: rule_changes.replace_rules(
                work, given, owner, scope, self._schemas.known(work.schema()).schema
            )
        )

    def remove_rules(self, names: Collection[str], scope: str = "") -> tuple[str, ...]:
        """Forget rules, and say which of them there were. One that another rule searches stays."""
        whole = [scope + name for name in names]
        return self._metadata.transact(lambda work: rule_changes.remove_unused_rules(work, whole))

    def rules(self) -> tuple[StoredRule, ...]:
        return self._metadata.rules()

    def results(self, name: str) -> tuple[Resource, ...]:
        """The resources that a rule registers now; its name has the scope in front."""
        if not self._metadata.named([name]):
            close = suggest_name(name, (rule.name for rule in self.rules()))
            raise InputError("there is no such rule", received=name, hint=close or "tidings provider rules")
        return self._metadata.results(name)

    def closure(self, uris: Collection[str]) -> tuple[Resource, ...]:
        """Resources with everything that they refer to strongly, however far: what goes to who wants them."""
        return self._metadata.closure(uris)

    def documents(self) -> tuple[tuple[str, int], ...]:
        """The URIs of all documents, with how many resources each has."""
        return self._metadata.documents()

    def _refuse_following(self) -> None:
        """What a provider put into its log by itself would be at positions that mean something else elsewhere."""
        if leader := self._leader():
            hint = "register it there, or at `tidings serve` of this one; `tidings provider lead` ends that"
            raise InputError("this provider follows another one", received=leader, hint=hint)

    def _reading(self) -> EntryReader:
        """By the schema that holds behind all that stands in the log."""
        return EntryReader(self._metadata.schema(), self._schemas).skim(self._metadata.pending_schemas())

    @without_gc()
    def _add(self, drafts: Sequence[LogDraft]) -> RegistrationResult:
        self._refuse_following()
        documents = self.check(drafts)
        self._warm()
        return self._metadata.transact(lambda work: self._append(work, drafts, documents))

    def _warm(self) -> None:
        """Load what rules are asked with, if there are some, before a transaction begins that keeps others waiting."""
        if self._metadata.last_rule():
            from tidings.metadata.filter.trigger_index import warm_up  # noqa: PLC0415 - who has no rules needs no index

            warm_up()

    def _append(
        self, work: MetadataTransaction, drafts: Sequence[LogDraft], documents: Sequence[Document | None]
    ) -> RegistrationResult:
        """What stands in the log is applied first; nobody else comes in between."""
        work.close_log()
        log_applier.apply_pending(work, self._schemas, self.batch)
        if not drafts:
            return RegistrationResult({}, log_applier.NO_OUTCOME, work.position())
        log_applier.check_schemas(work, self._schemas, drafts)
        log_applier.check_removals(work, drafts)
        entries = work.append(drafts)
        pairs = zip(entries, documents, strict=True)
        read = {entry.position: document for entry, document in pairs if document is not None}
        return log_applier.apply_entries(work, self._schemas, entries, read)

    @without_gc()
    def _next(self, work: MetadataTransaction, most: int) -> RegistrationResult | None:
        entries = work.pending(most)
        return log_applier.apply_entries(work, self._schemas, entries) if entries else None

    @without_gc()
    def _follow(self, work: MetadataTransaction, entries: Sequence[LogEntry]) -> RegistrationResult:
        work.close_log()
        log_applier.apply_pending(work, self._schemas, self.batch)
        new = log_applier.entries_after_position(work, entries)
        if not new:
            return RegistrationResult({}, log_applier.NO_OUTCOME, work.position())
        work.write(new)
        return log_applier.apply_entries(work, self._schemas, new)


def _problem(reading: EntryReader, draft: LogDraft) -> InputError | None:
    try:
        reading.read(draft)
    except InputError as problem:
        return problem
    return None


# What a registration came to, as JSON: the same over HTTP, at a leader and through a follower.


def schema_to_json(schema: Schema, position: int) -> dict[str, Any]:
    """A schema that was loaded."""
    return {
        "position": position,
        "classes": sorted(schema.classes),
        "properties": sorted(schema.properties),
    }


def registration_to_json(uri: str, done: RegistrationResult) -> dict[str, Any]:
    """A document that was registered or removed: its place in the log, what changed in it, and what moved."""
    change, outcome = done.changes[uri], done.outcome
    counts = {name: len(getattr(change, name)) for name in ("new", "changed", "deleted", "unchanged")}
    moves = [
        *_moves("entered", outcome.entered),
        *_moves("changed", outcome.changed),
        *_moves("left", outcome.left),
    ]
    return {"uri": uri, "position": done.position, "changes": counts, "moves": moves}


def _moves(kind: str, pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"rule": rule, "uri": uri, "kind": kind} for rule, uri in sorted(pairs)]
