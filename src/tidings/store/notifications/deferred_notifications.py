"""Deferred notifications: collected for subscriptions with an accepted delay, and released together.

The first deferred notification of a subscription sets a deadline (a row of `deferral_deadlines`) for itself and all
that follow until then. The release numbers them in the order of their matches and removes the deadline, in one
transaction, so a concurrent release finds nothing to do. Deferred notifications have no sequence numbers, so others
do not wait for them. They are independent of their subscription: its removal does not remove them.
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

from tidings.delivery.sql.tables import pending_digests, scheduling_cursors
from tidings.store import bulk, counters, encoding
from tidings.store.clock_recovery import latest_possible
from tidings.store.encoding import MatchRow, format_instant
from tidings.store.notifications import sequences
from tidings.store.tables import (
    deferral_deadlines,
    deferred_notifications,
    notifications,
    subscribers,
    subscriptions,
)

COUNTER = "deferred_notifications"
"""Counter of all notifications that were ever deferred."""
SOON = timedelta(seconds=0.5)
"""Longer than the time between two releases: notifications that become due before the next one are released now."""

Delays = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class DeferredSummary:
    """Number of deferred notifications of a subscriber, and the first deadline."""

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
    if not has_delays(connection):
        return {}
    delayed = select(*columns).where(subscriptions.c.within.is_not(None))
    ids = {match.subscription for match in matches}
    rows = bulk.select_among(connection, delayed, subscriptions.c.id, ids)
    return {(row.id, row.subscriber): row.within for row in rows if row.removed is None}


def has_delays(connection: Connection) -> bool:
    """Return whether any subscription accepts a delay."""
    return _any(connection, select(subscriptions.c.id).where(subscriptions.c.within.is_not(None)))


def find_deferred(connection: Connection, ids: Collection[str]) -> list[str]:
    """Return which of these notifications are deferred."""
    wanted = select(deferred_notifications.c.id)
    if not _any(connection, wanted):
        return []
    return [row.id for row in bulk.select_among(connection, wanted, deferred_notifications.c.id, ids)]


def _any(connection: Connection, wanted: Select[*tuple[Any, ...]]) -> bool:
    """Return whether there is any such row; without accepted delays this saves thousands of lookups."""
    return connection.execute(wanted.limit(1)).first() is not None


def defer(connection: Connection, new: Mapping[str, MatchRow], delays: Delays, moment: datetime) -> None:
    """Insert deferred notifications in the given order; their subscribers must be locked."""
    if not new:
        return
    last, time = counters.lock(connection, COUNTER), format_instant(moment)
    rows = [
        encoding.notification_row(id, one, last + i, time) for i, (id, one) in enumerate(new.items(), start=1)
    ]
    bulk.insert_rows(connection, deferred_notifications, rows)
    counters.advance(connection, COUNTER, last + len(rows))
    groups = dict.fromkeys((one.subscription, one.subscriber) for one in new.values())
    set_deadlines(connection, {group: delays[group] for group in groups}, moment)


def set_deadlines(connection: Connection, delays: Delays, moment: datetime) -> None:
    """Set the deadlines of subscriptions with new deferred notifications."""
    connection.execute(
        _SET_DEADLINE, [_deadline_row(*group, delay, moment) for group, delay in delays.items()]
    )


# An existing deadline stays unless the new one is earlier: the delay was shortened, or the clock set back.
_SET_DEADLINE = text(
    "INSERT INTO deferral_deadlines (subscriber, subscription, since, due)"
    " VALUES (:subscriber, :subscription, :since, :due)"
    " ON CONFLICT (subscriber, subscription) DO UPDATE SET due = excluded.due"
    " WHERE excluded.due < deferral_deadlines.due"
)


def _deadline_row(subscription: str, subscriber: str, within: int, moment: datetime) -> dict[str, str]:
    due = format_instant(moment + timedelta(seconds=within))
    return {
        "subscriber": subscriber,
        "subscription": subscription,
        "since": format_instant(moment),
        "due": due,
    }


def _why_now(soon: Any, ahead: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions for a release: the deadline has passed, or the clock was set back since it was set."""
    return deferral_deadlines.c.due <= soon, deferral_deadlines.c.since > ahead


