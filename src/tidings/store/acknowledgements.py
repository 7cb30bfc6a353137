"""Acknowledgements: up to which number a subscriber has dealt with its notifications.

A number for each subscriber, which only grows and never passes the last notification there is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, Connection, Table, bindparam, select, text

from tidings.errors import InputError, pointing
from tidings.store.database import Database
from tidings.store.encoding import Clock, instant
from tidings.store.tables import Name, Whole, metadata, subscribers

acknowledgements = Table(
    "acknowledgements",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("sequence", Whole, nullable=False),
    Column("time", Name, nullable=False),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a subscriber stands: the number of its last notification, and the one it has acknowledged, with when."""

    last: int
    acknowledged: int = 0
    time: str | None = None

    @property
    def unread(self) -> int:
        return self.last - self.acknowledged


class Acknowledgements:
    """Who has acknowledged what."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def standing(self, subscriber: str) -> Standing:
        with self._database.read() as connection:
            return _standing(connection, subscriber)

    def acknowledge(self, subscriber: str, upto: int) -> Standing:
        """Note that everything up to a number is dealt with; durable on return.

        A smaller number than before changes nothing: acknowledgements may overtake each other on their way. One that
        nothing has yet is refused, for what comes under it later would never be shown.
        """
        moment = instant(self._clock())
        return self._database.transact(lambda c: _acknowledge(c, subscriber, upto, moment))


_STANDING = (
    select(subscribers.c.last_sequence, acknowledgements.c.sequence, acknowledgements.c.time)
    .join_from(
        subscribers,
        acknowledgements,
        acknowledgements.c.subscriber == subscribers.c.subscriber,
        isouter=True,
    )
    .where(subscribers.c.subscriber == bindparam("who"))
    .limit(1)
)


def _standing(connection: Connection, subscriber: str) -> Standing:
    row = connection.execute(_STANDING, {"who": subscriber}).one_or_none()
    return Standing(row.last_sequence, row.sequence or 0, row.time) if row else Standing(0)


_RAISE = text(
    "INSERT INTO acknowledgements (subscriber, sequence, time) VALUES (:subscriber, :sequence, :time)"
    " ON CONFLICT (subscriber) DO UPDATE SET sequence = excluded.sequence, time = excluded.time"
    " WHERE excluded.sequence > acknowledgements.sequence"
)


def _acknowledge(connection: Connection, subscriber: str, upto: int, moment: str) -> Standing:
    last = _standing(connection, subscriber).last
    if not 0 <= upto <= last:
        accepted = f"0 to {last}"
        with pointing("/upto"):
            raise InputError("there is no such number", where="upto", received=str(upto), accepted=accepted)
    if upto > 0:
        connection.execute(_RAISE, {"subscriber": subscriber, "sequence": upto, "time": moment})
    return _standing(connection, subscriber)
