"""Counting algorithms of paper 004: fair predicate, equality-preferred, non-equality quarantining."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from research.events.algorithm import ClauseAlgorithm, Equality, Factored, factor, to_equality
from research.events.clusters import ComparisonPredicates, EqualityClusters, EqualityPredicates
from research.events.evaluation import EventView
from tidings.matching.compiler.plan import Clause


class FairPredicate(ClauseAlgorithm):
    """The fair predicate algorithm (paper 004, figure 2): evaluate each distinct predicate once, then count.

    Time: few evaluations, but a sum for each satisfied predicate of a clause and a comparison for every
    clause. Space: a predicate is stored once however many subscriptions have it; in Python that saves little,
    since each subscription is listed at each of its predicates. Change: an added or removed subscription
    touches only its own predicates.
    """

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
        """Return how many predicates of each clause the event satisfies."""
        hits: Counter[int] = Counter()
        for clauses in self.equalities.satisfied(view):
            hits.update(clauses)
        for clauses in self.comparisons.satisfied(view):
            hits.update(clauses)
        return hits


class EqualityPreferred(ClauseAlgorithm):
    """The equality-preferred algorithm (paper 004, figure 4): equalities by lookup, the rest by counting.

    Time: sums only for comparisons, final checks only for clauses whose equalities all hold or that have
    none. Space: like fair predicate; an equality is stored again in each combination that contains it, but a
    subscription is listed once for all its equalities. Change: cheaper than fair predicate, since all
    equalities of a subscription are one entry in one cluster.
    """

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


class Quarantining(ClauseAlgorithm):
    """Equality-preferred with non-equality quarantining (paper 004, figure 5): count only clauses without
    equalities.

    Time: clauses found by their equalities are verified one by one; only those without equalities are
    counted. Space: comparisons beside equalities are stored with each clause, so a predicate may be stored
    many times. Change: like equality-preferred, and cheaper while few clauses are in the quarantine.
    """

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
            self._others[number] = tuple(test for test in clause if to_equality(test) is None)
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
