"""How often subscriptions have matched: by the entries of their feeds, which are numbered without gaps."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from tidings.store.database import Database
from tidings.store.feed_tables import feed_entries
from tidings.store.personal_feeds import PersonalFeeds
from tidings.store.tables import notifications


class Matched:
    """What everybody's subscriptions have found."""

    def __init__(self, database: Database, feeds: PersonalFeeds) -> None:
        self._database, self._feeds = database, feeds

    def of(self, subscriber: str, subscriptions: Iterable[str]) -> dict[str, tuple[int, str | None]]:
        """How often each has matched, and when it did last. An id may have been somebody else's before: that does not
        count.
        """
        self._feeds.catch_up(subscriber)
        with self._database.read() as connection:
            return {id: _last(connection, subscriber, id) for id in subscriptions}


def _last(connection: Connection, subscriber: str, id: str) -> tuple[int, str | None]:
    entries, told = feed_entries.c, notifications.c
    same = (told.subscriber == entries.subscriber) & (told.sequence == entries.sequence)
    last = select(entries.number, told.time).join_from(feed_entries, notifications, same)
    own = last.where(entries.subscriber == subscriber, entries.subscription == id)
    row = connection.execute(own.order_by(entries.number.desc()).limit(1)).one_or_none()
    return (row.number, row.time) if row else (0, None)
