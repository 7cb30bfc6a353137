"""Subscriptions and events as tables, matching as a join: the forms a careful user of a database would write.

Where subscriptions have few combinations of equalities over not too many attributes, a clause is a row with a column
for each attribute (`Wide`). The clauses of all combinations are in one table; a column that a clause does not ask about
holds NOT_ASKED, and the events are given once for each combination:

    from events e cross join shapes h
    join subscriptions s on s.q0 = case when h.q0 then e.a0 else NOT_ASKED end and e.a1 >= s.l1

Otherwise a test is a row, and a clause matches an event when as many of its tests hold as it has (`Counting`). Values
are integers of 32 bits, strings their numbers in a dictionary: the joins are about a third faster so.
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
"""More combinations of equalities, or more attributes, are not put into columns."""

LEAST, MOST = -(1 << 31), (1 << 31) - 1
MISSING = NOT_ASKED = LEAST + 1
"""A value that an event lacks lies below every bound that is asked for, and above the one of who does not ask."""

Values = npt.NDArray[np.int32]
Tables = dict[str, pa.Table]


def relations(asked: Intervals) -> Wide | Counting:
    if len(asked.attributes) > COLUMNS:
        return Counting(asked)
    wide = Wide(asked)
    return wide if len(wide.shapes) <= SHAPES else Counting(asked)


def narrowed(values: Integers) -> Values:
    """Values in 32 bits; what is unbounded becomes the least and the most there is."""
    bounded = np.abs(values) != UNBOUNDED
    if (np.abs(values[bounded]) > MOST - 1).any():
        raise Unavailable("the joins are written for values of 32 bits")
    return np.clip(values, LEAST, MOST).astype(np.int32)


class Wide:
    """A row for each clause. `q<a>` is what attribute a must be equal to, `l<a>` and `u<a>` are its bounds."""

    def __init__(self, asked: Intervals) -> None:
        self._asked, self._several = asked, asked.clauses > asked.size
        count = np.bincount(asked.attribute, minlength=len(asked.attributes))
        self.always: npt.NDArray[np.bool_] = count == asked.clauses
        self.columns: dict[str, Values] = {"owner": asked.owner.astype(np.int32)}
        for at in range(len(asked.attributes)):
            self.columns |= self._column(at, np.flatnonzero(asked.attribute == at))
        self.equal: list[int] = np.flatnonzero(asked.equal).tolist()
        self.ranged: list[int] = np.flatnonzero(~asked.equal).tolist()
        self.shapes, self.shape = self._shapes()

    def _column(self, at: int, tests: Integers) -> dict[str, Values]:
        asked, clauses = self._asked, self._asked.clause[tests]
        low, high = narrowed(asked.low[tests]), narrowed(asked.high[tests])
        if asked.equal[at]:
            return {f"q{at}": _filled(asked.clauses, NOT_ASKED, clauses, low)}
        columns = {}
        if not self.always[at] or (low > LEAST).any():
            columns[f"l{at}"] = _filled(asked.clauses, LEAST, clauses, np.maximum(low, MISSING + 1))
        if not self.always[at] or (high < MOST).any():
            columns[f"u{at}"] = _filled(asked.clauses, MOST, clauses, high)
        return columns

    def _shapes(self) -> tuple[npt.NDArray[np.bool_], Integers]:
        """The combinations of attributes that are compared by equality, and the one each clause has."""
        compared = np.column_stack(
            [np.zeros((self._asked.clauses, 0), np.bool_)]
            + [self.columns[f"q{at}"] != NOT_ASKED for at in self.equal]
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
        """Pairs of an event and a subscription. The hint is a comment to those who do not know it."""
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
            else f"s.q{at} = case when h.q{at} then e.a{at} else {NOT_ASKED} end"
            for at in self.equal
        ]
        lower = [f"e.a{at} >= s.l{at}" for at in self.ranged if f"l{at}" in self.columns]
        upper = [f"e.a{at} <= s.u{at}" for at in self.ranged if f"u{at}" in self.columns]
        return equal + lower + upper

    def events(self, events: Events) -> Tables:
        """A row for each event, null for what it lacks; MISSING where that must not hinder who does not ask."""
        columns: dict[str, Any] = {"id": _numbers(len(events))}
        for at in range(len(self._asked.attributes)):
            present, values = events.column(at)
            column = pa.array(narrowed(values), mask=~present)
            kept = self._asked.equal[at] or self.always[at]
            columns[f"a{at}"] = column if kept else column.fill_null(MISSING)
        return {"events": pa.table(columns)}


class Counting:
    """A row for each test."""

    def __init__(self, asked: Intervals) -> None:
        self._several = asked.clauses > asked.size
        tests = pa.table(
            {
                "clause": asked.clause.astype(np.int32),
                "attribute": asked.attribute.astype(np.int32),
                "low": narrowed(asked.low),
                "high": narrowed(asked.high),
            }
        )
        equal = asked.low == asked.high
        needed = np.diff(asked.starts).astype(np.int32)
        clauses = {"clause": _numbers(asked.clauses), "owner": asked.owner.astype(np.int32), "needed": needed}
        self.tables: Tables = {
            "equal": tests.filter(pa.array(equal)),
            "ranged": tests.filter(pa.array(~equal)),
            "clauses": pa.table(clauses),
        }

    @property
    def query(self) -> str:
        held = " union all ".join(
            "select /*+ BROADCAST(t) */ e.id, t.clause "
            f"from events e join {table} t on e.attribute = t.attribute and {test}"
            for table, test in (("equal", "e.value = t.low"), ("ranged", "e.value between t.low and t.high"))
            if self.tables[table].num_rows
        )
        counted = f"select id, clause, count(*) as held from ({held}) x group by id, clause"
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
