"""Subscriptions and events as tables, matching as a join, in forms that a careful database user would write.

If subscriptions have few combinations of equalities over a limited number of attributes, a clause is a row with a
column for each attribute (`Wide`). The clauses of all combinations are in one table. A column without a test in a
clause holds NO_TEST, and the events are repeated for each combination:

    from events e cross join shapes h
    join subscriptions s on s.q0 = case when h.q0 then e.a0 else NO_TEST end and e.a1 >= s.l1

Otherwise a test is a row, and a clause matches an event if all its tests hold, by their count (`Counting`). Values are
32-bit integers, and strings their numbers in a dictionary, which makes the joins about a third faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.peers.intervals import UNBOUNDED, Intervals
from benchmarks.workloads import Events, Integers
from tests.support.packages import Unavailable

SHAPES, COLUMNS = 1000, 100
"""Limits of combinations of equalities and of attributes for a table with columns."""

LEAST, MOST = -(1 << 31), (1 << 31) - 1
MISSING = NO_TEST = LEAST + 1
"""A missing value is below every bound of a test, and above the bound of a clause without a test."""

Values = npt.NDArray[np.int32]
Tables = dict[str, pa.Table]


def to_relations(intervals: Intervals) -> Wide | Counting:
    if len(intervals.attributes) > COLUMNS:
        return Counting(intervals)
    wide = Wide(intervals)
    return wide if len(wide.shapes) <= SHAPES else Counting(intervals)


def narrowed(values: Integers) -> Values:
    """Convert values to 32 bits; unbounded ones become the minimum and maximum."""
    bounded = np.abs(values) != UNBOUNDED
    if (np.abs(values[bounded]) > MOST - 1).any():
        raise Unavailable("the joins only support values of 32 bits")
    return np.clip(values, LEAST, MOST).astype(np.int32)


class Wide:
    """A row for each clause. `q<a>` is the value required of attribute a, `l<a>` and `u<a>` are its bounds."""

    def __init__(self, intervals: Intervals) -> None:
        self._intervals, self._several = intervals, intervals.clauses > intervals.size
        count = np.bincount(intervals.attribute, minlength=len(intervals.attributes))
        self.always: npt.NDArray[np.bool_] = count == intervals.clauses
        self.columns: dict[str, Values] = {"owner": intervals.owner.astype(np.int32)}
        for at in range(len(intervals.attributes)):
            self.columns |= self._column(at, np.flatnonzero(intervals.attribute == at))
        self.equal: list[int] = np.flatnonzero(intervals.equal).tolist()
        self.ranged: list[int] = np.flatnonzero(~intervals.equal).tolist()
        self.shapes, self.shape = self._shapes()

    def _column(self, at: int, tests: Integers) -> dict[str, Values]:
        intervals, clauses = self._intervals, self._intervals.clause[tests]
        low, high = narrowed(intervals.low[tests]), narrowed(intervals.high[tests])
        if intervals.equal[at]:
            return {f"q{at}": _filled(intervals.clauses, NO_TEST, clauses, low)}
        columns = {}
        if not self.always[at] or (low > LEAST).any():
            columns[f"l{at}"] = _filled(intervals.clauses, LEAST, clauses, np.maximum(low, MISSING + 1))
        if not self.always[at] or (high < MOST).any():
            columns[f"u{at}"] = _filled(intervals.clauses, MOST, clauses, high)
        return columns

    def _shapes(self) -> tuple[npt.NDArray[np.bool_], Integers]:
        """Return the combinations of attributes with equality tests, and the combination of each clause."""
        compared = np.column_stack(
            [np.zeros((self._intervals.clauses, 0), np.bool_)]
            + [self.columns[f"q{at}"] != NO_TEST for at in self.equal]
        )
        packed = np.packbits(compared, axis=1)
        _, first, shape = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        return compared[first], shape.ravel()

    @property
    def tables(self) -> Tables:
        shapes = {f"q{at}": self.shapes[:, place] for place, at in enumerate(self.equal)}
        return {
            "subscriptions": pa.table(self.columns),
            "shapes": pa.table({"shape": _numbers(len(self.shapes)), **shapes}),
        }

    @property
    def query(self) -> str:
        """Return the query for pairs of event and subscription. Databases that do not know the hint ignore it."""
        cross = " cross join shapes h" if len(self.shapes) > 1 else ""
        return (
            f"select /*+ BROADCAST(s), BROADCAST(h) */ {'distinct ' * self._several}"
            "e.id as event, s.owner as subscription "
            f"from events e{cross} join subscriptions s on {' and '.join(self._conditions())}"
        )

    def _conditions(self) -> list[str]:
        equal = [
            f"s.q{at} = e.a{at}"
            if self.always[at]
            else f"s.q{at} = case when h.q{at} then e.a{at} else {NO_TEST} end"
            for at in self.equal
        ]
        lower = [f"e.a{at} >= s.l{at}" for at in self.ranged if f"l{at}" in self.columns]
        upper = [f"e.a{at} <= s.u{at}" for at in self.ranged if f"u{at}" in self.columns]
        return equal + lower + upper

    def events(self, events: Events) -> Tables:
        """Return a row for each event: missing values are null, or MISSING where clauses may have no test."""
        columns: dict[str, Any] = {"id": _numbers(len(events))}
        for at in range(len(self._intervals.attributes)):
            present, values = events.column(at)
            column = pa.array(narrowed(values), mask=~present)
            kept = self._intervals.equal[at] or self.always[at]
            columns[f"a{at}"] = column if kept else column.fill_null(MISSING)
        return {"events": pa.table(columns)}


class Counting:
    """A row for each test."""

    def __init__(self, intervals: Intervals) -> None:
        self._several = intervals.clauses > intervals.size
        tests = pa.table(
            {
                "clause": intervals.clause.astype(np.int32),
                "attribute": intervals.attribute.astype(np.int32),
                "low": narrowed(intervals.low),
                "high": narrowed(intervals.high),
            }
        )
        equal = intervals.low == intervals.high
        needed = np.diff(intervals.starts).astype(np.int32)
        clauses = {
            "clause": _numbers(intervals.clauses),
            "owner": intervals.owner.astype(np.int32),
            "needed": needed,
        }
        self.tables: Tables = {
            "equal": tests.filter(pa.array(equal)),
            "ranged": tests.filter(pa.array(~equal)),
            "clauses": pa.table(clauses),
        }

    @property
    def query(self) -> str:
        satisfied = " union all ".join(
            "select /*+ BROADCAST(t) */ e.id, t.clause "
            f"from events e join {table} t on e.attribute = t.attribute and {test}"
            for table, test in (("equal", "e.value = t.low"), ("ranged", "e.value between t.low and t.high"))
            if self.tables[table].num_rows
        )
        counted = f"select id, clause, count(*) as held from ({satisfied}) x group by id, clause"
        return (
            f"select {'distinct ' * self._several}h.id as event, c.owner as subscription "
            f"from ({counted}) h join clauses c on h.clause = c.clause and h.held = c.needed"
        )

    def events(self, events: Events) -> Tables:
        values = {"attribute": events.attribute.astype(np.int32), "value": narrowed(events.value)}
        return {"events": pa.table({"id": events.rows.astype(np.int32), **values})}


def _filled(size: int, fill: int, places: Integers, values: Values) -> Values:
    column = np.full(size, fill, np.int32)
    column[places] = values
    return column


def _numbers(size: int) -> Values:
    return np.arange(size, dtype=np.int32)
