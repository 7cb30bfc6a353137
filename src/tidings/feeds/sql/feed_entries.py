"""Feeds that go out: the address of each, and its entries.

Entries are numbered when somebody looks: the notifications that came since the last look are gone through once for all
feeds of their subscriber. An index of all notifications by subscription would do the same, and would make every batch
of the stream slower, also for those who never read a feed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, func, select, update

from tidings.model import Notification, Publication
from tidings.objects.notices import NOTICE_ID_PREFIX
from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant
from tidings.store.entries import append_entries, last_entry
from tidings.store.journal import PUBLICATIONS
from tidings.store.notifications import NOTIFICATION_COLUMNS, Notifications, notification_from_row
from tidings.store.tables import (
    feed_addresses,
    feed_cursors,
    feed_entries,
    hub_deliveries,
    journal,
    notifications,
    subscribers,
)

ENTRY_NOTIFICATION = (notifications.c.subscriber == feed_entries.c.subscriber) & (
    notifications.c.sequence == feed_entries.c.sequence
)


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """Where a feed is, for those who know; `subscription` is empty for the list of all feeds of a subscriber."""

    hash: str
    subscriber: str
    subscription: str
    nonce: str
    made: str
    revoked: str | None = None


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """A notification as an entry of a feed, and when it became one."""

    number: int
    time: str
    notification: Notification


class PersonalFeedStore:
    """The feeds of everybody's subscriptions."""

    def __init__(self, database: Database, told: Notifications, clock: Clock) -> None:
        self._database, self._told, self._clock = database, told, clock

    def address(self, subscriber: str, subscription: str) -> FeedAddress | None:
        """The address that is good now."""
        with self._database.read() as connection:
            return _good(connection, subscriber, subscription)

    def find(self, hash: str) -> FeedAddress | None:
        """The address with this hash, revoked or not."""
        wanted = select(*feed_addresses.c).where(feed_addresses.c.hash == hash)
        with self._database.read() as connection:
            row = connection.execute(wanted).one_or_none()
        return FeedAddress(*row) if row else None

    def addresses(self, subscriber: str) -> dict[str, FeedAddress]:
        """All addresses of a subscriber that are good now, by subscription."""
        with self._database.read() as connection:
            return {one.subscription: one for one in _all_good(connection, subscriber)}

    def keep(self, subscriber: str, made: Mapping[str, tuple[str, str]]) -> dict[str, FeedAddress]:
        """Make addresses for those of these subscriptions that have none, each of a nonce and a hash; all addresses
        that the subscriber has then.
        """
        time = format_instant(self._clock())
        new = [FeedAddress(hash, subscriber, name, nonce, time) for name, (nonce, hash) in made.items()]
        return self._database.transact(lambda c: _keep(c, subscriber, new))

    def revoke(self, subscriber: str, subscription: str) -> bool:
        """Make the address of a feed good for nothing; false if there was none.

        What is under way to those whom the hub tells ends; they are still there for the hub to deny.
        """
        moment = format_instant(self._clock())
        return self._database.transact(lambda c: _revoke(c, subscriber, subscription, moment))

    def last(self, subscriber: str, subscription: str) -> tuple[int, str | None]:
        """The number of the newest entry and when it became one. What was told since the last look becomes entries
        first.
        """
        self.catch_up(subscriber)
        with self._database.read() as connection:
            return last_entry(connection, subscriber, subscription)

    def is_of_objects(self, subscriber: str, name: str) -> bool:
        """Whether the first entry is of a changed object. A name without entries is of nothing."""
        first = select(notifications.c.id).join_from(feed_entries, notifications, ENTRY_NOTIFICATION)
        wanted = first.where(*_of(subscriber, name), feed_entries.c.number == 1)
        with self._database.read() as connection:
            found: str = connection.execute(wanted).scalar() or ""
        return found.startswith(NOTICE_ID_PREFIX)

    def of_objects(self, subscriber: str) -> list[str]:
        """The databases with objects that a subscriber was told about."""
        self.catch_up(subscriber)
        wanted = (
            select(feed_entries.c.subscription)
            .join_from(feed_entries, notifications, ENTRY_NOTIFICATION)
            .distinct()
        )
        told = feed_entries.c.subscriber == subscriber, notifications.c.id.startswith(NOTICE_ID_PREFIX)
        with self._database.read() as connection:
            return sorted(connection.execute(wanted.where(*told)).scalars())

    def entries(self, subscriber: str, subscription: str, first: int, last: int) -> list[FeedEntry]:
        """The entries with these numbers, newest first."""
        wanted = {"who": subscriber, "what": subscription, "first": first, "last": last}
        with self._database.read() as connection:
            rows = connection.execute(_ENTRIES, wanted).all()
        return [FeedEntry(number, time, notification_from_row(*row)) for number, time, *row in rows]

    def publications(self, ids: Collection[str], largest: int) -> dict[str, Publication]:
        """The publications of the journal with these ids, by id; without those that have more than `largest` bytes."""
        with self._database.read() as connection:
            return publications_of(connection, ids, largest)

    def catch_up(self, subscriber: str) -> None:
        """Make entries of what a subscriber was told since the last look."""
        self._told.hand_over(subscriber)
        while self._is_behind(subscriber):
            self._database.transact(lambda c: append_entries(c, [subscriber], format_instant(self._clock())))

    def _is_behind(self, subscriber: str) -> bool:
        name = subscribers.c.subscriber
        seen = select(feed_cursors.c.sequence).where(feed_cursors.c.subscriber == name).scalar_subquery()
        wanted = select(name).where(name == subscriber, subscribers.c.last_sequence > func.coalesce(seen, 0))
        with self._database.read() as connection:
            return connection.execute(wanted).first() is not None


