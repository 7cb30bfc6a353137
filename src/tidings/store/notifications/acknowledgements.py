"""Cursors of subscribers: last and acknowledged sequence numbers.

An acknowledged number only grows, and never exceeds the last sequence number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Table, bindparam, select, text

from tidings.errors import InputError, pointing
from tidings.model import Notification
from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant
from tidings.store.notifications.notification_store import NOTIFICATION_COLUMNS, notification_from_row
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
class SubscriberCursor:
    """How far a subscriber has read: the last and the acknowledged sequence number, and when it was acknowledged."""

    last: int
    acknowledged: int = 0
    time: str | None = None

    @property
    def unread(self) -> int:
        return self.last - self.acknowledged


class Acknowledgements:
    """The acknowledgements of all subscribers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def cursor(self, subscriber: str) -> SubscriberCursor:
        with self._database.read() as connection:
            return _read_cursor(connection, subscriber)

    def acknowledge(self, subscriber: str, upto: int) -> SubscriberCursor:
        """Acknowledge everything up to a sequence number, durably.

        A smaller number than before changes nothing: acknowledgements may arrive out of order. A number beyond the last
        notification is an error: the notification that gets it later would never be shown.
        """
        moment = format_instant(self._clock())
        return self._database.transact(lambda c: _acknowledge(c, subscriber, upto, moment))


_CURSOR = (
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


def _read_cursor(connection: Connection, subscriber: str) -> SubscriberCursor:
    row = connection.execute(_CURSOR, {"who": subscriber}).one_or_none()
    return SubscriberCursor(row.last_sequence, row.sequence or 0, row.time) if row else SubscriberCursor(0)


_RAISE = text(
    "INSERT INTO acknowledgements (subscriber, sequence, time) VALUES (:subscriber, :sequence, :time)"
    " ON CONFLICT (subscriber) DO UPDATE SET sequence = excluded.sequence, time = excluded.time"
    " WHERE excluded.sequence > acknowledgements.sequence"
)


def _acknowledge(connection: Connection, subscriber: str, upto: int, moment: str) -> SubscriberCursor:
    last = _read_cursor(connection, subscriber).last
    if not 0 <= upto <= last:
        accepted = f"0 to {last}"
        with pointing("/upto"):
            raise InputError("no such sequence number", where="upto", received=str(upto), accepted=accepted)
    if upto > 0:
        connection.execute(_RAISE, {"subscriber": subscriber, "sequence": upto, "time": moment})
    return _read_cursor(connection, subscriber)


SequenceKey = tuple[str, int]
"""A subscriber and a sequence number."""


class Heads:
    """The newest notifications of many subscribers, in one query."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self, names: Collection[str]) -> dict[str, int]:
        """Return the last sequence number of each subscriber that has one."""
        with self._database.read() as connection:
            rows = bulk.select_among(connection, _LAST, subscribers.c.subscriber, names)
            return {row.subscriber: row.last_sequence for row in rows}

    def read(self, keys: Iterable[SequenceKey]) -> list[Notification]:
        """Read notifications by sequence numbers, in order for each subscriber."""
        statement, as_parameters = _BY_SEQUENCE[self._database.engine.dialect.name]
        found: list[Notification] = []
        with self._database.read() as connection:
            for some in bulk.iter_chunks(sorted(keys), bulk.KEYS):
                rows = connection.execute(text(statement), as_parameters(some))
                found += [notification_from_row(*row) for row in rows]
        return sorted(found, key=lambda one: (one.subscriber, one.sequence))


_LAST = select(subscribers.c.subscriber, subscribers.c.last_sequence)
_COLUMNS = str(select(*NOTIFICATION_COLUMNS).compile(compile_kwargs={"literal_binds": True})).removesuffix(
    "FROM notifications"
)


def _as_json(wanted: Sequence[SequenceKey]) -> dict[str, Any]:
    return {"wanted": json.dumps(wanted)}


def _as_arrays(wanted: Sequence[SequenceKey]) -> dict[str, Any]:
    return {"names": [name for name, _ in wanted], "numbers": [number for _, number in wanted]}


# Force the short list first in the join order: it is looked up row by row with the primary key.
_BY_SEQUENCE: dict[str, tuple[str, Callable[[Sequence[SequenceKey]], dict[str, Any]]]] = {
    "sqlite": (
        f"{_COLUMNS} FROM json_each(:wanted) AS w CROSS JOIN notifications"
        " ON notifications.subscriber = json_extract(w.value, '$[0]')"
        " AND notifications.sequence = json_extract(w.value, '$[1]')",
        _as_json,
    ),
    "postgresql": (
        f"{_COLUMNS} FROM unnest(CAST(:names AS text[]), CAST(:numbers AS bigint[])) AS w (name, number)"
        " JOIN notifications ON notifications.subscriber = w.name AND notifications.sequence = w.number",
        _as_arrays,
    ),
}
