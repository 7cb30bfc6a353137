"""Predicates as intervals of values: a point, a half-line or a range. The trees are built from these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from research.events.shared import equality
from tidings.atoms import Column
from tidings.matching.compiler.plan import Relation, Test
from tidings.values import Kind

Axis = tuple[Column, Kind]
"""What a tree of intervals is about: values of one kind in one column."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from `low` to `high`; None is no bound on that side; an end may belong to it or not."""

    low: Any
    high: Any
    with_low: bool = True
    with_high: bool = True

    @property
    def is_point(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def is_range(self) -> bool:
        return self.low is not None and self.high is not None

    def ends(self) -> tuple[Any, ...]:
        found = (self.low,) if self.is_point else (self.low, self.high)
        return tuple(end for end in found if end is not None)

    def has(self, value: Any) -> bool:
        above = self.low is None or self.low < value or (self.with_low and self.low == value)
        return above and (self.high is None or value < self.high or (self.with_high and self.high == value))

    def covers(self, low: Any, high: Any) -> bool:
        """Whether it contains all values strictly between `low` and `high` (None: unbounded)."""
        from_below = self.low is None or (low is not None and self.low <= low)
        return from_below and (self.high is None or (high is not None and high <= self.high))

    def meets(self, low: Any, high: Any) -> bool:
        """Whether it may contain a value strictly between `low` and `high`."""
        starts = self.low is None or high is None or self.low < high
        return starts and (self.high is None or low is None or low < self.high)


def interval_of(test: Test) -> tuple[Axis, Interval] | None:
    """The test as an interval, or None for one that is none (negated, `!=`, a list, `contains`, `exists`)."""
    shape, operand = test.shape, test.operand
    point = equality(test)
    if point is not None:
        kind, value = point.key
        return (shape.column, kind), Interval(value, value)
    if shape.negated or shape.kind is None:
        return None
    interval = _half_line(shape.relation, operand)
    return None if interval is None else ((shape.column, shape.kind), interval)


def _half_line(relation: Relation, operand: Any) -> Interval | None:
    if relation is Relation.BETWEEN:
        return Interval(*operand)
    if relation in (Relation.LT, Relation.LE):
        return Interval(None, operand, with_high=relation is Relation.LE)
    if relation in (Relation.GT, Relation.GE):
        return Interval(operand, None, with_low=relation is Relation.GE)
    return None
