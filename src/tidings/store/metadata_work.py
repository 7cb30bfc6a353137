"""Metadata inside of one transaction. Whoever has a `Work` is alone with rules and metadata until it ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, insert, select

from tidings.metadata.changes import Changes
from tidings.metadata.documents import Document
from tidings.metadata.log import Draft, Entry
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.model import Subscription
from tidings.store import (
    atom_rows,
    bulk,
    counters,
    evaluated,
    metadata_log,
    paused,
    paused_results,
    registering,
    rule_base,
    rule_filter,
    rule_notifications,
)
from tidings.store.dead_letters import DeadLetter, bury
from tidings.store.encoding import Clock, instant, utc
from tidings.store.evaluated import Evaluated
from tidings.store.metadata_tables import APPLIED, LOG, RULE_CHANGES, rule_uses
from tidings.store.rule_base import COUNTER, NamedRule, Removed
from tidings.store.rule_filter import Added, Outcome, Pair
from tidings.store.rule_reasons import Explaining
from tidings.store.rule_tables import (
    metadata_resources,
    metadata_rules,
    metadata_schema,
    rule_ends,
    rule_results,
)
from tidings.store.standings import RULES
from tidings.store.subscription_offers import admit_rules

if TYPE_CHECKING:
    from tidings.metadata.triggers import (
        Triggers,
    )  # with it comes the index, which whoever only reads does not need

_SCHEMAS = "metadata_schema"
SOURCE = "metadata log"
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
class Registered:
    """What registrations changed in the metadata, document by document, and in the results of rules; up to which
    position of the log everything is applied now, and how many entries became dead letters.
    """

    changes: Mapping[str, Changes]
    outcome: Outcome
    position: int = 0
    refused: int = 0


class Work:
    """What can be done with metadata in one transaction."""

    def __init__(self, connection: Connection, clock: Clock = utc) -> None:
        self._connection, self._clock = connection, clock
        counters.lock(connection, COUNTER)

    def schema(self) -> SchemaFile | None:
        return schema(self._connection)

    def set_schema(self, file: SchemaFile) -> SchemaFile:
        """Keep a schema in the place of the one before."""
        made = replace(file, version=counters.step(self._connection, _SCHEMAS))
        self._connection.execute(delete(metadata_schema))
        row = {"version": made.version, "media_type": made.media_type, "body": made.body}
        self._connection.execute(insert(metadata_schema), row)
        return made

    def position(self) -> int:
        """The last position of the log that was applied."""
        return counters.current(self._connection, APPLIED)

    def head(self) -> int:
        """The last position of the log."""
        return counters.current(self._connection, LOG)

    def close_log(self) -> None:
        """Let nobody append to the log until this transaction ends."""
        counters.lock(self._connection, LOG)

    def pending(self, most: int) -> list[Entry]:
        """Entries of the log that follow the position."""
        return metadata_log.read(self._connection, self.position(), most)

    def documents_among(self, uris: Collection[str]) -> set[str]:
        """Those of these documents that there are."""
        return documents_among(self._connection, uris)

    def append(self, drafts: Sequence[Draft]) -> list[Entry]:
        return metadata_log.append(self._connection, drafts)

    def write(self, entries: Sequence[Entry]) -> None:
        """Write entries of another log into the own one."""
        metadata_log.write(self._connection, entries)

    def differs(self, entry: Entry) -> bool:
        """Whether something else stands in the log at the place of an entry of another one."""
        return metadata_log.differs(self._connection, entry)

    def advance(self, position: int) -> None:
        """All entries up to the position are applied."""
        counters.advance(self._connection, APPLIED, position)

    def restart(self, position: int) -> None:
        """Begin the log anew after a position, at which everything is."""
        metadata_log.restart(self._connection, position)
        self.advance(position)

    def document_uris(self, after: str, limit: int) -> list[str]:
        """The URIs of documents after one, in order."""
        return document_uris(self._connection, after, limit)

    def register(self, schema: Schema, documents: Sequence[Document], triggers: Triggers) -> Registered:
        """Keep documents in the place of their versions before; one without resources is no more."""
        changes, versions = registering.compared(self._connection, documents)
        now = [version.resource for version in versions.values() if version is not None]
        satisfied = registering.satisfied(self._connection, triggers, now)
        return Registered(changes, rule_filter.run(self._connection, schema, versions, satisfied))

    def stands(self, schema: Schema, rules: Sequence[NamedRule], found: Evaluated) -> bool:
        """Whether all new triggering rules of these were asked, and nothing is unknown of what has changed since."""
        new = rule_base.new_triggering(self._connection, schema, rules)
        return evaluated.stands(self._connection, found, new.keys())

    def add_rules(self, schema: Schema, rules: Sequence[NamedRule], found: Evaluated | None = None) -> Added:
        """Keep rules; what they have as results among what is stored is entered. `found` has to stand."""
        return rule_filter.add_rules(self._connection, schema, rules, found)

    def admit_rules(self, names: Collection[str], owner: str, most: int | None) -> None:
        """Refuse rules that were added just now, if they cannot be subscriptions of their owner."""
        admit_rules(self._connection, names, owner, most)

    def remove_rules(self, names: Collection[str]) -> Removed:
        return rule_filter.remove_rules(self._connection, names)

    def pause(self, rule: StoredRule) -> None:
        """Keep a rule that will be removed among what is paused, and what its owner was last told."""
        kept = Subscription(rule.name, rule.owner, RULES, rule.text, rule.within)
        paused.keep(self._connection, kept, instant(self._clock()))
        paused_results.keep(self._connection, rule.name, {uri for _, uri in self.results([rule.name])})

    def is_paused(self, name: str) -> bool:
        return paused.find(self._connection, name) is not None

    def resume(self, schema: Schema, rule: NamedRule) -> None:
        """Keep a rule that is paused, and tell what became of its results since."""
        added = self.add_rules(schema, [rule])
        outcome, changes = paused_results.since(self._connection, schema, rule.name, added.entered)
        paused.take(self._connection, rule.name)
        self.tell_of_rules(schema, replace(outcome, ends=added.ends), [changes])

    def rules(self, names: Collection[str]) -> dict[str, StoredRule]:
        """Those of these rules that there are, by name."""
        return stored_rules(self._connection, names)

    def rules_of(self, owner: str, scope: str) -> dict[str, StoredRule]:
        """The rules of an owner in a scope, by name."""
        c = metadata_rules.c
        wanted = select(*c).where(c.owner == owner, func.coalesce(c.scope, "") == scope)
        return {row.name: stored_rule(tuple(row)) for row in self._connection.execute(wanted)}

    def uses(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Which rules these search, as pairs."""
        wanted = select(*rule_uses.c)
        return {tuple(row) for row in bulk.select_among(self._connection, wanted, rule_uses.c.name, names)}

    def users(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Which rules search these, as pairs."""
        wanted = select(*rule_uses.c)
        return {tuple(row) for row in bulk.select_among(self._connection, wanted, rule_uses.c.used, names)}

    def results(self, names: Collection[str]) -> set[Pair]:
        """What rules have as results."""
        wanted = select(rule_ends.c.name, rule_results.c.uri).where(rule_ends.c.rule == rule_results.c.rule)
        rows = bulk.select_among(self._connection, wanted, rule_ends.c.name, names)
        return {tuple(row) for row in rows}

    def tell(self, schema: Schema, done: Registered) -> None:
        """Tell the owners of rules what became of their results, and why. Done once at each position."""
        self._tell(str(self.position()), schema, done.outcome, done.changes.values())

    def tell_of_rules(self, schema: Schema, outcome: Outcome, changes: Collection[Changes] = ()) -> None:
        """The same after rules were changed, which may be often at one position."""
        change = counters.step(self._connection, RULE_CHANGES)
        self._tell(f"{self.position()}.{change}", schema, outcome, changes)

    def _tell(self, at: str, schema: Schema, outcome: Outcome, changes: Collection[Changes]) -> None:
        if told := rule_notifications.moves(outcome):
            explaining = Explaining(self._connection, schema, outcome.ends, changes)
            rule_notifications.tell(self._connection, at, told, explaining.reasons, self._clock())

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep entries of the log that cannot be applied."""
        bury(self._connection, SOURCE, letters)


def schema(connection: Connection) -> SchemaFile | None:
    c = metadata_schema.c
    row = connection.execute(select(c.media_type, c.body, c.version)).first()
    return SchemaFile(row.media_type, bytes(row.body), row.version) if row else None


def stored_rules(connection: Connection, names: Collection[str]) -> dict[str, StoredRule]:
    rows = bulk.select_among(connection, select(*metadata_rules.c), metadata_rules.c.name, names)
    return {row.name: stored_rule(tuple(row)) for row in rows}


def stored_rule(row: tuple[str, str, str, str | None, int | None]) -> StoredRule:
    """Rules that are older than scopes have none."""
    name, owner, text, scope, within = row
    return StoredRule(name, owner, text, scope or "", within)


def documents_among(connection: Connection, uris: Collection[str]) -> set[str]:
    """Those of these documents that there are."""
    document = metadata_resources.c.document
    rows = bulk.select_among(connection, select(document).distinct(), document, uris)
    return {uri for (uri,) in rows}


def document_uris(connection: Connection, after: str, limit: int) -> list[str]:
    """The URIs of documents after one, in order."""
    document = metadata_resources.c.document
    wanted = select(document).where(document > after).distinct().order_by(document).limit(limit)
    return list(connection.execute(wanted).scalars())


def resources(connection: Connection, uris: Iterable[str]) -> tuple[Resource, ...]:
    """The resources that are stored of these, in the order of their URIs."""
    found = atom_rows.load(connection, uris)
    return tuple(found[uri].resource for uri in sorted(found))
