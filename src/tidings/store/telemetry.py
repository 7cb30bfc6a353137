"""Telemetry in the store: trace contexts of publications, and time series of the pipeline.

A trace context lets another process continue the trace of a publication. Nothing is written without tracing; contexts
expire after an hour, and their number is limited. Time series are sums over ten seconds, so the number of rows depends
on time and not on load; readers choose any step.
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
"""Maximum number of trace contexts."""

traces = Table(
    "traces",
    metadata,
    Column("position", Whole, primary_key=True, autoincrement=False),
    Column("publication", Name, nullable=False, index=True),
    Column("traceparent", Text, nullable=False),
    Column("time", Name, nullable=False),
)


class Traces:
    """The trace contexts of the last publications."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database, self._clock = database, clock

    def read_range(self, first: int, last: int, most: int) -> list[str]:
        """Return the trace contexts of publications in a range of positions, at most `most`."""
        query = select(traces.c.traceparent).where(traces.c.position.between(first, last))
        with self._database.read() as connection:
            return list(connection.scalars(query.order_by(traces.c.position).limit(most)))

    def of(self, publication: str) -> str | None:
        """Return the trace context of a publication."""
        query = select(traces.c.traceparent).where(traces.c.publication == publication)
        with self._database.read() as connection:
            traceparent: str | None = connection.execute(query).scalar()
        return traceparent

    def forget(self) -> None:
        """Delete old contexts, and those beyond the limit."""
        too_old = traces.c.time < format_instant(self._clock() - TRACE_RETENTION)
        newest = select(func.max(traces.c.position)).scalar_subquery()
        self._database.transact(
            lambda connection: connection.execute(
                delete(traces).where(too_old | (traces.c.position <= newest - MOST))
            )
        )


def record_traces(connection: Connection, traced: Sequence[tuple[int, str, str]], time: str) -> None:
    """Record the trace contexts of publications, in the transaction that appends them."""
    rows = [
        {"position": position, "publication": id, "traceparent": traceparent, "time": time}
        for position, id, traceparent in traced
    ]
    if rows:
        connection.execute(traces.insert(), rows)


SECONDS = 10
"""Length of the interval that one row covers."""
RETENTION = timedelta(days=2)

time_series = Table(
    "time_series",
    metadata,
    Column("moment", Whole, nullable=False),
    Column("name", Name, nullable=False),
    Column("count", Whole, nullable=False),
    Column("total", Float(53), nullable=False),
    Column("maximum", Float(53), nullable=False),
    PrimaryKeyConstraint("moment", "name"),
    sqlite_with_rowid=False,
)

_INSERT: Mapping[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


@dataclass(frozen=True, slots=True)
class TimeSeriesPoint:
    """A measure in one step: number of values, their sum and their maximum."""

    name: str
    at: datetime
    count: int
    total: float
    most: float


class TimeSeries:
    """The time series of all processes."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database, self._clock = database, clock
        self._forgot = 0

    def add(self, values: Mapping[str, float], retention: timedelta = RETENTION) -> None:
        """Add values; rows older than `kept` are deleted, once per interval."""
        moment = int(self._clock().timestamp()) // SECONDS * SECONDS
        rows = [
            {"moment": moment, "name": name, "count": 1, "total": float(value), "maximum": float(value)}
            for name, value in sorted(values.items())
        ]

        def write(connection: Connection) -> None:
            _add(connection, rows)
            if moment != self._forgot:
                connection.execute(
                    delete(time_series).where(time_series.c.moment < moment - int(retention.total_seconds()))
                )

        self._database.transact(write)
        self._forgot = moment

    def read(
        self, since: datetime, step: int = SECONDS, names: Collection[str] | None = None
    ) -> list[TimeSeriesPoint]:
        """Read all points since a time, in steps of `step` seconds, oldest first."""
        beginning = time_series.c.moment - time_series.c.moment % step
        columns = (
            func.sum(time_series.c.count),
            func.sum(time_series.c.total),
            func.max(time_series.c.maximum),
        )
        query = select(time_series.c.name, beginning.label("at"), *columns)
        query = query.where(time_series.c.moment >= int(since.timestamp()))
        if names is not None:
            query = query.where(time_series.c.name.in_(list(names)))
        grouped = query.group_by(time_series.c.name, beginning).order_by("at", time_series.c.name)
        with self._database.read() as connection:
            rows = connection.execute(grouped).all()
        return [
            TimeSeriesPoint(name, datetime.fromtimestamp(int(at), UTC), int(count), float(total), float(most))
            for name, at, count, total, most in rows
        ]

    def latest(self, names: Collection[str]) -> dict[str, TimeSeriesPoint]:
        """Return the last point of each series; points in the future, from a clock set back later, are ignored."""
        newest = select(time_series.c.name, func.max(time_series.c.moment).label("moment"))
        newest = newest.where(time_series.c.moment <= int(self._clock().timestamp()) + SECONDS)
        newest_of = newest.where(time_series.c.name.in_(list(names))).group_by(time_series.c.name).subquery()
        query = select(time_series).join(
            newest_of, (time_series.c.name == newest_of.c.name) & (time_series.c.moment == newest_of.c.moment)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {
            name: TimeSeriesPoint(name, datetime.fromtimestamp(moment, UTC), count, total, most)
            for moment, name, count, total, most in rows
        }


def _add(connection: Connection, rows: list[dict[str, object]]) -> None:
    """Add rows in the order of names, so that concurrent writers lock rows in the same order."""
    statement = _INSERT[connection.dialect.name](time_series)
    new = statement.excluded
    sums = {
        "count": time_series.c.count + new.count,
        "total": time_series.c.total + new.total,
        "maximum": case((new.maximum > time_series.c.maximum, new.maximum), else_=time_series.c.maximum),
    }
    connection.execute(statement.on_conflict_do_update(index_elements=["moment", "name"], set_=sums), rows)
