"""Delayed notifications: collected for subscriptions with an accepted delay, and released together.

The first delayed notification of a subscription sets a deadline (a row of `promises`) for itself and all that follow
until then. The release numbers them in the order of their matches and removes the deadline, in one transaction, so a
concurrent release finds nothing to do. Delayed notifications have no sequence numbers, so others do not wait for them.
They are independent of their subscription: its removal does not remove them.
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
from tidings.store.clock_recovery import latest_possible
from tidings.store.encoding import MatchRow, format_instant
from tidings.store.tables import held, notifications, promises, subscribers, subscriptions

SOON = timedelta(seconds=0.5)
"""Longer than the time between two releases: notifications that become due before the next one are released now."""

Delays = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class DelayedSummary:
    """Number of delayed notifications of a subscriber, and the first deadline."""

    count: int
    due: str | None


def accepted_delays(connection: Connection, matches: Collection[MatchRow]) -> Delays:
    """Return the accepted delays by subscription and subscriber, where there is one.

    A subscription that was removed after the match has none: its last notifications are not delayed. Removed ones are
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
    ids = {match.subscription for match in matches}
    rows = bulk.select_among(connection, delayed, subscriptions.c.id, ids)
    return {(row.id, row.subscriber): row.within for row in rows if row.removed is None}


def find_delayed(connection: Connection, ids: Collection[str]) -> list[str]:
    """Return which of these notifications are delayed."""
    wanted = select(held.c.id)
    if not _any(connection, wanted):
        return []
    return [row.id for row in bulk.select_among(connection, wanted, held.c.id, ids)]


def _any(connection: Connection, wanted: Select[*tuple[Any, ...]]) -> bool:
    """Return whether there is any such row; without accepted delays this saves thousands of lookups."""
    return connection.execute(wanted.limit(1)).first() is not None


def delay(connection: Connection, new: Mapping[str, MatchRow], delays: Delays, moment: datetime) -> None:
    """Insert delayed notifications in the given order; their subscribers must be locked."""
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
    """Return the conditions for a release: the deadline has passed, or the clock was set back since it was set."""
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
    """Return subscribers with delayed notifications that are due, of all or only this one."""
    soon, ahead = _times(moment)
    times = {"soon": soon, "ahead": ahead}
    if subscriber is None:
        return connection.execute(_DUE, times).scalars().all()
    return connection.execute(_DUE_TO_ONE, times | {"name": subscriber}).scalars().all()


def release(connection: Connection, to: Sequence[str], moment: datetime) -> int:
    """Release the due notifications of subscribers; return how many."""
    counters.lock_sequences(connection, to)
    due = and_(promises.c.subscriber.in_(to), or_(*_why_now(*_times(moment))))
    groups = select(promises.c.subscriber, promises.c.subscription).where(due)
    gathered = tuple_(held.c.subscriber, held.c.subscription).in_(groups)
    moved = insert(notifications).from_select(_COLUMNS, _numbered(gathered))
    released = connection.execute(moved, execution_options={"preserve_rowcount": True})
    connection.execute(
        update(subscribers).where(subscribers.c.subscriber.in_(to)).values(last_sequence=_LAST)
    )
    digests = [row._asdict() for row in connection.execute(_DIGESTS.where(due))]
    bulk.insert_missing(connection, delivery_gathered, digests)
    connection.execute(delete(held).where(gathered))
    connection.execute(delete(promises).where(due))
    return released.rowcount


# For subscribers with destinations: collected notifications become one digest, even if the subscription is removed.
_DIGESTS = (
    select(promises.c.subscriber, promises.c.subscription, subscribers.c.last_sequence.label("upto"))
    .join_from(promises, subscribers, subscribers.c.subscriber == promises.c.subscriber)
    .join(delivery_owners, delivery_owners.c.subscriber == promises.c.subscriber)
)

# Two streams may find the same match for different owners of a subscription that changed its owner, and neither sees
# the uncommitted row of the other. The first one that is released is the notification.
_IS_NEW = ~exists().where(notifications.c.id == held.c.id)

_RELEASED = and_(
    notifications.c.subscriber == subscribers.c.subscriber,
    notifications.c.sequence > subscribers.c.last_sequence,
)
_LAST = func.coalesce(
    select(func.max(notifications.c.sequence)).where(_RELEASED).scalar_subquery(), subscribers.c.last_sequence
)

_COLUMNS = [column.name for column in notifications.columns]


def _numbered(gathered: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select delayed notifications as rows of `notifications`; the subscribers must be locked."""
    turn = func.row_number().over(partition_by=held.c.subscriber, order_by=held.c.place)
    values = {column.name: column for column in held.columns} | {
        "sequence": subscribers.c.last_sequence + turn
    }
    wanted = select(*(values[name] for name in _COLUMNS)).where(gathered, _IS_NEW)
    return wanted.join_from(held, subscribers, subscribers.c.subscriber == held.c.subscriber)


def summarize_delayed(connection: Connection, subscriber: str) -> DelayedSummary:
    """Summarize the delayed notifications of a subscriber."""
    counted = select(func.count()).where(held.c.subscriber == subscriber)
    first = select(func.min(promises.c.due)).where(promises.c.subscriber == subscriber)
    return DelayedSummary(int(connection.execute(counted).scalar_one()), connection.execute(first).scalar())
