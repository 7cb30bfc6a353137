"""Reference matcher for documents, and explanations of matches. Everything faster is tested against it.

Plain recursion over the tree of nodes: a path is followed step by step from all nodes reached so far, and a predicate
is evaluated for each node by itself.
"""

from __future__ import annotations

import math
import operator as compare
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tidings.documents.model import Axis, Node, NodeKind, is_named, place_of, xpath_number
from tidings.documents.xpath.xpath_tree import (
    And,
    Expression,
    Not,
    Or,
    Path,
    PathTest,
    Step,
    ValueOperator,
    show_briefly,
)
from tidings.model import Reason

MOST_LOOKS = 1_000_000
"""Maximum number of node visits of an explanation: about a second."""

SHOWN = 200
"""Maximum length of a value in a reason: an element's value may be a whole book."""


def matches(expression: Expression, document: Node) -> bool:
    """Return whether a document, given by its document element, satisfies a subscription."""
    whole = _Document(document)
    return whole.holds(expression, whole.top)


def explain(expression: Expression, document: Node) -> tuple[Reason, ...]:
    """Return the reasons of a match in text order; of alternatives, the first that holds. Empty for a miss."""
    return Explainer(document).explain(expression)


class Explainer:
    """Explains the matches of one document.

    Nested `not()` over a large document can take very many steps: after MOST_LOOKS the only reason is the subscription
    itself, without values.
    """

    def __init__(self, document: Node, most: int = MOST_LOOKS) -> None:
        self._whole, self._most = _Document(document), most

    def explain(self, expression: Expression) -> tuple[Reason, ...]:
        whole = self._whole
        whole.left = self._most
        try:
            return tuple(whole.reasons(expression, whole.top)) if whole.holds(expression, whole.top) else ()
        except _TooMuch:
            return (Reason(_cut(show_briefly(expression)), None, "/"),)


class _TooMuch(Exception):
    """The limit of node visits is exceeded."""


class _Document:
    """The document node, which XPath puts above the document element, and the position of each node in document order.

    `left` is how many nodes may still be visited.
    """

    def __init__(self, element: Node) -> None:
        self.top = Node(NodeKind.ELEMENT, "", element.value, None, [element])
        self.order = {id(node): place for place, node in enumerate([self.top, *_below(self.top)])}
        self.left: float = math.inf

    def holds(self, expression: Expression, node: Node) -> bool:
        """Return whether an expression holds for a node."""
        if isinstance(expression, And):
            return all(self.holds(part, node) for part in expression.parts)
        if isinstance(expression, Or):
            return any(self.holds(part, node) for part in expression.parts)
        if isinstance(expression, Not):
            return not self.holds(expression.part, node)
        return self.witness(expression, self.follow(expression.path, node)[-1]) is not None

    def follow(self, path: Path, origin: Node) -> list[list[Node]]:
        """Return the nodes where a path begins, then those that each step reaches, in document order."""
        levels = [[self.top if path.absolute else origin]]
        for step in path.steps:
            reached = {id(node): node for start in levels[-1] for node in self.take_step(start, step)}
            held = [node for node in reached.values() if all(self.holds(p, node) for p in step.predicates)]
            levels.append(sorted(held, key=lambda node: self.order[id(node)]))
        return levels

    def take_step(self, start: Node, step: Step) -> list[Node]:
        """Return the nodes that a step reaches from one node, before its predicates."""
        among = start.children if step.axis is Axis.CHILD else list(_below(start))
        self.left -= 1 + len(among)
        if self.left < 0:
            raise _TooMuch
        return [node for node in among if node.kind is step.kind and is_named(step.name, node.name)]

    def witness(self, test: PathTest, reached: list[Node]) -> Node | None:
        """Return the first node at the path that satisfies the test."""
        operator, literal = test.operator, test.literal
        if operator is None:
            return reached[0] if reached else None
        candidates = reached[:1] if operator in _OF_THE_FIRST else reached
        return next((node for node in candidates if _compare(node.value, operator, literal)), None)

    def reasons(self, expression: Expression, node: Node) -> Iterable[Reason]:
        """Return the reasons why an expression holds for a node."""
        if isinstance(expression, And):
            return [reason for part in expression.parts for reason in self.reasons(part, node)]
        if isinstance(expression, Or):
            return self.reasons(next(part for part in expression.parts if self.holds(part, node)), node)
        if isinstance(expression, Not):
            return [Reason(show_briefly(expression), None, "/" if node is self.top else place_of(node))]
        return self.path_reasons(expression, node)

    def path_reasons(self, test: PathTest, start: Node) -> Iterator[Reason]:
        """Yield the reasons of predicates along the path, then its own, unless the last predicates already imply it."""
        levels = self.follow(test.path, start)
        witness = self.witness(test, levels[-1])
        assert witness is not None, "only expressions that hold have reasons"
        for step, node in zip(test.path.steps, _way_to(witness, test.path.steps, levels), strict=True):
            for predicate in step.predicates:
                yield from self.reasons(predicate, node)
        if test.operator is not None:
            yield Reason(show_briefly(_plain(test)), _cut(witness.value), place_of(witness))
        elif not (test.path.steps and test.path.steps[-1].predicates):
            yield Reason(show_briefly(_plain(test)), None, place_of(witness))


_OF_THE_FIRST = (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH)
_COMPARED: dict[ValueOperator, Callable[[typing.Any, typing.Any], bool]] = {
    ValueOperator.EQUAL: compare.eq,
    ValueOperator.UNEQUAL: compare.ne,
    ValueOperator.LESS: compare.lt,
    ValueOperator.AT_MOST: compare.le,
    ValueOperator.GREATER: compare.gt,
    ValueOperator.AT_LEAST: compare.ge,
}


def _compare(value: str, operator: ValueOperator, literal: str | float | None) -> bool:
    """Return whether a value compares with the literal: as strings, or as numbers if the literal is a number."""
    if not isinstance(literal, str):
        return _COMPARED[operator](xpath_number(value), literal)
    if operator is ValueOperator.CONTAINS:
        return literal in value
    if operator is ValueOperator.STARTS_WITH:
        return value.startswith(literal)
    return _COMPARED[operator](value, literal)


def _below(node: Node) -> Iterator[Node]:
    """Yield all descendants in document order, without recursion: documents may be deep."""
    waiting = node.children[::-1]
    while waiting:
        descendant = waiting.pop()
        yield descendant
        waiting += reversed(descendant.children)


def _way_to(last: Node, steps: tuple[Step, ...], levels: list[list[Node]]) -> list[Node]:
    """Return one node per step on the way to the last one; for `//`, the outermost that was reached."""
    way = [last]
    for step, level in zip(steps[:0:-1], levels[-2:0:-1], strict=True):
        above = [way[-1].parent] if step.axis is Axis.CHILD else _above(way[-1])
        way.append(next(node for node in level if any(node is each for each in above)))
    return way[::-1] if steps else []


def _above(node: Node) -> list[Node]:
    above = []
    while node.parent is not None:
        node = node.parent
        above.append(node)
    return above


def _plain(test: PathTest) -> PathTest:
    """Remove the predicates along the path, which have reasons of their own."""
    steps = tuple(replace(step, predicates=()) for step in test.path.steps)
    return replace(test, path=replace(test.path, steps=steps))


def _cut(value: str) -> str:
    return value if len(value) <= SHOWN else value[: SHOWN - 1] + "…"
