"""Destinations, to which notifications are delivered, and quiet hours of subscribers.

A destination is for one subscription or for all of its subscriber. It gets the notifications from its creation on. A
paused or disabled destination keeps its cursors: missed notifications are delivered when it is resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, or_, select, update

from tidings.delivery.sql.tables import (
    dead_deliveries,
    delivery_cursors,
    destinations,
    quiet_hours,
    scheduling_cursors,
)
from tidings.store import bulk, names
from tidings.store.database import Database
from tidings.store.encoding import Clock, escape_unstorable, format_instant
from tidings.store.tables import subscribers

ACTIVE, PAUSED, DISABLED = "active", "paused", "disabled"
HUB = "hub"
"""The type of destinations that the WebSub hub manages: callbacks of feed readers. Subscribers do not see them."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination at `host`. Target and secrets have no repr: a target may contain a password.

    `reason` is why it was disabled; `start_sequence` is the last sequence number of the
    subscriber when it was created.
    """

    id: str
    subscriber: str
    subscription: str | None
    kind: str
    target: str = field(repr=False)
    host: str
    name: str = ""
    secret: str | None = field(default=None, repr=False)
    old_secret: str | None = field(default=None, repr=False)
    old_until: str | None = None
    state: str = ACTIVE
    reason: str | None = None
    made: str = ""
    start_sequence: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """Health of deliveries: accepted notifications, the last success, failures in a row since then, the last error."""

    delivered: int = 0
    last_success: str | None = None
    consecutive_failures: int = 0
    last_failure: str | None = None
    last_error: str | None = None


class DestinationStore:
    """The destinations of all subscribers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, destination: Destination) -> Destination:
        """Add a destination under a new id."""
        return self._database.transact(
            lambda c: add_destination(c, destination, format_instant(self._clock()))
        )

    def find(self, id: str) -> Destination | None:
        query = _DESTINATIONS.where(destinations.c.id == id, _VISIBLE)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return Destination(*row) if row else None

    def find_many(self, ids: Collection[str]) -> dict[str, Destination]:
        """Find destinations by id; missing ones are left out."""
        with self._database.read() as connection:
            return find_destinations(connection, ids)

    def list(
        self, subscriber: str | None = None, after: str = "", limit: int | None = None
    ) -> list[Destination]:
        """List destinations in the order of ids, of one subscriber or of all, after an id."""
        query = _DESTINATIONS.where(destinations.c.id > after, _VISIBLE)
        if subscriber is not None:
            query = query.where(destinations.c.subscriber == subscriber)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(destinations.c.id).limit(limit))
            return [Destination(*row) for row in rows]

    def count(self, subscriber: str) -> int:
        query = select(func.count()).where(destinations.c.subscriber == subscriber, _VISIBLE)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def remove(self, id: str) -> bool:
        """Remove a destination with its cursors and dead letters; return false if there is none."""
        return self._database.transact(lambda c: remove_destination(c, id))

    def change(self, id: str, **values: Any) -> bool:
        """Change name, target or host. Waiting retries are due at once."""
        return self._database.transact(lambda c: _change(c, id, values, format_instant(self._clock())))

    def pause(self, id: str) -> bool:
        """Deliver nothing until it is resumed."""
        return self._database.transact(lambda c: stop_destination(c, id, PAUSED, None))

    def resume(self, id: str) -> bool:
        """Deliver again, from where the destination was paused or disabled."""
        values = {"state": ACTIVE, "reason": None}
        return self._database.transact(lambda c: _change(c, id, values, format_instant(self._clock())))

    def rotate(self, id: str, secret: str, overlap: timedelta) -> bool:
        """Replace the secret; messages are signed with both for a while."""
        until = format_instant(self._clock() + overlap)
        values = {"old_secret": destinations.c.secret, "old_until": until, "secret": secret}
        return self._set(id, values)

    def drop_old_secret(self, id: str) -> bool:
        """Stop signing with the old secret."""
        return self._set(id, {"old_secret": None, "old_until": None})

    def _set(self, id: str, values: dict[str, Any]) -> bool:
        changed = update(destinations).where(destinations.c.id == id).values(values)
        return bool(self._database.transact(lambda c: c.execute(changed).rowcount))

    def health(self, subscriber: str, subscriptions: Collection[str] | None = None) -> dict[str, Health]:
        """Return the health of deliveries by subscription, of all or some subscriptions of a subscriber."""
        query = _select_health(delivery_cursors.c.subscription).where(
            delivery_cursors.c.subscriber == subscriber,
            delivery_cursors.c.destination.in_(select(destinations.c.id).where(_VISIBLE)),
        )
        if subscriptions is not None:
            query = query.where(delivery_cursors.c.subscription.in_(subscriptions))
        return self._sum_health(query)

    def health_of(self, ids: Collection[str]) -> dict[str, Health]:
        """Return the health of deliveries by destination; one without deliveries is left out."""
        return self._sum_health(
            _select_health(delivery_cursors.c.destination).where(delivery_cursors.c.destination.in_(ids))
        )

    def _sum_health(self, query: Select[*tuple[Any, ...]]) -> dict[str, Health]:
        """Add up the health of cursors by key."""
        healths: dict[str, Health] = {}
        with self._database.read() as connection:
            for key, *row in connection.execute(query):
                healths[key] = _add_health(healths.get(key, Health()), Health(*row))
        return healths


_VISIBLE = destinations.c.kind != HUB
_DESTINATIONS = select(*(destinations.c[name] for name in Destination.__dataclass_fields__))


