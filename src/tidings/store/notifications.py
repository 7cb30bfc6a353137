"""Notifications: written a batch at a time, read by cursor.

A batch is one transaction: the mark that it was done, its notifications with the next numbers of their
subscribers, and its dead letters. Repeating a batch finds the mark; repeating a match in another batch finds
the notification's id, which follows from publication and subscription. Either way nobody is notified twice,
and no number is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Event
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, delete, func, select, update

from tidings.model import Notification, Reason, notification_id
from tidings.store import bulk, names
from tidings.store.database import Database
from tidings.store.dead_letters import DeadLetter, bury
from tidings.store.encoding import because_from, because_text, mapping_from, mapping_text, now, storable
from tidings.store.tables import batches, notifications, subscribers

# A stream repeats its last batch only; older marks are of no use to anybody.
KEPT_MARKS = 100
POLL_SECONDS = 0.2
PART = 5_000
"""How many matches are held at once, and those of one publication more."""
LETTERS = 200
"""How many dead letters are: they have their bodies with them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """A match on its way to becoming a notification. `because` may come as the text of
    `encoding.because_text`.
    """

    publication: str
    subscription: str
    subscriber: str
    because: Sequence[Reason] | str = ()
    bindings: dict[str, Any] | None = None
    kind: str = "matched"


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a batch: new notifications, repeated ones; `skipped` if the batch had been committed
    before.
    """

    new: int
    repeated: int
    skipped: bool = False


class Notifications:
    """What everybody was told."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def commit_batch(
        self,
        stream: str,
        batch: int,
        found: Iterable[Found],
        dead: Iterable[DeadLetter] = (),
        source: str | None = None,
    ) -> Committed:
        """Make a stream's batch durable, once.

        New notifications are numbered in the order in which their publications are given, and by subscription
        id within a publication. Dead letters belong to `source` (the stream, if not given): a stream that
        starts anew under another name reads the same source and must not bury a letter twice.

        What can be iterated again and again and is no list, such as rows in files, is never held whole; it has
        to give the matches of a publication one after the other.
        """
        names.check("a stream's name", stream)
        matches, letters, origin = _repeatable(found), _repeatable(dead), source or stream
        return self._database.transact(lambda c: write_batch(c, stream, batch, matches, letters, origin))

    def read(self, subscriber: str, after: int = 0, limit: int = 1_000) -> list[Notification]:
        """A subscriber's notifications after a sequence number, in order."""
        wanted = select(*(notifications.c[name] for name in _READ)).where(
            notifications.c.subscriber == subscriber, notifications.c.sequence > after
        )
        with self._database.read() as connection:
            rows = connection.execute(wanted.order_by(notifications.c.sequence).limit(limit)).all()
        return [_notification(*row) for row in rows]

    def follow(
        self, subscriber: str, after: int = 0, stop: Event | None = None, poll: float = POLL_SECONDS
    ) -> Iterator[Notification]:
        """A subscriber's notifications as they come, until `stop` is set: the cursor misses none."""
        stopped = stop or Event()
        while not stopped.is_set():
            page = self.read(subscriber, after)
            for notification in page:
                yield notification
                after = notification.sequence
            if not page:
                stopped.wait(poll)

    def last_sequence(self, subscriber: str) -> int:
        """The number of a subscriber's last notification; 0 if there is none."""
        wanted = select(subscribers.c.last_sequence).where(subscribers.c.subscriber == subscriber)
        with self._database.read() as connection:
            return int(connection.execute(wanted).scalar() or 0)

    def count(self) -> int:
        """How many notifications there are, of all subscribers."""
        with self._database.read() as connection:
            return int(connection.execute(select(func.sum(subscribers.c.last_sequence))).scalar() or 0)

    def last_batch(self, stream: str) -> int | None:
        """The highest batch that a stream has committed."""
        wanted = select(func.max(batches.c.batch)).where(batches.c.stream == stream)
        with self._database.read() as connection:
            found: int | None = connection.execute(wanted).scalar()
        return found


def write_batch(
    connection: Connection,
    stream: str,
    batch: int,
    found: Iterable[Found],
    dead: Iterable[DeadLetter],
    source: str,
) -> Committed:
    """The same inside a transaction of the caller's, for what must commit together with its notifications.

    `found` is gone through twice: for the subscribers, whose rows have to be locked in one order before any is
    written, and for the notifications, some thousands at a time.
    """
    if not _mark(connection, stream, batch):
        return Committed(0, 0, skipped=True)
    numbers = _lock_subscribers(connection, {one.subscriber for one in found})
    before, given, new = dict(numbers), 0, 0
    for part in _parts(_ordered(found) if isinstance(found, Sequence) else found):
        unknown = _unknown(connection, part)
        _number_and_insert(connection, unknown, numbers)
        given, new = given + len(part), new + len(unknown)
    _remember_numbers(connection, numbers, before)
    for letters in bulk.pieces(dead, LETTERS):
        bury(connection, source, letters)
    return Committed(new, given - new)


