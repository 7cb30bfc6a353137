"""Notifications: written a batch at a time, read by cursor.

A batch is one transaction: the mark that it was done, its notifications with the next numbers of their
subscribers, and its dead letters. Repeating a batch finds the mark; repeating a match in another batch finds
the notification's id, which follows from publication and subscription. Either way nobody is notified twice,
and no number is left out. Notifications of subscriptions that accept a delay are held (`held`); they get their numbers
when they are handed over. What the owner of a subscription may not see becomes no notification; if they may not see
it any more, it is withheld whenever it is read (`audiences`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from threading import Event
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, delete, func, select

from tidings.model import WITHHELD, Notification, notification_id
from tidings.store import audiences, bulk, counters, deferred, names
from tidings.store import counters as sequences
from tidings.store.database import Database
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.deferred import DeferredSummary
from tidings.store.encoding import (
    Clock,
    MatchRow,
    decode_mapping,
    decode_reasons,
    format_instant,
    notification_row,
    utc_now,
)
from tidings.store.tables import batches, notifications, subscribers

# A stream repeats its last batch only; older marks are of no use to anybody.
KEPT_MARKS = 100
POLL_SECONDS = 0.2
PART = 5_000
"""How many matches are held at once, and those of one publication more."""
LETTERS = 200
"""How many dead letters are: they have their bodies with them."""
SUBSCRIBERS = 100
"""How many get what was held for them in one transaction."""

MATCHED = "matched"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of a batch: new notifications, repeated ones, and new ones that are held for later; `skipped` if the
    batch had been committed before. `unseen` are matches whose subscribers may not see the publication.
    """

    new: int
    repeated: int
    skipped: bool = False
    held: int = 0
    unseen: int = 0