def _times(moment: datetime) -> tuple[str, str]:
    return format_instant(moment + SOON), latest_possible(moment)


# Statements are built once. A union, because each half has its index; with an `or` SQLite would read all deadlines.
_WHY = _why_now(bindparam("soon"), bindparam("ahead"))
_DUE = union(*(select(deferral_deadlines.c.subscriber).where(why) for why in _WHY))
_DUE_TO_ONE = (
    select(deferral_deadlines.c.subscriber)
    .where(deferral_deadlines.c.subscriber == bindparam("name"), or_(*_WHY))
    .limit(1)
)


def find_due(connection: Connection, moment: datetime, subscriber: str | None = None) -> Sequence[str]:
    """Return subscribers with deferred notifications that are due, of all or only this one."""
    soon, ahead = _times(moment)
    times = {"soon": soon, "ahead": ahead}
    if subscriber is None:
        return connection.execute(_DUE, times).scalars().all()
    return connection.execute(_DUE_TO_ONE, times | {"name": subscriber}).scalars().all()


def release(connection: Connection, to: Sequence[str], moment: datetime) -> int:
    """Release the due notifications of subscribers; return how many."""
    sequences.lock_sequences(connection, to)
    due = and_(deferral_deadlines.c.subscriber.in_(to), or_(*_why_now(*_times(moment))))
    groups = select(deferral_deadlines.c.subscriber, deferral_deadlines.c.subscription).where(due)
    gathered = tuple_(deferred_notifications.c.subscriber, deferred_notifications.c.subscription).in_(groups)
    moved = insert(notifications).from_select(_COLUMNS, _numbered(gathered))
    released = connection.execute(moved, execution_options={"preserve_rowcount": True})
    connection.execute(
        update(subscribers).where(subscribers.c.subscriber.in_(to)).values(last_sequence=_LAST)
    )
    digests = [row._asdict() for row in connection.execute(_DIGESTS.where(due))]
    bulk.insert_missing(connection, pending_digests, digests)
    connection.execute(delete(deferred_notifications).where(gathered))
    connection.execute(delete(deferral_deadlines).where(due))
    return released.rowcount


# For subscribers with destinations: collected notifications become one digest, even if the subscription is removed.
_DIGESTS = (
    select(
        deferral_deadlines.c.subscriber,
        deferral_deadlines.c.subscription,
        subscribers.c.last_sequence.label("sequence"),
    )
    .join_from(deferral_deadlines, subscribers, subscribers.c.subscriber == deferral_deadlines.c.subscriber)
    .join(scheduling_cursors, scheduling_cursors.c.subscriber == deferral_deadlines.c.subscriber)
)

# Two streams may find the same match for different owners of a subscription that changed its owner, and neither sees
# the uncommitted row of the other. The first one that is released is the notification.
_IS_NEW = ~exists().where(notifications.c.id == deferred_notifications.c.id)

_RELEASED = and_(
    notifications.c.subscriber == subscribers.c.subscriber,
    notifications.c.sequence > subscribers.c.last_sequence,
)
_LAST = func.coalesce(
    select(func.max(notifications.c.sequence)).where(_RELEASED).scalar_subquery(), subscribers.c.last_sequence
)

_COLUMNS = [column.name for column in notifications.columns]


def _numbered(gathered: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select deferred notifications as rows of `notifications`; the subscribers must be locked."""
    turn = func.row_number().over(
        partition_by=deferred_notifications.c.subscriber, order_by=deferred_notifications.c.position
    )
    values = {column.name: column for column in deferred_notifications.columns} | {
        "sequence": subscribers.c.last_sequence + turn
    }
    wanted = select(*(values[name] for name in _COLUMNS)).where(gathered, _IS_NEW)
    return wanted.join_from(
        deferred_notifications, subscribers, subscribers.c.subscriber == deferred_notifications.c.subscriber
    )


def summarize_deferred(connection: Connection, subscriber: str) -> DeferredSummary:
    """Summarize the deferred notifications of a subscriber."""
    counted = select(func.count()).where(deferred_notifications.c.subscriber == subscriber)
    first = select(func.min(deferral_deadlines.c.due)).where(deferral_deadlines.c.subscriber == subscriber)
    return DeferredSummary(int(connection.execute(counted).scalar_one()), connection.execute(first).scalar())
