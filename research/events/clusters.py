"""Clusters of predicates; each predicate is stored once, with the clauses that contain it (`pred_to_subs`)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import product
from typing import Any

from research.events.algorithm import Comparison, Equality
from research.events.evaluation import EventView, Key
from tidings.atoms import Column
from tidings.matching.compiler.plan import Relation
from tidings.values import Kind

Clauses = set[int]
Bound = tuple[Any, int]


class EqualityPredicates:
    """Equality predicates by attribute: `eqpredmatch` looks up each value of the event once."""

    def __init__(self) -> None:
        self._clusters: dict[Column, dict[Key, Clauses]] = {}

    def add(self, equality: Equality, clause: int) -> None:
        self._clusters.setdefault(equality.column, {}).setdefault(equality.key, set()).add(clause)

    def remove(self, equality: Equality, clause: int) -> None:
        cluster = self._clusters[equality.column]
        cluster[equality.key].discard(clause)
        if not cluster[equality.key]:
            del cluster[equality.key]
        if not cluster:
            del self._clusters[equality.column]

    def satisfied(self, view: EventView) -> Iterator[Clauses]:
        for column, cluster in self._clusters.items():
            for key in view.keys(column):
                if key in cluster:
                    yield cluster[key]

    def __len__(self) -> int:
        """Return the number of distinct predicates."""
        return sum(map(len, self._clusters.values()))


class ComparisonPredicates:
    """Comparisons by attribute and direction, sorted by bound: `lesspredmatch`, `greaterpredmatch`.

    One binary search finds the first satisfied one; all on that side hold and are not evaluated.
    """

    def __init__(self) -> None:
        self._ladders: dict[tuple[Column, Kind, bool], Ladder] = {}

    def add(self, comparison: Comparison, clause: int) -> None:
        self._ladders.setdefault(_ladder_of(comparison), Ladder()).add(_bound(comparison), clause)

    def remove(self, comparison: Comparison, clause: int) -> None:
        self._ladders[_ladder_of(comparison)].remove(_bound(comparison), clause)

    def satisfied(self, view: EventView) -> Iterator[Clauses]:
        for (column, kind, is_less), ladder in self._ladders.items():
            extremes = view.extremes(column, kind)
            if extremes is not None:
                yield from ladder.above(extremes[0]) if is_less else ladder.below(extremes[1])

    def __len__(self) -> int:
        return sum(map(len, self._ladders.values()))


class Ladder:
    """Bounds in ascending order; a 0 or 1 beside the value puts `< 5` before `<= 5`, and `>= 5` before `> 5`."""

    def __init__(self) -> None:
        self._bounds: list[Bound] = []
        self._clauses: dict[Bound, Clauses] = {}

    def add(self, bound: Bound, clause: int) -> None:
        if bound not in self._clauses:
            insort(self._bounds, bound)
            self._clauses[bound] = set()
        self._clauses[bound].add(clause)

    def remove(self, bound: Bound, clause: int) -> None:
        clauses = self._clauses[bound]
        clauses.discard(clause)
        if not clauses:
            del self._clauses[bound]
            del self._bounds[bisect_left(self._bounds, bound)]

    def above(self, value: Any) -> Iterator[Clauses]:
        """Return the clauses of the less-than predicates that a value satisfies."""
        first = bisect_right(self._bounds, (value, 0))
        return map(self._clauses.__getitem__, self._bounds[first:])

    def below(self, value: Any) -> Iterator[Clauses]:
        """Return the clauses of the greater-than predicates that a value satisfies."""
        end = bisect_left(self._bounds, (value, 1))
        return map(self._clauses.__getitem__, self._bounds[:end])

    def __len__(self) -> int:
        return len(self._bounds)


class EqualityClusters:
    """Clauses by the attributes of all their equalities (the *schema* of the cluster), then by the values.

    `eqsubmatch` visits the clusters whose schema the event has, with one lookup in each; several values of an
    attribute need several lookups.
    """

    def __init__(self) -> None:
        self._clusters: dict[tuple[Column, ...], dict[tuple[Key, ...], Clauses]] = {}

    def add(self, equalities: tuple[Equality, ...], clause: int) -> None:
        schema, keys = _schema(equalities)
        self._clusters.setdefault(schema, {}).setdefault(keys, set()).add(clause)

    def remove(self, equalities: tuple[Equality, ...], clause: int) -> None:
        schema, keys = _schema(equalities)
        cluster = self._clusters[schema]
        cluster[keys].discard(clause)
        if not cluster[keys]:
            del cluster[keys]
        if not cluster:
            del self._clusters[schema]

    def satisfied(self, view: EventView) -> Iterator[Clauses]:
        for schema, cluster in self._clusters.items():
            if all(column.path in view.event for column in schema):
                for keys in product(*map(view.keys, schema)):
                    if keys in cluster:
                        yield cluster[keys]

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self._clusters)


def _schema(equalities: tuple[Equality, ...]) -> tuple[tuple[Column, ...], tuple[Key, ...]]:
    return tuple(each.column for each in equalities), tuple(each.key for each in equalities)


def _ladder_of(comparison: Comparison) -> tuple[Column, Kind, bool]:
    is_less = comparison.relation in (Relation.LT, Relation.LE)
    return comparison.column, comparison.kind, is_less


def _bound(comparison: Comparison) -> Bound:
    return comparison.bound, int(comparison.relation in (Relation.LE, Relation.GT))
