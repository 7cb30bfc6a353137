"""The protocol of matching algorithms, and what they share: predicates of paper 004, intervals, numbered
clauses.

Paper 004 has two sorts of predicates: equalities and comparisons with a bound. Each clause is *factored* into
these two and a rest (negated tests, `!=`, lists, substrings, existence), which is verified once all other
predicates of the clause hold. A plan of several clauses is several subscriptions of the paper; their matches
are united.
"""

from __future__ import annotations

import gc
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from types import FunctionType, ModuleType
from typing import Any, Protocol

from research.events.evaluation import EventView, Key, key_of
from tidings.atoms import Aspect, Column, Event
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain
from tidings.matching.compiler.plan import Clause, Plan, Relation, Test
from tidings.values import Kind


class Algorithm(Protocol):
    """Holds subscriptions as plans and returns, for one event at a time, those that it satisfies.

    All algorithms return the same result; they differ in time, in space and in the cost of changes.
    """

    def add(self, id: str, plan: Plan) -> None:
        """Add a subscription; a plan with an existing id replaces the old one."""

    def remove(self, id: str) -> bool:
        """Remove a subscription; return whether it existed."""

    def match(self, event: Event) -> set[str]:
        """Return the ids of the subscriptions that the event satisfies."""

    def size(self) -> int:
        """Return the bytes of everything the algorithm holds, including the predicates of its subscriptions."""

    def __len__(self) -> int:
        """Return the number of subscriptions."""


COMPARE: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
}


@dataclass(frozen=True, slots=True, order=True)
class Equality:
    """`column = key`: true if the key is among the values of the column."""

    column: Column
    key: Key


@dataclass(frozen=True, slots=True, order=True)
class Comparison:
    """`column < bound`, or with one of the other three relations."""

    column: Column
    kind: Kind
    relation: Relation
    bound: Any


@dataclass(frozen=True, slots=True)
class Factored:
    """A clause in terms of the paper, and the tests that the paper does not have."""

    equalities: tuple[Equality, ...]
    comparisons: tuple[Comparison, ...]
    residual: tuple[Test, ...]


def factor(clause: Clause) -> Factored:
    """Factor a clause. A predicate written twice counts once."""
    equalities = {found for test in clause if (found := to_equality(test))}
    comparisons = {found for test in clause for found in comparisons_of(test)}
    residual = tuple(test for test in clause if not is_factored(test))
    return Factored(tuple(sorted(equalities)), tuple(sorted(comparisons)), residual)


def to_equality(test: Test) -> Equality | None:
    """Return the test as an equality predicate: `=` on an aspect whose values can be listed.

    A string has too many substrings to look each of them up, so `contains` is not an equality.
    """
    shape = test.shape
    if shape.negated or shape.relation is not Relation.EQ or shape.column.aspect is Aspect.SUBSTRING:
        return None
    return Equality(shape.column, key_of(test.operand))


def comparisons_of(test: Test) -> Iterator[Comparison]:
    """Yield the comparisons that must hold if the test does: one, or the two bounds of BETWEEN."""
    shape = test.shape
    if shape.negated or shape.kind is None:
        return
    if shape.relation in COMPARE:
        yield Comparison(shape.column, shape.kind, shape.relation, test.operand)
    elif shape.relation is Relation.BETWEEN and isinstance(test.operand, tuple):
        low, high = test.operand
        yield Comparison(shape.column, shape.kind, Relation.GE, low)
        yield Comparison(shape.column, shape.kind, Relation.LE, high)


def is_factored(test: Test) -> bool:
    """Return whether the predicates of a test are equivalent to it.

    Those of BETWEEN are not: of the values 1 and 9 one is at least 4 and one at most 6, but none is between 4
    and 6.
    """
    return not test.shape.negated and (test.shape.relation in COMPARE or to_equality(test) is not None)


def comparison_holds(comparison: Comparison, view: EventView) -> bool:
    """Evaluate a comparison by itself: the least value decides `<`, the greatest `>`."""
    extremes = view.extremes(comparison.column, comparison.kind)
    if extremes is None:
        return False
    extreme = extremes[comparison.relation in (Relation.GT, Relation.GE)]
    return COMPARE[comparison.relation](extreme, comparison.bound)


class ClauseAlgorithm(ABC):
    """Base of algorithms over numbered clauses; subclasses insert, delete and match clauses."""

    def __init__(self) -> None:
        self._clauses: dict[str, tuple[int, ...]] = {}
        self._owner: dict[int, str] = {}
        self._domains: dict[str, Domain] = {}
        self._numbers = count()

    def add(self, id: str, plan: Plan) -> None:
        self.remove(id)
        self._add_domains(plan.domains)
        numbers = tuple(next(self._numbers) for _ in plan.clauses)
        self._clauses[id] = numbers
        for number, clause in zip(numbers, plan.clauses, strict=True):
            self._owner[number] = id
            self._insert(number, clause)

    def remove(self, id: str) -> bool:
        numbers = self._clauses.pop(id, None)
        for number in numbers or ():
            del self._owner[number]
            self._delete(number)
        return numbers is not None

    def match(self, event: Event) -> set[str]:
        view = EventView(event, self._domains)
        return {self._owner[number] for number in self._matching(view)}

    def size(self) -> int:
        return deep_size(self)

    def __len__(self) -> int:
        return len(self._clauses)

    def _add_domains(self, domains: Iterable[Domain]) -> None:
        for domain in domains:
            known = self._domains.setdefault(domain.name, domain)
            if known != domain:
                raise SchemaError(f"two different domains are named {domain.name}")

    @abstractmethod
    def _insert(self, number: int, clause: Clause) -> None: ...

    @abstractmethod
    def _delete(self, number: int) -> None: ...

    @abstractmethod
    def _matching(self, view: EventView) -> Iterable[int]: ...


def deep_size(root: object) -> int:
    """Return the bytes of an object and everything reachable from it, each counted once; code does not count."""
    seen: dict[int, object] = {}
    pending = [root]
    while pending:
        found = pending.pop()
        if id(found) not in seen and not isinstance(found, type | ModuleType | FunctionType):
            seen[id(found)] = found
            pending.extend(gc.get_referents(found))
    return sum(map(sys.getsizeof, seen.values()))


Axis = tuple[Column, Kind]
"""The values that a tree of intervals is about: those of one kind in one column."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from `low` to `high`, each end included or not; None means unbounded."""

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
        """Return whether it contains all values strictly between `low` and `high` (None: unbounded)."""
        from_below = self.low is None or (low is not None and self.low <= low)
        return from_below and (self.high is None or (high is not None and high <= self.high))

    def meets(self, low: Any, high: Any) -> bool:
        """Return whether it may contain a value strictly between `low` and `high`."""
        starts = self.low is None or high is None or self.low < high
        return starts and (self.high is None or low is None or low < self.high)


def interval_of(test: Test) -> tuple[Axis, Interval] | None:
    """Return the test as an interval; None for negations, `!=`, lists, `contains` and `exists`."""
    shape, operand = test.shape, test.operand
    point = to_equality(test)
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
