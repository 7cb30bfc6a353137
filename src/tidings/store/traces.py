"""Which trace a publication belongs to, so that what happens to it later, in another process, can go on with it.

Nothing is written while nobody traces. What is written is kept for an hour, and at most so many: a trace is for looking
at what happens now.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Column, Connection, Table, Text, delete, func, select

from tidings.store.database import Database
from tidings.store.encoding import Clock, instant, utc
from tidings.store.tables import Name, Whole, metadata

KEPT = timedelta(hours=1)
MOST = 10_000
"""How many publications have their trace kept."""

traces = Table(
    "traces",
    metadata,
    Column("position", Whole, primary_key=True, autoincrement=False),
    Column("publication", Name, nullable=False, index=True),
    Column("traceparent", Text, nullable=False),
    Column("time", Name, nullable=False),
)


class Traces:
    """The traces of the last publications."""

    def __init__(self, database: Database, clock: Clock = utc) -> None:
        self._database, self._clock = database, clock

    def among(self, first: int, last: int, most: int) -> list[str]:
        """The traces of publications in a range of positions, at most so many."""
        wanted = select(traces.c.traceparent).where(traces.c.position.between(first, last))
        with self._database.read() as connection:
            return list(connection.scalars(wanted.order_by(traces.c.position).limit(most)))

    def of(self, publication: str) -> str | None:
        """The trace of one."""
        wanted = select(traces.c.traceparent).where(traces.c.publication == publication)
        with self._database.read() as connection:
            found: str | None = connection.execute(wanted).scalar()
        return found

    def forget(self) -> None:
        """Drop what is old, and what is too much."""
        too_old = traces.c.time < instant(self._clock() - KEPT)
        newest = select(func.max(traces.c.position)).scalar_subquery()
        self._database.transact(
            lambda connection: connection.execute(
                delete(traces).where(too_old | (traces.c.position <= newest - MOST))
            )
        )


def keep(connection: Connection, traced: Sequence[tuple[int, str, str]], time: str) -> None:
    """Note the traces of publications, in the transaction that takes them."""
    rows = [
        {"position": position, "publication": id, "traceparent": traceparent, "time": time}
        for position, id, traceparent in traced
    ]
    if rows:
        connection.execute(traces.insert(), rows)