class Notifications:
    """What everybody was told."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def commit_batch(
        self,
        stream: str,
        batch: int,
        found: Iterable[MatchRow],
        dead: Iterable[DeadLetter] = (),
        source: str | None = None,
        position: int | None = None,
    ) -> CommitResult:
        """Make a stream's batch durable, once.

        New notifications are numbered in the order in which their publications are given, and by subscription
        id within a publication. Dead letters belong to `source` (the stream, if not given): a stream that
        starts anew under another name reads the same source and must not bury a letter twice.

        What can be iterated again and again and is no list, such as rows in files, is never held whole; it has
        to give the matches of a publication one after the other.

        `position` is how far in the journal the batch comes: `matched` says it from then on.
        """
        names.check("a stream's name", stream)
        matches, letters, origin = _repeatable(found), _repeatable(dead), source or stream

        def write(connection: Connection) -> CommitResult:
            done = write_batch(connection, stream, batch, matches, letters, origin, self._clock)
            if position is not None:
                _reach(connection, position)
            return done

        return self._database.transact(write)

    def matched(self) -> int:
        """The position in the journal up to which everything is matched, and its notifications are here."""
        with self._database.read() as connection:
            return counters.current(connection, MATCHED)

    def reach(self, position: int) -> None:
        """Note that everything up to a position is matched, if that is news: a store of an earlier version has no
        such note.
        """
        self._database.transact(lambda connection: _reach(connection, position))

    def hand_over(self, subscriber: str | None = None) -> int:
        """Hand over the notifications that were held and are due now, to everybody or to one subscriber.

        Several may do it at the same time: each notification is handed over once. A transaction takes some subscribers
        only, so that a batch that wants to be committed does not wait for all of them.
        """
        with self._database.read() as connection:
            waiting = deferred.find_due(connection, self._clock(), subscriber)
        return sum(
            self._database.transact(partial(deferred.hand_over, to=some, moment=self._clock()))
            for some in bulk.iter_chunks(waiting, SUBSCRIBERS)
        )

    def held(self, subscriber: str) -> DeferredSummary:
        """What waits for a subscriber until it is due."""
        with self._database.read() as connection:
            return deferred.summarize_deferred(connection, subscriber)

    def read(self, subscriber: str, after: int = 0, limit: int = 1_000) -> list[Notification]:
        """A subscriber's notifications after a sequence number, in order. What is due is handed over first: no stream
        has to run for that.
        """
        wanted = _after(subscriber, after)
        with self._database.read() as connection:
            if not deferred.find_due(connection, self._clock(), subscriber):
                return _page(connection, wanted, limit)
        self.hand_over(subscriber)
        with self._database.read() as connection:
            return _page(connection, wanted, limit)

    def read_some(
        self, subscriber: str, after: int, upto: int, limit: int, subscription: str | None = None
    ) -> list[Notification]:
        """The same of those up to a number and, perhaps, of one subscription: no more is looked through than that."""
        wanted = _after(subscriber, after).where(notifications.c.sequence <= upto)
        if subscription is not None:
            wanted = wanted.where(notifications.c.subscription == subscription)
        with self._database.read() as connection:
            return _page(connection, wanted, limit)

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

    def told(self, limit: int) -> list[str]:
        """The names of those who have notifications, by name, and so many at most."""
        wanted = select(subscribers.c.subscriber).where(subscribers.c.last_sequence > 0)
        with self._database.read() as connection:
            return list(connection.execute(wanted.order_by(subscribers.c.subscriber).limit(limit)).scalars())

    def count(self) -> int:
        """How many notifications there are, of all subscribers."""
        with self._database.read() as connection:
            return int(connection.execute(select(func.sum(subscribers.c.last_sequence))).scalar() or 0)

    def publications(self, ids: Collection[str]) -> set[str]:
        """The publications that notifications are about."""
        wanted = select(notifications.c.publication)
        with self._database.read() as connection:
            return {row.publication for row in bulk.select_among(connection, wanted, notifications.c.id, ids)}

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
    found: Iterable[MatchRow],
    dead: Iterable[DeadLetter],
    source: str,
    clock: Clock = utc_now,
) -> CommitResult:
    """The same inside a transaction of the caller's, for what must commit together with its notifications.

    `found` is gone through twice: for the subscribers, whose rows have to be locked in one order before any is
    written, and for the notifications, some thousands at a time.
    """
    if not _mark(connection, stream, batch):
        return CommitResult(0, 0, skipped=True)
    numbers = sequences.lock_sequences(connection, {one.subscriber for one in found})
    before, given, seen, later = dict(numbers), 0, 0, 0
    seeing = audiences.Visibility(connection)
    for part in _parts(_ordered(found) if isinstance(found, Sequence) else found):
        visible = seeing.only(part)
        unknown = _unknown(connection, visible)
        delays = deferred.accepted_delays(connection, unknown.values())
        later += write_part(connection, unknown, numbers, delays, clock())
        given, seen = given + len(part), seen + len(visible)
    sequences.advance_sequences(connection, numbers, before)
    for letters in bulk.iter_chunks(dead, LETTERS):
        add_dead_letters(connection, source, letters)
    new = sum(numbers.values()) - sum(before.values())
    return CommitResult(new, seen - new - later, held=later, unseen=given - seen)


def _reach(connection: Connection, position: int) -> None:
    if counters.lock(connection, MATCHED) < position:
        counters.advance(connection, MATCHED, position)


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


def _parts(found: Iterable[MatchRow]) -> Iterator[list[MatchRow]]:
    """Whole publications, as many as make a part; the matches of one by subscription id."""
    part: list[MatchRow] = []
    for _, matches in groupby(found, key=lambda one: one.publication):
        part.extend(sorted(matches, key=lambda one: one.subscription))
        if len(part) >= PART:
            yield part
            part = []
    if part:
        yield part


def _ordered(found: Sequence[MatchRow]) -> list[MatchRow]:
    turn: dict[str, int] = {}
    for one in found:
        turn.setdefault(one.publication, len(turn))
    return sorted(found, key=lambda one: (turn[one.publication], one.subscription))


def _unknown(connection: Connection, ordered: Sequence[MatchRow]) -> dict[str, MatchRow]:
    """Those without a notification yet, told or held, by the id it will have; the subscribers must be locked.

    What is held is looked up first: it may be told in between, and would be in neither place the other way round.
    """
    new: dict[str, MatchRow] = {}
    for one in ordered:
        new.setdefault(notification_id(one.publication, one.subscription), one)
    for id in deferred.find_deferred(connection, list(new)):
        del new[id]
    for row in bulk.select_among(connection, select(notifications.c.id), notifications.c.id, list(new)):
        del new[row.id]
    return new


def write_part(
    connection: Connection,
    new: Mapping[str, MatchRow],
    numbers: dict[str, int],
    delays: deferred.Delays,
    moment: datetime,
) -> int:
    """Tell those that are to be told at once and hold the others; how many are held. The subscribers must be locked."""
    later = {id: one for id, one in new.items() if (one.subscription, one.subscriber) in delays}
    time, rows = format_instant(moment), []
    for id, one in new.items():
        if id not in later:
            numbers[one.subscriber] += 1
            rows.append(notification_row(id, one, numbers[one.subscriber], time))
    bulk.insert_rows(connection, notifications, rows)
    deferred.defer(connection, later, delays, moment)
    return len(later)


def _after(subscriber: str, after: int) -> Select[*tuple[Any, ...]]:
    return select(*NOTIFICATION_COLUMNS).where(
        notifications.c.subscriber == subscriber, notifications.c.sequence > after
    )


def _page(connection: Connection, wanted: Select[*tuple[Any, ...]], limit: int) -> list[Notification]:
    rows = connection.execute(wanted.order_by(notifications.c.sequence).limit(limit)).all()
    return [notification_from_row(*row) for row in rows]


_NAMES = (
    "id",
    "subscriber",
    "sequence",
    "subscription",
    "publication",
    "because",
    "time",
    "kind",
    "bindings",
)
NOTIFICATION_COLUMNS = (audiences.withheld_column(notifications), *(notifications.c[name] for name in _NAMES))
"""The columns that `notification_from_row` takes, in order. Whether a notification is withheld is read in the same
statement.
"""


def notification_from_row(
    is_withheld: bool,
    id: str,
    subscriber: str,
    sequence: int,
    subscription: str,
    *rest: str | None,
) -> Notification:
    """The notification of a row."""
    publication, because, time, kind, bindings = rest
    assert publication is not None and because is not None and time is not None and kind is not None
    if is_withheld:
        return Notification(id, subscriber, sequence, subscription, "", (), time, WITHHELD)
    reasons = decode_reasons(because)
    return Notification(
        id, subscriber, sequence, subscription, publication, reasons, time, kind, decode_mapping(bindings)
    )
