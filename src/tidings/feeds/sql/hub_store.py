"""Requests to the WebSub hub, and its subscriptions.

A request is an *intent* until its callback has confirmed it. A lease of an intent moves its due time ahead; if the
worker is lost, the next lease counts as another attempt. A subscription is a destination of the delivery engine, which
has the callback, its secret and the cursor; the hub adds the feed, its format and the end of the lease.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, func, insert, inspect, or_, select, text, update

from tidings.delivery.sql.destination_store import (
    ACTIVE,
    HUB,
    Destination,
    add_destination,
    remove_destination,
)
from tidings.delivery.sql.tables import delivery_cursors, destinations, scheduling_cursors
from tidings.feeds.sql.tables import feed_addresses, hub_intents, hub_subscriptions
from tidings.operations.egress_policy import split_host
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant, utc_now
from tidings.store.tables import subscriptions

LEASE = timedelta(minutes=2)
"""Lease time of an intent: longer than a request to a callback can take."""

SUBSCRIBE, UNSUBSCRIBE, DENIED = "subscribe", "unsubscribe", "denied"


@dataclass(frozen=True, slots=True)
class HubRequest:
    """A request to the hub: `mode` is `subscribe` or `unsubscribe`, `lease` is in seconds.

    The mode `denied` is a message of the hub: the callback is not, or no longer, subscribed.
    """

    address: str
    format: str
    callback: str
    mode: str
    secret: str | None
    lease: int
    challenge: str
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class HubSubscription:
    """A callback that gets new entries of a feed until its lease ends, and its destination."""

    address: str
    format: str
    callback: str
    destination: str
    lease_end: str


class HubStore:
    """The tables of the hub."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def now(self) -> datetime:
        return self._clock()

    def ask(self, intent: HubRequest, most: int) -> bool:
        """Add a request; return false if `most` are waiting already."""
        due = format_instant(self.now())
        return self._database.transact(lambda c: _ask(c, intent, due, most))

    def take_intents(self, most: int) -> list[HubRequest]:
        """Lease requests that are due for verification."""
        return self._database.transact(lambda c: _take_intents(c, self.now(), most))

    def confirm(self, intent: HubRequest) -> None:
        """Apply a request that the callback has confirmed. Entries from now on are delivered.

        A renewed subscription continues where it was.
        """
        self._database.transact(lambda c: _confirm(c, intent, self.now()))

    def drop(self, intent: HubRequest) -> None:
        """Remove a request that the callback has not confirmed."""
        self._database.transact(lambda c: _remove_intent(c, intent))

    def postpone(self, intent: HubRequest, seconds: float) -> None:
        """Retry the verification of a request later."""
        now = self.now()
        due = format_instant(now + timedelta(seconds=seconds))
        values = {"attempts": intent.attempts + 1, "due": due, "since": format_instant(now)}
        postponed = (
            update(hub_intents).where(*_key(hub_intents, intent), _match_intent(intent)).values(values)
        )
        self._database.transact(lambda c: c.execute(postponed))

    def deny(self, denied: HubRequest | HubSubscription) -> None:
        """Remove a request or a subscription, and queue a denial to its callback."""
        self._database.transact(lambda c: _deny(c, denied, format_instant(self.now())))

    def subscriptions(self, address: str | None = None) -> list[HubSubscription]:
        """List subscriptions with a valid lease whose callbacks still exist, of all feeds or of one."""
        query = _valid(format_instant(self.now()))
        if address is not None:
            query = query.where(hub_subscriptions.c.address == address)
        return self._list(query)

    def find(self, destination: str) -> HubSubscription | None:
        """Find the subscription of a destination, if its lease is valid."""
        query = _valid(format_instant(self.now())).where(hub_subscriptions.c.destination == destination)
        return next(iter(self._list(query)), None)

    def list_removed(self, most: int) -> list[HubSubscription]:
        """List subscriptions whose feed may no longer exist: its address was revoked, or its subscription removed."""
        return self._list(_removed_feeds(format_instant(self.now())).limit(most))

    def sweep(self) -> int:
        """Remove subscriptions whose lease has ended or whose callback no longer exists; return their number."""
        query = _expired_leases(format_instant(self.now()))
        if not self._list(query.limit(1)):
            return 0
        return self._database.transact(lambda c: _sweep(c, query))

    def _list(self, query: Select[*tuple[Any, ...]]) -> list[HubSubscription]:
        with self._database.read() as connection:
            return [HubSubscription(*row) for row in connection.execute(query)]


