"""Feeds that are polled: where they are, how the last poll went and when the next one is, and what pushes them.

Who polls a feed claims it first, so that several processes do not ask for the same one; a claim that nobody comes back
from ends by itself. What a poll found and what became of the feed are written together.
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
"""Fields of a feed that become something else."""


@dataclass(frozen=True, slots=True)
class PolledFeed:
    """A feed as the store has it. Times are texts as notifications have them; `ttl` is in minutes.

    `inside` is whether its owner has named an address in a private network. `site` is the page that it is the feed of.
    `asked` is when somebody last said that there is something new. `next_poll` is empty if it is not polled any more.
    `push` is how it stands with the hub: `asked`, `verified` until the lease ends, or `denied`. `skips` are hours and
    days in which it should not be asked for. `login` is the name and the password that its server wants.
    `left_out` names what its items had when they were last read and their graphs have not, with counts.
    """

    number: int
    url: str
    added: str
    inside: bool = False
    title: str | None = None
    site: str | None = None
    etag: str | None = None
    modified: str | None = None
    ttl: int | None = None
    polled: str | None = None
    next_poll: str | None = None
    asked: str | None = None
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
    """The feeds of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> tuple[PolledFeed, ...]:
        """The feeds of now, in the order in which they were added."""
        return self._where()

    def find(self, url: str) -> PolledFeed | None:
        """The feed at an address."""
        return next(iter(self._where(polled_feeds.c.url == url)), None)

    def called_back(self, callback: str) -> PolledFeed | None:
        """The feed whose hub was told this word to call back with."""
        return next(iter(self._where(polled_feeds.c.callback == callback)), None)

    def named(self, addresses: Collection[str]) -> tuple[PolledFeed, ...]:
        """The feeds at one of these addresses, and those of a site there."""
        return self._where(or_(polled_feeds.c.url.in_(addresses), polled_feeds.c.site.in_(addresses)))

    def due(self, moment: datetime) -> tuple[PolledFeed, ...]:
        """The feeds whose time has come, those that wait longest first. One that was polled in the future, by a clock
        that has been set back since, is among them.
        """
        c = polled_feeds.c
        set_back = func.coalesce(c.polled, c.added) > latest_possible(moment)
        found = self._where(c.next_poll.is_not(None), or_(c.next_poll <= format_instant(moment), set_back))
        return tuple(sorted(found, key=lambda feed: feed.next_poll or ""))

    def next_due(self) -> str | None:
        """When the next feed has to be polled."""
        with self._database.read() as connection:
            found: str | None = connection.execute(select(func.min(polled_feeds.c.next_poll))).scalar()
        return found

    def _where(self, *conditions: ColumnElement[bool]) -> tuple[PolledFeed, ...]:
        wanted = select(*_COLUMNS).where(*conditions).order_by(polled_feeds.c.number)
        with self._database.read() as connection:
            return tuple(map(_feed, connection.execute(wanted)))

    def add(
        self,
        url: str,
        moment: datetime,
        inside: bool,
        until: datetime | None = None,
        login: str | None = None,
    ) -> PolledFeed:
        """Keep a feed that is due at once, or is the caller's to poll until then; one that is there already stays, with
        the new login if there is one.
        """
        names.check("a feed's address", url)
        login = None if login is None else escape_unstorable(login)
        new = PolledFeed(
            0, url, format_instant(moment), inside, next_poll=format_instant(until or moment), login=login
        )
        return self._database.transact(lambda connection: _add(connection, new))

    def remove(self, url: str) -> bool:
        """Forget a feed and what was seen in it, and say whether there was one."""
        return self._database.transact(lambda connection: _remove(connection, polled_feeds.c.url == url))

    def claim(self, feed: PolledFeed, moment: datetime, until: datetime) -> PolledFeed | None:
        """Claim a feed for polling until then; None if another process claimed it since it was read.

        If the clock was set back since the last poll, it is unknown when the lease of the hub ends. The claimed feed
        has none, so that the hub is asked again.
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

    def hasten(self, feeds: Iterable[PolledFeed], moment: datetime, apart: timedelta) -> None:
        """Somebody says that there is something new: each is due now, but for polls `apart` from each other.

        A feed that is gone stays so.
        """
        due = {
            feed.number: format_instant(moment)
            if was_set_back(feed.polled, moment)
            else max(format_instant(moment), _after(feed.polled, apart))
            for feed in feeds
        }

        def each_sooner(connection: Connection) -> None:
            for number, at in due.items():
                this = update(polled_feeds).where(polled_feeds.c.number == number)
                connection.execute(this.values(asked=format_instant(moment)))
                connection.execute(this.where(polled_feeds.c.next_poll > at).values(next_poll=at))

        self._database.transact(each_sooner)

    def record(self, feed: PolledFeed, changes: Changes) -> PolledFeed | None:
        """What became of a feed; nothing if it was removed in the meantime."""
        return self._database.transact(lambda connection: _record(connection, feed, changes))

    def take(
        self,
        feed: PolledFeed,
        moment: datetime,
        items: Mapping[str, str],
        make: ItemPlanner,
        changes: Changes,
    ) -> tuple[PolledFeed, ItemCounts] | None:
        """Publish what is new or edited among the items of a feed (their hashes by their keys), and record the rest.

        `make` says how, given what was seen before. Nothing happens if the feed was removed in the meantime.
        """

        def together(connection: Connection) -> tuple[PolledFeed, ItemCounts] | None:
            if not _locked(connection, feed.number) or _ends(connection, feed, changes):
                return None
            taken = publish_items(connection, feed.number, feed.url, moment, items, make)
            kept = _record(connection, feed, changes)
            return None if kept is None else (kept, taken)

        return self._database.transact(together)


def _after(polled: str | None, apart: timedelta) -> str:
    return "" if polled is None else format_instant(datetime.fromisoformat(polled) + apart)


def _locked(connection: Connection, number: int) -> PolledFeed | None:
    wanted = select(*_COLUMNS).where(polled_feeds.c.number == number).with_for_update()
    row = connection.execute(wanted).one_or_none()
    return None if row is None else _feed(row)


def _feed(row: Row[*tuple[Any, ...]]) -> PolledFeed:
    return replace(PolledFeed(*row), inside=bool(row.inside))


def _add(connection: Connection, new: PolledFeed) -> PolledFeed:
    number = counters.step(connection, "feeds")
    found = connection.execute(select(polled_feeds.c.number).where(polled_feeds.c.url == new.url)).scalar()
    if found is None:
        made = replace(new, number=number)
        connection.execute(insert(polled_feeds), asdict(made) | {"inside": int(new.inside)})
        return made
    again = update(polled_feeds).where(polled_feeds.c.number == found)
    login = {} if new.login is None else {"login": new.login}
    connection.execute(again.values(next_poll=new.next_poll, inside=int(new.inside), **login))
    there = _locked(connection, found)
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
    now = _locked(connection, feed.number)
    if now is None or _ends(connection, feed, changes):
        return None
    values = {
        name: escape_unstorable(value) if isinstance(value, str) else value for name, value in changes.items()
    }
    if _asked_since(feed, now) and values.get("next_poll") and now.next_poll:
        values["next_poll"] = min(str(values["next_poll"]), now.next_poll)
    if values:
        connection.execute(update(polled_feeds).where(polled_feeds.c.number == feed.number).values(values))
    return _locked(connection, feed.number)


def _ends(connection: Connection, feed: PolledFeed, changes: Changes) -> bool:
    """Whether a feed has moved to where another one is. It is forgotten then: the other one has the same items."""
    there = polled_feeds.c.url == changes.get("url", feed.url)
    other = select(polled_feeds.c.number).where(there, polled_feeds.c.number != feed.number)
    found = connection.execute(other).first() is not None
    return found and _remove(connection, polled_feeds.c.number == feed.number)


def _asked_since(feed: PolledFeed, now: PolledFeed) -> bool:
    """Somebody said that there is more while the feed was being polled: what was fetched may be older than that."""
    return now.asked is not None and now.asked != feed.asked
