"""Which trace a publication belongs to, so that what happens to it later, in another process, can go on with it.

Nothing is written while nobody traces. What is written is kept for an hour, and at most so many: a trace is for looking
at what happens now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Float,
    PrimaryKeyConstraint,
    Table,
    Text,
    case,
    delete,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant, utc_now
from tidings.store.tables import Name, Whole, metadata

TRACE_RETENTION = timedelta(hours=1)
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

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
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
        too_old = traces.c.time < format_instant(self._clock() - TRACE_RETENTION)
        newest = select(func.max(traces.c.position)).scalar_subquery()
        self._database.transact(
            lambda connection: connection.execute(
                delete(traces).where(too_old | (traces.c.position <= newest - MOST))
            )
        )


def record_traces(connection: Connection, traced: Sequence[tuple[int, str, str]], time: str) -> None:
    """Note the traces of publications, in the transaction that takes them."""
    rows = [
        {"position": position, "publication": id, "traceparent": traceparent, "time": time}
        for position, id, traceparent in traced
    ]
    if rows:
        connection.execute(traces.insert(), rows)


# How the pipeline did over time: sums of ten seconds each, for as long as they are kept.
#
# A measure is added to whenever something has happened, so its rows are as many as the seconds, however much happens
# in them. Whoever draws them asks for steps of any length.


SECONDS = 10
"""What one row is about."""
RETENTION = timedelta(days=2)

measures = Table(
    "measures",
    metadata,
    Column("moment", Whole, nullable=False),
    Column("name", Name, nullable=False),
    Column("count", Whole, nullable=False),
    Column("total", Float(53), nullable=False),
    Column("most", Float(53), nullable=False),
    PrimaryKeyConstraint("moment", "name"),
    sqlite_with_rowid=False,
)

_INSERT: Mapping[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


@dataclass(frozen=True, slots=True)
class TimeSeriesPoint:
    """What a measure came to in one step of time: how often it was added to, the sum, and the greatest value."""

    name: str
    at: datetime
    count: int
    total: float
    most: float


class TimeSeries:
    """What was measured, by any process."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database, self._clock = database, clock
        self._forgot = 0

    def add(self, values: Mapping[str, float], kept: timedelta = RETENTION) -> None:
        """Add to measures. What is older than `kept` is forgotten, looked for once in each step."""
        moment = int(self._clock().timestamp()) // SECONDS * SECONDS
        rows = [
            {"moment": moment, "name": name, "count": 1, "total": float(value), "most": float(value)}
            for name, value in sorted(values.items())
        ]

        def write(connection: Connection) -> None:
            _add(connection, rows)
            if moment != self._forgot:
                connection.execute(
                    delete(measures).where(measures.c.moment < moment - int(kept.total_seconds()))
                )

        self._database.transact(write)
        self._forgot = moment

    def read(
        self, since: datetime, step: int = SECONDS, names: Collection[str] | None = None
    ) -> list[TimeSeriesPoint]:
        """All since then, in steps of so many seconds, oldest first."""
        beginning = measures.c.moment - measures.c.moment % step
        columns = (func.sum(measures.c.count), func.sum(measures.c.total), func.max(measures.c.most))
        wanted = select(measures.c.name, beginning.label("at"), *columns)
        wanted = wanted.where(measures.c.moment >= int(since.timestamp()))
        if names is not None:
            wanted = wanted.where(measures.c.name.in_(list(names)))
        grouped = wanted.group_by(measures.c.name, beginning).order_by("at", measures.c.name)
        with self._database.read() as connection:
            rows = connection.execute(grouped).all()
        return [
            TimeSeriesPoint(name, datetime.fromtimestamp(int(at), UTC), int(count), float(total), float(most))
            for name, at, count, total, most in rows
        ]

    def latest(self, names: Collection[str]) -> dict[str, TimeSeriesPoint]:
        """The last step in which each was added to; steps in the future, of a clock that was set back, are ignored."""
        newest = select(measures.c.name, func.max(measures.c.moment).label("moment"))
        newest = newest.where(measures.c.moment <= int(self._clock().timestamp()) + SECONDS)
        newest_of = newest.where(measures.c.name.in_(list(names))).group_by(measures.c.name).subquery()
        wanted = select(measures).join(
            newest_of, (measures.c.name == newest_of.c.name) & (measures.c.moment == newest_of.c.moment)
        )
        with self._database.read() as connection:
            rows = connection.execute(wanted).all()
        return {
            name: TimeSeriesPoint(name, datetime.fromtimestamp(moment, UTC), count, total, most)
            for moment, name, count, total, most in rows
        }


def _add(connection: Connection, rows: list[dict[str, object]]) -> None:
    """In the order of the names: two that add at the same time lock rows in the same order."""
    statement = _INSERT[connection.dialect.name](measures)
    given = statement.excluded
    greater = case((given.most > measures.c.most, given.most), else_=measures.c.most)
    sums = {
        "count": measures.c.count + given.count,
        "total": measures.c.total + given.total,
        "most": greater,
    }
    connection.execute(statement.on_conflict_do_update(index_elements=["moment", "name"], set_=sums), rows)
