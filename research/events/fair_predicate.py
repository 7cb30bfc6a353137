"""The fair predicate algorithm (paper 004, figure 2): evaluate each different predicate once, then count.

Time: few evaluations, but a sum for each satisfied predicate of a clause and a comparison for every clause.
Space: a predicate is stored once however many subscriptions have it; in Python that saves little, since each
subscription is listed at each of its predicates.
Change: an added or removed subscription touches only its own predicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from research.events.clusters import ComparisonPredicates, EqualityPredicates
from research.events.shared import ClauseAlgorithm, Factored, factor
from research.events.view import EventView
from tidings.matching.compiler.plan import Clause


class FairPredicate(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self.equalities = EqualityPredicates()
        self.comparisons = ComparisonPredicates()
        self._factored: dict[int, Factored] = {}
        self._needed: dict[int, int] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        self._factored[number] = found = factor(clause)
        self._needed[number] = len(found.equalities) + len(found.comparisons)
        for equality in found.equalities:
            self.equalities.add(equality, number)
        for comparison in found.comparisons:
            self.comparisons.add(comparison, number)

    def _delete(self, number: int) -> None:
        del self._needed[number]
        found = self._factored.pop(number)
        for equality in found.equalities:
            self.equalities.remove(equality, number)
        for comparison in found.comparisons:
            self.comparisons.remove(comparison, number)

    def _matching(self, view: EventView) -> Iterable[int]:
        hits = self.hit_counts(view)
        for number, needed in self._needed.items():
            if hits[number] == needed and view.holds(self._factored[number].residual):
                yield number

    def hit_counts(self, view: EventView) -> Counter[int]:
        """How many predicates of each clause the event satisfies."""
        hits: Counter[int] = Counter()
        for clauses in self.equalities.satisfied(view):
            hits.update(clauses)
        for clauses in self.comparisons.satisfied(view):
            hits.update(clauses)
        return hits
