"""Counters without gaps.

A counter is a row. It is locked before it is read, and written in the transaction that writes the numbered rows. Other
transactions wait for the commit, so numbers have no gaps and follow the order of commits: a reader that has seen number
n can read every smaller one. A database sequence guarantees neither.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from tidings.store.tables import counters

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
