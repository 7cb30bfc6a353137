"""Counters that never skip a number.

A counter is a row that is locked before its value is read and written in the same transaction as what got the
numbers. Who comes second waits for the first to commit, so numbers are gapless and follow the order of the
commits: somebody who has seen number n has seen, or can read, every smaller one. A database sequence keeps
neither promise.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from tidings.store.tables import counters

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
