"""Registry of subscriptions, with changes since a version.

Each change gets the next version in its transaction. A follower remembers the last version and asks for later changes:
it first applies `removed`, then `added`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, or_, select, tuple_, update

from tidings.errors import InputError, StoreError
from tidings.model import Subscription
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.subscriptions.admission import (
    COLUMNS,
    IS_LIVE,
    AddedSubscription,
    LiveCountCache,
    add_subscriptions,
    admit_subscriptions,
    find_live,
    subscription_row,
    unwrap_outcome,
)
from tidings.store.tables import overruns, subscriptions

PAGE = 50_000


@dataclass(frozen=True, slots=True)
class SubscriptionChanges:
    """Changes from one version to `version`: first apply `removed`, then `added`.

    An id may be in both, when it was removed and then added with another text.
    """

    version: int
    added: list[Subscription]
    removed: list[str]


class Subscriptions:
    """The active subscriptions of all subscribers."""

    def __init__(self, database: Database) -> None:
        self._database, self._remembered = database, LiveCountCache()

    def add(self, subscription: Subscription, most: int | None = None) -> str:
        """Add a subscription and return its id; one without an id gets a new one.

        With `most`, its subscriber may have no more than that, paused ones and rules counted.
        """
        [outcome] = self.offer([subscription], most)
        return unwrap_outcome(outcome).id

    def offer(
        self, subscriptions: Iterable[Subscription], most: int | None = None
    ) -> list[AddedSubscription | InputError]:
        """Add subscriptions in one version, independently of each other; a rejected one has its error as the result."""
        offered = list(subscriptions)
        outcomes, remember = self._database.transact(
            lambda connection: admit_subscriptions(connection, offered, most, self._remembered)
        )
        remember()
        return outcomes

    def add_many(self, subscriptions: Iterable[Subscription]) -> list[str]:
        """Add all subscriptions in one version, or none; existing, unchanged ones count as added."""
        offered = list(subscriptions)
        return self._database.transact(lambda connection: add_subscriptions(connection, offered))

    def remove(self, ids: Iterable[str], subscriber: str | None = None) -> list[str]:
        """Remove existing subscriptions, optionally only of a subscriber; return their ids."""
        printable = [id for id in dict.fromkeys(ids) if id.isprintable()]
        return self._database.transact(
            lambda connection: remove_subscriptions(connection, printable, subscriber)
        )

    def change(self, changed: Subscription) -> bool:
        """Change text or delay; return false if there is no active one of this id, subscriber and language."""
        return self._database.transact(lambda connection: _change(connection, changed))

    def version(self) -> int:
        """Return the version of the last change; 0 if there was none."""
        with self._database.read() as connection:
            return counters.current(connection, "subscriptions")

    def changes(self, since: int) -> SubscriptionChanges:
        """Return the net changes after a version."""
        with self._database.read() as connection:
            version = counters.current(connection, "subscriptions")
            if since > version:
                raise _from_the_future(self._database, since, version)
            added = [Subscription(*one) for one in connection.execute(_select_added(since, version))]
            removed = list(connection.execute(_select_removed(since, version)).scalars())
        return SubscriptionChanges(version, added, removed)

    def find_removed(self, since: int) -> tuple[int, list[str]]:
        """Return the current version, and the `removed` of `changes`."""
        with self._database.read() as connection:
            version = counters.current(connection, "subscriptions")
            if since > version:
                raise _from_the_future(self._database, since, version)
            return version, list(connection.execute(_select_removed(since, version)).scalars())

    def read_added(
        self, since: int, version: int, language: str, size: int = PAGE
    ) -> Iterator[list[Subscription]]:
        """Yield the `added` of `changes` up to a version in one language, in pages: all may not fit into memory."""
        place = subscriptions.c.added, subscriptions.c.id
        added = (
            _select_added(since, version).where(subscriptions.c.language == language).add_columns(place[0])
        )
        last: tuple[int, str] = (since, "")
        while True:
            with self._database.read() as connection:
                rows = connection.execute(added.where(tuple_(*place) > tuple_(*last)).limit(size)).all()
            if rows:
                yield [Subscription(*row[:-1]) for row in rows]
                last = rows[-1].added, rows[-1].id
            if len(rows) < size:
                return

    def find(self, id: str) -> Subscription | None:
        """Find an active subscription by id."""
        with self._database.read() as connection:
            row = connection.execute(select(*COLUMNS).where(IS_LIVE, subscriptions.c.id == id)).one_or_none()
        return Subscription(*row) if row else None

    def count(self, subscriber: str | None = None) -> int:
        """Count active subscriptions, of all subscribers or of one."""
        query = _filter_by_owner(select(func.count()).select_from(subscriptions).where(IS_LIVE), subscriber)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def list(self, subscriber: str | None = None, limit: int | None = None) -> Sequence[Subscription]:
        """List active subscriptions, oldest first, of all subscribers or of one."""
        query = _filter_by_owner(select(*COLUMNS).where(IS_LIVE), subscriber)
        ordered = query.order_by(subscriptions.c.added, subscriptions.c.id).limit(limit)
        with self._database.read() as connection:
            return [Subscription(*one) for one in connection.execute(ordered)]


def _filter_by_owner(query: Select[*tuple[Any, ...]], subscriber: str | None) -> Select[*tuple[Any, ...]]:
    return query if subscriber is None else query.where(subscriptions.c.subscriber == subscriber)


def _select_added(since: int, version: int) -> Select[*tuple[Any, ...]]:
    """Select subscriptions that are active at `version` and were not at `since`, ignoring later changes."""
    alive = or_(IS_LIVE, subscriptions.c.removed > version)
    born = and_(subscriptions.c.added > since, subscriptions.c.added <= version)
    return select(*COLUMNS).where(born, alive).order_by(subscriptions.c.added, subscriptions.c.id)


def _select_removed(since: int, version: int) -> Select[*tuple[Any, ...]]:
    died = and_(subscriptions.c.removed > since, subscriptions.c.removed <= version)
    return select(subscriptions.c.id).where(subscriptions.c.added <= since, died).order_by(subscriptions.c.id)


def _from_the_future(database: Database, since: int, version: int) -> StoreError:
    return StoreError(
        f"the store is at version {version} of its subscriptions, but version {since} of them is known here",
        where=database.name,
        hint="was the store replaced by an older copy? remove the segments folder: it is built anew",
    )


def _change(connection: Connection, changed: Subscription) -> bool:
    last = counters.lock(connection, "subscriptions")
    current = next(find_live(connection, [changed.id]), None)
    if current is None or (current.subscriber, current.language) != (changed.subscriber, changed.language):
        return False
    if current != changed:
        _kill(connection, [changed.id], last + 1)
        bulk.insert_rows(connection, subscriptions, [subscription_row(changed, last + 1)])
        counters.advance(connection, "subscriptions", last + 1)
    return True


def remove_subscriptions(connection: Connection, ids: Sequence[str], subscriber: str | None) -> list[str]:
    last = counters.lock(connection, "subscriptions")
    own = {one.id for one in find_live(connection, ids) if subscriber in (None, one.subscriber)}
    removed = [id for id in ids if id in own]
    if removed:
        _kill(connection, removed, last + 1)
        counters.advance(connection, "subscriptions", last + 1)
    return removed


def _kill(connection: Connection, ids: Sequence[str], version: int) -> None:
    bulk.delete_among(connection, overruns.c.subscription, ids)
    died = update(subscriptions).where(IS_LIVE, subscriptions.c.id == bindparam("dying"))
    connection.execute(died.values(removed=version), [{"dying": id} for id in ids])
