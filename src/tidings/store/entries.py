"""Notifications become numbered entries, of several subscribers at once: for their feeds and for their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.tables import feed_cursors, feed_entries, notifications, subscribers

PART = 5_000
"""How many notifications become entries in one transaction, or some more if there are many subscribers."""
LEAST = 100
"""How many of each subscriber, at least."""

_KNOWN = select(feed_cursors.c.subscriber)
_LOCKED = select(*feed_cursors.c).order_by(feed_cursors.c.subscriber).with_for_update()
_LAST = (
    select(feed_entries.c.number, feed_entries.c.time)
    .where(feed_entries.c.subscriber == bindparam("who"), feed_entries.c.subscription == bindparam("what"))
    .order_by(feed_entries.c.number.desc())
    .limit(1)
)
_TOLD = select(subscribers.c.subscriber, subscribers.c.last_sequence)

_behind = json_rows("who", numbers=("seen", "upto"))
_NEW = (
    select(notifications.c.subscriber, notifications.c.sequence, notifications.c.subscription)
    .join_from(_behind, notifications, notifications.c.subscriber == _behind.c.who)
    .where(notifications.c.sequence > _behind.c.seen, notifications.c.sequence <= _behind.c.upto)
    .order_by(notifications.c.subscriber, notifications.c.sequence)
)
_feeds = json_rows("who", "what")
_newest = (
    select(func.max(feed_entries.c.number))
    .where(feed_entries.c.subscriber == _feeds.c.who, feed_entries.c.subscription == _feeds.c.what)
    .scalar_subquery()
)
_NUMBERS = select(_feeds.c.who, _feeds.c.what, func.coalesce(_newest, 0))
_moved = json_rows("who", "time", numbers=("upto",))
_MOVED = (
    update(feed_cursors)
    .where(feed_cursors.c.subscriber == _moved.c.who)
    .values(sequence=_moved.c.upto, time=_moved.c.time)
)


def last_entry(connection: Connection, subscriber: str, subscription: str) -> tuple[int, str | None]:
    """The number of the newest entry of a feed, and when it became one."""
    row = connection.execute(_LAST, {"who": subscriber, "what": subscription}).one_or_none()
    return (row.number, row.time) if row else (0, None)


def append_entries(connection: Connection, subscribed: Collection[str], now: str) -> dict[str, int]:
    """Make entries of some more notifications; up to which number they are entries now, by subscriber.

    The cursors are locked, so each becomes one entry. Times never go back, also if the clock does: a reader who asks
    what was modified since would miss entries.
    """
    most = max(LEAST, PART // max(1, len(subscribed)))
    cursors = _cursors(connection, sorted(subscribed))
    told = dict(
        tuple(row) for row in bulk.select_among(connection, _TOLD, subscribers.c.subscriber, subscribed)
    )
    reached = {who: min(told.get(who, 0), seen + most) for who, seen, _ in cursors}
    behind = [(who, seen, reached[who], time) for who, seen, time in cursors if seen < reached[who]]
    if behind:
        times = {who: max(now, time) for who, _, _, time in behind}
        found = connection.execute(_NEW, json_rows_parameter(one[:3] for one in behind)).all()
        bulk.insert_rows(connection, feed_entries, _numbered(connection, found, times))
        connection.execute(_MOVED, json_rows_parameter((who, times[who], upto) for who, _, upto, _ in behind))
    return {who: max(seen, reached[who]) for who, seen, _ in cursors}


def _cursors(connection: Connection, ordered: Sequence[str]) -> list[Row[*tuple[Any, ...]]]:
    """The cursors of these, locked. Those that are missing are made before any is locked: nobody waits in a circle. If
    somebody else makes one at the same moment, the transaction is repeated.
    """
    known = {
        row.subscriber for row in bulk.select_among(connection, _KNOWN, feed_cursors.c.subscriber, ordered)
    }
    bulk.insert_rows(connection, feed_cursors, [(name, 0, "") for name in ordered if name not in known])
    return list(bulk.select_among(connection, _LOCKED, feed_cursors.c.subscriber, ordered))


def _numbered(
    connection: Connection, found: Iterable[Row[*tuple[Any, ...]]], times: dict[str, str]
) -> list[tuple[object, ...]]:
    """The entries of notifications: each has the next number of its feed."""
    rows = list(found)
    feeds = dict.fromkeys((one.subscriber, one.subscription) for one in rows)
    last = {
        (who, what): number for who, what, number in connection.execute(_NUMBERS, json_rows_parameter(feeds))
    }
    entries: list[tuple[object, ...]] = []
    for who, sequence, what in rows:
        last[who, what] += 1
        entries.append((who, what, last[who, what], sequence, times[who]))
    return entries
