"""Aguilera's algorithm (paper 004, figure 7): a tree of operations with *-edges for "does not matter".

Time: a path for each matching clause and parts of others; long where many comparisons follow one another.
Space: clauses with a common prefix share it: at most one node per predicate.
Change: incremental, but inserting a comparison may visit every other one after the same prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from research.events.algorithm import ClauseAlgorithm, Comparison, comparison_holds, factor
from research.events.evaluation import EventView, Key
from tidings.atoms import Column
from tidings.matching.compiler.plan import Clause, Test

Operation = Column | Comparison | None
"""Read the value of a column, with many results; compare it with a bound, true or false; None in a leaf."""

Result = Key | bool | None
STAR = None
"""Label of the *-edge, which clauses follow that do not depend on the operation."""

Step = tuple[Operation, Result]
Edge = tuple["Node", Result]


class Node:
    """An operation with an edge for each result that some clause needs; or a leaf, which holds clauses.

    Along *-edges operations ascend: equalities by column, then comparisons, then the leaf. So the tree does
    not depend on the order of insertion, and the levels of a tree of equalities are the attributes.
    """

    __slots__ = ("clauses", "edges", "operation", "rank")

    def __init__(self, operation: Operation, following: Node | None = None) -> None:
        self.operation = operation
        self.rank = _rank(operation)
        self.edges: dict[Result, Node] = {} if following is None else {STAR: following}
        self.clauses: set[int] = set()


class Aguilera(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self._root = Node(None)
        self._steps: dict[int, tuple[Step, ...]] = {}
        self._residual: dict[int, tuple[Test, ...]] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        found = factor(clause)
        steps: list[Step] = [(each.column, each.key) for each in found.equalities]
        steps += [(each, True) for each in found.comparisons]
        self._steps[number], self._residual[number] = tuple(steps), found.residual
        edge: Edge = (self._root, STAR)
        for operation, result in steps:
            edge = _place(edge, operation), result
        _place(edge, None).clauses.add(number)

    def _delete(self, number: int) -> None:
        del self._residual[number]
        edge: Edge = (self._root, STAR)
        trail: list[Edge] = []
        for operation, result in (*self._steps.pop(number), (None, STAR)):
            trail.extend(_walk(edge, operation))
            node = _target(trail[-1])
            edge = node, result
        node.clauses.discard(number)
        _prune(trail)

    def _matching(self, view: EventView) -> Iterable[int]:
        for number in self._reached(view):
            if view.holds(self._residual[number]):
                yield number

    def _reached(self, view: EventView) -> Iterator[int]:
        pending = list(self._root.edges.values())
        while pending:
            node = pending.pop()
            yield from node.clauses
            pending.extend(node.edges[result] for result in _results(node, view) if result in node.edges)


def _results(node: Node, view: EventView) -> Iterator[Result]:
    """Yield the results of a node's operation for an event (several for several values), and always STAR."""
    yield STAR
    if isinstance(node.operation, Column):
        yield from view.keys(node.operation)
    elif node.operation is not None and comparison_holds(node.operation, view):
        yield True


def _rank(operation: Operation) -> tuple[object, ...]:
    if operation is None:
        return (2,)
    if isinstance(operation, Comparison):
        column = operation.column
        return (
            1,
            column.path,
            column.aspect,
            column.domain,
            operation.kind,
            operation.relation,
            operation.bound,
        )
    return (0, operation.path, operation.aspect, operation.domain)


def _target(edge: Edge) -> Node:
    return edge[0].edges[edge[1]]


def _walk(edge: Edge, operation: Operation) -> Iterator[Edge]:
    """Yield an edge and the *-edges after it, up to the one that leads to the operation or past its place."""
    yield edge
    node, rank = edge[0].edges.get(edge[1]), _rank(operation)
    while node is not None and node.rank < rank:
        yield node, STAR
        node = node.edges.get(STAR)


def _place(edge: Edge, operation: Operation) -> Node:
    """Return the node of an operation among those that an edge leads to; insert a missing one."""
    *_, (above, result) = _walk(edge, operation)
    node = above.edges.get(result)
    if node is None or node.operation != operation:
        node = Node(operation, node)
        above.edges[result] = node
    return node


def _prune(trail: list[Edge]) -> None:
    """Remove nodes without use, from the leaf upwards."""
    for above, result in reversed(trail):
        node = above.edges[result]
        if node.clauses or any(label is not STAR for label in node.edges):
            return
        if STAR in node.edges:
            above.edges[result] = node.edges[STAR]
        else:
            del above.edges[result]
