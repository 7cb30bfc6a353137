"""The equality-preferred algorithm (paper 004, figure 4): equalities by lookup, the rest by counting.

Time: sums only for comparisons, final checks only for clauses whose equalities all hold or that have none.
Space: like fair predicate; an equality is stored again in each combination it is part of, but a subscription is listed
once for all its equalities.
Change: cheaper than fair predicate, since all equalities of a subscription are one entry in one cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from research.events.clusters import ComparisonPredicates, EqualityClusters
from research.events.shared import ClauseAlgorithm, Factored, factor
from research.events.view import EventView
from tidings.matching.compiler.plan import Clause


class EqualityPreferred(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self.clusters = EqualityClusters()
        self.comparisons = ComparisonPredicates()
        self.without_equality: set[int] = set()
        self._factored: dict[int, Factored] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        self._factored[number] = found = factor(clause)
        if found.equalities:
            self.clusters.add(found.equalities, number)
        else:
            self.without_equality.add(number)
        for comparison in found.comparisons:
            self.comparisons.add(comparison, number)

    def _delete(self, number: int) -> None:
        found = self._factored.pop(number)
        if found.equalities:
            self.clusters.remove(found.equalities, number)
        else:
            self.without_equality.discard(number)
        for comparison in found.comparisons:
            self.comparisons.remove(comparison, number)

    def _matching(self, view: EventView) -> Iterable[int]:
        hits: Counter[int] = Counter()
        for clauses in self.comparisons.satisfied(view):
            hits.update(clauses)
        for number in self._candidates(view):
            found = self._factored[number]
            if hits[number] == len(found.comparisons) and view.holds(found.residual):
                yield number

    def _candidates(self, view: EventView) -> Iterator[int]:
        for clauses in self.clusters.satisfied(view):
            yield from clauses
        yield from self.without_equality
