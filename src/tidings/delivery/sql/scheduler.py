"""Scheduler of deliveries: new entries make cursors due, and the first entry creates a cursor.

Cursors are locked before they are read: a worker that ends a run at the same moment has looked for entries before the
new ones were inserted, or this transaction waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, exists, func, select, update

from tidings.delivery.sql import leases
from tidings.delivery.sql.destination_store import ACTIVE, HUB
from tidings.delivery.sql.leases import CursorKey
from tidings.delivery.sql.tables import (
    delivery_gathered,
    delivery_lanes,
    delivery_owners,
    destinations,
)
from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.numbered_notifications import number_notifications
from tidings.store.tables import notifications, subscribers, subscription_entries

MAX_WOKEN_SUBSCRIBERS = 250
"""How many subscribers have their cursors woken in one transaction, so that other writers do not wait long."""
MAX_NEW_NOTIFICATIONS = 5_000
"""How many notifications of a subscriber are scheduled in one transaction."""

BEHIND = (
    select(delivery_owners.c.subscriber)
    .join_from(delivery_owners, subscribers, subscribers.c.subscriber == delivery_owners.c.subscriber)
    .where(subscribers.c.last_sequence > delivery_owners.c.seen)
    .order_by(delivery_owners.c.subscriber)
    .limit(bindparam("most"))
)
"""Subscribers with destinations and notifications that are not scheduled yet."""

_OWNERS = select(*delivery_owners.c).order_by(delivery_owners.c.subscriber).with_for_update()
_DESTINATIONS = select(*destinations.c).order_by(destinations.c.id).with_for_update(read=True)

_new = json_rows("who", numbers=("seen", "upto"))
_SUBSCRIPTIONS = (
    select(notifications.c.subscriber, notifications.c.subscription)
    .join_from(_new, notifications, notifications.c.subscriber == _new.c.who)
    .where(notifications.c.sequence > _new.c.seen, notifications.c.sequence <= _new.c.upto)
    .distinct()
)
_known = (delivery_gathered.c.subscriber == _new.c.who) & (delivery_gathered.c.upto <= _new.c.upto)
_GATHERED = (
    select(delivery_gathered.c.subscriber, delivery_gathered.c.subscription)
    .join_from(_new, delivery_gathered, _known)
    .distinct()
)
_FORGET = delete(delivery_gathered).where(exists().where(_known).correlate(delivery_gathered))
_keys = json_rows("to", "what")
_SAME_KEY = (delivery_lanes.c.destination == _keys.c.to) & (delivery_lanes.c.subscription == _keys.c.what)
_CURSORS = (
    select(delivery_lanes.c.destination, delivery_lanes.c.subscription, delivery_lanes.c.due)
    .join_from(_keys, delivery_lanes, _SAME_KEY)
    .order_by(delivery_lanes.c.destination, delivery_lanes.c.subscription)
    .with_for_update(of=delivery_lanes)
)
_new_cursors = json_rows("who", "what", numbers=("since",))
_LAST_BEFORE = select(
    _new_cursors.c.who,
    _new_cursors.c.what,
    _new_cursors.c.since,
    select(func.max(subscription_entries.c.number))
    .where(
        subscription_entries.c.subscriber == _new_cursors.c.who,
        subscription_entries.c.subscription == _new_cursors.c.what,
        subscription_entries.c.sequence <= _new_cursors.c.since,
    )
    .scalar_subquery(),
)
_SEEN = update(delivery_owners).where(delivery_owners.c.subscriber == _new.c.who).values(seen=_new.c.upto)


def wake_cursors(connection: Connection, names: Sequence[str], now: str) -> None:
    """Number the new notifications of subscribers, some thousands for each, and make their cursors due."""
    numbered = number_notifications(connection, names, now)
    owners = bulk.select_among(connection, _OWNERS, delivery_owners.c.subscriber, names)
    ranges = [(name, seen, min(numbered.get(name, 0), seen + MAX_NEW_NOTIFICATIONS)) for name, seen in owners]
    new = json_rows_parameter((name, seen, end) for name, seen, end in ranges if end > seen)
    by_subscriber: dict[str, list[Any]] = defaultdict(list)
    for row in bulk.select_among(connection, _DESTINATIONS, destinations.c.subscriber, names):
        by_subscriber[row.subscriber].append(row)
    wanted = {
        (destination.id, subscription): destination
        for subscriber, subscription in connection.execute(_SUBSCRIPTIONS, new)
        for destination in by_subscriber[subscriber]
        if destination.subscription in (None, subscription)
    }
    _make_due(connection, wanted, _pop_gathered(connection, new), now)
    connection.execute(_SEEN, new)


def _pop_gathered(connection: Connection, new: dict[str, str]) -> set[tuple[str, str]]:
    """Return subscribers and subscriptions with notifications that were handed over together, and forget them."""
    gathered = {(subscriber, subscription) for subscriber, subscription in connection.execute(_GATHERED, new)}
    if gathered:
        connection.execute(_FORGET, new)
    return gathered


def _make_due(
    connection: Connection, wanted: Mapping[CursorKey, Any], gathered: Collection[tuple[str, str]], now: str
) -> None:
    """Make idle cursors of active destinations due and create missing ones.

    Gathered notifications become a digest, and so do all that go to callbacks of the hub.
    """
    rows = connection.execute(_CURSORS, json_rows_parameter(wanted)).all()
    existing = {(row.destination, row.subscription): row.due for row in rows}
    digests = {
        key
        for key, destination in wanted.items()
        if destination.kind == HUB or (destination.subscriber, key[1]) in gathered
    }
    idle = [key for key, due in existing.items() if due is None and wanted[key].state == ACTIVE]
    leases.update_cursors(connection, {key: {"due": now} for key in idle})
    leases.update_cursors(connection, {key: {"gathers": 1} for key in existing if key in digests})
    missing = {key: destination for key, destination in wanted.items() if key not in existing}
    _create_cursors(connection, missing, digests, now)


def _create_cursors(
    connection: Connection, missing: Mapping[CursorKey, Any], digests: Collection[CursorKey], now: str
) -> None:
    """Create cursors behind the last entry from before their destination was added.

    The owner is locked, so no other process creates the same cursor.
    """
    if not missing:
        return
    starts = {
        key: (destination.subscriber, key[1], destination.since) for key, destination in missing.items()
    }
    found = connection.execute(_LAST_BEFORE, json_rows_parameter(starts.values()))
    numbers = {(subscriber, subscription, since): number for subscriber, subscription, since, number in found}
    columns = [column.name for column in delivery_lanes.columns]
    rows = []
    for key, destination in sorted(missing.items(), key=lambda item: item[0]):
        row: dict[str, Any] = dict.fromkeys(("busy", "ticket", "attempts", "delivered", "failures"), 0)
        row |= {
            "destination": destination.id,
            "subscription": key[1],
            "subscriber": destination.subscriber,
            "place": destination.place,
            "told": numbers[starts[key]] or 0,
            "due": now if destination.state == ACTIVE else None,
            "gathers": int(key in digests),
        }
        rows.append(tuple(row.get(name) for name in columns))
    bulk.insert_rows(connection, delivery_lanes, rows)
