"""Polled feeds: URL, result of the last poll, time of the next one, and hub.

A process claims a feed before it polls it, so that others do not; a claim of a lost process expires. The items of a
poll and the new state of the feed are written in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, or_, select, update

from tidings.feeds.sql.polled_items import ItemCounts, ItemPlanner, forget_items, publish_items
from tidings.feeds.sql.tables import polled_feeds
from tidings.store import counters, names
from tidings.store.clock_recovery import latest_possible, was_set_back
from tidings.store.database import Database
from tidings.store.encoding import escape_unstorable, format_instant

Changes = Mapping[str, object]
"""New values of columns of a feed."""


@dataclass(frozen=True, slots=True)
class PolledFeed:
    """A polled feed. Times are formatted instants; `ttl` is in minutes.

    `in_private_network`: the owner has typed a URL in one. `site`: the web page of the feed. `last_ping`: the time of
    the last ping. `next_poll`: None if it is not polled any more. `push`: state of the hub, `asked`, `verified` until
    the lease ends, or `denied`. `skips`: hours and days without polls. `login`: name and password for its server.
    `left_out`: elements of the last items that their graphs do not have, with counts.
    """

    number: int
    url: str
    added: str
    in_private_network: bool = False
    title: str | None = None
    site: str | None = None
    etag: str | None = None
    modified: str | None = None
    ttl: int | None = None
    polled: str | None = None
    next_poll: str | None = None
    last_ping: str | None = None
    failures: int = 0
    problem: str | None = None
    hub: str | None = None
    topic: str | None = None
    push: str | None = None
    callback: str | None = None
    secret: str | None = field(default=None, repr=False)
    lease: str | None = None
    skips: int | None = None
    login: str | None = field(default=None, repr=False)
    left_out: str | None = None


_COLUMNS = tuple(polled_feeds.c[each.name] for each in fields(PolledFeed))


class PolledFeeds:
    """The polled feeds of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> tuple[PolledFeed, ...]:
        """Return all feeds in the order in which they were added."""
        return self._where()

    def find(self, url: str) -> PolledFeed | None:
        """Find a feed by URL."""
        return next(iter(self._where(polled_feeds.c.url == url)), None)

    def called_back(self, callback: str) -> PolledFeed | None:
        """Find a feed by the random word in its callback URL."""
        return next(iter(self._where(polled_feeds.c.callback == callback)), None)

    def named(self, addresses: Collection[str]) -> tuple[PolledFeed, ...]:
        """Find feeds whose own URL or web page is one of these."""
        return self._where(or_(polled_feeds.c.url.in_(addresses), polled_feeds.c.site.in_(addresses)))

    def due(self, moment: datetime) -> tuple[PolledFeed, ...]:
        """Return the feeds that are due, longest first, and those polled before the clock was set back."""
        c = polled_feeds.c
        set_back = func.coalesce(c.polled, c.added) > latest_possible(moment)
        feeds = self._where(c.next_poll.is_not(None), or_(c.next_poll <= format_instant(moment), set_back))
        return tuple(sorted(feeds, key=lambda feed: feed.next_poll or ""))

    def next_due(self) -> str | None:
        """Return when the next feed is due."""
        with self._database.read() as connection:
            next_poll: str | None = connection.execute(select(func.min(polled_feeds.c.next_poll))).scalar()
        return next_poll

    def _where(self, *conditions: ColumnElement[bool]) -> tuple[PolledFeed, ...]:
        query = select(*_COLUMNS).where(*conditions).order_by(polled_feeds.c.number)
        with self._database.read() as connection:
            return tuple(map(_feed, connection.execute(query)))

    def add(
        self,
        url: str,
        moment: datetime,
        in_private_network: bool,
        until: datetime | None = None,
        login: str | None = None,
    ) -> PolledFeed:
        """Add a feed, due at once or claimed by the caller; an existing one gets the new login, if there is one."""
        names.check("a feed's address", url)
        login = None if login is None else escape_unstorable(login)
        new = PolledFeed(
            0,
            url,
            format_instant(moment),
            in_private_network,
            next_poll=format_instant(until or moment),
            login=login,
        )
        return self._database.transact(lambda connection: _add(connection, new))

    def remove(self, url: str) -> bool:
        """Remove a feed with its items; return whether there was one."""
        return self._database.transact(lambda connection: _remove(connection, polled_feeds.c.url == url))

    def claim(self, feed: PolledFeed, moment: datetime, until: datetime) -> PolledFeed | None:
        """Claim a feed for polling until then; None if another process claimed it since it was read.

        If the clock was set back since the last poll, it is unknown when the lease of the hub ends. The claimed feed
        has none, so that the hub receives a new request.
        """
        c = polled_feeds.c
        lease = None if was_set_back(feed.polled, moment) else feed.lease
        values: dict[str, str | None] = {"next_poll": format_instant(until), "polled": format_instant(moment)}
        if lease != feed.lease:
            values["lease"] = lease
        unchanged = c.number == feed.number, c.next_poll.is_not_distinct_from(feed.next_poll)
        claimed = update(polled_feeds).where(*unchanged).values(values)
        if not self._database.transact(lambda connection: connection.execute(claimed).rowcount):
            return None
        return replace(feed, lease=lease)

    def make_due(self, feeds: Iterable[PolledFeed], moment: datetime, apart: timedelta) -> None:
        """Make feeds due after a ping, but not sooner than `apart` after their last poll.

        A feed that no longer exists is not polled again.
        """
        due = {
            feed.number: format_instant(moment)
            if was_set_back(feed.polled, moment)
            else max(format_instant(moment), _add_interval(feed.polled, apart))
            for feed in feeds
        }

        def poll_sooner(connection: Connection) -> None:
            for number, next_poll in due.items():
                this = update(polled_feeds).where(polled_feeds.c.number == number)
                connection.execute(this.values(last_ping=format_instant(moment)))
                connection.execute(
                    this.where(polled_feeds.c.next_poll > next_poll).values(next_poll=next_poll)
                )

        self._database.transact(poll_sooner)

    def record(self, feed: PolledFeed, changes: Changes) -> PolledFeed | None:
        """Update a feed; return None if it was removed meanwhile."""
        return self._database.transact(lambda connection: _record(connection, feed, changes))

    def take(
        self,
        feed: PolledFeed,
        moment: datetime,
        items: Mapping[str, str],
        make: ItemPlanner,
        changes: Changes,
    ) -> tuple[PolledFeed, ItemCounts] | None:
        """Publish new and edited items of a feed, given their hashes by key, and update the feed.

        `make` plans the publications from the items seen before. Returns None if the feed was removed meanwhile.
        """

        def together(connection: Connection) -> tuple[PolledFeed, ItemCounts] | None:
            if not _lock_feed(connection, feed.number) or _ends(connection, feed, changes):
                return None
            counts = publish_items(connection, feed.number, feed.url, moment, items, make)
            stored = _record(connection, feed, changes)
            return None if stored is None else (stored, counts)

        return self._database.transact(together)


