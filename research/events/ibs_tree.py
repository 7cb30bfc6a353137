"""An interval binary search tree (Hanson et al., SIGMOD 1990): which intervals contain a value?

A binary search tree over the intervals' ends. Each node carries three sets of marks: intervals that contain
its value, and intervals that cover everything left (or right) of it in its own range. A search collects
marks on one path:

          20            [5, 20] marks 20 as `equal`, 5 as `equal`, and 5 as `right` (5 to 20)
         /  \\           (-, 5)  marks 5 as `left` (all below 5)
        5    30         search 7: at 20 go left, at 5 take the marks `right`: [5, 20]

The tree is kept balanced the way a scapegoat tree is: when an insertion lands too deep, the lowest ancestor
that is lopsided is rebuilt from its sorted values and its marks are set again. (Hanson rotates and repairs
the marks of the rotated nodes; a rebuilt subtree needs no case analysis and costs the same on average.) A
deleted interval's ends stay until half of all ends are unused; then the whole tree is rebuilt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from research.events.intervals import Interval

_LOPSIDED = 0.7
"""A subtree is lopsided when one child has more than this share of its nodes."""


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
        """The numbers of the intervals that contain the value."""
        node = self._root
        while node is not None and node.value != value:
            left = value < node.value
            yield from node.left_marks if left else node.right_marks
            node = node.left if left else node.right
        if node is not None:
            yield from node.equal

    @property
    def ends(self) -> int:
        """How many different ends the intervals have (some perhaps of deleted ones)."""
        return self._nodes

    def depth(self) -> int:
        level, depth = [self._root] if self._root else [], 0
        while level:
            level, depth = [child for node in level for child in (node.left, node.right) if child], depth + 1
        return depth

    def __len__(self) -> int:
        return len(self._intervals)

    def _path(self, value: Any) -> list[tuple[Node, Range]]:
        """The nodes from the root down to the value (or to where it would stand), each with its range."""
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
        """Put a new leaf below the path. Marks above that cover its place cover it too: none has to move."""
        node = Node(value)
        node.uses = 1
        if not path:
            self._root = node
        elif value < path[-1][0].value:
            path[-1][0].left = node
        else:
            path[-1][0].right = node

    def _rebalance(self, path: list[tuple[Node, Range]]) -> None:
        """Rebuild the lowest lopsided subtree on the path; there is one when a leaf lies too deep."""
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
        """The same ends, balanced. Only intervals marked inside can need marks inside."""
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
        """The sets of marks an interval belongs in, at and below `node`, which stands for `bounds`."""
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
