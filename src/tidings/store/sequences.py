"""Sequences: a subscriber's notifications count from one, without gaps.

Who gives out numbers locks the subscribers first, and writes the numbers in the transaction that writes what got
them. So whoever sees number n sees, or can read, every smaller one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, select, update

from tidings.store import bulk, names
from tidings.store.tables import subscribers


def lock(connection: Connection, subscribed: Collection[str]) -> dict[str, int]:
    """The last sequence numbers, locked until the transaction ends.

    First the missing rows, then the locks, both by name: transactions that share subscribers queue up behind each
    other and can never wait in a circle. No row is ever deleted, so who has passed the first step cannot be
    held up there.
    """
    ordered = sorted(names.check("a subscriber's name", name) for name in subscribed)
    rows = [{"subscriber": name, "last_sequence": 0} for name in ordered]
    bulk.insert_missing(connection, subscribers, rows)
    return dict(
        tuple(row) for row in bulk.select_among(connection, _LOCKED, subscribers.c.subscriber, ordered)
    )


_LOCKED = (
    select(subscribers.c.subscriber, subscribers.c.last_sequence)
    .order_by(subscribers.c.subscriber)
    .with_for_update()
)


def advance(connection: Connection, numbers: Mapping[str, int], before: Mapping[str, int]) -> None:
    """Give out the numbers up to those of now; the subscribers must be locked."""
    grown = [{"name": name, "last": last} for name, last in numbers.items() if last != before[name]]
    if grown:
        connection.execute(_ADVANCE, grown)


_ADVANCE = (
    update(subscribers)
    .where(subscribers.c.subscriber == bindparam("name"))
    .values(last_sequence=bindparam("last"))
)
