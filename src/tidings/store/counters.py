"""Counters that never skip a number.

A counter is a row that is locked before its value is read and written in the same transaction as what got the
numbers. Who comes second waits for the first to commit, so numbers are gapless and follow the order of the
commits: somebody who has seen number n has seen, or can read, every smaller one. A database sequence keeps
neither promise.
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
    """The last number given out and committed."""
    return int(connection.execute(_CURRENT, {"counter": name}).scalar_one())


def lock(connection: Connection, name: str) -> int:
    """The last number given out; nobody else gets one until this transaction ends.

    SQLite knows no FOR UPDATE and needs none: a writing transaction is alone there.
    """
    return int(connection.execute(_LOCKED, {"counter": name}).scalar_one())


def advance(connection: Connection, name: str, to: int) -> None:
    """Give out the numbers up to `to`; the counter must be locked."""
    connection.execute(_ADVANCE, {"counter": name, "to": to})


def step(connection: Connection, name: str) -> int:
    """Lock the counter and give out its next number."""
    value = lock(connection, name) + 1
    advance(connection, name, value)
    return value


# Sequences: a subscriber's notifications count from one, without gaps.
#
# Who gives out numbers locks the subscribers first, and writes the numbers in the transaction that writes what got
# them. So whoever sees number n sees, or can read, every smaller one.


def lock_sequences(connection: Connection, subscribed: Collection[str]) -> dict[str, int]:
    """The last sequence numbers, locked until the transaction ends.

    First the missing rows, then the locks, both by name: transactions that share subscribers queue up behind each
    other and can never wait in a circle. No row is ever deleted, so who has passed the first step cannot be
    held up there.
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
    """Give out the numbers up to those of now; the subscribers must be locked."""
    grown = [{"name": name, "last": last} for name, last in numbers.items() if last != before[name]]
    if grown:
        connection.execute(_ADVANCE_SEQUENCES, grown)


_ADVANCE_SEQUENCES = (
    update(subscribers)
    .where(subscribers.c.subscriber == bindparam("name"))
    .values(last_sequence=bindparam("last"))
)
