"""Deferred notifications: gathered for subscriptions with an accepted delay, and handed over together.

The first deferred notification of a subscription sets a deadline (a row of `promises`) for itself and all that follow
until then. The handover numbers them in the order of their matches and removes the deadline, in one transaction, so a
concurrent handover finds nothing to do. Deferred notifications have no sequence numbers, so others do not wait for
them.

They do not depend on the subscription any more: its removal does not remove them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
    union,
    update,
)

from tidings.delivery.sql.tables import delivery_gathered, delivery_owners
from tidings.store import bulk, counters, encoding
from tidings.store import counters as sequences
from tidings.store.clock_recovery import latest_possible
from tidings.store.encoding import MatchRow, format_instant
from tidings.store.tables import held, notifications, promises, subscribers, subscriptions

SOON = timedelta(seconds=0.5)
"""Longer than the time between two handovers. What becomes due before the next one is handed over now."""

Delays = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class DeferredSummary:
    """Number of deferred notifications of a subscriber, and the first deadline."""

    count: int
    due: str | None


def accepted_delays(connection: Connection, matches: Collection[MatchRow]) -> Delays:
    """Return the accepted delays by subscription and subscriber, where there is one.

    A subscription that was removed after the match has none: its last notifications are not deferred. Removed ones are
    filtered here and not in SQL, because SQLite would use the index of all active subscriptions and not the small one
    of those with a delay.
    """
    columns = (
        subscriptions.c.id,
        subscriptions.c.subscriber,
        subscriptions.c.within,
        subscriptions.c.removed,
    )
    delayed = select(*columns).where(subscriptions.c.within.is_not(None))
    if not _any(connection, delayed):
        return {}
    ids = {one.subscription for one in matches}
    rows = bulk.select_among(connection, delayed, subscriptions.c.id, ids)
    return {(row.id, row.subscriber): row.within for row in rows if row.removed is None}


def find_deferred(connection: Connection, ids: Collection[str]) -> list[str]:
    """Return which of these notifications are deferred."""
    wanted = select(held.c.id)
    if not _any(connection, wanted):
        return []
    return [row.id for row in bulk.select_among(connection, wanted, held.c.id, ids)]


def _any(connection: Connection, wanted: Select[*tuple[Any, ...]]) -> bool:
    """Return whether there is any such row; without accepted delays this saves thousands of lookups."""
    return connection.execute(wanted.limit(1)).first() is not None


def defer(connection: Connection, new: Mapping[str, MatchRow], delays: Delays, moment: datetime) -> None:
    """Insert deferred notifications in the given order; their subscribers must be locked."""
    if not new:
        return
    last, time = counters.lock(connection, "held"), format_instant(moment)
    rows = [
        encoding.notification_row(id, one, last + i, time) for i, (id, one) in enumerate(new.items(), start=1)
    ]
    bulk.insert_rows(connection, held, rows)
    counters.advance(connection, "held", last + len(rows))
    groups = dict.fromkeys((one.subscription, one.subscriber) for one in new.values())
    connection.execute(_PROMISE, [_promise(*group, delays[group], moment) for group in groups])


# An existing deadline stays unless the new one is earlier: the delay was shortened, or the clock set back.
_PROMISE = text(
    "INSERT INTO promises (subscriber, subscription, since, due) VALUES (:subscriber, :subscription, :since, :due)"
    " ON CONFLICT (subscriber, subscription) DO UPDATE SET due = excluded.due"
    " WHERE excluded.due < promises.due"
)


def _promise(subscription: str, subscriber: str, within: int, moment: datetime) -> dict[str, str]:
    due = format_instant(moment + timedelta(seconds=within))
    return {
        "subscriber": subscriber,
        "subscription": subscription,
        "since": format_instant(moment),
        "due": due,
    }


def _why_now(soon: Any, ahead: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions for a handover: the deadline has come, or the clock was set back since it was set."""
    return promises.c.due <= soon, promises.c.since > ahead


