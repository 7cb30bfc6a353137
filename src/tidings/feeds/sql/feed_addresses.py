"""Addresses of personal feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from tidings.feeds.sql.tables import feed_addresses
from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """The secret address of a feed; with an empty `subscription`, of the list of all feeds of a subscriber."""

    hash: str
    subscriber: str
    subscription: str
    nonce: str
    made: str
    revoked: str | None = None


class FeedAddresses:
    """The addresses of the feeds of all subscribers. Each feed has at most one that is valid."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def address(self, subscriber: str, subscription: str) -> FeedAddress | None:
        """Return the valid address of a feed."""
        with self._database.read() as connection:
            return _find_valid(connection, subscriber, subscription)

    def find(self, hash: str) -> FeedAddress | None:
        """Find the address with a hash, revoked or not."""
        query = select(*feed_addresses.c).where(feed_addresses.c.hash == hash)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return FeedAddress(*row) if row else None

    def addresses(self, subscriber: str) -> dict[str, FeedAddress]:
        """Return all valid addresses of a subscriber, by subscription."""
        with self._database.read() as connection:
            return {address.subscription: address for address in _list_valid(connection, subscriber)}

    def add(self, subscriber: str, new: Mapping[str, tuple[str, str]]) -> dict[str, FeedAddress]:
        """Add an address for each subscription in `new` without one, from its nonce and hash.

        Returns all valid addresses of the subscriber.
        """
        time = format_instant(self._clock())
        made = [FeedAddress(hash, subscriber, name, nonce, time) for name, (nonce, hash) in new.items()]
        return self._database.transact(lambda c: _add(c, subscriber, made))

    def revoke(self, subscriber: str, subscription: str) -> bool:
        """Revoke the address of a feed; return false if there is none.

        Subscriptions at the hub stay until the hub has sent their callbacks a denial. Nothing else is sent to them.
        """
        moment = format_instant(self._clock())
        return self._database.transact(lambda c: _revoke(c, subscriber, subscription, moment))


def _find_valid(connection: Connection, subscriber: str, subscription: str) -> FeedAddress | None:
    query = select(*feed_addresses.c).where(
        feed_addresses.c.subscriber == subscriber,
        feed_addresses.c.subscription == subscription,
        feed_addresses.c.revoked.is_(None),
    )
    row = connection.execute(query).one_or_none()
    return FeedAddress(*row) if row else None


def _list_valid(connection: Connection, subscriber: str) -> list[FeedAddress]:
    valid = feed_addresses.c.subscriber == subscriber, feed_addresses.c.revoked.is_(None)
    return [FeedAddress(*row) for row in connection.execute(select(*feed_addresses.c).where(*valid))]


def _add(connection: Connection, subscriber: str, new: Sequence[FeedAddress]) -> dict[str, FeedAddress]:
    """If two processes add the same address at once, the unique index rejects one, whose transaction is repeated."""
    existing = {address.subscription: address for address in _list_valid(connection, subscriber)}
    missing = [address for address in new if address.subscription not in existing]
    columns = [column.name for column in feed_addresses.c]
    rows = [tuple(getattr(address, name) for name in columns) for address in missing]
    bulk.insert_rows(connection, feed_addresses, rows)
    return existing | {address.subscription: address for address in missing}


def _revoke(connection: Connection, subscriber: str, subscription: str, moment: str) -> bool:
    address = _find_valid(connection, subscriber, subscription)
    if address is None:
        return False
    revoked = feed_addresses.c.hash == address.hash
    connection.execute(update(feed_addresses).where(revoked).values(revoked=moment))
    return True
