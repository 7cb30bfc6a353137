"""Counters without gaps.

A counter is a row. It is locked before it is read, and written in the transaction that writes the numbered rows. Other
transactions wait for the commit, so numbers have no gaps and follow the order of commits: a reader that has seen number
n can read every smaller one. A database sequence guarantees neither.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, select, update

from tidings.store import bulk, names
from tidings.store.tables import counters, subscribers

_CURRENT = select(counters.c.value).where(counters.c.name == bindparam("counter"))
_LOCKED = _CURRENT.with_for_update()
_ADVANCE = update(counters).where(counters.c.name == bindparam("counter")).values(value=bindparam("to"))


def current(connection: Connection, name: str) -> int:
    """Return the last committed number."""
    return int(connection.execute(_CURRENT, {"counter": name}).scalar_one())


def lock(connection: Connection, name: str) -> int:
    """Lock the counter until the transaction ends; return its last number.

    SQLite needs no FOR UPDATE: it has one writing transaction at a time.
    """
    return int(connection.execute(_LOCKED, {"counter": name}).scalar_one())


def advance(connection: Connection, name: str, to: int) -> None:
    """Set the last number; the counter must be locked."""
    connection.execute(_ADVANCE, {"counter": name, "to": to})


def step(connection: Connection, name: str) -> int:
    """Lock the counter and return its next number."""
    value = lock(connection, name) + 1
    advance(connection, name, value)
    return value


# Sequence numbers of subscribers: their notifications count from one without gaps, in the same way.


def lock_sequences(connection: Connection, subscribed: Collection[str]) -> dict[str, int]:
    """Lock subscribers until the transaction ends; return their last sequence numbers.

    Missing rows are inserted first, then all are locked, both in the order of names, which avoids deadlocks. Rows are
    never deleted, so the insert does not block later.
    """
    ordered = sorted(names.check("a subscriber's name", name) for name in subscribed)
    rows = [{"subscriber": name, "last_sequence": 0} for name in ordered]
    bulk.insert_missing(connection, subscribers, rows)
    return dict(
        tuple(row)
        for row in bulk.select_among(connection, _LOCKED_SEQUENCES, subscribers.c.subscriber, ordered)
    )


_LOCKED_SEQUENCES = (
    select(subscribers.c.subscriber, subscribers.c.last_sequence)
    .order_by(subscribers.c.subscriber)
    .with_for_update()
)


def advance_sequences(connection: Connection, numbers: Mapping[str, int], before: Mapping[str, int]) -> None:
    """Set the last sequence numbers of subscribers, which must be locked."""
    grown = [{"name": name, "last": last} for name, last in numbers.items() if last != before[name]]
    if grown:
        connection.execute(_ADVANCE_SEQUENCES, grown)


_ADVANCE_SEQUENCES = (
    update(subscribers)
    .where(subscribers.c.subscriber == bindparam("name"))
    .values(last_sequence=bindparam("last"))
)
