"""The form that peers are given: every test a closed interval, attributes that nobody asks about left out.

    symbol = 'S0017' and price > 20133        →        symbol in [17, 17], price in [20134, UNBOUNDED]

Attributes are numbered anew, the most selective one first: engines that work through fields in the order of their names
(event-ruler) or tests in the order they are written (CLIPS, expressions) then do the least work.
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
"""Clauses that are given to engines which take kilobytes for each."""

LOWER = (Relation.EQ, Relation.GE, Relation.GT, Relation.BETWEEN)
UPPER = (Relation.EQ, Relation.LE, Relation.LT, Relation.BETWEEN)


@dataclass(frozen=True)
class Intervals:
    """Clause c is `starts[c]:starts[c + 1]`: `attribute[t]` within `low[t]` and `high[t]`, for `owner[c]`.

    `equal[a]` says that only equality is asked of an attribute, so that its values may be anything that can be told
    apart. `number` has the new number of each of the workload's attributes, -1 for those nobody asks about.
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
        """The clause each test belongs to."""
        return np.repeat(np.arange(self.clauses), np.diff(self.starts))

    def asked(self, events: Events) -> Events:
        """The events, with the attributes that somebody asks about, in order."""
        attribute = self.number[events.attribute]
        kept = np.flatnonzero(attribute >= 0)
        kept = kept[np.lexsort((attribute[kept], events.rows[kept]))]
        starts = np.searchsorted(events.rows[kept], np.arange(len(events) + 1))
        return Events(self.attributes, starts, attribute[kept].astype(np.int32), events.value[kept])


def intervals(subscriptions: Subscriptions, most: int | None = None) -> Intervals:
    """The subscriptions in that form; Unavailable where an engine would not have the memory for so many clauses."""
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
        raise Unavailable("the drivers know intervals and equalities only")
    low = np.where(np.isin(relation, LOWER), subscriptions.low, -UNBOUNDED) + (relation == Relation.GT)
    upper = np.where(relation == Relation.BETWEEN, subscriptions.high, subscriptions.low)
    high = np.where(np.isin(relation, UPPER), upper, UNBOUNDED) - (relation == Relation.LT)
    return low, high


def _most_selective_first(subscriptions: Subscriptions) -> Integers:
    """The attributes asked about: one that is compared by equality tells more the more values it is compared with."""
    attribute, equal = subscriptions.attribute, subscriptions.relation == Relation.EQ
    count = len(subscriptions.attributes)
    asked = np.bincount(attribute, minlength=count)
    pairs = np.unique(np.column_stack((attribute[equal], subscriptions.low[equal])), axis=0)
    values = np.bincount(pairs[:, 0], minlength=count)
    tells = asked + np.bincount(attribute[equal], minlength=count) * np.log2(np.maximum(values, 1))
    return np.argsort(-tells, kind="stable")[: np.count_nonzero(asked)]


def _check_once(tests: Integers) -> None:
    if (tests[1:] == tests[:-1]).any():
        raise Unavailable("the drivers know one test an attribute only, and a clause has two")