def _repeatable(given: Iterable[T]) -> Iterable[T]:
    """The same, for going through it more than once: a transaction that lost a race is repeated."""
    return list(given) if isinstance(given, Iterator) else given


def _mark(connection: Connection, stream: str, batch: int) -> bool:
    """Note that the batch is being committed; false if it was before. A second writer of it waits here."""
    if not bulk.insert_missing(connection, batches, [{"stream": stream, "batch": batch}]):
        return False
    old = batches.c.batch < batch - KEPT_MARKS
    connection.execute(delete(batches).where(batches.c.stream == stream, old))
    return True


def _lock_subscribers(connection: Connection, subscribed: set[str]) -> dict[str, int]:
    """The last sequence numbers, locked until the transaction ends.

    First the missing rows, then the locks, both by name: batches that share subscribers queue up behind each
    other and can never wait in a circle. No row is ever deleted, so who has passed the first step cannot be
    held up there.
    """
    ordered = sorted(names.check("a subscriber's name", name) for name in subscribed)
    rows = [{"subscriber": name, "last_sequence": 0} for name in ordered]
    bulk.insert_missing(connection, subscribers, rows)
    wanted = select(subscribers.c.subscriber, subscribers.c.last_sequence)
    locked = wanted.order_by(subscribers.c.subscriber).with_for_update()
    return dict(
        row._tuple() for row in bulk.select_among(connection, locked, subscribers.c.subscriber, ordered)
    )


def _parts(found: Iterable[Found]) -> Iterator[list[Found]]:
    """Whole publications, as many as make a part; the matches of one by subscription id."""
    part: list[Found] = []
    for _, matches in groupby(found, key=lambda one: one.publication):
        part.extend(sorted(matches, key=lambda one: one.subscription))
        if len(part) >= PART:
            yield part
            part = []
    if part:
        yield part


def _ordered(found: Sequence[Found]) -> list[Found]:
    turn: dict[str, int] = {}
    for one in found:
        turn.setdefault(one.publication, len(turn))
    return sorted(found, key=lambda one: (turn[one.publication], one.subscription))


def _unknown(connection: Connection, ordered: Sequence[Found]) -> dict[str, Found]:
    """Those without a notification yet, by the id it will have; the subscribers must be locked."""
    new: dict[str, Found] = {}
    for one in ordered:
        new.setdefault(notification_id(one.publication, one.subscription), one)
    for row in bulk.select_among(connection, select(notifications.c.id), notifications.c.id, list(new)):
        del new[row.id]
    return new


def _number_and_insert(connection: Connection, new: dict[str, Found], numbers: dict[str, int]) -> None:
    time, rows = now(), []
    for id, one in new.items():
        numbers[one.subscriber] += 1
        rows.append(_row(id, one, numbers[one.subscriber], time))
    bulk.insert_rows(connection, notifications, rows)


def _remember_numbers(connection: Connection, numbers: dict[str, int], before: dict[str, int]) -> None:
    grown = [{"name": name, "last": last} for name, last in numbers.items() if last != before[name]]
    if grown:
        statement = update(subscribers).where(subscribers.c.subscriber == bindparam("name"))
        connection.execute(statement.values(last_sequence=bindparam("last")), grown)


def _row(id: str, one: Found, sequence: int, time: str) -> tuple[object, ...]:
    because = one.because if isinstance(one.because, str) else because_text(one.because)
    publication, bindings = storable(one.publication), mapping_text(one.bindings)
    return one.subscriber, sequence, id, one.subscription, publication, one.kind, because, bindings, time


_READ = ("id", "subscriber", "sequence", "subscription", "publication", "because", "time", "kind", "bindings")


def _notification(
    id: str,
    subscriber: str,
    sequence: int,
    subscription: str,
    publication: str,
    because: str,
    *rest: str | None,
) -> Notification:
    time, kind, bindings = rest
    assert time is not None and kind is not None
    reasons = because_from(because)
    return Notification(
        id, subscriber, sequence, subscription, publication, reasons, time, kind, mapping_from(bindings)
    )
