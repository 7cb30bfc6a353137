"""Audiences: a publication may carry a label, and then only those see it who were granted the label.

    is withheld(subscriber, publication)   the publication has a label, and the subscriber has no grant of it

That one sentence decides everywhere. `Seeing` asks it of the matches of a batch, before they become notifications;
`withheld` is the same as a column, which is read with each notification: a grant that was revoked meanwhile counts.

Labels are in a table of their own, and not in the journal. It has rows for labelled publications only, so where nobody
uses labels it is empty, and looking something up in it costs nothing.
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

# A grant that was revoked stays, with its end: feeds look different from that moment on, and say so.
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
    """A subscriber may see what carries a label, since a moment."""

    subscriber: str
    label: str
    since: str


@dataclass(frozen=True, slots=True)
class GrantChange:
    """How often grants had been changed when a subscriber's were changed last, and when that was."""

    version: int = 0
    time: str = ""


def withheld_column(told: Table) -> ColumnElement[bool]:
    """Whether a subscriber may not see the publication of a notification, as a column of whatever is read."""
    own = grants.c.subscriber == told.c.subscriber, grants.c.label == labels.c.label, _HOLDS
    granted = exists().where(*own).correlate_except(grants)
    hidden = exists().where(labels.c.publication == told.c.publication, ~granted).correlate_except(labels)
    return and_(told.c.kind == MATCHED, hidden)


class Visibility:
    """What the owners of subscriptions may see, inside the transaction that tells them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._labelled = connection.execute(_ANY).first() is not None

    def only(self, part: list[MatchRow]) -> list[MatchRow]:
        """The matches that become notifications. Where nothing carries a label, none of them is looked at."""
        carried = self._carried(part) if self._labelled else {}
        if not carried:
            return part
        concerned = {one.subscriber for one in part if one.publication in carried}
        granted = {
            (row.subscriber, row.label)
            for row in bulk.select_among(self._connection, _GRANTED, grants.c.subscriber, concerned)
        }
        return [one for one in part if _sees(granted, one, carried.get(one.publication))]

    def _carried(self, part: Iterable[MatchRow]) -> dict[str, str]:
        """The labels, by publication."""
        kept = {name: escape_unstorable(name) for name in {one.publication for one in part}}
        found = labels_of(self._connection, set(kept.values()))
        return {name: found[id] for name, id in kept.items() if id in found}


def _sees(granted: Collection[tuple[str, str]], one: MatchRow, label: str | None) -> bool:
    """A resource that is called as a publication is another thing, and carries no label."""
    return label is None or one.kind != MATCHED or (one.subscriber, label) in granted


_ANY = select(labels.c.publication).limit(1)
_LABELS = select(labels.c.publication, labels.c.label)
_GRANTED = select(grants.c.subscriber, grants.c.label).where(_HOLDS)


def labels_of(connection: Connection, publications: Collection[str]) -> dict[str, str]:
    """The labels of those of these publications that carry one."""
    rows = bulk.select_among(connection, _LABELS, labels.c.publication, publications)
    return {row.publication: row.label for row in rows}


def is_visible(granted: Collection[str] | None, label: str | None) -> bool:
    """Whether whoever was granted these labels sees what carries one, or none. Who is not filtered has no such list."""
    return label is None or granted is None or label in granted


class Audiences:
    """Who may see what carries a label."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def grant(self, subscriber: str, label: str) -> bool:
        """Let a subscriber see what carries a label; false if they may already."""
        names.check("a subscriber's name", subscriber, "/subscriber")
        check_label(label)
        since = format_instant(self._clock())
        return self._database.transact(lambda c: _grant(c, subscriber, label, since))

    def revoke(self, subscriber: str, label: str) -> bool:
        """Take it back, also for what they were told before; false if they may not see it anyway."""
        until = format_instant(self._clock())
        return self._database.transact(lambda c: _revoke(c, subscriber, label, until))

    def of(self, subscriber: str) -> frozenset[str]:
        """The labels that a subscriber may see."""
        with self._database.read() as connection:
            wanted = select(grants.c.label).where(grants.c.subscriber == subscriber, _HOLDS)
            return frozenset(connection.execute(wanted).scalars())

    def labelled(self, publications: Collection[str]) -> set[str]:
        """Those of these publications that carry a label."""
        with self._database.read() as connection:
            return set(labels_of(connection, publications))

    def list(self, subscriber: str | None = None) -> Sequence[Grant]:
        """The grants of now, of everybody or of one subscriber, by name."""
        wanted = select(grants.c.subscriber, grants.c.label, grants.c.since).where(_HOLDS)
        if subscriber is not None:
            wanted = wanted.where(grants.c.subscriber == subscriber)
        with self._database.read() as connection:
            rows = connection.execute(wanted.order_by(grants.c.subscriber, grants.c.label))
            return [Grant(*row) for row in rows]

    def changed(self, subscriber: str) -> GrantChange:
        """When what a subscriber may see was changed last."""
        moment = func.coalesce(grants.c.until, grants.c.since)
        wanted = select(grants.c.version, moment).where(grants.c.subscriber == subscriber)
        with self._database.read() as connection:
            row = connection.execute(wanted.order_by(grants.c.version.desc()).limit(1)).one_or_none()
        return GrantChange(*row) if row else GrantChange()


def check_label(label: str) -> str:
    """The label itself, if it can be one."""
    return names.check("an audience label", label, "/label")


def _grant(connection: Connection, subscriber: str, label: str, since: str) -> bool:
    """The counter is locked first, so two who grant the same follow each other."""
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
    given = {"who": subscriber, "what": label, "end": until, "to": last + 1}
    if not connection.execute(_REVOKE, given).rowcount:
        return False
    counters.advance(connection, "audiences", last + 1)
    return True


_REVOKE = (
    update(grants)
    .where(grants.c.subscriber == bindparam("who"), grants.c.label == bindparam("what"), _HOLDS)
    .values(until=bindparam("end"), version=bindparam("to"))
)