def _select_health(key: Any) -> Select[*tuple[Any, ...]]:
    c = delivery_cursors.c
    return select(key, c.delivered, c.last_success, c.failures, c.last_failure, c.last_error)


def _add_health(first: Health, second: Health) -> Health:
    last = max((first, second), key=lambda health: health.last_failure or "")
    return Health(
        first.delivered + second.delivered,
        max(first.last_success or "", second.last_success or "") or None,
        max(first.consecutive_failures, second.consecutive_failures),
        last.last_failure,
        last.last_error,
    )


def find_destinations(connection: Connection, ids: Collection[str]) -> dict[str, Destination]:
    """Find destinations by id; missing ones are left out."""
    rows = bulk.select_among(connection, _DESTINATIONS, destinations.c.id, set(ids))
    return {row.id: Destination(*row) for row in rows}


def add_destination(connection: Connection, requested: Destination, made: str) -> Destination:
    """Add a destination under a new id. The owner's row comes first: code that wakes cursors locks it."""
    names.check("a subscriber's name", requested.subscriber)
    _check_texts({"name": requested.name, "target": requested.target})
    query = select(subscribers.c.last_sequence).where(subscribers.c.subscriber == requested.subscriber)
    last = int(connection.execute(query).scalar() or 0)
    bulk.insert_missing(
        connection, scheduling_cursors, [{"subscriber": requested.subscriber, "sequence": last}]
    )
    id = names.new_id("d")
    while find_destinations(connection, [id]):
        id = names.new_id("d", 16)
    destination = replace(requested, id=id, made=made, start_sequence=last)
    row = {name: getattr(destination, name) for name in Destination.__dataclass_fields__}
    connection.execute(insert(destinations), row)
    return destination


def _check_texts(values: Mapping[str, Any]) -> None:
    for name in ("name", "target"):
        names.check_text(f"a destination's {name}", values.get(name, ""), f"/{name}")


def remove_destination(connection: Connection, id: str) -> bool:
    """Remove a destination with its cursors and dead letters; return false if there is none."""
    removed = connection.execute(delete(destinations).where(destinations.c.id == id)).rowcount
    for table in (delivery_cursors, dead_deliveries):
        connection.execute(delete(table).where(table.c.destination == id))
    return bool(removed)


def _without_lease(id: str, now: str) -> Any:
    """Return the condition for cursors of a destination without a valid lease."""
    c = delivery_cursors.c
    return (c.destination == id) & or_(c.leased == 0, c.due <= now)


def _change(connection: Connection, id: str, values: dict[str, Any], now: str) -> bool:
    """Update the destination before its cursors, in the lock order of all code."""
    _check_texts(values)
    changed = update(destinations).where(destinations.c.id == id).values(values)
    if not connection.execute(changed).rowcount:
        return False
    host = {"host": values["host"]} if "host" in values else {}
    if host:
        for table in (delivery_cursors, dead_deliveries):
            connection.execute(update(table).where(table.c.destination == id).values(host))
    state = connection.execute(select(destinations.c.state).where(destinations.c.id == id)).scalar_one()
    if state == ACTIVE:
        woken = update(delivery_cursors).where(_without_lease(id, now))
        connection.execute(woken.values(due=now, attempts=0, leased=0))
    return True


def lock_destinations(connection: Connection, ids: Collection[str]) -> None:
    """Lock destinations, which must happen before their cursors are locked."""
    if ids:
        list(bulk.select_among(connection, _LOCKED, destinations.c.id, ids))


_LOCKED = select(destinations.c.id).order_by(destinations.c.id).with_for_update()


def stop_destination(connection: Connection, id: str, state: str, reason: str | None) -> bool:
    """Set the state to paused or disabled; nothing is due any more."""
    values = {"state": state, "reason": None if reason is None else escape_unstorable(reason)}
    stopped = connection.execute(update(destinations).where(destinations.c.id == id).values(values))
    idle = (delivery_cursors.c.destination == id) & (delivery_cursors.c.leased == 0)
    connection.execute(update(delivery_cursors).where(idle).values(due=None))
    return bool(stopped.rowcount)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Quiet hours from one minute of the day to another in a time zone (`Europe/Berlin`); they may span midnight."""

    subscriber: str
    from_minute: int
    to_minute: int
    zone: str


class SubscriberPreferences:
    """Preferences of subscribers for deliveries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_quiet_hours(self, subscriber: str) -> QuietHours | None:
        with self._database.read() as connection:
            return find_quiet_hours(connection, [subscriber]).get(subscriber)

    def set_quiet(self, subscriber: str, hours: QuietHours | None) -> None:
        """Replace the quiet hours of a subscriber; None removes them."""
        names.check("a subscriber's name", subscriber)
        row = {name: getattr(hours, name) for name in QuietHours.__dataclass_fields__} if hours else None

        def replace(connection: Connection) -> None:
            connection.execute(delete(quiet_hours).where(quiet_hours.c.subscriber == subscriber))
            if row is not None:
                connection.execute(insert(quiet_hours), row)

        self._database.transact(replace)


_QUIET_HOURS = select(*quiet_hours.c)


def find_quiet_hours(connection: Connection, subscribers: Collection[str]) -> dict[str, QuietHours]:
    """Find the quiet hours of subscribers; those without any are left out."""
    rows = bulk.select_among(connection, _QUIET_HOURS, quiet_hours.c.subscriber, set(subscribers))
    return {row.subscriber: QuietHours(*row) for row in rows}
