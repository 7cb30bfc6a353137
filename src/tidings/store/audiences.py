"""Audiences: a labelled publication is visible only to subscribers with a grant of its label.

    is withheld(subscriber, publication)   the publication has a label, and the subscriber has no grant of it

This rule holds everywhere. `Visibility` applies it to the matches of a batch, before they become notifications;
`withheld_column` is the same as a column, read with each notification, so that revoked grants count.

Labels have a table of their own, with rows for labelled publications only: without labels, lookups cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    exists,
    func,
    select,
    text,
    update,
)

from tidings.model import MATCHED
from tidings.store import bulk, counters, names
from tidings.store.database import Database
from tidings.store.encoding import Clock, MatchRow, escape_unstorable, format_instant
from tidings.store.tables import Name, Whole, metadata

labels = Table(
    "audience_labels",
    metadata,
    Column("publication", Name, primary_key=True),
    Column("label", Name, nullable=False),
    sqlite_with_rowid=False,
)

# A revoked grant stays, with its end: feeds change at that moment and report it.
grants = Table(
    "audience_grants",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("label", Name, primary_key=True),
    Column("since", Name, nullable=False),
    Column("until", Name, nullable=True),
    Column("version", Whole, nullable=False),
    sqlite_with_rowid=False,
)
_HOLDS = grants.c.until.is_(None)


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission of a subscriber to see publications with a label."""

    subscriber: str
    label: str
    since: str


@dataclass(frozen=True, slots=True)
class GrantChange:
    """Version and time of the last change of a subscriber's grants."""

    version: int = 0
    time: str = ""


def withheld_column(table: Table) -> ColumnElement[bool]:
    """Build the column that is true if a notification is withheld from its subscriber."""
    own = grants.c.subscriber == table.c.subscriber, grants.c.label == labels.c.label, _HOLDS
    granted = exists().where(*own).correlate_except(grants)
    hidden = exists().where(labels.c.publication == table.c.publication, ~granted).correlate_except(labels)
    return and_(table.c.kind == MATCHED, hidden)


class Visibility:
    """Visibility of publications to subscribers, in the transaction that writes notifications."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._labelled = connection.execute(_ANY).first() is not None

    def only(self, part: list[MatchRow]) -> list[MatchRow]:
        """Return the matches that become notifications; without labels these are all."""
        carried = self._read_labels(part) if self._labelled else {}
        if not carried:
            return part
        concerned = {one.subscriber for one in part if one.publication in carried}
        granted = {
            (row.subscriber, row.label)
            for row in bulk.select_among(self._connection, _GRANTED, grants.c.subscriber, concerned)
        }
        return [one for one in part if _is_visible(granted, one, carried.get(one.publication))]

    def _read_labels(self, part: Iterable[MatchRow]) -> dict[str, str]:
        """Return the labels by publication."""
        stored = {name: escape_unstorable(name) for name in {one.publication for one in part}}
        labels = labels_of(self._connection, set(stored.values()))
        return {name: labels[id] for name, id in stored.items() if id in labels}


def _is_visible(granted: Collection[tuple[str, str]], match: MatchRow, label: str | None) -> bool:
    """Return whether a match is visible. A resource with the name of a publication has no label."""
    return label is None or match.kind != MATCHED or (match.subscriber, label) in granted


_ANY = select(labels.c.publication).limit(1)
_LABELS = select(labels.c.publication, labels.c.label)
_GRANTED = select(grants.c.subscriber, grants.c.label).where(_HOLDS)


def labels_of(connection: Connection, publications: Collection[str]) -> dict[str, str]:
    """Return the labels of publications that have one."""
    rows = bulk.select_among(connection, _LABELS, labels.c.publication, publications)
    return {row.publication: row.label for row in rows}


def is_visible(granted: Collection[str] | None, label: str | None) -> bool:
    """Return whether a reader with these grants sees a label; `granted` is None for an unrestricted reader."""
    return label is None or granted is None or label in granted


class Audiences:
    """The grants of labels to subscribers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def grant(self, subscriber: str, label: str) -> bool:
        """Grant a label to a subscriber; return false if it was granted before."""
        names.check("a subscriber's name", subscriber, "/subscriber")
        check_label(label)
        since = format_instant(self._clock())
        return self._database.transact(lambda c: _grant(c, subscriber, label, since))

    def revoke(self, subscriber: str, label: str) -> bool:
        """Revoke a grant, also for earlier notifications; return false if there is none."""
        until = format_instant(self._clock())
        return self._database.transact(lambda c: _revoke(c, subscriber, label, until))

    def of(self, subscriber: str) -> frozenset[str]:
        """Return the labels granted to a subscriber."""
        with self._database.read() as connection:
            query = select(grants.c.label).where(grants.c.subscriber == subscriber, _HOLDS)
            return frozenset(connection.execute(query).scalars())

    def labelled(self, publications: Collection[str]) -> set[str]:
        """Return which of these publications have a label."""
        with self._database.read() as connection:
            return set(labels_of(connection, publications))

    def list(self, subscriber: str | None = None) -> Sequence[Grant]:
        """List the current grants, of all subscribers or of one, by name."""
        query = select(grants.c.subscriber, grants.c.label, grants.c.since).where(_HOLDS)
        if subscriber is not None:
            query = query.where(grants.c.subscriber == subscriber)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(grants.c.subscriber, grants.c.label))
            return [Grant(*row) for row in rows]

    def last_change(self, subscriber: str) -> GrantChange:
        """Return the last change of a subscriber's grants."""
        moment = func.coalesce(grants.c.until, grants.c.since)
        query = select(grants.c.version, moment).where(grants.c.subscriber == subscriber)
        with self._database.read() as connection:
            row = connection.execute(query.order_by(grants.c.version.desc()).limit(1)).one_or_none()
        return GrantChange(*row) if row else GrantChange()


def check_label(label: str) -> str:
    """Return a valid label or raise."""
    return names.check("an audience label", label, "/label")


def _grant(connection: Connection, subscriber: str, label: str, since: str) -> bool:
    """Insert or renew a grant; the counter is locked first, which serializes equal grants."""
    last = counters.lock(connection, "audiences")
    row = {"subscriber": subscriber, "label": label, "since": since, "version": last + 1}
    if not connection.execute(_GRANT, row).rowcount:
        return False
    counters.advance(connection, "audiences", last + 1)
    return True


_GRANT = text(
    "INSERT INTO audience_grants (subscriber, label, since, version)"
    " VALUES (:subscriber, :label, :since, :version)"
    " ON CONFLICT (subscriber, label) DO UPDATE SET since = excluded.since, until = NULL, version = excluded.version"
    " WHERE audience_grants.until IS NOT NULL"
)


def _revoke(connection: Connection, subscriber: str, label: str, until: str) -> bool:
    last = counters.lock(connection, "audiences")
    parameters = {"who": subscriber, "what": label, "end": until, "to": last + 1}
    if not connection.execute(_REVOKE, parameters).rowcount:
        return False
    counters.advance(connection, "audiences", last + 1)
    return True


_REVOKE = (
    update(grants)
    .where(grants.c.subscriber == bindparam("who"), grants.c.label == bindparam("what"), _HOLDS)
    .values(until=bindparam("end"), version=bindparam("to"))
)
