"""Lanes are woken by new entries, and made when the first comes.

Lanes are locked before they are looked at: whoever ends a run at the same moment has looked for entries before these
were there, or is waited for here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from tidings.store import bulk
from tidings.store.destination_tables import delivery_lanes, delivery_owners, destinations
from tidings.store.destinations import ACTIVE
from tidings.store.feed_listing import list_more
from tidings.store.feed_tables import feed_cursors, feed_entries
from tidings.store.tables import notifications, subscribers

AT_ONCE = 100
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
_CURSORS = select(feed_cursors.c.subscriber, feed_cursors.c.sequence)
_THEIRS = select(*destinations.c).order_by(destinations.c.id).with_for_update(read=True)
_NAMED = (
    select(notifications.c.subscription)
    .where(
        notifications.c.subscriber == bindparam("who"),
        notifications.c.sequence.between(bindparam("first"), bindparam("last")),
    )
    .distinct()
)
_LANE = (
    select(delivery_lanes.c.due)
    .where(
        delivery_lanes.c.destination == bindparam("to"), delivery_lanes.c.subscription == bindparam("what")
    )
    .with_for_update()
)
_BEFORE = (
    select(feed_entries.c.number)
    .where(
        feed_entries.c.subscriber == bindparam("who"),
        feed_entries.c.subscription == bindparam("what"),
        feed_entries.c.sequence <= bindparam("since"),
    )
    .order_by(feed_entries.c.number.desc())
    .limit(1)
)
_WOKEN = (
    update(delivery_lanes)
    .where(
        delivery_lanes.c.destination == bindparam("to"), delivery_lanes.c.subscription == bindparam("what")
    )
    .values(due=bindparam("moment"))
)
_SEEN = (
    update(delivery_owners)
    .where(delivery_owners.c.subscriber == bindparam("who"))
    .values(seen=bindparam("last"))
)


def wake(connection: Connection, subscribed: Sequence[str], now: str) -> None:
    """Make entries of what is new for these subscribers, some thousands for each, and make their lanes due."""
    list_more(connection, subscribed, now)
    owners = list(bulk.select_among(connection, _OWNERS, delivery_owners.c.subscriber, subscribed))
    listed = dict(
        tuple(row) for row in bulk.select_among(connection, _CURSORS, feed_cursors.c.subscriber, subscribed)
    )
    theirs: dict[str, list[Any]] = defaultdict(list)
    for row in bulk.select_among(connection, _THEIRS, destinations.c.subscriber, subscribed):
        theirs[row.subscriber].append(row)
    asleep: list[dict[str, str]] = []
    seen: list[dict[str, object]] = []
    for who, before in owners:
        last = min(listed.get(who, 0), before + PART)
        if last > before:
            named = connection.execute(_NAMED, {"who": who, "first": before + 1, "last": last}).scalars()
            asleep += _asleep(connection, theirs[who], sorted(named), now)
            seen.append({"who": who, "last": last})
    if asleep:
        connection.execute(_WOKEN, asleep)
    if seen:
        connection.execute(_SEEN, seen)


def _asleep(
    connection: Connection, theirs: Sequence[Any], named: Sequence[str], now: str
) -> list[dict[str, str]]:
    """The lanes of subscriptions with new entries that are to be woken; those that are missing are made."""
    found = []
    for one in theirs:
        for what in named:
            if one.subscription in (None, what):
                lane = _lane(connection, one, what)
                if one.state == ACTIVE and lane.due is None:
                    found.append({"to": one.id, "what": what, "moment": now})
    return found


def _lane(connection: Connection, to: Any, what: str) -> Row[*tuple[Any, ...]]:
    """A lane begins behind the last entry that was there before its destination."""
    row = connection.execute(_LANE, {"to": to.id, "what": what}).one_or_none()
    if row is not None:
        return row
    before = connection.execute(_BEFORE, {"who": to.subscriber, "what": what, "since": to.since}).scalar()
    new = {"destination": to.id, "subscription": what, "subscriber": to.subscriber}
    new |= {"place": to.place, "told": before or 0}
    new |= dict.fromkeys(("busy", "ticket", "attempts", "gathers", "delivered", "failures"), 0)
    bulk.insert_missing(connection, delivery_lanes, [new])
    return connection.execute(_LANE, {"to": to.id, "what": what}).one()
