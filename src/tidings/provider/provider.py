"""A provider: metadata documents are registered with it, and rules say who wants to know of which resources.

    provider = Provider(store)
    provider.load_schema(body, "text/turtle")
    provider.add_rules({"large": "search ServerInformation s register s where s.memory > 64"}, "ana")
    provider.register("http://example.org/doc.rdf", body, "application/rdf+xml").outcome.entered

Every call is one transaction: what it returns is durable. What is registered stands in a log, and providers that apply
the same log are equal at equal positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidings.collecting import uncollected
from tidings.errors import InputError
from tidings.languages.rules_refusals import near
from tidings.metadata.documents import Document
from tidings.metadata.log import Draft, Entry, What
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.provider import applying, removals, rule_changes, snapshots
from tidings.provider.batches import batch_size
from tidings.provider.reading import Known, Reading, Schemas, schema_draft
from tidings.store import Store
from tidings.store.evaluated import Evaluated
from tidings.store.metadata import Registered, StoredRule, Work
from tidings.store.metadata_log import MetadataLog
from tidings.store.rule_base import NamedRule
from tidings.store.rule_filter import Outcome, Pair

Evaluate = Callable[[Known, Sequence[NamedRule]], Evaluated | None]
"""What finds out which stored resources satisfy the triggering rules of new rules; None leaves it to the store."""


@dataclass(frozen=True, slots=True)
class Source:
    """A document to be registered: its URI, and what it says."""

    uri: str
    body: bytes
    media_type: str


class Provider:
    """The metadata of a store. Several processes may be providers over the same one."""

    def __init__(self, store: Store, batch: int | None = None) -> None:
        self._metadata, self._leader = store.metadata, store.backbone.leader
        self._schemas = Schemas()
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
        self._add([schema_draft(body, media_type, base)])
        return self.schema

    def register(self, uri: str, body: bytes, media_type: str) -> Registered:
        """Register a document, or a new version of it."""
        return self.register_many([Source(uri, body, media_type)])

    def register_many(self, sources: Iterable[Source]) -> Registered:
        """Register documents in one go: the filter runs once. If one is refused, none of them is kept."""
        return self._add([Draft(What.REGISTER, each.uri, each.media_type, each.body) for each in sources])

    def remove(self, uri: str) -> Registered:
        """Remove a document with all its resources. One that is not there is refused, and not in the log then."""
        return self._add([Draft(What.REMOVE, uri)])

    def check(self, drafts: Iterable[Draft]) -> list[Document | None]:
        """What drafts say, if nothing is wrong with them after all that stands in the log; a schema is no document."""
        reading = self._reading()
        return [reading.read(draft) for draft in drafts]

    def refuse_absent(self, drafts: Sequence[Draft], log: removals.Log) -> None:
        """Refuse to remove what is not there behind all that stands in a log: the own one, or one that is shared."""
        removals.refuse_absent_later(self._metadata, log, drafts)

    def append(self, drafts: Iterable[Draft]) -> list[int]:
        """Put drafts into the log, all or none, and say where they stand. They are applied later (`catch_up`)."""
        given = list(drafts)
        self._refuse_following()
        self.check(given)
        self.refuse_absent(given, self.log)
        return self.log.append(given)

    def offer(self, drafts: Iterable[Draft]) -> list[int | InputError]:
        """Put those drafts into the log that nothing is wrong with: where each of them stands, or why it does not."""
        self._refuse_following()
        reading = self._reading()
        outcomes = [(draft, _problem(reading, draft)) for draft in drafts]
        positions = iter(self.log.append([draft for draft, problem in outcomes if problem is None]))
        return [next(positions) if problem is None else problem for _, problem in outcomes]

    def catch_up(self, most: int | None = None) -> list[Registered]:
        """Apply what stands in the log and is not applied yet, `most` entries in each transaction."""
        done = []
        self._warm()
        while found := self._metadata.transact(partial(self._next, most=most or self.batch)):
            done.append(found)
        return done

    def apply(self, entries: Sequence[Entry]) -> Registered:
        """Apply entries of another provider's log, and keep them in the own one: in one transaction.

        They follow the position without a gap. Those that were applied before are passed over.
        """
        self._warm()
        return self._metadata.transact(lambda work: self._follow(work, entries))

    def snapshot(self) -> Iterator[dict[str, Any]]:
        """All metadata as of one moment, as what JSON lines are made of; for another provider's `restore`."""
        with self._metadata.snapshot() as found:
            yield from snapshots.lines(found)

    def restore(self, lines: Iterable[Mapping[str, Any]]) -> int:
        """Make the metadata equal to a snapshot's, in one transaction, and say at which position that is.

        For a provider that is empty, or so far behind that the log does not reach back to it any more. Its rules stay.
        """
        with snapshots.spool() as file:
            spooled = snapshots.Spooled(file, lines)
            return self._metadata.transact(
                lambda work: snapshots.restore(work, self._schemas, spooled, self.batch)
            )

    def add_rules(
        self,
        texts: Mapping[str, str],
        owner: str,
        scope: str = "",
        within: int | None = None,
        evaluate: Evaluate | None = None,
        most: int | None = None,
    ) -> frozenset[Pair]:
        """Keep rules by their names in a scope, all or none; what they have as results now is entered.

        The store finds that out, unless `evaluate` has done it before (on Spark: `spark.rule_evaluation`). With `most`,
        their owner may have no more subscriptions than that.
        """
        given = rule_changes.stored(texts, owner, scope, within)
        while True:
            known = self._schemas.known(self._metadata.schema())
            made = rule_changes.prepared(given, known, self._metadata.named)
            if evaluate:
                self._metadata.refuse_taken(made.rules)
            found = evaluate(known, made.rules) if evaluate else None
            done = self._metadata.transact(partial(rule_changes.add, made=made, found=found, most=most))
            if done is not None:
                return done

    def set_rules(
        self, texts: Mapping[str, str], owner: str, scope: str = "", within: int | None = None
    ) -> Outcome:
        """Make these exactly the rules of an owner in a scope, and say what that does to their results.

        What a rule had that is no more is not told: who takes a rule away knows.
        """
        given = rule_changes.stored(texts, owner, scope, within)
        return self._metadata.transact(
            lambda work: rule_changes.replace_all(
                work, given, owner, scope, self._schemas.known(work.schema()).schema
            )
        )

    def remove_rules(self, names: Collection[str], scope: str = "") -> tuple[str, ...]:
        """Forget rules, and say which of them there were. One that another rule searches stays."""
        whole = [scope + name for name in names]
        return self._metadata.transact(lambda work: rule_changes.remove(work, whole))

    def rules(self) -> tuple[StoredRule, ...]:
        return self._metadata.rules()

    def results(self, name: str) -> tuple[Resource, ...]:
        """The resources that a rule registers now; its name has the scope in front."""
        if not self._metadata.named([name]):
            close = near(name, (rule.name for rule in self.rules()))
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

    def _reading(self) -> Reading:
        """By the schema that holds behind all that stands in the log."""
        return Reading(self._metadata.schema(), self._schemas).skim(self._metadata.pending_schemas())

    @uncollected()
    def _add(self, drafts: Sequence[Draft]) -> Registered:
        self._refuse_following()
        documents = self.check(drafts)
        self._warm()
        return self._metadata.transact(lambda work: self._append(work, drafts, documents))

    def _warm(self) -> None:
        """Load what rules are asked with, if there are some, before a transaction begins that keeps others waiting."""
        if self._metadata.last_rule():
            from tidings.metadata.triggers import warm  # noqa: PLC0415 - who has no rules needs no index

            warm()

    def _append(
        self, work: Work, drafts: Sequence[Draft], documents: Sequence[Document | None]
    ) -> Registered:
        """What stands in the log is applied first; nobody else comes in between."""
        work.close_log()
        applying.catch_up(work, self._schemas, self.batch)
        if not drafts:
            return Registered({}, applying.NOTHING, work.position())
        applying.check_schemas(work, self._schemas, drafts)
        removals.refuse_absent(work, drafts)
        entries = work.append(drafts)
        pairs = zip(entries, documents, strict=True)
        read = {entry.position: document for entry, document in pairs if document is not None}
        return applying.apply(work, self._schemas, entries, read)

    @uncollected()
    def _next(self, work: Work, most: int) -> Registered | None:
        entries = work.pending(most)
        return applying.apply(work, self._schemas, entries) if entries else None

    @uncollected()
    def _follow(self, work: Work, entries: Sequence[Entry]) -> Registered:
        work.close_log()
        applying.catch_up(work, self._schemas, self.batch)
        new = applying.following(work, entries)
        if not new:
            return Registered({}, applying.NOTHING, work.position())
        work.write(new)
        return applying.apply(work, self._schemas, new)


def _problem(reading: Reading, draft: Draft) -> InputError | None:
    try:
        reading.read(draft)
    except InputError as problem:
        return problem
    return None
