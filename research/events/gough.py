"""Gough's algorithm (paper 004, figure 3): a tree in which every event has a single path.

Time: optimal: one binary search per attribute, whatever the number of subscriptions. Space: explodes; a
clause is stored on every path that it does not exclude. Beyond `limit` cells it is refused. Change: the whole
tree is rebuilt (Gough and Smith propose the same); here before the next match.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from research.events.algorithm import Axis, ClauseAlgorithm, Interval, interval_of
from research.events.evaluation import EventView
from tidings.errors import TooLarge
from tidings.matching.compiler.plan import Clause, Test

LIMIT = 1_000_000
"""Cells in all nodes; with their nodes and sets about a hundred bytes each."""

Subset = frozenset[int]


class Node:
    """One attribute: its values divided into cells, before, at, between and after the bounds that clauses
    name.

    bounds       10       20
    cells     0   1   2   3   4       `elsewhere` is for events without the attribute
    """

    __slots__ = ("axis", "bounds", "cells", "elsewhere")

    def __init__(self, axis: Axis, bounds: list[Any], cells: list[Tree], elsewhere: Tree) -> None:
        self.axis, self.bounds, self.cells, self.elsewhere = axis, bounds, cells, elsewhere

    def next(self, value: Any) -> Tree:
        at = bisect_left(self.bounds, value)
        found = at < len(self.bounds) and self.bounds[at] == value
        return self.cells[2 * at + found]


Tree = Node | Subset
"""A node, or a leaf: the clauses that hold at the end of the path (none in the paper's NULL)."""


class Gough(ClauseAlgorithm):
    def __init__(self, limit: int = LIMIT) -> None:
        super().__init__()
        self._limit = limit
        self._intervals: dict[int, dict[Axis, Interval]] = {}
        self._residual: dict[int, tuple[Test, ...]] = {}
        self._tree: Tree | None = None

    def _insert(self, number: int, clause: Clause) -> None:
        self._intervals[number], self._residual[number] = _split_by_axis(clause)
        self._tree = None

    def _delete(self, number: int) -> None:
        del self._intervals[number], self._residual[number]
        self._tree = None

    def _matching(self, view: EventView) -> Iterable[int]:
        for number in _leaves(self.tree(), view):
            if view.holds(self._residual[number]):
                yield number

    def size(self) -> int:
        self.tree()
        return super().size()

    def tree(self) -> Tree:
        """Return the tree of the present clauses; rebuild it after a change."""
        if self._tree is None:
            self._tree = _Builder(self._intervals, self._limit).build()
        return self._tree


def _split_by_axis(clause: Clause) -> tuple[dict[Axis, Interval], tuple[Test, ...]]:
    """Return the first interval on each axis, for the tree, and the remaining tests, which are verified at
    the leaf.

    A second interval cannot be intersected with the first: the values 1 and 9 together satisfy `a < 3 and a >
    7`.
    """
    intervals: dict[Axis, Interval] = {}
    residual: list[Test] = []
    for test in clause:
        found = interval_of(test)
        if found is None or found[0] in intervals:
            residual.append(test)
        else:
            intervals[found[0]] = found[1]
    return intervals, tuple(residual)


def _leaves(tree: Tree, view: EventView) -> set[int]:
    """Return the clauses at the end of the event's path; an attribute with several values has a path for each."""
    pending: list[Tree] = [tree]
    found: set[int] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, frozenset):
            found |= node
        else:
            values = view.values(*node.axis)
            pending.extend(map(node.next, values) if values else (node.elsewhere,))
    return found


class _Builder:
    """Builds the tree attribute by attribute.

    Equal subtrees are one object: otherwise neighbouring cells that no clause distinguishes would double it
    at each level.
    """

    def __init__(self, intervals: dict[int, dict[Axis, Interval]], limit: int) -> None:
        self._intervals = intervals
        self._axes = sorted({axis for found in intervals.values() for axis in found})
        self._limit, self._cells = limit, 0
        self._built: dict[tuple[int, Subset], Tree] = {}

    def build(self) -> Tree:
        return self._subtree(0, frozenset(self._intervals))

    def _subtree(self, level: int, clauses: Subset) -> Tree:
        while level < len(self._axes) and not self._concerned(level, clauses):
            level += 1
        if level == len(self._axes):
            return clauses
        if (level, clauses) not in self._built:
            self._built[level, clauses] = self._node(level, clauses)
        return self._built[level, clauses]

    def _concerned(self, level: int, clauses: Subset) -> Subset:
        axis = self._axes[level]
        return frozenset(number for number in clauses if axis in self._intervals[number])

    def _node(self, level: int, clauses: Subset) -> Node:
        axis, concerned = self._axes[level], self._concerned(level, clauses)
        intervals = {number: self._intervals[number][axis] for number in concerned}
        bounds = sorted({end for interval in intervals.values() for end in interval.ends()})
        self._allow(2 * len(bounds) + 1)
        indifferent = clauses - concerned
        cells = [self._subtree(level + 1, indifferent | within) for within in _sweep(bounds, intervals)]
        return Node(axis, bounds, cells, self._subtree(level + 1, indifferent))

    def _allow(self, cells: int) -> None:
        self._cells += cells
        if self._cells > self._limit:
            raise TooLarge(
                f"a tree of these {len(self._intervals):,} clauses has more than {self._limit:,} cells",
                hint="it grows with the combinations of predicates; another algorithm does not",
            )


def _sweep(bounds: list[Any], intervals: dict[int, Interval]) -> Iterator[set[int]]:
    """Yield for each cell from left to right the clauses whose interval contains it."""
    starts, stops = defaultdict(list), defaultdict(list)
    cell_of = {bound: 2 * at + 1 for at, bound in enumerate(bounds)}
    for number, each in intervals.items():
        first = 0 if each.low is None else cell_of[each.low] + (not each.with_low)
        last = 2 * len(bounds) if each.high is None else cell_of[each.high] - (not each.with_high)
        starts[first].append(number)
        stops[last + 1].append(number)
    within: set[int] = set()
    for cell in range(2 * len(bounds) + 1):
        within.difference_update(stops[cell])
        within.update(starts[cell])
        yield within