def _add_interval(polled: str | None, apart: timedelta) -> str:
    return "" if polled is None else format_instant(datetime.fromisoformat(polled) + apart)


def _lock_feed(connection: Connection, number: int) -> PolledFeed | None:
    query = select(*_COLUMNS).where(polled_feeds.c.number == number).with_for_update()
    row = connection.execute(query).one_or_none()
    return None if row is None else _feed(row)


def _feed(row: Row[*tuple[Any, ...]]) -> PolledFeed:
    return replace(PolledFeed(*row), in_private_network=bool(row.in_private_network))


def _add(connection: Connection, new: PolledFeed) -> PolledFeed:
    number = counters.step(connection, "feeds")
    existing = connection.execute(select(polled_feeds.c.number).where(polled_feeds.c.url == new.url)).scalar()
    if existing is None:
        made = replace(new, number=number)
        connection.execute(
            insert(polled_feeds), asdict(made) | {"in_private_network": int(new.in_private_network)}
        )
        return made
    again = update(polled_feeds).where(polled_feeds.c.number == existing)
    login = {} if new.login is None else {"login": new.login}
    connection.execute(
        again.values(next_poll=new.next_poll, in_private_network=int(new.in_private_network), **login)
    )
    there = _lock_feed(connection, existing)
    assert there is not None, "it was found in this transaction"
    return there


def _remove(connection: Connection, which: ColumnElement[bool]) -> bool:
    counters.step(connection, "feeds")
    numbers = connection.execute(select(polled_feeds.c.number).where(which)).scalars().all()
    for number in numbers:
        forget_items(connection, number)
    connection.execute(delete(polled_feeds).where(which))
    return bool(numbers)


def _record(connection: Connection, feed: PolledFeed, changes: Changes) -> PolledFeed | None:
    now = _lock_feed(connection, feed.number)
    if now is None or _ends(connection, feed, changes):
        return None
    values = {
        name: escape_unstorable(value) if isinstance(value, str) else value for name, value in changes.items()
    }
    if _pinged_since(feed, now) and values.get("next_poll") and now.next_poll:
        values["next_poll"] = min(str(values["next_poll"]), now.next_poll)
    if values:
        connection.execute(update(polled_feeds).where(polled_feeds.c.number == feed.number).values(values))
    return _lock_feed(connection, feed.number)


def _ends(connection: Connection, feed: PolledFeed, changes: Changes) -> bool:
    """Return whether a feed has moved to the URL of another one, and is removed: both have the same items."""
    there = polled_feeds.c.url == changes.get("url", feed.url)
    other = select(polled_feeds.c.number).where(there, polled_feeds.c.number != feed.number)
    is_shared = connection.execute(other).first() is not None
    return is_shared and _remove(connection, polled_feeds.c.number == feed.number)


def _pinged_since(feed: PolledFeed, now: PolledFeed) -> bool:
    """Return whether a ping came during the poll: the fetched content may be older than the ping."""
    return now.last_ping is not None and now.last_ping != feed.last_ping
