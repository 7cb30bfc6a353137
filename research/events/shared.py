"""What the algorithms share: the paper's predicates out of a plan's tests, and numbered clauses.

Paper 004 knows two sorts of predicate: equalities and comparisons with a bound. Every clause is therefore
*factored* into those two and a rest. The rest (negated tests, `!=`, lists, substrings, existence) is
verified once all other predicates of the clause hold. A plan of several clauses is several subscriptions of
the paper; what they match is united.
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
from typing import Any

from research.events.view import EventView, Key, key_of
from tidings.atoms import Aspect, Column, Event
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain
from tidings.matching.compiler.plan import Clause, Plan, Relation, Test
from tidings.values import Kind

COMPARE: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
}


@dataclass(frozen=True, slots=True, order=True)
class Equality:
    """`column = key`: true when the key is among the column's values."""

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
    """A clause as the paper sees it, and the tests it does not know."""

    equalities: tuple[Equality, ...]
    comparisons: tuple[Comparison, ...]
    residual: tuple[Test, ...]


def factor(clause: Clause) -> Factored:
    """Take a clause apart. A predicate written twice counts once."""
    equalities = {found for test in clause if (found := equality(test))}
    comparisons = {found for test in clause for found in comparisons_of(test)}
    residual = tuple(test for test in clause if not is_factored(test))
    return Factored(tuple(sorted(equalities)), tuple(sorted(comparisons)), residual)


def equality(test: Test) -> Equality | None:
    """The test as an equality predicate: `=` on any aspect whose values can be listed.

    A string has too many substrings to look each of them up, so `contains` is none.
    """
    shape = test.shape
    if shape.negated or shape.relation is not Relation.EQ or shape.column.aspect is Aspect.SUBSTRING:
        return None
    return Equality(shape.column, key_of(test.operand))


def comparisons_of(test: Test) -> Iterator[Comparison]:
    """The comparisons that must hold when the test does: one, or the two bounds of BETWEEN."""
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
    """Whether the predicates of a test say all it says.

    BETWEEN is not: of the values 1 and 9 one is at least 4 and one at most 6, but none is between 4 and 6.
    """
    return not test.shape.negated and (test.shape.relation in COMPARE or equality(test) is not None)


def comparison_holds(comparison: Comparison, view: EventView) -> bool:
    """Evaluated on its own: the least value decides about `<`, the greatest about `>`."""
    extremes = view.extremes(comparison.column, comparison.kind)
    if extremes is None:
        return False
    extreme = extremes[comparison.relation in (Relation.GT, Relation.GE)]
    return COMPARE[comparison.relation](extreme, comparison.bound)


class ClauseAlgorithm(ABC):
    """Subscriptions as numbered clauses: an algorithm says how clauses are inserted, deleted and matched."""

    def __init__(self) -> None:
        self._clauses: dict[str, tuple[int, ...]] = {}
        self._owner: dict[int, str] = {}
        self._domains: dict[str, Domain] = {}
        self._numbers = count()

    def add(self, id: str, plan: Plan) -> None:
        self.remove(id)
        self._learn(plan.domains)
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

    def _learn(self, domains: Iterable[Domain]) -> None:
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
    """Bytes of an object and of everything reachable from it, each counted once; code does not count."""
    seen: dict[int, object] = {}
    pending = [root]
    while pending:
        found = pending.pop()
        if id(found) not in seen and not isinstance(found, type | ModuleType | FunctionType):
            seen[id(found)] = found
            pending.extend(gc.get_referents(found))
    return sum(map(sys.getsizeof, seen.values()))
