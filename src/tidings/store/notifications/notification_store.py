"""Notifications, written in batches (`batch_commit`) and read by cursor.

Notifications of subscriptions with an accepted delay are numbered when they are released (`deferred_notifications`). A
publication that the subscriber may not see makes no notification; after a revoked grant, the notification is withheld
whenever it is read (`audiences`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from threading import Event
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, func, select

from tidings.model import WITHHELD, Notification
from tidings.store import audiences, bulk, counters, names
from tidings.store.database import Database
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import (
    Clock,
    MatchRow,
    decode_mapping,
    decode_reasons,
    utc_now,
)
from tidings.store.notifications import batch_commit, deferred_notifications
from tidings.store.notifications.deferred_notifications import DeferredSummary
from tidings.store.tables import batches, notifications, subscribers

POLL_SECONDS = 0.2
SUBSCRIBERS = 100
"""How many subscribers get their deferred notifications in one transaction."""

T = TypeVar("T")


class Notifications:
    """The notifications of all subscribers."""

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
    ) -> batch_commit.CommitResult:
        """Commit a batch of a stream durably, once.

        New notifications are numbered in the order of their publications, and by subscription id within a publication.
        Dead letters belong to `source` (default: the stream): a stream that restarts under another name reads the same
        source and must not add a letter twice.

        An iterable that can be repeated and is not a list, such as rows in files, is never loaded completely. It must
        yield the matches of a publication consecutively.

        `position` is the last position of the batch in the journal, which `matched` returns from then on.
        """
        names.check("a stream's name", stream)
        matches, letters, origin = _repeatable(found), _repeatable(dead), source or stream

        def write(connection: Connection) -> batch_commit.CommitResult:
            done = batch_commit.write_batch(connection, stream, batch, matches, letters, origin, self._clock)
            if position is not None:
                batch_commit.advance_match_position(connection, position)
            return done

        return self._database.transact(write)

    def matched(self) -> int:
        """Return the position in the journal up to which all publications are matched and notified."""
        with self._database.read() as connection:
            return counters.current(connection, batch_commit.MATCH_POSITION)

    def reach(self, position: int) -> None:
        """Record that everything up to a position is matched, for stores of an earlier version without that record."""
        self._database.transact(lambda connection: batch_commit.advance_match_position(connection, position))

    def hand_over(self, subscriber: str | None = None) -> int:
        """Release deferred notifications that are due, of all subscribers or of one; return how many.

        Concurrent calls release each notification once. A transaction covers only some subscribers, so that the
        commit of a batch does not wait for all of them.
        """
        with self._database.read() as connection:
            waiting = deferred_notifications.find_due(connection, self._clock(), subscriber)
        return sum(
            self._database.transact(partial(deferred_notifications.release, to=some, moment=self._clock()))
            for some in bulk.iter_chunks(waiting, SUBSCRIBERS)
        )

    def deferred(self, subscriber: str) -> DeferredSummary:
        """Summarize the deferred notifications of a subscriber."""
        with self._database.read() as connection:
            return deferred_notifications.summarize_deferred(connection, subscriber)

    def read(self, subscriber: str, after: int = 0, limit: int = 1_000) -> list[Notification]:
        """Read notifications of a subscriber after a sequence number, in order.

        Deferred notifications that are due are released first, even if no stream runs.
        """
        wanted = _after(subscriber, after)
        with self._database.read() as connection:
            if not deferred_notifications.find_due(connection, self._clock(), subscriber):
                return _page(connection, wanted, limit)
        self.hand_over(subscriber)
        with self._database.read() as connection:
            return _page(connection, wanted, limit)

    def read_some(
        self, subscriber: str, after: int, upto: int, limit: int, subscription: str | None = None
    ) -> list[Notification]:
        """Read notifications up to a sequence number, optionally of one subscription, without a scan beyond it."""
        wanted = _after(subscriber, after).where(notifications.c.sequence <= upto)
        if subscription is not None:
            wanted = wanted.where(notifications.c.subscription == subscription)
        with self._database.read() as connection:
            return _page(connection, wanted, limit)

    def follow(
        self, subscriber: str, after: int = 0, stop: Event | None = None, poll: float = POLL_SECONDS
    ) -> Iterator[Notification]:
        """Yield notifications of a subscriber as they come, until `stop` is set."""
        stopped = stop or Event()
        while not stopped.is_set():
            page = self.read(subscriber, after)
            for notification in page:
                yield notification
                after = notification.sequence
            if not page:
                stopped.wait(poll)

    def last_sequence(self, subscriber: str) -> int:
        """Return the last sequence number of a subscriber; 0 if there is none."""
        wanted = select(subscribers.c.last_sequence).where(subscribers.c.subscriber == subscriber)
        with self._database.read() as connection:
            return int(connection.execute(wanted).scalar() or 0)

    def subscribers(self, limit: int) -> list[str]:
        """List subscribers with notifications in the order of names, at most `limit`."""
        wanted = select(subscribers.c.subscriber).where(subscribers.c.last_sequence > 0)
        with self._database.read() as connection:
            return list(connection.execute(wanted.order_by(subscribers.c.subscriber).limit(limit)).scalars())

    def count(self) -> int:
        """Count the notifications of all subscribers."""
        with self._database.read() as connection:
            return int(connection.execute(select(func.sum(subscribers.c.last_sequence))).scalar() or 0)

    def publications(self, ids: Collection[str]) -> set[str]:
        """Return the ids of the publications of notifications."""
        wanted = select(notifications.c.publication)
        with self._database.read() as connection:
            return {row.publication for row in bulk.select_among(connection, wanted, notifications.c.id, ids)}

    def last_batch(self, stream: str) -> int | None:
        """Return the last batch that a stream has committed."""
        wanted = select(func.max(batches.c.batch)).where(batches.c.stream == stream)
        with self._database.read() as connection:
            found: int | None = connection.execute(wanted).scalar()
        return found


def _repeatable(given: Iterable[T]) -> Iterable[T]:
    """Return an iterable that can be repeated, because a transaction that lost a race is."""
    return list(given) if isinstance(given, Iterator) else given


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
"""The columns for `notification_from_row`, in order. The first one says whether the notification is withheld."""


def notification_from_row(
    is_withheld: bool,
    id: str,
    subscriber: str,
    sequence: int,
    subscription: str,
    *rest: str | None,
) -> Notification:
    """Build a notification from a row."""
    publication, because, time, kind, bindings = rest
    assert publication is not None and because is not None and time is not None and kind is not None
    if is_withheld:
        return Notification(id, subscriber, sequence, subscription, "", (), time, WITHHELD)
    reasons = decode_reasons(because)
    return Notification(
        id, subscriber, sequence, subscription, publication, reasons, time, kind, decode_mapping(bindings)
    )