_SUBSCRIPTIONS = select(*(hub_subscriptions.c[name] for name in HubSubscription.__dataclass_fields__))
_INTENTS = select(*(hub_intents.c[name] for name in HubRequest.__dataclass_fields__))
_KEY = ("address", "format", "callback")


def _key(table: Table, keyed: HubRequest | HubSubscription) -> tuple[Any, ...]:
    return tuple(table.c[name] == getattr(keyed, name) for name in _KEY)


def _match_intent(intent: HubRequest) -> Any:
    """Match a request unless a newer one has replaced it."""
    return hub_intents.c.challenge == intent.challenge


def _valid(now: str) -> Select[*tuple[Any, ...]]:
    return _SUBSCRIPTIONS.join(destinations, destinations.c.id == hub_subscriptions.c.destination).where(
        hub_subscriptions.c.lease_end > now, destinations.c.state == ACTIVE
    )


def _expired_leases(now: str) -> Select[*tuple[Any, ...]]:
    active = select(destinations.c.id).where(destinations.c.state == ACTIVE)
    return _SUBSCRIPTIONS.where(
        or_(hub_subscriptions.c.lease_end <= now, hub_subscriptions.c.destination.not_in(active))
    )


def _removed_feeds(now: str) -> Select[*tuple[Any, ...]]:
    address, subscription = feed_addresses.c, subscriptions.c
    live = subscription.removed.is_(None) & (subscription.id == address.subscription)
    theirs = live & (subscription.subscriber == address.subscriber)
    return (
        _SUBSCRIPTIONS.join(feed_addresses, address.hash == hub_subscriptions.c.address)
        .outerjoin(subscriptions, theirs)
        .where(
            hub_subscriptions.c.lease_end > now, or_(address.revoked.is_not(None), subscription.id.is_(None))
        )
    )


def _ask(connection: Connection, intent: HubRequest, due: str, most: int) -> bool:
    connection.execute(delete(hub_intents).where(*_key(hub_intents, intent)))
    if connection.execute(select(func.count()).select_from(hub_intents)).scalar_one() >= most:
        return False
    connection.execute(insert(hub_intents), asdict(intent) | {"due": due})
    return True


def _take_intents(connection: Connection, now: datetime, most: int) -> list[HubRequest]:
    due = hub_intents.c.due <= format_instant(now)
    query = _INTENTS.where(due).order_by(hub_intents.c.due).limit(most).with_for_update(skip_locked=True)
    intents = [HubRequest(*row) for row in connection.execute(query)]
    lease = {"due": format_instant(now + LEASE), "since": format_instant(now)}
    for intent in intents:
        leased = update(hub_intents).where(*_key(hub_intents, intent), due)
        connection.execute(leased.values(lease | {"attempts": intent.attempts + 1}))
    return intents


def _remove_intent(connection: Connection, intent: HubRequest) -> bool:
    removed = connection.execute(delete(hub_intents).where(*_key(hub_intents, intent), _match_intent(intent)))
    return bool(removed.rowcount)


def _deny(connection: Connection, denied: HubRequest | HubSubscription, due: str) -> None:
    """A new request meanwhile replaces the denial."""
    if isinstance(denied, HubRequest):
        if not _remove_intent(connection, denied):
            return
    else:
        _remove_subscription(connection, denied)
        if connection.execute(select(hub_intents.c.mode).where(*_key(hub_intents, denied))).first():
            return
    key = {name: getattr(denied, name) for name in _KEY}
    intent = HubRequest(**key, mode=DENIED, secret=None, lease=0, challenge=secrets.token_urlsafe(24))
    connection.execute(insert(hub_intents), asdict(intent) | {"due": due})


