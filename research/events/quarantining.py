"""Equality-preferred with non-equality quarantining (paper 004, figure 5): count only what is left.

Time: clauses found by their equalities are verified one by one; only those without equalities are counted.
Space: comparisons beside equalities are stored with each clause, so a predicate may be stored many times.
Change: like equality-preferred, and cheaper while few clauses are in the quarantine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from research.events.clusters import ComparisonPredicates, EqualityClusters
from research.events.shared import ClauseAlgorithm, Equality, Factored, equality, factor
from research.events.view import EventView
from tidings.matching.compiler.plan import Clause


class Quarantining(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self.clusters = EqualityClusters()
        self.quarantine: dict[int, Factored] = {}
        self._comparisons = ComparisonPredicates()
        self._equalities: dict[int, tuple[Equality, ...]] = {}
        self._others: dict[int, Clause] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        found = factor(clause)
        if found.equalities:
            self.clusters.add(found.equalities, number)
            self._equalities[number] = found.equalities
            self._others[number] = tuple(test for test in clause if equality(test) is None)
        else:
            self.quarantine[number] = found
            for comparison in found.comparisons:
                self._comparisons.add(comparison, number)

    def _delete(self, number: int) -> None:
        if number in self.quarantine:
            for comparison in self.quarantine.pop(number).comparisons:
                self._comparisons.remove(comparison, number)
        else:
            self.clusters.remove(self._equalities.pop(number), number)
            del self._others[number]

    def _matching(self, view: EventView) -> Iterable[int]:
        yield from self._with_equalities(view)
        yield from self._quarantined(view)

    def _with_equalities(self, view: EventView) -> Iterator[int]:
        for clauses in self.clusters.satisfied(view):
            for number in clauses:
                if view.holds(self._others[number]):
                    yield number

    def _quarantined(self, view: EventView) -> Iterator[int]:
        hits: Counter[int] = Counter()
        for clauses in self._comparisons.satisfied(view):
            hits.update(clauses)
        for number, found in self.quarantine.items():
            if hits[number] == len(found.comparisons) and view.holds(found.residual):
                yield number
