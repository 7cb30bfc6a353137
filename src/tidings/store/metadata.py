"""Metadata as it is stored: a log, a schema, documents, rules and results. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

from sqlalchemy import func, select

from tidings.metadata.atomic import Triggering
from tidings.metadata.log import Entry
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.store import atom_rows, counters, metadata_log, metadata_snapshot, metadata_work, rule_base
from tidings.store.database import Database
from tidings.store.encoding import Clock, utc
from tidings.store.metadata_log import MetadataLog
from tidings.store.metadata_snapshot import Snapshot
from tidings.store.metadata_tables import APPLIED, metadata_identity
from tidings.store.metadata_work import Registered, SchemaFile, StoredRule, Work
from tidings.store.rule_base import NamedRule
from tidings.store.rule_tables import metadata_resources, metadata_rules, rule_ends, rule_results
from tidings.store.strong_references import closure
from tidings.store.subscription_offers import refuse_taken_ids

__all__ = ["Metadata", "Registered", "SchemaFile", "StoredRule", "Work"]

T = TypeVar("T")


class Metadata:
    """The metadata of a store."""

    def __init__(self, database: Database, clock: Clock = utc) -> None:
        self._database, self._clock = database, clock
        self.log = MetadataLog(database)

    def transact(self, work: Callable[[Work], T]) -> T:
        """Do something with metadata in one transaction: all of it is durable when this returns, or none of it."""
        return self._database.transact(lambda connection: work(Work(connection, self._clock)))

    def identity(self) -> str:
        """What this store is called among providers."""
        with self._database.read() as connection:
            return str(connection.execute(select(metadata_identity.c.id)).scalar_one())

    def position(self) -> int:
        """The last position of the log that was applied."""
        with self._database.read() as connection:
            return counters.current(connection, APPLIED)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """All metadata as of one moment."""
        with self._database.moment() as connection:
            yield metadata_snapshot.read(connection)

    def schema(self) -> SchemaFile | None:
        with self._database.read() as connection:
            return metadata_work.schema(connection)

    def pending_schemas(self) -> list[Entry]:
        """The schemas that stand in the log and are not applied yet."""
        with self._database.read() as connection:
            return metadata_log.schemas(connection, counters.current(connection, APPLIED))

    def triggering(self, after: int = 0) -> dict[int, Triggering]:
        """The triggering rules with greater numbers, for an index."""
        with self._database.read() as connection:
            return rule_base.load_triggering(connection, after)

    def new_triggering(self, schema: Schema, rules: Sequence[NamedRule]) -> dict[str, Triggering]:
        """The triggering rules that rules would bring with them, by key."""
        with self._database.read() as connection:
            return rule_base.new_triggering(connection, schema, rules)

    def refuse_taken(self, rules: Sequence[NamedRule]) -> None:
        """Refuse new rules whose names are taken, before anybody looks for their results."""
        own = [rule for rule in rules if not rule.scope]
        with self._database.read() as connection:
            rule_base.refuse_taken(connection, rules)
            if own:
                refuse_taken_ids(connection, [rule.name for rule in own], own[0].owner)

    def last_rule(self) -> int:
        """The greatest number that an atomic rule ever had."""
        with self._database.read() as connection:
            return counters.current(connection, rule_base.COUNTER)

    def rules(self) -> tuple[StoredRule, ...]:
        """All rules in the order of their names."""
        with self._database.read() as connection:
            rows = connection.execute(select(*metadata_rules.c).order_by(metadata_rules.c.name))
            return tuple(metadata_work.stored_rule(tuple(row)) for row in rows)

    def has_rules(self, owner: str) -> bool:
        """Whether somebody has rules."""
        with self._database.read() as connection:
            wanted = select(metadata_rules.c.name).where(metadata_rules.c.owner == owner).limit(1)
            return connection.execute(wanted).first() is not None

    def named(self, names: Collection[str]) -> dict[str, StoredRule]:
        """Those of these rules that there are, by name."""
        with self._database.read() as connection:
            return metadata_work.stored_rules(connection, names)

    def results(self, name: str) -> tuple[Resource, ...]:
        """The resources that a rule has as its results now, in the order of their URIs."""
        with self._database.read() as connection:
            ends, results = rule_ends.c, rule_results.c
            wanted = select(results.uri).where(ends.name == name, results.rule == ends.rule).distinct()
            uris = connection.execute(wanted).scalars().all()
            return metadata_work.resources(connection, uris)

    def closure(self, uris: Collection[str]) -> tuple[Resource, ...]:
        """Those of these resources that are there, with everything that they refer to strongly, however far."""
        with self._database.read() as connection:
            return closure(connection, uris)

    def resources(self, document: str) -> tuple[Resource, ...]:
        """The resources of a document, in the order of their URIs."""
        with self._database.read() as connection:
            uris = atom_rows.of_documents(connection, [document])[document]
            return metadata_work.resources(connection, uris)

    def count(self) -> int:
        """How many resources there are."""
        with self._database.read() as connection:
            return connection.execute(select(func.count()).select_from(metadata_resources)).scalar_one()

    def ranges(self, size: int) -> list[tuple[str, str | None]]:
        """All resources in ranges of about as many: after a URI, up to and with another one, or to the end."""
        uri = metadata_resources.c.uri
        numbered = select(uri, func.row_number().over(order_by=uri).label("place")).subquery()
        wanted = select(numbered.c.uri).where(numbered.c.place % size == 0).order_by(numbered.c.uri)
        with self._database.read() as connection:
            cuts = connection.execute(wanted).scalars().all()
        return list(pairwise(["", *cuts, None]))

    def between(self, after: str, upto: str | None) -> tuple[Resource, ...]:
        """The resources of a range."""
        uri = metadata_resources.c.uri
        wanted = select(uri).where(uri > after, *([] if upto is None else [uri <= upto]))
        with self._database.read() as connection:
            return metadata_work.resources(connection, connection.execute(wanted).scalars().all())

    def documents_among(self, uris: Collection[str]) -> set[str]:
        """Those of these documents that there are."""
        with self._database.read() as connection:
            return metadata_work.documents_among(connection, uris)

    def document_uris(self, after: str, limit: int) -> list[str]:
        """The URIs of documents after one, in order."""
        with self._database.read() as connection:
            return metadata_work.document_uris(connection, after, limit)

    def documents(self) -> tuple[tuple[str, int], ...]:
        """The URIs of all documents, with how many resources each has."""
        document = metadata_resources.c.document
        wanted = select(document, func.count()).group_by(document).order_by(document)
        with self._database.read() as connection:
            return tuple(tuple(row) for row in connection.execute(wanted))
