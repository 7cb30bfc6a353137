"""Input form of peers: every test is a closed interval, and attributes without tests are left out.

    symbol = 'S0017' and price > 20133        →        symbol in [17, 17], price in [20134, UNBOUNDED]

Attributes are renumbered, the most selective one first: engines that process fields in the order of names (event-ruler)
or tests in written order (CLIPS, expressions) then do the least work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import Attribute, Events, Integers, Subscriptions
from tests.support.packages import Unavailable
from tidings.matching.compiler.plan import Relation

UNBOUNDED = 1 << 62
MOST = 1_000_000
"""Limit of clauses for engines that use kilobytes per clause."""

LOWER = (Relation.EQ, Relation.GE, Relation.GT, Relation.BETWEEN)
UPPER = (Relation.EQ, Relation.LE, Relation.LT, Relation.BETWEEN)


@dataclass(frozen=True)
class Intervals:
    """Clause c is `starts[c]:starts[c + 1]`: `attribute[t]` within `low[t]` and `high[t]`, for `owner[c]`.

    `equal[a]` is set if an attribute has only equality tests, so that its values need no order. `number` has the new
    number of each of the workload's attributes, -1 for those without tests.
    """

    attributes: tuple[Attribute, ...]
    equal: npt.NDArray[np.bool_]
    number: Integers
    starts: Integers
    attribute: Integers
    low: Integers
    high: Integers
    owner: Integers
    size: int

    @property
    def clauses(self) -> int:
        return len(self.owner)

    @property
    def clause(self) -> Integers:
        """Return the clause of each test."""
        return np.repeat(np.arange(self.clauses), np.diff(self.starts))

    def select_attributes(self, events: Events) -> Events:
        """Return the events with only the tested attributes, in order."""
        attribute = self.number[events.attribute]
        kept = np.flatnonzero(attribute >= 0)
        kept = kept[np.lexsort((attribute[kept], events.rows[kept]))]
        starts = np.searchsorted(events.rows[kept], np.arange(len(events) + 1))
        return Events(self.attributes, starts, attribute[kept].astype(np.int32), events.value[kept])


def to_intervals(subscriptions: Subscriptions, most: int | None = None) -> Intervals:
    """Convert subscriptions; raise Unavailable if an engine would run out of memory with so many clauses."""
    if most is not None and subscriptions.clauses > most:
        raise Unavailable(f"not tried with more than {most:,} clauses, for lack of memory")
    low, high = _bounds(subscriptions)
    order = _most_selective_first(subscriptions)
    number = np.full(len(subscriptions.attributes), -1, np.int64)
    number[order] = np.arange(len(order))
    attribute = number[subscriptions.attribute]
    clause = np.repeat(np.arange(subscriptions.clauses), np.diff(subscriptions.starts))
    places = np.lexsort((attribute, clause))
    _check_once(clause[places] * len(order) + attribute[places])
    ranged = np.bincount(attribute, low != high, minlength=len(order)) > 0
    return Intervals(
        tuple(subscriptions.attributes[at] for at in order.tolist()),
        ~ranged,
        number,
        subscriptions.starts,
        attribute[places],
        low[places],
        high[places],
        subscriptions.owner.astype(np.int64),
        subscriptions.size,
    )


def _bounds(subscriptions: Subscriptions) -> tuple[Integers, Integers]:
    relation = subscriptions.relation
    if not np.isin(relation, (*LOWER, *UPPER)).all():
        raise Unavailable("the drivers support intervals and equalities only")
    low = np.where(np.isin(relation, LOWER), subscriptions.low, -UNBOUNDED) + (relation == Relation.GT)
    upper = np.where(relation == Relation.BETWEEN, subscriptions.high, subscriptions.low)
    high = np.where(np.isin(relation, UPPER), upper, UNBOUNDED) - (relation == Relation.LT)
    return low, high


def _most_selective_first(subscriptions: Subscriptions) -> Integers:
    """Order the tested attributes: equality is more selective the more values an attribute is compared with."""
    attribute, equal = subscriptions.attribute, subscriptions.relation == Relation.EQ
    count = len(subscriptions.attributes)
    tests = np.bincount(attribute, minlength=count)
    pairs = np.unique(np.column_stack((attribute[equal], subscriptions.low[equal])), axis=0)
    values = np.bincount(pairs[:, 0], minlength=count)
    selectivity = tests + np.bincount(attribute[equal], minlength=count) * np.log2(np.maximum(values, 1))
    return np.argsort(-selectivity, kind="stable")[: np.count_nonzero(tests)]


def _check_once(tests: Integers) -> None:
    if (tests[1:] == tests[:-1]).any():
        raise Unavailable("the drivers support one test per attribute and clause, and a clause has two")
