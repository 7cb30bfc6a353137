"""Destinations: where subscribers want to be told, beside their notifications and feeds.

A destination is for one subscription or for all of its subscriber's. It begins with what is told after it was made. One
that is paused or disabled keeps its place: what comes meanwhile is delivered when it is resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, or_, select, update

from tidings.delivery.sql.tables import (
    delivery_lanes,
    delivery_owners,
    destinations,
    quiet_hours,
    undelivered,
)
from tidings.store import bulk, names
from tidings.store.database import Database
from tidings.store.encoding import Clock, escape_unstorable, format_instant
from tidings.store.tables import subscribers

ACTIVE, PAUSED, DISABLED = "active", "paused", "disabled"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where somebody wants to be told. The target and the secrets are not shown: some targets have a password in them.

    `reason` is why it was disabled.
    """

    id: str
    subscriber: str
    subscription: str | None
    kind: str
    target: str = field(repr=False)
    place: str
    name: str = ""
    secret: str | None = field(default=None, repr=False)
    old_secret: str | None = field(default=None, repr=False)
    old_until: str | None = None
    state: str = ACTIVE
    reason: str | None = None
    made: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """How deliveries go: how many notifications were taken, when the last was, how often in a row it failed since then,
    and what went wrong last.
    """

    delivered: int = 0
    last_success: str | None = None
    consecutive_failures: int = 0
    last_failure: str | None = None
    last_error: str | None = None


class DestinationStore:
    """The destinations of everybody."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, wanted: Destination) -> Destination:
        """Keep a destination, under an id of its own."""
        return self._database.transact(lambda c: _add(c, wanted, format_instant(self._clock())))

    def find(self, id: str) -> Destination | None:
        with self._database.read() as connection:
            return _find(connection, id)

    def find_many(self, ids: Collection[str]) -> dict[str, Destination]:
        """Several at once, by id; those that are gone are left out."""
        with self._database.read() as connection:
            return find_destinations(connection, ids)

    def list(
        self, subscriber: str | None = None, after: str = "", limit: int | None = None
    ) -> list[Destination]:
        """Those of everybody or of one subscriber, by id, after an id."""
        wanted = _WANTED.where(destinations.c.id > after)
        if subscriber is not None:
            wanted = wanted.where(destinations.c.subscriber == subscriber)
        with self._database.read() as connection:
            rows = connection.execute(wanted.order_by(destinations.c.id).limit(limit))
            return [Destination(*row) for row in rows]

    def count(self, subscriber: str) -> int:
        wanted = select(func.count()).where(destinations.c.subscriber == subscriber)
        with self._database.read() as connection:
            return int(connection.execute(wanted).scalar_one())

    def remove(self, id: str) -> bool:
        """Forget a destination, and what was given up for it; false if there is none."""
        return self._database.transact(lambda c: _remove(c, id))

    def change(self, id: str, **values: Any) -> bool:
        """Change its name, its target and place. What waits to be tried again is tried now."""
        return self._database.transact(lambda c: _change(c, id, values, format_instant(self._clock())))

    def pause(self, id: str) -> bool:
        """Deliver nothing until it is resumed."""
        return self._database.transact(lambda c: stop_destination(c, id, PAUSED, None))

    def resume(self, id: str) -> bool:
        """Go on where it was."""
        values = {"state": ACTIVE, "reason": None}
        return self._database.transact(lambda c: _change(c, id, values, format_instant(self._clock())))

    def rotate(self, id: str, secret: str, overlap: timedelta) -> bool:
        """Sign with a new secret; the one of now signs, too, for a while."""
        until = format_instant(self._clock() + overlap)
        values = {"old_secret": destinations.c.secret, "old_until": until, "secret": secret}
        return self._set(id, values)

    def drop_old_secret(self, id: str) -> bool:
        """Sign with the new secret only, from now on."""
        return self._set(id, {"old_secret": None, "old_until": None})

    def _set(self, id: str, values: dict[str, Any]) -> bool:
        changed = update(destinations).where(destinations.c.id == id).values(values)
        return bool(self._database.transact(lambda c: c.execute(changed).rowcount))

    def health(self, subscriber: str, subscriptions: Collection[str] | None = None) -> dict[str, Health]:
        """How the deliveries of a subscriber's subscriptions go, by subscription; of these, if some are named."""
        wanted = _health(delivery_lanes.c.subscription).where(delivery_lanes.c.subscriber == subscriber)
        if subscriptions is not None:
            wanted = wanted.where(delivery_lanes.c.subscription.in_(subscriptions))
        return self._healths(wanted)

    def health_of(self, ids: Collection[str]) -> dict[str, Health]:
        """How the deliveries to these destinations go, by destination; one that got nothing yet is left out."""
        return self._healths(
            _health(delivery_lanes.c.destination).where(delivery_lanes.c.destination.in_(ids))
        )

    def _healths(self, wanted: Select[*tuple[Any, ...]]) -> dict[str, Health]:
        """The sum of lanes; what went wrong last, of all of them, is the last error."""
        found: dict[str, Health] = {}
        with self._database.read() as connection:
            for key, *row in connection.execute(wanted):
                found[key] = _added(found.get(key, Health()), Health(*row))
        return found


_WANTED = select(*(destinations.c[name] for name in Destination.__dataclass_fields__))


def _health(key: Any) -> Select[*tuple[Any, ...]]:
    c = delivery_lanes.c
    return select(key, c.delivered, c.last_success, c.failures, c.last_failure, c.last_error)


