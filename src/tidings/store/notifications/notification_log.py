"""The notifications of all subscribers in one order, for readers of all of them.

Notifications are numbered by subscriber: a global number would make all writers wait for each other. A reader of all
of them calls `catch_up`, which gives those since the last call the next positions: a range for each subscriber that has
new ones. Positions count from one without gaps, and never change. Stores without such a reader have no ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlalchemy import Connection, bindparam, func, select

from tidings.model import Notification
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.notifications.acknowledgements import Heads
from tidings.store.notifications.notification_store import Notifications
from tidings.store.tables import Whole, notification_ranges, subscribers

COUNTER = "notification_log"
PAGE = 1_000
SUBSCRIBERS = 10_000
"""Subscribers whose notifications get positions in one transaction."""


@dataclass(frozen=True, slots=True)
class SequenceRange:
    """Notifications of a subscriber: those after a sequence number, up to and including another one."""

    subscriber: str
    after: int
    upto: int


class NotificationLog:
    """The notifications of a store by position."""

    def __init__(self, database: Database, notifications: Notifications) -> None:
        self._database, self._notifications, self._heads = database, notifications, Heads(database)

    def head(self) -> int:
        """Return the last position."""
        with self._database.read() as connection:
            return counters.current(connection, COUNTER)

    def catch_up(self) -> int:
        """Give positions to all notifications that have none, delayed ones that are due included; return the last."""
        self._notifications.hand_over()
        while self._is_behind():
            self._database.transact(_number)
        return self.head()

    def ranges(self, after: int, upto: int) -> list[SequenceRange]:
        """Return what is at the positions after `after`, up to and including `upto`."""
        with self._database.read() as connection:
            rows = connection.execute(_RANGES, {"after": after, "upto": upto}).all()
        found = []
        for position, subscriber, before, last in rows:
            offset = position - last  # what a position is greater than its sequence number
            found.append(SequenceRange(subscriber, max(before, after - offset), min(last, upto - offset)))
        return found

    def all_ranges(self, subscriber: str | None = None) -> list[SequenceRange]:
        """Return what there is now, of all subscribers or of one, without giving positions."""
        self._notifications.hand_over(subscriber)
        wanted = select(subscribers.c.subscriber, subscribers.c.last_sequence)
        wanted = wanted.where(subscribers.c.last_sequence > 0).order_by(subscribers.c.subscriber)
        if subscriber is not None:
            wanted = wanted.where(subscribers.c.subscriber == subscriber)
        with self._database.read() as connection:
            return [SequenceRange(name, 0, last) for name, last in connection.execute(wanted)]

    def read(self, ranges: Iterable[SequenceRange]) -> Iterator[list[Notification]]:
        """Read notifications in pages, in the order of the ranges."""
        keys = chain.from_iterable(
            ((each.subscriber, number) for number in range(each.after + 1, each.upto + 1)) for each in ranges
        )
        for some in bulk.iter_chunks(keys, PAGE):
            found = {(each.subscriber, each.sequence): each for each in self._heads.read(some)}
            yield [found[key] for key in some if key in found]

    def _is_behind(self) -> bool:
        with self._database.read() as connection:
            return connection.execute(_BEHIND, {"most": 1}).first() is not None


def cut_ranges(ranges: Iterable[SequenceRange], size: int) -> Iterator[Sequence[SequenceRange]]:
    """Cut ranges into groups of `size` notifications."""
    group: list[SequenceRange] = []
    room = size
    for each in ranges:
        after = each.after
        while each.upto - after >= room:
            yield [*group, SequenceRange(each.subscriber, after, after + room)]
            group, after, room = [], after + room, size
        if after < each.upto:
            group.append(SequenceRange(each.subscriber, after, each.upto))
            room -= each.upto - after
    if group:
        yield group


_numbered = func.coalesce(
    select(func.max(notification_ranges.c.last_sequence))
    .where(notification_ranges.c.subscriber == subscribers.c.subscriber)
    .scalar_subquery(),
    0,
)
_BEHIND = (
    select(subscribers.c.subscriber, _numbered.label("numbered"), subscribers.c.last_sequence)
    .where(subscribers.c.last_sequence > _numbered)
    .order_by(subscribers.c.subscriber)
    .limit(bindparam("most"))
)
_position = notification_ranges.c.position
_other = notification_ranges.alias()
_LAST_RANGE = (
    select(func.min(_other.c.position))
    .where(_other.c.position >= bindparam("upto", type_=Whole))
    .scalar_subquery()
)
_RANGES = (
    select(
        _position,
        notification_ranges.c.subscriber,
        notification_ranges.c.after_sequence,
        notification_ranges.c.last_sequence,
    )
    .where(
        _position > bindparam("after"),
        _position <= func.coalesce(_LAST_RANGE, bindparam("upto", type_=Whole)),
    )
    .order_by(_position)
)


def _number(connection: Connection) -> None:
    """Number the new notifications of some subscribers. The counter is locked first, which makes callers take turns."""
    last = counters.lock(connection, COUNTER)
    rows = []
    for subscriber, before, upto in connection.execute(_BEHIND, {"most": SUBSCRIBERS}):
        last += upto - before
        rows.append((last, subscriber, before, upto))
    bulk.insert_rows(connection, notification_ranges, rows)
    counters.advance(connection, COUNTER, last)
