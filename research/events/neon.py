"""The Neon algorithm (paper 004, figure 8): rows of a predicates table, found by attribute and operator.

Time: every stored predicate on an attribute of the event is evaluated, repeated ones again; then counted.
Space: nothing is shared: each predicate of each subscription is a row of its own.
Change: rows in three tables, none of which is sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from research.events.algorithm import COMPARE, ClauseAlgorithm, Factored, factor
from research.events.evaluation import EventView, Key
from tidings.atoms import Column
from tidings.matching.compiler.plan import Clause, Relation, Test
from tidings.values import Kind

EVENT_TYPE = Column("event_type")


class Operation(NamedTuple):
    """A row of the operations table. The type is None for clauses without an event type."""

    event_type: Key | None
    column: Column
    comparison: Relation
    kind: Kind


Row = tuple[Any, int]
"""A row of the predicates table below its operation: the value to compare with and the clause."""


class Neon(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self.operations: dict[Key | None, dict[Operation, int]] = {}
        self.predicates: dict[Operation, dict[Row, None]] = {}
        self.n_predicates: dict[int, int] = {}
        self._rows: dict[int, tuple[tuple[Operation, Row], ...]] = {}
        self._residual: dict[int, tuple[Test, ...]] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        found = factor(clause)
        self._rows[number] = rows = tuple(_rows(found, number))
        self.n_predicates[number] = len(rows)
        self._residual[number] = found.residual
        for operation, row in rows:
            counts = self.operations.setdefault(operation.event_type, {})
            counts[operation] = counts.get(operation, 0) + 1
            self.predicates.setdefault(operation, {})[row] = None

    def _delete(self, number: int) -> None:
        del self.n_predicates[number], self._residual[number]
        for operation, row in self._rows.pop(number):
            del self.predicates[operation][row]
            counts = self.operations[operation.event_type]
            counts[operation] -= 1
            if not counts[operation]:
                del counts[operation], self.predicates[operation]

    def _matching(self, view: EventView) -> Iterable[int]:
        satisfied: Counter[int] = Counter()
        for operation in self._operations_for(view):
            satisfied.update(self._evaluate_rows(operation, view))
        for number, needed in self.n_predicates.items():
            if satisfied[number] == needed and view.holds(self._residual[number]):
                yield number

    def _operations_for(self, view: EventView) -> Iterator[Operation]:
        for event_type in (None, *view.keys(EVENT_TYPE)):
            yield from self.operations.get(event_type, ())

    def _evaluate_rows(self, operation: Operation, view: EventView) -> Iterator[int]:
        """Evaluate each row of an operation: the index leads to the rows, not to the values in them."""
        if operation.comparison is Relation.EQ:
            values = set(view.values(operation.column, operation.kind))
            return (number for value, number in self.predicates[operation] if value in values)
        extremes = view.extremes(operation.column, operation.kind)
        if extremes is None:
            return iter(())
        holds = COMPARE[operation.comparison]
        extreme = extremes[operation.comparison in (Relation.GT, Relation.GE)]
        return (number for value, number in self.predicates[operation] if holds(extreme, value))


def _rows(found: Factored, number: int) -> Iterator[tuple[Operation, Row]]:
    event_type = next((each.key for each in found.equalities if each.column == EVENT_TYPE), None)
    for column, (kind, value) in ((each.column, each.key) for each in found.equalities):
        yield Operation(event_type, column, Relation.EQ, kind), (value, number)
    for each in found.comparisons:
        yield Operation(event_type, each.column, each.relation, each.kind), (each.bound, number)
