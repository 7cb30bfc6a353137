"""Hanson's algorithm (paper 004, figure 6): one predicate of each clause in a tree, the others verified.

Time: good while the chosen predicates are selective; every clause found by a weak one is verified in vain.
Space: one entry in an interval tree for each clause, the other predicates beside it, none shared.
Change: an insertion into, or deletion from, one balanced tree; but a choice once made is not reconsidered.
"""

from __future__ import annotations

from collections.abc import Iterable

from research.events.ibs_tree import IbsTree
from research.events.intervals import Axis, Interval, interval_of
from research.events.shared import ClauseAlgorithm
from research.events.view import EventView
from tidings.matching.compiler.plan import Clause, Test

Choice = tuple[Axis, Interval, Test]


class Hanson(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self.trees: dict[Axis, IbsTree] = {}
        self._axis: dict[int, Axis] = {}
        self._others: dict[int, Clause] = {}
        self._without_interval: set[int] = set()

    def _insert(self, number: int, clause: Clause) -> None:
        choice = self._most_selective(clause)
        if choice is None:
            self._without_interval.add(number)
            self._others[number] = clause
            return
        axis, interval, chosen = choice
        self._axis[number] = axis
        self._others[number] = tuple(test for test in clause if test is not chosen)
        self.trees.setdefault(axis, IbsTree()).add(number, interval)

    def _delete(self, number: int) -> None:
        del self._others[number]
        self._without_interval.discard(number)
        axis = self._axis.pop(number, None)
        if axis is not None:
            self.trees[axis].remove(number)
            if not len(self.trees[axis]):
                del self.trees[axis]

    def _matching(self, view: EventView) -> Iterable[int]:
        found = set(self._without_interval)
        for (column, kind), tree in self.trees.items():
            for value in view.values(column, kind):
                found.update(tree.search(value))
        return (number for number in found if view.holds(self._others[number]))

    def _most_selective(self, clause: Clause) -> Choice | None:
        """Equalities before ranges before half-lines; among those, the attribute with the most values so far.

        Hanson wants to know how selective each predicate is. How many different ends its tree already has is
        what can be known without looking at events.
        """
        choices = [(*found, test) for test in clause if (found := interval_of(test))]
        return max(choices, key=self._selectivity, default=None)

    def _selectivity(self, choice: Choice) -> tuple[bool, bool, int]:
        axis, interval, _ = choice
        tree = self.trees.get(axis)
        return interval.is_point, interval.is_range, tree.ends if tree else 0
