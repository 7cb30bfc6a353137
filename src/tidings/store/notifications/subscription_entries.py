"""Notifications numbered per subscription, for feeds, deliveries and match counts.

Numbers are assigned on demand: the notifications since the last call are numbered once for all subscriptions of their
subscriber. An index of notifications by subscription would make numbering unnecessary, and every batch of the stream
slower, even for subscribers who never read a feed. A numbered notification is called an entry here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from tidings.model import OBJECT_NOTIFICATION_PREFIX, Notification
from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant
from tidings.store.notifications.notification_store import (
    NOTIFICATION_COLUMNS,
    Notifications,
    notification_from_row,
)
from tidings.store.tables import notifications, numbered_notifications, numbering_cursors, subscribers

MAX_BATCH = 5_000
"""How many notifications are numbered in one transaction; more if there are many subscribers."""
MIN_PER_SUBSCRIBER = 100
"""How many notifications of each subscriber are numbered at least."""

ENTRY_NOTIFICATION = (notifications.c.subscriber == numbered_notifications.c.subscriber) & (
    notifications.c.sequence == numbered_notifications.c.sequence
)
"""The condition that joins an entry with its notification."""


@dataclass(frozen=True, slots=True)
class NumberedNotification:
    """A notification with its number within its subscription, and when it got that number."""

    number: int
    time: str
    notification: Notification


class NumberedNotifications:
    """The entries of all subscriptions."""

    def __init__(self, database: Database, notifications: Notifications, clock: Clock) -> None:
        self._database, self._notifications, self._clock = database, notifications, clock

    def catch_up(self, subscriber: str) -> None:
        """Number the notifications of a subscriber that have no number yet."""
        self._notifications.hand_over(subscriber)
        while self._is_behind(subscriber):
            self._database.transact(
                lambda c: number_notifications(c, [subscriber], format_instant(self._clock()))
            )

    def last(self, subscriber: str, subscription: str) -> tuple[int, str | None]:
        """Return number and time of the newest entry, after catching up; (0, None) if there is none."""
        self.catch_up(subscriber)
        with self._database.read() as connection:
            return last_entry(connection, subscriber, subscription)

    def read(self, subscriber: str, subscription: str, first: int, last: int) -> list[NumberedNotification]:
        """Read the entries from `first` to `last`, newest first."""
        key = {"who": subscriber, "what": subscription, "first": first, "last": last}
        with self._database.read() as connection:
            rows = connection.execute(_ENTRIES, key).all()
        return [
            NumberedNotification(number, time, notification_from_row(*row)) for number, time, *row in rows
        ]

    def match_counts(
        self, subscriber: str, subscriptions: Iterable[str]
    ) -> dict[str, tuple[int, str | None]]:
        """Return for each subscription how often it has matched, and the time of its last match.

        Matches of an earlier owner of the same id do not count.
        """
        self.catch_up(subscriber)
        with self._database.read() as connection:
            return {id: _last_match(connection, subscriber, id) for id in subscriptions}

    def is_object_source(self, subscriber: str, name: str) -> bool:
        """Return whether a name is that of a database of objects, as its first entry shows."""
        query = (
            select(notifications.c.id)
            .join_from(numbered_notifications, notifications, ENTRY_NOTIFICATION)
            .where(
                numbered_notifications.c.subscriber == subscriber,
                numbered_notifications.c.subscription == name,
                numbered_notifications.c.number == 1,
            )
        )
        with self._database.read() as connection:
            id: str = connection.execute(query).scalar() or ""
        return id.startswith(OBJECT_NOTIFICATION_PREFIX)

    def object_sources(self, subscriber: str) -> list[str]:
        """List the databases about whose objects a subscriber has notifications."""
        self.catch_up(subscriber)
        query = (
            select(numbered_notifications.c.subscription)
            .join_from(numbered_notifications, notifications, ENTRY_NOTIFICATION)
            .where(
                numbered_notifications.c.subscriber == subscriber,
                notifications.c.id.startswith(OBJECT_NOTIFICATION_PREFIX),
            )
            .distinct()
        )
        with self._database.read() as connection:
            return sorted(connection.execute(query).scalars())

    def _is_behind(self, subscriber: str) -> bool:
        name = subscribers.c.subscriber
        numbered = (
            select(numbering_cursors.c.sequence)
            .where(numbering_cursors.c.subscriber == name)
            .scalar_subquery()
        )
        behind = select(name).where(
            name == subscriber, subscribers.c.last_sequence > func.coalesce(numbered, 0)
        )
        with self._database.read() as connection:
            return connection.execute(behind).first() is not None


def last_entry(connection: Connection, subscriber: str, subscription: str) -> tuple[int, str | None]:
    """Return number and time of the newest entry of a subscription; (0, None) if there is none."""
    row = connection.execute(_LAST, {"who": subscriber, "what": subscription}).one_or_none()
    return (row.number, row.time) if row else (0, None)


def number_notifications(connection: Connection, names: Collection[str], now: str) -> dict[str, int]:
    """Number some more notifications of subscribers; return for each the last sequence number that is numbered.

    The cursors are locked, so each notification gets one number. Times never go back, even if the clock does: a reader
    who asks for entries modified since a time would miss some.
    """
    limit = max(MIN_PER_SUBSCRIBER, MAX_BATCH // max(1, len(names)))
    cursors = _lock_cursors(connection, sorted(names))
    rows = bulk.select_among(connection, _LAST_SEQUENCES, subscribers.c.subscriber, names)
    last_sequences = {row.subscriber: row.last_sequence for row in rows}
    ends = {name: min(last_sequences.get(name, 0), start + limit) for name, start, _ in cursors}
    behind = [(name, start, ends[name], time) for name, start, time in cursors if start < ends[name]]
    if behind:
        times = {name: max(now, time) for name, _, _, time in behind}
        new = connection.execute(_NEW, json_rows_parameter(row[:3] for row in behind)).all()
        bulk.insert_rows(connection, numbered_notifications, _number(connection, new, times))
        connection.execute(_MOVE, json_rows_parameter((name, times[name], end) for name, _, end, _ in behind))
    return {name: max(start, ends[name]) for name, start, _ in cursors}


# Statements are built once: they run all the time.

_ENTRIES = (
    select(numbered_notifications.c.number, numbered_notifications.c.time, *NOTIFICATION_COLUMNS)
    .join_from(numbered_notifications, notifications, ENTRY_NOTIFICATION)
    .where(
        numbered_notifications.c.subscriber == bindparam("who"),
        numbered_notifications.c.subscription == bindparam("what"),
        numbered_notifications.c.number.between(bindparam("first"), bindparam("last")),
    )
    .order_by(numbered_notifications.c.number.desc())
)
_LAST = (
    select(numbered_notifications.c.number, numbered_notifications.c.time)
    .where(
        numbered_notifications.c.subscriber == bindparam("who"),
        numbered_notifications.c.subscription == bindparam("what"),
    )
    .order_by(numbered_notifications.c.number.desc())
    .limit(1)
)
_EXISTING_CURSORS = select(numbering_cursors.c.subscriber)
_LOCKED_CURSORS = select(*numbering_cursors.c).order_by(numbering_cursors.c.subscriber).with_for_update()
_LAST_SEQUENCES = select(subscribers.c.subscriber, subscribers.c.last_sequence)

_behind = json_rows("who", numbers=("start", "upto"))
_NEW = (
    select(notifications.c.subscriber, notifications.c.sequence, notifications.c.subscription)
    .join_from(_behind, notifications, notifications.c.subscriber == _behind.c.who)
    .where(notifications.c.sequence > _behind.c.start, notifications.c.sequence <= _behind.c.upto)
    .order_by(notifications.c.subscriber, notifications.c.sequence)
)
_wanted = json_rows("who", "what")
_newest = (
    select(func.max(numbered_notifications.c.number))
    .where(
        numbered_notifications.c.subscriber == _wanted.c.who,
        numbered_notifications.c.subscription == _wanted.c.what,
    )
    .scalar_subquery()
)
_LAST_NUMBERS = select(_wanted.c.who, _wanted.c.what, func.coalesce(_newest, 0))
_moved = json_rows("who", "time", numbers=("upto",))
_MOVE = (
    update(numbering_cursors)
    .where(numbering_cursors.c.subscriber == _moved.c.who)
    .values(sequence=_moved.c.upto, time=_moved.c.time)
)


def _lock_cursors(connection: Connection, names: Sequence[str]) -> list[Row[*tuple[Any, ...]]]:
    """Return the cursors of subscribers, locked in order.

    Missing cursors are inserted before any is locked, which avoids deadlocks. If another process inserts one at the
    same moment, the transaction is repeated.
    """
    rows = bulk.select_among(connection, _EXISTING_CURSORS, numbering_cursors.c.subscriber, names)
    existing = {row.subscriber for row in rows}
    bulk.insert_rows(connection, numbering_cursors, [(name, 0, "") for name in names if name not in existing])
    return list(bulk.select_among(connection, _LOCKED_CURSORS, numbering_cursors.c.subscriber, names))


def _number(
    connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]], times: dict[str, str]
) -> list[tuple[object, ...]]:
    """Build the rows of entries: each notification gets the next number of its subscription."""
    keys = dict.fromkeys((row.subscriber, row.subscription) for row in rows)
    numbers = connection.execute(_LAST_NUMBERS, json_rows_parameter(keys))
    last = {(subscriber, subscription): number for subscriber, subscription, number in numbers}
    entries: list[tuple[object, ...]] = []
    for subscriber, sequence, subscription in rows:
        last[subscriber, subscription] += 1
        number = last[subscriber, subscription]
        entries.append((subscriber, subscription, number, sequence, times[subscriber]))
    return entries


def _last_match(connection: Connection, subscriber: str, id: str) -> tuple[int, str | None]:
    query = (
        select(numbered_notifications.c.number, notifications.c.time)
        .join_from(numbered_notifications, notifications, ENTRY_NOTIFICATION)
        .where(numbered_notifications.c.subscriber == subscriber, numbered_notifications.c.subscription == id)
        .order_by(numbered_notifications.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return (row.number, row.time) if row else (0, None)