def _added(one: Health, other: Health) -> Health:
    last = max((one, other), key=lambda each: each.last_failure or "")
    return Health(
        one.delivered + other.delivered,
        max(one.last_success or "", other.last_success or "") or None,
        max(one.consecutive_failures, other.consecutive_failures),
        last.last_failure,
        last.last_error,
    )


def find_destinations(connection: Connection, ids: Collection[str]) -> dict[str, Destination]:
    """Those with these ids, by id."""
    rows = bulk.select_among(connection, _WANTED, destinations.c.id, set(ids))
    return {row.id: Destination(*row) for row in rows}


def _find(connection: Connection, id: str) -> Destination | None:
    row = connection.execute(_WANTED.where(destinations.c.id == id)).one_or_none()
    return Destination(*row) if row else None


def _add(connection: Connection, wanted: Destination, made: str) -> Destination:
    """The owner's row is made first: whoever wakes lanes has it locked."""
    names.check("a subscriber's name", wanted.subscriber)
    _check_texts({"name": wanted.name, "target": wanted.target})
    known = select(subscribers.c.last_sequence).where(subscribers.c.subscriber == wanted.subscriber)
    last = int(connection.execute(known).scalar() or 0)
    bulk.insert_missing(connection, delivery_owners, [{"subscriber": wanted.subscriber, "seen": last}])
    id = names.new_id("d")
    while _find(connection, id) is not None:
        id = names.new_id("d", 16)
    kept = replace(wanted, id=id, made=made, since=last)
    row = {name: getattr(kept, name) for name in Destination.__dataclass_fields__}
    connection.execute(insert(destinations), row)
    return kept


def _check_texts(values: Mapping[str, Any]) -> None:
    for name in ("name", "target"):
        names.check_text(f"a destination's {name}", values.get(name, ""), f"/{name}")


def _remove(connection: Connection, id: str) -> bool:
    gone = connection.execute(delete(destinations).where(destinations.c.id == id)).rowcount
    for table in (delivery_lanes, undelivered):
        connection.execute(delete(table).where(table.c.destination == id))
    return bool(gone)


def _idle(id: str, now: str) -> Any:
    """The lanes of a destination that nobody works on."""
    c = delivery_lanes.c
    return (c.destination == id) & or_(c.busy == 0, c.due <= now)


def _change(connection: Connection, id: str, values: dict[str, Any], now: str) -> bool:
    """The destination's row comes first: whoever has a lane of it has that, too."""
    _check_texts(values)
    changed = update(destinations).where(destinations.c.id == id).values(values)
    if not connection.execute(changed).rowcount:
        return False
    place = {"place": values["place"]} if "place" in values else {}
    if place:
        for table in (delivery_lanes, undelivered):
            connection.execute(update(table).where(table.c.destination == id).values(place))
    state = connection.execute(select(destinations.c.state).where(destinations.c.id == id)).scalar_one()
    if state == ACTIVE:
        woken = update(delivery_lanes).where(_idle(id, now))
        connection.execute(woken.values(due=now, attempts=0, busy=0))
    return True


def lock_destinations(connection: Connection, ids: Collection[str]) -> None:
    """Have these for this transaction alone, before lanes of theirs are locked."""
    if ids:
        list(bulk.select_among(connection, _LOCKED, destinations.c.id, ids))


_LOCKED = select(destinations.c.id).order_by(destinations.c.id).with_for_update()


def stop_destination(connection: Connection, id: str, state: str, reason: str | None) -> bool:
    """Deliver nothing: it was paused, or its receiver wants no more."""
    values = {"state": state, "reason": None if reason is None else escape_unstorable(reason)}
    stopped = connection.execute(update(destinations).where(destinations.c.id == id).values(values))
    lanes = (delivery_lanes.c.destination == id) & (delivery_lanes.c.busy == 0)
    connection.execute(update(delivery_lanes).where(lanes).values(due=None))
    return bool(stopped.rowcount)


# When subscribers want to be left alone.


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From a minute of the day to another, in a time zone (`Europe/Berlin`); it may be over midnight."""

    subscriber: str
    from_minute: int
    to_minute: int
    zone: str


class SubscriberPreferences:
    """What subscribers have said about how they want to be told."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def quiet(self, subscriber: str) -> QuietHours | None:
        with self._database.read() as connection:
            return quiet_of(connection, [subscriber]).get(subscriber)

    def set_quiet(self, subscriber: str, wanted: QuietHours | None) -> None:
        """Keep quiet hours in the place of those there were; without any, there are none."""
        names.check("a subscriber's name", subscriber)
        row = {name: getattr(wanted, name) for name in QuietHours.__dataclass_fields__} if wanted else None

        def replace(connection: Connection) -> None:
            connection.execute(delete(quiet_hours).where(quiet_hours.c.subscriber == subscriber))
            if row is not None:
                connection.execute(insert(quiet_hours), row)

        self._database.transact(replace)


_QUIET_HOURS = select(*quiet_hours.c)


def quiet_of(connection: Connection, subscribers: Collection[str]) -> dict[str, QuietHours]:
    """The quiet hours of those of these who have some."""
    rows = bulk.select_among(connection, _QUIET_HOURS, quiet_hours.c.subscriber, set(subscribers))
    return {row.subscriber: QuietHours(*row) for row in rows}
