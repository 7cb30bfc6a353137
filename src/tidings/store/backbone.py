"""A provider among others, as it is stored: whom it follows, where it stands, and what it tells those who follow it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, func, insert, select

from tidings.metadata.log_pages import Page
from tidings.store import counters, metadata_log
from tidings.store.backbone_tables import metadata_backbone
from tidings.store.database import Database
from tidings.store.metadata_tables import APPLIED, LOG, RULE_CHANGES, metadata_identity
from tidings.store.metadata_tables import metadata_log as log_table
from tidings.store.rule_tables import metadata_resources, metadata_rules
from tidings.store.tables import counters as counters_table

LEADER = "leader"
SIZE = 32_000_000
"""How many bytes the bodies of a page of the log may have together."""


@dataclass(frozen=True, slots=True)
class Status:
    """Where a provider stands: how far it has applied its log, which begins at `first` and ends at `head`.

    `leader` is where the log comes from, nothing if it is the provider's own.
    """

    provider: str
    position: int
    head: int
    first: int
    leader: str | None
    documents: int
    resources: int
    rules: int


class Backbone:
    """A store among others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def status(self) -> Status:
        """Where the provider stands, as of one moment."""
        with self._database.moment() as connection:
            return _status(connection)

    def mark(self) -> tuple[int, ...]:
        """Another one whenever there may be something new: in the log, in what is applied of it, or of rules."""
        c = counters_table.c
        wanted = select(c.value).where(c.name.in_((LOG, APPLIED, RULE_CHANGES))).order_by(c.name)
        with self._database.read() as connection:
            return tuple(connection.execute(wanted).scalars())

    def page(self, after: int, limit: int, size: int = SIZE) -> Page:
        """Entries after a position, as of one moment: so many, and of so many bytes, but one of any size."""
        with self._database.moment() as connection:
            return _page(connection, after, limit, size)

    def leader(self) -> str | None:
        """Where the log comes from; nothing if it is the provider's own."""
        with self._database.read() as connection:
            return leader(connection)

    def follow(self, url: str | None) -> None:
        """Note where the log comes from from now on."""
        self._database.transact(lambda connection: _follow(connection, url))


def _page(connection: Connection, after: int, limit: int, size: int) -> Page:
    begins = metadata_log.first(connection)
    metadata_log.refuse_trimmed(begins, after)
    fitting = _fitting(connection, after, limit, size)
    entries = metadata_log.read(connection, after, fitting) if fitting else []
    return Page(_identity(connection), begins, counters.current(connection, LOG), tuple(entries))


def _fitting(connection: Connection, after: int, limit: int, size: int) -> int:
    """How many entries fit into a size."""
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


def leader(connection: Connection) -> str | None:
    """Whom the provider follows."""
    c = metadata_backbone.c
    found: str | None = connection.execute(select(c.value).where(c.name == LEADER)).scalar()
    return found


def _follow(connection: Connection, url: str | None) -> None:
    connection.execute(delete(metadata_backbone).where(metadata_backbone.c.name == LEADER))
    if url is not None:
        connection.execute(insert(metadata_backbone), {"name": LEADER, "value": url})


def _status(connection: Connection) -> Status:
    resources = metadata_resources.c
    return Status(
        provider=_identity(connection),
        position=counters.current(connection, APPLIED),
        head=counters.current(connection, LOG),
        first=metadata_log.first(connection),
        leader=leader(connection),
        documents=_count(connection, select(func.count(func.distinct(resources.document)))),
        resources=_count(connection, select(func.count()).select_from(metadata_resources)),
        rules=_count(connection, select(func.count()).select_from(metadata_rules)),
    )


def _count(connection: Connection, wanted: Select[int]) -> int:
    return connection.execute(wanted).scalar_one()
