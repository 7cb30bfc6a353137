"""Recovery after the wall clock was set back.

Leases, retries and ends of quiet hours are wall-clock times: a row waits until `due`, and `since` is when that was
written. After the clock was set back by a day, each row would wait for a day longer. A row written in the future shows
that the clock was set back, and how long the row has been waiting is unknown, so it is due at once. A limit on how far
`due` may lie ahead would not show it: a retry may be more than a day away.

Rows are checked now and then, not in each statement that leases them: those use an index on `due` without `since`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy import ColumnElement, Connection, Table, select, update

from tidings.delivery.sql.tables import dead_deliveries, delivery_cursors
from tidings.feeds.sql.tables import hub_intents
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant

SET_BACK = timedelta(minutes=1)
"""A row written so far in the future shows a clock that was set back. Clocks of several machines differ by less."""
LOOK_SECONDS = 60.0
"""Interval between checks of waiting rows, if the clock of this process was not set back."""

WAITING = (delivery_cursors, dead_deliveries, hub_intents)
"""The tables whose rows wait until `due`."""


def latest_possible(moment: datetime) -> str:
    """Return the latest time at which a row can have been written, if no clock was set back."""
    return format_instant(moment + SET_BACK)


def was_set_back(written: str | None, moment: datetime) -> bool:
    """Return whether the clock was set back after a row was written."""
    return written is not None and written > latest_possible(moment)


class ClockRecovery:
    """Makes rows due that wait for a time of a clock that was set back."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._looked: tuple[datetime, float] | None = None

    def look(self) -> int:
        """Recover at the first call, once a minute, and after the clock was set back; return the number of rows."""
        moment, now = self._clock(), monotonic()
        if self._looked and self._looked[0] <= moment and now - self._looked[1] < LOOK_SECONDS:
            return 0
        recovered = sum(self._recover(table, moment) for table in WAITING)
        self._looked = moment, now
        return recovered

    def _recover(self, table: Table, moment: datetime) -> int:
        """Read before writing: SQLite has one lock for all writers."""
        with self._database.read() as connection:
            if (
                connection.execute(select(table.c.due).where(*_is_stuck(table, moment)).limit(1)).first()
                is None
            ):
                return 0
        return self._database.transact(lambda connection: _make_due(connection, table, moment))


def _is_stuck(table: Table, moment: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.due > format_instant(moment), table.c.since > latest_possible(moment)


def _make_due(connection: Connection, table: Table, moment: datetime) -> int:
    now = format_instant(moment)
    return connection.execute(
        update(table).where(*_is_stuck(table, moment)).values(due=now, since=now)
    ).rowcount
