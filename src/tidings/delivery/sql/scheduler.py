"""Lanes are woken by new entries, and made when the first comes.

Lanes are locked before they are looked at: whoever ends a run at the same moment has looked for entries before these
were there, or is waited for here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, exists, func, select, update

from tidings.delivery.sql import leases
from tidings.delivery.sql.destination_store import ACTIVE
from tidings.delivery.sql.leases import CursorKey
from tidings.delivery.sql.tables import (
    delivery_gathered,
    delivery_lanes,
    delivery_owners,
    destinations,
)
from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.entries import append_entries
from tidings.store.tables import notifications, subscribers, subscription_entries

AT_ONCE = 250
"""How many subscribers have their lanes woken in one transaction: others may want to write, too."""
PART = 5_000
"""How many notifications of a subscriber are looked at in one transaction."""

BEHIND = (
    select(delivery_owners.c.subscriber)
    .join_from(delivery_owners, subscribers, subscribers.c.subscriber == delivery_owners.c.subscriber)
    .where(subscribers.c.last_sequence > delivery_owners.c.seen)
    .order_by(delivery_owners.c.subscriber)
    .limit(bindparam("most"))
)
"""Those with destinations who were told something since the last look."""

_OWNERS = select(*delivery_owners.c).order_by(delivery_owners.c.subscriber).with_for_update()
_THEIRS = select(*destinations.c).order_by(destinations.c.id).with_for_update(read=True)

_new = json_rows("who", numbers=("seen", "upto"))
_NAMED = (
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
_HERE = (delivery_lanes.c.destination == _keys.c.to) & (delivery_lanes.c.subscription == _keys.c.what)
_LANES = (
    select(delivery_lanes.c.destination, delivery_lanes.c.subscription, delivery_lanes.c.due)
    .join_from(_keys, delivery_lanes, _HERE)
    .order_by(delivery_lanes.c.destination, delivery_lanes.c.subscription)
    .with_for_update(of=delivery_lanes)
)
_feeds = json_rows("who", "what", numbers=("since",))
_BEFORE = select(
    _feeds.c.who,
    _feeds.c.what,
    _feeds.c.since,
    select(func.max(subscription_entries.c.number))
    .where(
        subscription_entries.c.subscriber == _feeds.c.who,
        subscription_entries.c.subscription == _feeds.c.what,
        subscription_entries.c.sequence <= _feeds.c.since,
    )
    .scalar_subquery(),
)
_SEEN = update(delivery_owners).where(delivery_owners.c.subscriber == _new.c.who).values(seen=_new.c.upto)


def wake_cursors(connection: Connection, subscribed: Sequence[str], now: str) -> None:
    """Make entries of what is new for these subscribers, some thousands for each, and make their lanes due."""
    listed = append_entries(connection, subscribed, now)
    owners = bulk.select_among(connection, _OWNERS, delivery_owners.c.subscriber, subscribed)
    news = [(who, seen, min(listed.get(who, 0), seen + PART)) for who, seen in owners]
    told = json_rows_parameter(one for one in news if one[2] > one[1])
    theirs: dict[str, list[Any]] = defaultdict(list)
    for row in bulk.select_among(connection, _THEIRS, destinations.c.subscriber, subscribed):
        theirs[row.subscriber].append(row)
    wanted = {
        (to.id, what): to
        for who, what in connection.execute(_NAMED, told)
        for to in theirs[who]
        if to.subscription in (None, what)
    }
    _rouse(connection, wanted, _gathered(connection, told), now)
    connection.execute(_SEEN, told)


def _gathered(connection: Connection, told: dict[str, str]) -> set[CursorKey]:
    """The subscribers and subscriptions of which something was handed over together."""
    found = {(who, what) for who, what in connection.execute(_GATHERED, told)}
    if found:
        connection.execute(_FORGET, told)
    return found


def _rouse(
    connection: Connection, wanted: Mapping[CursorKey, Any], gathered: Collection[CursorKey], now: str
) -> None:
    """Make these lanes due, if they sleep and their destination is active; those that are missing are made. What was
    gathered for them goes together.
    """
    rows = connection.execute(_LANES, json_rows_parameter(wanted)).all()
    there = {(row.destination, row.subscription): row.due for row in rows}
    together = {key for key, to in wanted.items() if (to.subscriber, key[1]) in gathered}
    asleep = [key for key, due in there.items() if due is None and wanted[key].state == ACTIVE]
    leases.update_cursors(connection, {key: {"due": now} for key in asleep})
    leases.update_cursors(connection, {key: {"gathers": 1} for key in there if key in together})
    _make(connection, {key: to for key, to in wanted.items() if key not in there}, together, now)


def _make(
    connection: Connection, missing: Mapping[CursorKey, Any], together: Collection[CursorKey], now: str
) -> None:
    """A lane begins behind the last entry that was there before its destination. Whoever makes one has its owner
    locked, so nobody else does.
    """
    if not missing:
        return
    feeds = {key: (to.subscriber, key[1], to.since) for key, to in missing.items()}
    before = {(who, what, since): number for who, what, since, number in _before(connection, feeds.values())}
    columns = [column.name for column in delivery_lanes.columns]
    rows = []
    for (id, what), to in sorted(missing.items(), key=lambda one: one[0]):
        row: dict[str, Any] = dict.fromkeys(("busy", "ticket", "attempts", "delivered", "failures"), 0)
        row |= {"destination": id, "subscription": what, "subscriber": to.subscriber, "place": to.place}
        row |= {"told": before[feeds[id, what]] or 0, "due": now if to.state == ACTIVE else None}
        row["gathers"] = int((id, what) in together)
        rows.append(tuple(row.get(name) for name in columns))
    bulk.insert_rows(connection, delivery_lanes, rows)


def _before(connection: Connection, feeds: Iterable[tuple[str, str, int]]) -> Any:
    return connection.execute(_BEFORE, json_rows_parameter(feeds))
