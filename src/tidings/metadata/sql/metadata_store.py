"""Metadata as it is stored: a log, a schema, documents, rules and results. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from sqlalchemy import Connection, func, select

from tidings.errors import SetupError
from tidings.metadata.documents import Document
from tidings.metadata.log import LogEntry
from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import log_rows, resource_rows, rule_base, transaction
from tidings.metadata.sql.log_rows import MetadataLog
from tidings.metadata.sql.log_tables import APPLIED_COUNTER, metadata_identity
from tidings.metadata.sql.resource_rows import load_strong_closure
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.tables import metadata_resources, metadata_rules, rule_ends, rule_results
from tidings.metadata.sql.transaction import MetadataTransaction, RegistrationResult, SchemaFile, StoredRule
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.encoding import Clock, utc_now
from tidings.store.subscriptions.admission import refuse_taken_ids

__all__ = ["MetadataStore", "MetadataTransaction", "RegistrationResult", "SchemaFile", "StoredRule"]


# All metadata of a store as of one moment, some documents at a time.


SNAPSHOT_PAGE = 500


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """How far the log was applied, by which schema, and how many documents there are; these can be read once."""

    position: int
    schema: SchemaFile
    count: int
    documents: Iterator[Document]


def read_snapshot(connection: Connection) -> MetadataSnapshot:
    """The metadata; the connection has to see one moment for as long as documents are read."""
    schema = transaction.load_schema_file(connection)
    if schema is None:
        hint = "tidings provider schema FILE"
        raise SetupError("there is no schema for metadata yet, and nothing else", hint=hint)
    counted = select(func.count(func.distinct(metadata_resources.c.document)))
    count = connection.execute(counted).scalar_one()
    return MetadataSnapshot(
        counters.current(connection, APPLIED_COUNTER), schema, count, _documents(connection)
    )


def _documents(connection: Connection) -> Iterator[Document]:
    last = ""
    while page := transaction.list_document_uris(connection, last, SNAPSHOT_PAGE):
        resources = resource_rows.load_document_members(connection, page)
        found = resource_rows.load_resources(connection, [uri for each in resources.values() for uri in each])
        for document in page:
            yield Document(document, tuple(found[uri].resource for uri in sorted(resources[document])))
        last = page[-1]


T = TypeVar("T")


class MetadataStore:
    """The metadata of a store."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database, self._clock = database, clock
        self.log = MetadataLog(database)

    def transact(self, work: Callable[[MetadataTransaction], T]) -> T:
        """Do something with metadata in one transaction: all of it is durable when this returns, or none of it."""
        return self._database.transact(lambda connection: work(MetadataTransaction(connection, self._clock)))

    def identity(self) -> str:
        """What this store is called among providers."""
        with self._database.read() as connection:
            return str(connection.execute(select(metadata_identity.c.id)).scalar_one())

    def position(self) -> int:
        """The last position of the log that was applied."""
        with self._database.read() as connection:
            return counters.current(connection, APPLIED_COUNTER)

    @contextmanager
    def snapshot(self) -> Iterator[MetadataSnapshot]:
        """All metadata as of one moment."""
        with self._database.moment() as connection:
            yield read_snapshot(connection)

    def schema(self) -> SchemaFile | None:
        with self._database.read() as connection:
            return transaction.load_schema_file(connection)

    def pending_schemas(self) -> list[LogEntry]:
        """The schemas that stand in the log and are not applied yet."""
        with self._database.read() as connection:
            return log_rows.read_schema_entries(connection, counters.current(connection, APPLIED_COUNTER))

    def triggering(self, after: int = 0) -> dict[int, TriggeringRule]:
        """The triggering rules with greater numbers, for an index."""
        with self._database.read() as connection:
            return rule_base.load_triggering(connection, after)

    def new_triggering(self, schema: Schema, rules: Sequence[NamedRule]) -> dict[str, TriggeringRule]:
        """The triggering rules that rules would bring with them, by key."""
        with self._database.read() as connection:
            return rule_base.find_new_triggering(connection, schema, rules)

    def refuse_taken(self, rules: Sequence[NamedRule]) -> None:
        """Refuse new rules whose names are taken, before anybody looks for their results."""
        own = [rule for rule in rules if not rule.scope]
        with self._database.read() as connection:
            rule_base.check_names_free(connection, rules)
            if own:
                refuse_taken_ids(connection, [rule.name for rule in own], own[0].owner)

    def last_rule(self) -> int:
        """The greatest number that an atomic rule ever had."""
        with self._database.read() as connection:
            return counters.current(connection, rule_base.ATOMIC_RULE_COUNTER)

    def rules(self) -> tuple[StoredRule, ...]:
        """All rules in the order of their names."""
        with self._database.read() as connection:
            rows = connection.execute(select(*metadata_rules.c).order_by(metadata_rules.c.name))
            return tuple(transaction.stored_rule_from_row(tuple(row)) for row in rows)

    def has_rules(self, owner: str) -> bool:
        """Whether somebody has rules."""
        with self._database.read() as connection:
            wanted = select(metadata_rules.c.name).where(metadata_rules.c.owner == owner).limit(1)
            return connection.execute(wanted).first() is not None

    def named(self, names: Collection[str]) -> dict[str, StoredRule]:
        """Those of these rules that there are, by name."""
        with self._database.read() as connection:
            return transaction.load_stored_rules(connection, names)

    def results(self, name: str) -> tuple[Resource, ...]:
        """The resources that a rule has as its results now, in the order of their URIs."""
        with self._database.read() as connection:
            ends, results = rule_ends.c, rule_results.c
            wanted = select(results.uri).where(ends.name == name, results.rule == ends.rule).distinct()
            uris = connection.execute(wanted).scalars().all()
            return transaction.list_resources(connection, uris)

    def closure(self, uris: Collection[str]) -> tuple[Resource, ...]:
        """Those of these resources that are there, with everything that they refer to strongly, however far."""
        with self._database.read() as connection:
            return load_strong_closure(connection, uris)

    def resources(self, document: str) -> tuple[Resource, ...]:
        """The resources of a document, in the order of their URIs."""
        with self._database.read() as connection:
            uris = resource_rows.load_document_members(connection, [document])[document]
            return transaction.list_resources(connection, uris)

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
            return transaction.list_resources(connection, connection.execute(wanted).scalars().all())

    def documents_among(self, uris: Collection[str]) -> set[str]:
        """Those of these documents that there are."""
        with self._database.read() as connection:
            return transaction.find_documents(connection, uris)

    def document_uris(self, after: str, limit: int) -> list[str]:
        """The URIs of documents after one, in order."""
        with self._database.read() as connection:
            return transaction.list_document_uris(connection, after, limit)

    def documents(self) -> tuple[tuple[str, int], ...]:
        """The URIs of all documents, with how many resources each has."""
        document = metadata_resources.c.document
        wanted = select(document, func.count()).group_by(document).order_by(document)
        with self._database.read() as connection:
            return tuple(tuple(row) for row in connection.execute(wanted))
