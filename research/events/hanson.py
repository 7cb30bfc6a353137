"""Hanson's algorithm (paper 004, figure 6), and the interval binary search tree that it uses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from research.events.algorithm import Axis, ClauseAlgorithm, Interval, interval_of
from research.events.evaluation import EventView
from tidings.matching.compiler.plan import Clause, Test

_LOPSIDED = 0.7
"""A subtree is lopsided if one child has more than this share of its nodes."""


class Node:
    __slots__ = ("equal", "left", "left_marks", "right", "right_marks", "uses", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.uses = 0
        self.left: Node | None = None
        self.right: Node | None = None
        self.equal: set[int] = set()
        self.left_marks: set[int] = set()
        self.right_marks: set[int] = set()


Range = tuple[Any, Any]


class IbsTree:
    """An interval binary search tree (Hanson et al., SIGMOD 1990): which intervals contain a value?

    A binary search tree over the ends of intervals. Each node has three sets of marks: intervals that contain
    its value, and intervals that cover everything left (or right) of it in its own range. A search collects
    marks on one path:

              20            [5, 20] marks 20 as `equal`, 5 as `equal`, and 5 as `right` (5 to 20)
             /  \\           (-, 5)  marks 5 as `left` (all below 5)
            5    30         search 7: at 20 go left, at 5 take the marks `right`: [5, 20]

    The tree is balanced as a scapegoat tree: if an insertion is too deep, the lowest lopsided ancestor is
    rebuilt from its sorted values and its marks are set again. (Hanson rotates and repairs the marks of the
    rotated nodes; a rebuilt subtree needs no case analysis and costs the same on average.) The ends of a
    deleted interval stay until half of all ends are unused; then the whole tree is rebuilt.
    """

    def __init__(self) -> None:
        self._root: Node | None = None
        self._intervals: dict[int, Interval] = {}
        self._nodes = 0
        self._unused = 0

    def add(self, number: int, interval: Interval) -> None:
        self._intervals[number] = interval
        for end in interval.ends():
            self._insert_end(end)
        self._mark(number, self._root, (None, None))

    def remove(self, number: int) -> None:
        self._unmark(number, self._root, (None, None))
        for end in self._intervals.pop(number).ends():
            node = self._path(end)[-1][0]
            node.uses -= 1
            self._unused += node.uses == 0
        if self._unused * 2 > self._nodes:
            self._rebuild_all()

    def search(self, value: Any) -> Iterator[int]:
        """Yield the numbers of the intervals that contain the value."""
        node = self._root
        while node is not None and node.value != value:
            left = value < node.value
            yield from node.left_marks if left else node.right_marks
            node = node.left if left else node.right
        if node is not None:
            yield from node.equal

    @property
    def ends(self) -> int:
        """The number of distinct ends of intervals, including some of deleted ones."""
        return self._nodes

    def depth(self) -> int:
        level, depth = [self._root] if self._root else [], 0
        while level:
            level, depth = [child for node in level for child in (node.left, node.right) if child], depth + 1
        return depth

    def __len__(self) -> int:
        return len(self._intervals)

    def _path(self, value: Any) -> list[tuple[Node, Range]]:
        """Return the nodes from the root down to the value (or its place), each with its range."""
        path: list[tuple[Node, Range]] = []
        node: Node | None = self._root
        low = high = None
        while node is not None:
            path.append((node, (low, high)))
            if value == node.value:
                break
            if value < node.value:
                high, node = node.value, node.left
            else:
                low, node = node.value, node.right
        return path

    def _insert_end(self, value: Any) -> None:
        path = self._path(value)
        if path and path[-1][0].value == value:
            node = path[-1][0]
            self._unused -= node.uses == 0
            node.uses += 1
            return
        self._hang(value, path)
        self._nodes += 1
        if len(path) > math.log(self._nodes + 1, 1 / _LOPSIDED) + 1:
            self._rebalance(path)

    def _hang(self, value: Any, path: list[tuple[Node, Range]]) -> None:
        """Add a leaf below the path. Marks above that cover its place cover it too: none has to move."""
        node = Node(value)
        node.uses = 1
        if not path:
            self._root = node
        elif value < path[-1][0].value:
            path[-1][0].left = node
        else:
            path[-1][0].right = node

    def _rebalance(self, path: list[tuple[Node, Range]]) -> None:
        """Rebuild the lowest lopsided subtree on the path; there is one if a leaf is too deep."""
        below = 1
        for depth in range(len(path) - 1, -1, -1):
            node, bounds = path[depth]
            total = _count(node)
            if below > _LOPSIDED * total or depth == 0:
                self._replace(path, depth, self._rebuilt(node, bounds))
                return
            below = total

    def _replace(self, path: list[tuple[Node, Range]], depth: int, built: Node | None) -> None:
        if depth == 0:
            self._root = built
        elif path[depth - 1][0].left is path[depth][0]:
            path[depth - 1][0].left = built
        else:
            path[depth - 1][0].right = built

    def _rebuilt(self, node: Node, bounds: Range) -> Node | None:
        """Return the same ends, balanced. Only intervals marked inside can need marks inside."""
        nodes = list(_in_order(node))
        marked = {number for each in nodes for number in (*each.equal, *each.left_marks, *each.right_marks)}
        built = _balanced([(each.value, each.uses) for each in nodes])
        for number in marked:
            self._mark(number, built, bounds)
        return built

    def _rebuild_all(self) -> None:
        used = [(each.value, each.uses) for each in _in_order(self._root) if each.uses]
        self._root, self._nodes, self._unused = _balanced(used), len(used), 0
        for number in self._intervals:
            self._mark(number, self._root, (None, None))

    def _mark(self, number: int, node: Node | None, bounds: Range) -> None:
        for marks in self._places(self._intervals[number], node, bounds):
            marks.add(number)

    def _unmark(self, number: int, node: Node | None, bounds: Range) -> None:
        for marks in self._places(self._intervals[number], node, bounds):
            marks.discard(number)

    def _places(self, interval: Interval, node: Node | None, bounds: Range) -> Iterator[set[int]]:
        """Yield the sets of marks that an interval belongs to, at and below `node`, whose range is `bounds`."""
        pending = [(node, bounds)]
        while pending:
            node, (low, high) = pending.pop()
            if node is None:
                continue
            if interval.has(node.value):
                yield node.equal
            for marks, child, part in (
                (node.left_marks, node.left, (low, node.value)),
                (node.right_marks, node.right, (node.value, high)),
            ):
                if interval.covers(*part):
                    yield marks
                elif interval.meets(*part):
                    pending.append((child, part))


def _in_order(node: Node | None) -> Iterator[Node]:
    above: list[Node] = []
    while node is not None or above:
        while node is not None:
            above.append(node)
            node = node.left
        found = above.pop()
        yield found
        node = found.right


def _count(node: Node | None) -> int:
    return sum(1 for _ in _in_order(node))


def _balanced(ends: list[tuple[Any, int]]) -> Node | None:
    if not ends:
        return None
    middle = len(ends) // 2
    node = Node(ends[middle][0])
    node.uses = ends[middle][1]
    node.left, node.right = _balanced(ends[:middle]), _balanced(ends[middle + 1 :])
    return node


Choice = tuple[Axis, Interval, Test]


class Hanson(ClauseAlgorithm):
    """One predicate of each clause is in an interval tree; the others are verified.

    Time: good while the chosen predicates are selective; a clause found by a weak one is verified in vain.
    Space: one entry in an interval tree per clause, with its other predicates; nothing is shared. Change: an
    insertion into, or deletion from, one balanced tree; but a choice once made is not reconsidered.
    """

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
        """Choose equalities before ranges before half-lines; among those, the attribute with the most values
        so far.

        Hanson wants to know how selective each predicate is. The number of distinct ends in its tree is what
        can be known without looking at events.
        """
        choices = [(*found, test) for test in clause if (found := interval_of(test))]
        return max(choices, key=self._selectivity, default=None)

    def _selectivity(self, choice: Choice) -> tuple[bool, bool, int]:
        axis, interval, _ = choice
        tree = self.trees.get(axis)
        return interval.is_point, interval.is_range, tree.ends if tree else 0
