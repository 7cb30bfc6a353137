"""Notifications become numbered entries, of several subscribers at once: for their feeds and for their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from tidings.store import bulk
from tidings.store.feed_tables import feed_cursors, feed_entries
from tidings.store.tables import notifications

PART = 5_000
"""How many notifications become entries in one transaction, or some more if there are many subscribers."""
LEAST = 100
"""How many of each subscriber, at least."""

_LOCKED = select(*feed_cursors.c).order_by(feed_cursors.c.subscriber).with_for_update()
_LAST = (
    select(feed_entries.c.number, feed_entries.c.time)
    .where(feed_entries.c.subscriber == bindparam("who"), feed_entries.c.subscription == bindparam("what"))
    .order_by(feed_entries.c.number.desc())
    .limit(1)
)
_NEW = (
    select(notifications.c.sequence, notifications.c.subscription)
    .where(notifications.c.subscriber == bindparam("who"), notifications.c.sequence > bindparam("seen"))
    .order_by(notifications.c.sequence)
    .limit(bindparam("most"))
)
_MOVED = (
    update(feed_cursors)
    .where(feed_cursors.c.subscriber == bindparam("who"))
    .values(sequence=bindparam("to"), time=bindparam("moment"))
)


def last_of(connection: Connection, subscriber: str, subscription: str) -> tuple[int, str | None]:
    """The number of the newest entry of a feed, and when it became one."""
    row = connection.execute(_LAST, {"who": subscriber, "what": subscription}).one_or_none()
    return (row.number, row.time) if row else (0, None)


def list_more(connection: Connection, subscribers: Collection[str], now: str) -> None:
    """Make entries of some more notifications; the cursors are locked, so each becomes one entry.

    Times never go back, also if the clock does: a reader who asks what was modified since would miss entries.
    """
    ordered, most = sorted(subscribers), max(LEAST, PART // max(1, len(subscribers)))
    new = [{"subscriber": name, "sequence": 0, "time": ""} for name in ordered]
    bulk.insert_missing(connection, feed_cursors, new)
    cursors = list(bulk.select_among(connection, _LOCKED, feed_cursors.c.subscriber, ordered))
    rows: list[tuple[object, ...]] = []
    moved: list[dict[str, object]] = []
    for who, seen, before in cursors:
        found = connection.execute(_NEW, {"who": who, "seen": seen, "most": most}).all()
        if found:
            time = max(now, before)
            rows += _numbered(connection, who, found, time)
            moved.append({"who": who, "to": found[-1].sequence, "moment": time})
    bulk.insert_rows(connection, feed_entries, rows)
    if moved:
        connection.execute(_MOVED, moved)


def _numbered(
    connection: Connection, subscriber: str, found: Sequence[Row[*tuple[Any, ...]]], time: str
) -> list[tuple[object, ...]]:
    numbers: dict[str, int] = {}
    rows: list[tuple[object, ...]] = []
    for one in found:
        name = one.subscription
        last = numbers[name] if name in numbers else last_of(connection, subscriber, name)[0]
        numbers[name] = last + 1
        rows.append((subscriber, name, last + 1, one.sequence, time))
    return rows