def _confirm(connection: Connection, intent: HubRequest, now: datetime) -> None:
    feed = _lock_feed(connection, intent.address)
    if feed is None:
        _deny(connection, intent, format_instant(now))
        return
    if not _remove_intent(connection, intent):
        return
    query = _valid(format_instant(now)).where(*_key(hub_subscriptions, intent))
    row = connection.execute(query).one_or_none()
    lease_end = format_instant(now + timedelta(seconds=intent.lease))
    if row is not None and intent.mode == SUBSCRIBE:
        same_destination = hub_subscriptions.c.destination == row.destination
        connection.execute(update(hub_subscriptions).where(same_destination).values(lease_end=lease_end))
        renewed = update(destinations).where(destinations.c.id == row.destination)
        connection.execute(renewed.values(secret=intent.secret))
        return
    _remove_subscription(connection, intent)
    if intent.mode == SUBSCRIBE:
        made = _add_callback(connection, feed, intent.callback, intent.secret, format_instant(now))
        key = {name: getattr(intent, name) for name in _KEY}
        connection.execute(insert(hub_subscriptions), key | {"destination": made.id, "lease_end": lease_end})


def _lock_feed(connection: Connection, address: str) -> tuple[str, str] | None:
    """Return subscriber and subscription of a valid address, locked against revocation in this transaction."""
    valid = feed_addresses.c.hash == address, feed_addresses.c.revoked.is_(None)
    query = select(feed_addresses.c.subscriber, feed_addresses.c.subscription).where(*valid)
    row = connection.execute(query.with_for_update()).one_or_none()
    return (row.subscriber, row.subscription) if row else None


def _add_callback(
    connection: Connection, feed: tuple[str, str], callback: str, secret: str | None, now: str
) -> Destination:
    host, port = split_host(callback)
    return add_destination(
        connection, Destination("", *feed, HUB, callback, f"{host}:{port}", secret=secret), now
    )


def _remove_subscription(connection: Connection, keyed: HubRequest | HubSubscription) -> None:
    own = _key(hub_subscriptions, keyed)
    for id in connection.execute(select(hub_subscriptions.c.destination).where(*own)).scalars().all():
        remove_destination(connection, id)
    connection.execute(delete(hub_subscriptions).where(*own))


def _sweep(connection: Connection, over: Select[*tuple[Any, ...]]) -> int:
    rows = [HubSubscription(*row) for row in connection.execute(over)]
    for subscription in rows:
        _remove_subscription(connection, subscription)
    return len(rows)


def deliver_by_destinations(connection: Connection) -> None:
    """Migrate subscriptions of the hub to destinations, each with a cursor that goes on where it was.

    Before, the hub delivered itself: `told` was the last delivered entry, and `hub_deliveries` had the entries that
    were being delivered (`waiting`) or had been given up (`dead`), which are dropped: they are still in the feed.
    """
    if "told" not in {column["name"] for column in inspect(connection).get_columns("hub_subscriptions")}:
        return
    old = connection.execute(_OLD_SUBSCRIPTIONS).all()
    connection.execute(text("DROP TABLE hub_subscriptions"))
    connection.execute(text("DROP TABLE IF EXISTS hub_deliveries"))
    hub_subscriptions.create(connection)
    now = format_instant(utc_now())
    for row in old:
        made = _add_callback(connection, (row.subscriber, row.subscription), row.callback, row.secret, now)
        cursor = {
            "destination": made.id,
            "subscription": row.subscription,
            "subscriber": row.subscriber,
            "host": made.host,
            "position": row.told,
            "due": row.due or now,
            "attempts": row.attempts or 0,
            "digest_end": row.last,
            "next_is_digest": 1,
        }
        cursor |= dict.fromkeys(("leased", "ticket", "delivered", "failures"), 0)
        connection.execute(insert(delivery_cursors), cursor)
        values = {name: getattr(row, name) for name in ("address", "format", "callback", "lease_end")}
        connection.execute(insert(hub_subscriptions), values | {"destination": made.id})
    # Notifications may not be numbered yet: the delivery worker looks at the last one again.
    sequence = scheduling_cursors.c.sequence
    connection.execute(update(scheduling_cursors).where(sequence > 0).values(sequence=sequence - 1))


_OLD_SUBSCRIPTIONS = text(
    "SELECT h.address, h.format, h.callback, h.secret, h.lease_end, h.told, a.subscriber, a.subscription,"
    " d.last, d.due, d.attempts FROM hub_subscriptions h JOIN feed_addresses a ON a.hash = h.address"
    " LEFT JOIN hub_deliveries d ON d.address = h.address AND d.format = h.format"
    " AND d.callback = h.callback AND d.state = 'waiting'"
)
