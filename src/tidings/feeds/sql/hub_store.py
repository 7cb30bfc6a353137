"""Requests, subscriptions and deliveries of the WebSub hub.

A request is an *intent* until its callback has confirmed it. A subscription has at most one delivery in progress, a
range of entries; later entries go with the next one, so a slow receiver costs one row. A lease of an intent or a
delivery moves its due time ahead. If the worker is lost, the next lease counts as another attempt: a delivery that
crashes each worker must not be retried forever.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, Table, delete, func, insert, or_, select, update

from tidings.feeds.sql.tables import feed_addresses, hub_deliveries, hub_intents, hub_subscriptions
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant
from tidings.store.tables import entry_cursors, subscribers, subscription_entries, subscriptions

TAKEN = timedelta(minutes=2)
"""Duration of a lease: longer than a request to a callback can take."""
DEAD_KEPT = 20
"""How many dead deliveries of a subscription are kept, the newest."""

WAITING, DEAD = "waiting", "dead"
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
    """A callback that gets new entries of a feed until its lease ends."""

    address: str
    format: str
    callback: str
    secret: str | None
    lease_end: str
    told: int


@dataclass(frozen=True, slots=True)
class HubDelivery:
    """Delivery of the entries `first` to `last` to a callback, with earlier attempts and the last problem."""

    address: str
    format: str
    callback: str
    first: int
    last: int
    state: str = WAITING
    attempts: int = 0
    problem: str | None = None


Keyed = HubRequest | HubSubscription | HubDelivery
K = TypeVar("K", HubRequest, HubDelivery)


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
        return self._database.transact(lambda c: _take(c, hub_intents, HubRequest, self.now(), most))

    def confirm(self, intent: HubRequest, told: int) -> None:
        """Apply a request that the callback has confirmed. Entries after `told` are delivered.

        A renewed subscription continues where it was.
        """
        self._database.transact(lambda c: _confirm(c, intent, told, self.now()))

    def drop(self, intent: HubRequest) -> None:
        """Remove a request that the callback has not confirmed."""
        self._database.transact(lambda c: _forget_intent(c, intent))

    def deny(self, one: HubRequest | HubSubscription) -> None:
        """Remove a request or a subscription, and queue a denial to its callback."""
        self._database.transact(lambda c: _deny(c, one, format_instant(self.now())))

    def ended(self, most: int) -> list[HubSubscription]:
        """List subscriptions whose feed is gone: its address was revoked, or its subscription removed."""
        with self._database.read() as connection:
            rows = connection.execute(_ended(format_instant(self.now())).limit(most))
            return [HubSubscription(*row) for row in rows]

    def postpone(self, intent: HubRequest, seconds: float) -> None:
        """Retry the verification of a request later."""
        now = self.now()
        due = format_instant(now + timedelta(seconds=seconds))
        wanted = update(hub_intents).where(*_key(hub_intents, intent), _same(intent))
        changed = wanted.values(attempts=intent.attempts + 1, due=due, since=format_instant(now))
        self._database.transact(lambda c: c.execute(changed))

    def subscriptions(self, address: str | None = None) -> list[HubSubscription]:
        """List subscriptions with a valid lease, of all feeds or of one."""
        wanted = select(*hub_subscriptions.c).where(
            hub_subscriptions.c.lease_end > format_instant(self.now())
        )
        if address is not None:
            wanted = wanted.where(hub_subscriptions.c.address == address)
        with self._database.read() as connection:
            return [HubSubscription(*row) for row in connection.execute(wanted)]

    def behind(self, most: int) -> list[HubSubscription]:
        """List subscriptions without a delivery whose feeds may have new entries, at most `most`.

        One statement for all: a query per feed would cost time in proportion to all feeds.
        """
        with self._database.read() as connection:
            rows = connection.execute(_behind(format_instant(self.now())).limit(most))
            return [HubSubscription(*row) for row in rows]

    def begin(self, to: HubSubscription, last: int) -> None:
        """Add a delivery of the entries up to `last`."""
        self._database.transact(lambda c: _begin(c, to, last, format_instant(self.now())))

    def take_deliveries(self, most: int) -> list[tuple[HubDelivery, HubSubscription]]:
        """Lease deliveries that are due, with their subscriptions."""
        taken = self._database.transact(lambda c: _take(c, hub_deliveries, HubDelivery, self.now(), most))
        with self._database.read() as connection:
            found = [(one, _subscription(connection, one)) for one in taken]
        return [(one, to) for one, to in found if to is not None]

    def delivered(self, one: HubDelivery) -> None:
        """Record that the callback has accepted a delivery."""
        self._database.transact(lambda c: _delivered(c, one))

    def failed(self, one: HubDelivery, problem: str, seconds: float | None) -> None:
        """Record a failed delivery: retry after `seconds`, or give it up."""
        self._database.transact(lambda c: _failed(c, one, problem, seconds, self.now()))

    def forget(self, one: Keyed) -> None:
        """Remove a subscription with its requests and deliveries."""
        self._database.transact(lambda c: _forget(c, one))

    def deliveries(self, address: str) -> list[HubDelivery]:
        """List the deliveries of a feed, in progress or dead."""
        wanted = select(*_columns(hub_deliveries, HubDelivery)).where(hub_deliveries.c.address == address)
        with self._database.read() as connection:
            return [HubDelivery(*row) for row in connection.execute(wanted.order_by(hub_deliveries.c.first))]

    def sweep(self) -> int:
        """Remove subscriptions whose lease has ended; return how many."""
        return self._database.transact(lambda c: _sweep(c, format_instant(self.now())))


_KEY = ("address", "format", "callback")


def _columns(table: Table, kind: type[Any]) -> tuple[Any, ...]:
    return tuple(table.c[name] for name in kind.__dataclass_fields__)


def _key(table: Table, one: Keyed) -> tuple[Any, ...]:
    return tuple(table.c[name] == getattr(one, name) for name in _KEY)


def _same(intent: HubRequest) -> Any:
    """Match a request unless a newer one has replaced it."""
    return hub_intents.c.challenge == intent.challenge


def _forget_intent(connection: Connection, intent: HubRequest) -> bool:
    gone = connection.execute(delete(hub_intents).where(*_key(hub_intents, intent), _same(intent)))
    return bool(gone.rowcount)


def _ask(connection: Connection, intent: HubRequest, due: str, most: int) -> bool:
    connection.execute(delete(hub_intents).where(*_key(hub_intents, intent)))
    if connection.execute(select(func.count()).select_from(hub_intents)).scalar_one() >= most:
        return False
    connection.execute(insert(hub_intents), asdict(intent) | {"due": due})
    return True


def _deny(connection: Connection, one: HubRequest | HubSubscription, due: str) -> None:
    """A new request meanwhile replaces the denial."""
    if isinstance(one, HubRequest):
        if not _forget_intent(connection, one):
            return
    else:
        _forget(connection, one)
        if connection.execute(select(hub_intents.c.mode).where(*_key(hub_intents, one))).first():
            return
    denied = HubRequest(one.address, one.format, one.callback, DENIED, None, 0, secrets.token_urlsafe(24))
    connection.execute(insert(hub_intents), asdict(denied) | {"due": due})


def _ended(now: str) -> Select[*tuple[Any, ...]]:
    hub, address, wanted = hub_subscriptions.c, feed_addresses.c, subscriptions.c
    live = wanted.removed.is_(None) & (wanted.id == address.subscription)
    theirs = live & (wanted.subscriber == address.subscriber)
    return (
        select(*hub)
        .join_from(hub_subscriptions, feed_addresses, address.hash == hub.address)
        .outerjoin(subscriptions, theirs)
        .where(hub.lease_end > now, or_(address.revoked.is_not(None), wanted.id.is_(None)))
    )


def _take(connection: Connection, table: Table, kind: type[K], now: datetime, most: int) -> list[K]:
    due = [table.c.due <= format_instant(now)] + ([table.c.state == WAITING] if "state" in table.c else [])
    wanted = select(*_columns(table, kind)).where(*due).order_by(table.c.due).limit(most)
    taken = [kind(*row) for row in connection.execute(wanted.with_for_update(skip_locked=True))]
    for one in taken:
        mine = update(table).where(*_key(table, one), *due)
        lease = {"due": format_instant(now + TAKEN), "since": format_instant(now)}
        connection.execute(mine.values(lease | {"attempts": one.attempts + 1}))
    return taken


def _confirm(connection: Connection, intent: HubRequest, told: int, now: datetime) -> None:
    if not _is_good(connection, intent.address):
        _deny(connection, intent, format_instant(now))
        return
    if not _forget_intent(connection, intent):
        return
    known = _subscription(connection, intent)
    if intent.mode == UNSUBSCRIBE:
        _forget(connection, intent)
        return
    lease_end = format_instant(now + timedelta(seconds=intent.lease))
    renewed = {"secret": intent.secret, "lease_end": lease_end}
    if known and known.lease_end > format_instant(now):
        connection.execute(update(hub_subscriptions).where(*_key(hub_subscriptions, intent)).values(renewed))
        return
    _forget(connection, intent)
    new = {name: getattr(intent, name) for name in _KEY} | renewed | {"told": told}
    connection.execute(insert(hub_subscriptions), new)


def _is_good(connection: Connection, address: str) -> bool:
    """Return whether an address is valid, and lock it against revocation until the transaction ends."""
    good = feed_addresses.c.hash == address, feed_addresses.c.revoked.is_(None)
    return (
        connection.execute(select(feed_addresses.c.hash).where(*good).with_for_update()).first() is not None
    )


def _subscription(connection: Connection, one: Keyed) -> HubSubscription | None:
    wanted = select(*hub_subscriptions.c).where(*_key(hub_subscriptions, one))
    row = connection.execute(wanted).one_or_none()
    return HubSubscription(*row) if row else None


def _behind(now: str) -> Select[*tuple[Any, ...]]:
    hub, address, cursor = hub_subscriptions.c, feed_addresses.c, entry_cursors.c
    busy = select(hub_deliveries.c.first).where(
        *(hub_deliveries.c[name] == hub[name] for name in _KEY), hub_deliveries.c.state == WAITING
    )
    listed = select(subscription_entries.c.number).where(
        subscription_entries.c.subscriber == address.subscriber,
        subscription_entries.c.subscription == address.subscription,
        subscription_entries.c.number > hub.told,
    )
    unlisted = subscribers.c.last_sequence > func.coalesce(cursor.sequence, 0)
    return (
        select(*hub)
        .join_from(hub_subscriptions, feed_addresses, address.hash == hub.address)
        .join(subscribers, subscribers.c.subscriber == address.subscriber)
        .outerjoin(entry_cursors, cursor.subscriber == address.subscriber)
        .where(hub.lease_end > now, ~busy.exists(), or_(unlisted, listed.exists()))
    )


def _begin(connection: Connection, to: HubSubscription, last: int, due: str) -> None:
    locked = select(hub_subscriptions.c.told).where(*_key(hub_subscriptions, to)).with_for_update()
    told = connection.execute(locked).scalar()
    waiting = select(hub_deliveries.c.first).where(
        *_key(hub_deliveries, to), hub_deliveries.c.state == WAITING
    )
    if told is None or told >= last or connection.execute(waiting).first():
        return
    new = HubDelivery(to.address, to.format, to.callback, told + 1, last)
    connection.execute(insert(hub_deliveries), asdict(new) | {"due": due})


def _this(one: HubDelivery) -> tuple[Any, ...]:
    return (*_key(hub_deliveries, one), hub_deliveries.c.first == one.first)


def _delivered(connection: Connection, one: HubDelivery) -> None:
    if connection.execute(delete(hub_deliveries).where(*_this(one))).rowcount:
        _tell(connection, one)


def _tell(connection: Connection, one: HubDelivery) -> None:
    told = update(hub_subscriptions).where(*_key(hub_subscriptions, one))
    connection.execute(told.values(told=one.last))


def _failed(
    connection: Connection, one: HubDelivery, problem: str, seconds: float | None, now: datetime
) -> None:
    state = DEAD if seconds is None else WAITING
    due = format_instant(now + timedelta(seconds=seconds or 0))
    changed = update(hub_deliveries).where(*_this(one), hub_deliveries.c.state == WAITING)
    values = {"state": state, "attempts": one.attempts + 1, "due": due, "problem": problem}
    values |= {"since": format_instant(now)}
    if connection.execute(changed.values(values)).rowcount and state == DEAD:
        _tell(connection, one)
        _drop_old(connection, one)


def _drop_old(connection: Connection, one: HubDelivery) -> None:
    dead = (*_key(hub_deliveries, one), hub_deliveries.c.state == DEAD)
    newest = select(hub_deliveries.c.first).where(*dead).order_by(hub_deliveries.c.first.desc())
    kept = connection.execute(newest.limit(DEAD_KEPT)).scalars().all()
    connection.execute(delete(hub_deliveries).where(*dead, hub_deliveries.c.first < min(kept)))


def _forget(connection: Connection, one: Keyed) -> None:
    for table in (hub_subscriptions, hub_deliveries):
        connection.execute(delete(table).where(*_key(table, one)))


def _sweep(connection: Connection, now: str) -> int:
    ended: Sequence[Any] = connection.execute(
        select(*hub_subscriptions.c).where(hub_subscriptions.c.lease_end <= now)
    ).all()
    for row in ended:
        _forget(connection, HubSubscription(*row))
    return len(ended)
