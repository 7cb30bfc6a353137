"""Notifications that wait: gathered for subscriptions that accept a delay, and handed over together.

The first notification held for a subscription makes a promise: by when it, and all that is gathered meanwhile, will be
handed over. Handing over gives them the next numbers of their subscriber, in the order in which they were found,
and keeps the promise; all in one transaction, so whoever comes second finds nothing left to do. Nobody else's numbers
wait for that: what is held has none.

What is held stands for itself: a subscription that is withdrawn meanwhile takes nothing of it away.
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
"""Whoever hands over looks again sooner than this. What becomes due in between goes now: late it must not be."""

Delays = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class DeferredSummary:
    """How many notifications wait for a subscriber, and by when the first of them come."""

    count: int
    due: str | None


def accepted_delays(connection: Connection, matches: Collection[MatchRow]) -> Delays:
    """The accepted delays, by subscription and subscriber, of those that have one.

    A subscription that was withdrawn while its match was on the way has none any more: its last ones go at once.
    Withdrawn ones are left out here and not in the statement, for which SQLite would take the index of all that live
    and not the small one of those with a delay.
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
    """Which of these notifications are held."""
    wanted = select(held.c.id)
    if not _any(connection, wanted):
        return []
    return [row.id for row in bulk.select_among(connection, wanted, held.c.id, ids)]


def _any(connection: Connection, wanted: Select[*tuple[Any, ...]]) -> bool:
    """Whether there is any such row: where nobody accepts a delay there is none, and thousands are not looked up."""
    return connection.execute(wanted.limit(1)).first() is not None


def defer(connection: Connection, new: Mapping[str, MatchRow], delays: Delays, moment: datetime) -> None:
    """Keep notifications for later, by id, in the order given; their subscribers must be locked."""
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


# The promise there is stands, unless the new one is earlier: the delay was shortened, or the clock set back.
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
    """A promise is kept when it is due, or when a clock has been set back since it was made."""
    return promises.c.due <= soon, promises.c.since > ahead


def _times(moment: datetime) -> tuple[str, str]:
    return format_instant(moment + SOON), latest_possible(moment)


# Asked all the time, so they are made once. A union, because each half has its index; with an `or` SQLite would read
# the promises to everybody.
_WHY = _why_now(bindparam("soon"), bindparam("ahead"))
_DUE = union(*(select(promises.c.subscriber).where(why) for why in _WHY))
_DUE_TO_ONE = (
    select(promises.c.subscriber).where(promises.c.subscriber == bindparam("name"), or_(*_WHY)).limit(1)
)


def find_due(connection: Connection, moment: datetime, subscriber: str | None = None) -> Sequence[str]:
    """The subscribers, all or this one, to whom something has to be handed over now."""
    soon, ahead = _times(moment)
    times = {"soon": soon, "ahead": ahead}
    if subscriber is None:
        return connection.execute(_DUE, times).scalars().all()
    return connection.execute(_DUE_TO_ONE, times | {"name": subscriber}).scalars().all()


def hand_over(connection: Connection, to: Sequence[str], moment: datetime) -> int:
    """Hand over what is due to these subscribers, and say how many notifications that were."""
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


# For those with destinations: what was gathered is one message to each, whatever becomes of the subscription meanwhile.
_TOGETHER = (
    select(promises.c.subscriber, promises.c.subscription, subscribers.c.last_sequence.label("upto"))
    .join_from(promises, subscribers, subscribers.c.subscriber == promises.c.subscriber)
    .join(delivery_owners, delivery_owners.c.subscriber == promises.c.subscriber)
)

# Two streams may find the same match for different owners of a subscription that changed hands; neither sees the
# other's row before it commits. Whichever is told first was the notification.
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
    """What is held and gathered, as rows of `notifications`; the subscribers must be locked."""
    turn = func.row_number().over(partition_by=held.c.subscriber, order_by=held.c.place)
    values = {column.name: column for column in held.columns} | {
        "sequence": subscribers.c.last_sequence + turn
    }
    wanted = select(*(values[name] for name in _COLUMNS)).where(gathered, _UNTOLD)
    return wanted.join_from(held, subscribers, subscribers.c.subscriber == held.c.subscriber)


def summarize_deferred(connection: Connection, subscriber: str) -> DeferredSummary:
    """What waits for a subscriber."""
    counted = select(func.count()).where(held.c.subscriber == subscriber)
    first = select(func.min(promises.c.due)).where(promises.c.subscriber == subscriber)
    return DeferredSummary(int(connection.execute(counted).scalar_one()), connection.execute(first).scalar())
