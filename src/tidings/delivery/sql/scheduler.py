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
    delivery_cursors,
    destinations,
    pending_digests,
    scheduling_cursors,
)
from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.notifications.subscription_entries import number_notifications
from tidings.store.tables import notifications, numbered_notifications, subscribers

MAX_WOKEN_SUBSCRIBERS = 250
"""Number of subscribers whose cursors wake in one transaction, so that other writers do not wait long."""
MAX_NEW_NOTIFICATIONS = 5_000
"""Maximum number of notifications of a subscriber that are scheduled in one transaction."""

BEHIND = (
    select(scheduling_cursors.c.subscriber)
    .join_from(scheduling_cursors, subscribers, subscribers.c.subscriber == scheduling_cursors.c.subscriber)
    .where(subscribers.c.last_sequence > scheduling_cursors.c.sequence)
    .order_by(scheduling_cursors.c.subscriber)
    .limit(bindparam("most"))
)
"""Subscribers with destinations and notifications that are not scheduled yet."""

_SCHEDULED = select(*scheduling_cursors.c).order_by(scheduling_cursors.c.subscriber).with_for_update()
_DESTINATIONS = select(*destinations.c).order_by(destinations.c.id).with_for_update(read=True)

_new = json_rows("who", numbers=("start", "upto"))
_SUBSCRIPTIONS = (
    select(notifications.c.subscriber, notifications.c.subscription)
    .join_from(_new, notifications, notifications.c.subscriber == _new.c.who)
    .where(notifications.c.sequence > _new.c.start, notifications.c.sequence <= _new.c.upto)
    .distinct()
)
_known = (pending_digests.c.subscriber == _new.c.who) & (pending_digests.c.sequence <= _new.c.upto)
_GATHERED = (
    select(pending_digests.c.subscriber, pending_digests.c.subscription)
    .join_from(_new, pending_digests, _known)
    .distinct()
)
_FORGET = delete(pending_digests).where(exists().where(_known).correlate(pending_digests))
_keys = json_rows("to", "what")
_SAME_KEY = (delivery_cursors.c.destination == _keys.c.to) & (delivery_cursors.c.subscription == _keys.c.what)
_CURSORS = (
    select(delivery_cursors.c.destination, delivery_cursors.c.subscription, delivery_cursors.c.due)
    .join_from(_keys, delivery_cursors, _SAME_KEY)
    .order_by(delivery_cursors.c.destination, delivery_cursors.c.subscription)
    .with_for_update(of=delivery_cursors)
)
_new_cursors = json_rows("who", "what", numbers=("since",))
_LAST_BEFORE = select(
    _new_cursors.c.who,
    _new_cursors.c.what,
    _new_cursors.c.since,
    select(func.max(numbered_notifications.c.number))
    .where(
        numbered_notifications.c.subscriber == _new_cursors.c.who,
        numbered_notifications.c.subscription == _new_cursors.c.what,
        numbered_notifications.c.sequence <= _new_cursors.c.since,
    )
    .scalar_subquery(),
)
_ADVANCE = (
    update(scheduling_cursors)
    .where(scheduling_cursors.c.subscriber == _new.c.who)
    .values(sequence=_new.c.upto)
)


def wake_cursors(connection: Connection, names: Sequence[str], now: str) -> None:
    """Number the new notifications of subscribers, some thousands for each, and make their cursors due."""
    numbered = number_notifications(connection, names, now)
    scheduled = bulk.select_among(connection, _SCHEDULED, scheduling_cursors.c.subscriber, names)
    ranges = [
        (name, start, min(numbered.get(name, 0), start + MAX_NEW_NOTIFICATIONS)) for name, start in scheduled
    ]
    new = json_rows_parameter((name, start, end) for name, start, end in ranges if end > start)
    by_subscriber: dict[str, list[Any]] = defaultdict(list)
    for row in bulk.select_among(connection, _DESTINATIONS, destinations.c.subscriber, names):
        by_subscriber[row.subscriber].append(row)
    matched = {
        (destination.id, subscription): destination
        for subscriber, subscription in connection.execute(_SUBSCRIPTIONS, new)
        for destination in by_subscriber[subscriber]
        if destination.subscription in (None, subscription)
    }
    _make_due(connection, matched, _pop_gathered(connection, new), now)
    connection.execute(_ADVANCE, new)


def _pop_gathered(connection: Connection, new: dict[str, str]) -> set[tuple[str, str]]:
    """Return subscribers and subscriptions with notifications that were handed over together, and forget them."""
    gathered = {(subscriber, subscription) for subscriber, subscription in connection.execute(_GATHERED, new)}
    if gathered:
        connection.execute(_FORGET, new)
    return gathered


def _make_due(
    connection: Connection,
    destinations_by_key: Mapping[CursorKey, Any],
    gathered: Collection[tuple[str, str]],
    now: str,
) -> None:
    """Make idle cursors of active destinations due and create missing ones.

    Gathered notifications become a digest, and so do all that go to callbacks of the hub.
    """
    rows = connection.execute(_CURSORS, json_rows_parameter(destinations_by_key)).all()
    existing = {(row.destination, row.subscription): row.due for row in rows}
    digests = {
        key
        for key, destination in destinations_by_key.items()
        if destination.kind == HUB or (destination.subscriber, key[1]) in gathered
    }
    idle = [key for key, due in existing.items() if due is None and destinations_by_key[key].state == ACTIVE]
    leases.update_cursors(connection, {key: {"due": now} for key in idle})
    leases.update_cursors(connection, {key: {"next_is_digest": 1} for key in existing if key in digests})
    missing = {key: destination for key, destination in destinations_by_key.items() if key not in existing}
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
        key: (destination.subscriber, key[1], destination.start_sequence)
        for key, destination in missing.items()
    }
    numbered = connection.execute(_LAST_BEFORE, json_rows_parameter(starts.values()))
    numbers = {
        (subscriber, subscription, since): number for subscriber, subscription, since, number in numbered
    }
    columns = [column.name for column in delivery_cursors.columns]
    rows = []
    for key, destination in sorted(missing.items(), key=lambda item: item[0]):
        row: dict[str, Any] = dict.fromkeys(("leased", "ticket", "attempts", "delivered", "failures"), 0)
        row |= {
            "destination": destination.id,
            "subscription": key[1],
            "subscriber": destination.subscriber,
            "host": destination.host,
            "position": numbers[starts[key]] or 0,
            "due": now if destination.state == ACTIVE else None,
            "next_is_digest": int(key in digests),
        }
        rows.append(tuple(row.get(name) for name in columns))
    bulk.insert_rows(connection, delivery_cursors, rows)
