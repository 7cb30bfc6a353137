"""Stored state of replication: the followed log, the provider's position, and pages for followers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, func, insert, select

from tidings.metadata.log import LogPage
from tidings.metadata.sql import log_rows
from tidings.metadata.sql.log_tables import (
    APPLIED_COUNTER,
    LOG_COUNTER,
    RULE_CHANGES_COUNTER,
    metadata_identity,
)
from tidings.metadata.sql.log_tables import metadata_log as log_table
from tidings.metadata.sql.tables import metadata_backbone, metadata_resources, metadata_rules
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.tables import counters as counters_table

LEADER_KEY = "leader"
MAX_PAGE_BYTES = 32_000_000
"""The limit of all bodies of a page of the log in bytes."""


@dataclass(frozen=True, slots=True)
class ReplicationStatus:
    """The state of a provider: the position up to which it has applied its log, from `first` to `head`.

    `leader` is the name of the followed log, None if the provider leads.
    """

    provider: str
    position: int
    head: int
    first: int
    leader: str | None
    documents: int
    resources: int
    rules: int


class ReplicationStore:
    """The replication state of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def status(self) -> ReplicationStatus:
        """Return the state of the provider at one moment."""
        with self._database.moment() as connection:
            return _status(connection)

    def mark(self) -> tuple[int, ...]:
        """Return a version that changes with the log, the position or the rules."""
        c = counters_table.c
        wanted = (
            select(c.value)
            .where(c.name.in_((LOG_COUNTER, APPLIED_COUNTER, RULE_CHANGES_COUNTER)))
            .order_by(c.name)
        )
        with self._database.read() as connection:
            return tuple(connection.execute(wanted).scalars())

    def page(self, after: int, limit: int, size: int = MAX_PAGE_BYTES) -> LogPage:
        """Return entries after a position, limited by number and size; at least one, of any size."""
        with self._database.moment() as connection:
            return _page(connection, after, limit, size)

    def leader(self) -> str | None:
        """Return the name of the followed log; None if the provider leads."""
        with self._database.read() as connection:
            return load_leader(connection)

    def follow(self, url: str | None) -> None:
        """Record the followed log."""
        self._database.transact(lambda connection: _follow(connection, url))


def _page(connection: Connection, after: int, limit: int, size: int) -> LogPage:
    begins = log_rows.first_position(connection)
    log_rows.check_not_trimmed(begins, after)
    fitting = _fitting(connection, after, limit, size)
    entries = log_rows.read_entries(connection, after, fitting) if fitting else []
    return LogPage(_identity(connection), begins, counters.current(connection, LOG_COUNTER), tuple(entries))


def _fitting(connection: Connection, after: int, limit: int, size: int) -> int:
    """Count the entries that fit into the size limit."""
    c = log_table.c
    lengths = select(func.length(c.body)).where(c.position > after).order_by(c.position).limit(limit)
    total = 0
    for count, length in enumerate(connection.execute(lengths).scalars()):
        total += length
        if total > size and count:
            return count
    return limit


def _identity(connection: Connection) -> str:
    return str(connection.execute(select(metadata_identity.c.id)).scalar_one())


def load_leader(connection: Connection) -> str | None:
    """Return the name of the followed log."""
    c = metadata_backbone.c
    found: str | None = connection.execute(select(c.value).where(c.name == LEADER_KEY)).scalar()
    return found


def _follow(connection: Connection, url: str | None) -> None:
    connection.execute(delete(metadata_backbone).where(metadata_backbone.c.name == LEADER_KEY))
    if url is not None:
        connection.execute(insert(metadata_backbone), {"name": LEADER_KEY, "value": url})


def _status(connection: Connection) -> ReplicationStatus:
    resources = metadata_resources.c
    return ReplicationStatus(
        provider=_identity(connection),
        position=counters.current(connection, APPLIED_COUNTER),
        head=counters.current(connection, LOG_COUNTER),
        first=log_rows.first_position(connection),
        leader=load_leader(connection),
        documents=_count(connection, select(func.count(func.distinct(resources.document)))),
        resources=_count(connection, select(func.count()).select_from(metadata_resources)),
        rules=_count(connection, select(func.count()).select_from(metadata_rules)),
    )


def _count(connection: Connection, wanted: Select[int]) -> int:
    return connection.execute(wanted).scalar_one()
