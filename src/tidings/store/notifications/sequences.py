"""Sequence numbers of subscribers: their notifications count from one without gaps.

As with other counters (`counters`), the row of a subscriber is locked before its number is read, and written in the
transaction that writes the notifications.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, select, update

from tidings.store import bulk, names
from tidings.store.tables import subscribers


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


def take_next(numbers: dict[str, int], subscriber: str) -> int:
    """Return the next number of a subscriber, whose row is locked, and count it."""
    numbers[subscriber] += 1
    return numbers[subscriber]


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