# Asked all the time, so they are made once.
_ENTRIES = (
    select(feed_entries.c.number, feed_entries.c.time, *NOTIFICATION_COLUMNS)
    .join_from(feed_entries, notifications, ENTRY_NOTIFICATION)
    .where(
        feed_entries.c.subscriber == bindparam("who"),
        feed_entries.c.subscription == bindparam("what"),
        feed_entries.c.number.between(bindparam("first"), bindparam("last")),
    )
    .order_by(feed_entries.c.number.desc())
)


def publications_of(connection: Connection, ids: Collection[str], largest: int) -> dict[str, Publication]:
    """The publications of the journal with these ids, by id; without those that have more than `largest` bytes."""
    rows = bulk.select_among(connection, _no_larger(largest), journal.c.id, ids)
    return {row.id: Publication(*row) for row in rows}


@lru_cache(maxsize=1_000)
def _no_larger(largest: int) -> Select[*tuple[Any, ...]]:
    return PUBLICATIONS.where(func.length(journal.c.body) <= largest)


def _good(connection: Connection, subscriber: str, subscription: str) -> FeedAddress | None:
    wanted = select(*feed_addresses.c).where(
        feed_addresses.c.subscriber == subscriber,
        feed_addresses.c.subscription == subscription,
        feed_addresses.c.revoked.is_(None),
    )
    row = connection.execute(wanted).one_or_none()
    return FeedAddress(*row) if row else None


def _all_good(connection: Connection, subscriber: str) -> list[FeedAddress]:
    good = feed_addresses.c.subscriber == subscriber, feed_addresses.c.revoked.is_(None)
    return [FeedAddress(*row) for row in connection.execute(select(*feed_addresses.c).where(*good))]


def _keep(connection: Connection, subscriber: str, new: Sequence[FeedAddress]) -> dict[str, FeedAddress]:
    """Two who make the same at once: the index lets one of them, and the other looks again."""
    known = {one.subscription: one for one in _all_good(connection, subscriber)}
    missing = [one for one in new if one.subscription not in known]
    columns = [column.name for column in feed_addresses.c]
    rows = [tuple(getattr(one, name) for name in columns) for one in missing]
    bulk.insert_rows(connection, feed_addresses, rows)
    return known | {one.subscription: one for one in missing}


def _revoke(connection: Connection, subscriber: str, subscription: str, moment: str) -> bool:
    found = _good(connection, subscriber, subscription)
    if found is None:
        return False
    old = feed_addresses.c.hash == found.hash
    connection.execute(update(feed_addresses).where(old).values(revoked=moment))
    connection.execute(delete(hub_deliveries).where(hub_deliveries.c.address == found.hash))
    return True


def _of(subscriber: str, subscription: str) -> tuple[Any, ...]:
    return feed_entries.c.subscriber == subscriber, feed_entries.c.subscription == subscription


# How often subscriptions have matched: by the entries of their feeds, which are numbered without gaps.


class MatchStats:
    """What everybody's subscriptions have found."""

    def __init__(self, database: Database, feeds: PersonalFeedStore) -> None:
        self._database, self._feeds = database, feeds

    def of(self, subscriber: str, subscriptions: Iterable[str]) -> dict[str, tuple[int, str | None]]:
        """How often each has matched, and when it did last. An id may have been somebody else's before: that does not
        count.
        """
        self._feeds.catch_up(subscriber)
        with self._database.read() as connection:
            return {id: _last_match(connection, subscriber, id) for id in subscriptions}


def _last_match(connection: Connection, subscriber: str, id: str) -> tuple[int, str | None]:
    entries, told = feed_entries.c, notifications.c
    same = (told.subscriber == entries.subscriber) & (told.sequence == entries.sequence)
    last = select(entries.number, told.time).join_from(feed_entries, notifications, same)
    own = last.where(entries.subscriber == subscriber, entries.subscription == id)
    row = connection.execute(own.order_by(entries.number.desc()).limit(1)).one_or_none()
    return (row.number, row.time) if row else (0, None)