def _times(moment: datetime) -> tuple[str, str]:
    return format_instant(moment + SOON), latest_possible(moment)


# Statements are built once. A union, because each half has its index; with an `or` SQLite would read all deadlines.
_WHY = _why_now(bindparam("soon"), bindparam("ahead"))
_DUE = union(*(select(promises.c.subscriber).where(why) for why in _WHY))
_DUE_TO_ONE = (
    select(promises.c.subscriber).where(promises.c.subscriber == bindparam("name"), or_(*_WHY)).limit(1)
)


def find_due(connection: Connection, moment: datetime, subscriber: str | None = None) -> Sequence[str]:
    """Return subscribers with deferred notifications that are due, of all or only this one."""
    soon, ahead = _times(moment)
    times = {"soon": soon, "ahead": ahead}
    if subscriber is None:
        return connection.execute(_DUE, times).scalars().all()
    return connection.execute(_DUE_TO_ONE, times | {"name": subscriber}).scalars().all()


def hand_over(connection: Connection, to: Sequence[str], moment: datetime) -> int:
    """Hand over what is due to subscribers; return how many notifications."""
    sequences.lock_sequences(connection, to)
    kept = and_(promises.c.subscriber.in_(to), or_(*_why_now(*_times(moment))))
    groups = select(promises.c.subscriber, promises.c.subscription).where(kept)
    gathered = tuple_(held.c.subscriber, held.c.subscription).in_(groups)
    moved = insert(notifications).from_select(_COLUMNS, _numbered(gathered))
    told = connection.execute(moved, execution_options={"preserve_rowcount": True})
    connection.execute(
        update(subscribers).where(subscribers.c.subscriber.in_(to)).values(last_sequence=_LAST)
    )
    together = [row._asdict() for row in connection.execute(_TOGETHER.where(kept))]
    bulk.insert_missing(connection, delivery_gathered, together)
    connection.execute(delete(held).where(gathered))
    connection.execute(delete(promises).where(kept))
    return told.rowcount


# For subscribers with destinations: gathered notifications become one digest, even if the subscription is removed.
_TOGETHER = (
    select(promises.c.subscriber, promises.c.subscription, subscribers.c.last_sequence.label("upto"))
    .join_from(promises, subscribers, subscribers.c.subscriber == promises.c.subscriber)
    .join(delivery_owners, delivery_owners.c.subscriber == promises.c.subscriber)
)

# Two streams may find the same match for different owners of a subscription that changed its owner, and neither sees
# the uncommitted row of the other. The first one that is handed over is the notification.
_UNTOLD = ~exists().where(notifications.c.id == held.c.id)

_GIVEN = and_(
    notifications.c.subscriber == subscribers.c.subscriber,
    notifications.c.sequence > subscribers.c.last_sequence,
)
_LAST = func.coalesce(
    select(func.max(notifications.c.sequence)).where(_GIVEN).scalar_subquery(), subscribers.c.last_sequence
)

_COLUMNS = [column.name for column in notifications.columns]


def _numbered(gathered: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select deferred notifications as rows of `notifications`; the subscribers must be locked."""
    turn = func.row_number().over(partition_by=held.c.subscriber, order_by=held.c.place)
    values = {column.name: column for column in held.columns} | {
        "sequence": subscribers.c.last_sequence + turn
    }
    wanted = select(*(values[name] for name in _COLUMNS)).where(gathered, _UNTOLD)
    return wanted.join_from(held, subscribers, subscribers.c.subscriber == held.c.subscriber)


def summarize_deferred(connection: Connection, subscriber: str) -> DeferredSummary:
    """Summarize the deferred notifications of a subscriber."""
    counted = select(func.count()).where(held.c.subscriber == subscriber)
    first = select(func.min(promises.c.due)).where(promises.c.subscriber == subscriber)
    return DeferredSummary(int(connection.execute(counted).scalar_one()), connection.execute(first).scalar())
