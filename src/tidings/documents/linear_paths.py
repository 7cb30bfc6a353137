"""The tests that a twig implies, each on one linear path. They lead to the twig, and often decide it.

`//stock[symbol = "YHOO"]/price > 50` implies a value YHOO at `//stock/symbol` and a value above 50 at `//stock/price`,
possibly of two different stocks. For `/stock` the same two tests decide, because there is only one document element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tidings.atoms import Aspect, AtomShape, Column
from tidings.documents.model import Axis, LinearStep, show_steps
from tidings.documents.twigs import DOCUMENT, Twig, ValueTest
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.matching.compiler.plan import Clause, Relation, Test, TestShape
from tidings.values import Kind

ANYWHERE = "//node()"
"""The path of all nodes."""

_RELATIONS = {
    ValueOperator.EQUAL: Relation.EQ,
    ValueOperator.LESS: Relation.LT,
    ValueOperator.AT_MOST: Relation.LE,
    ValueOperator.GREATER: Relation.GT,
    ValueOperator.AT_LEAST: Relation.GE,
}
_ASPECTS = {ValueOperator.CONTAINS: Aspect.SUBSTRING, ValueOperator.STARTS_WITH: Aspect.PREFIX}

Steps = tuple[LinearStep, ...]


def tests_of(twig: Twig) -> tuple[Clause, bool]:
    """Return the tests that a matching document must pass, and whether they are sufficient."""
    implied = _Tests(twig)
    for place in implied.below(DOCUMENT):
        implied.visit(place, (), exact=True)
    if all(test.shape.negated for test in implied.tests):
        implied.tests[Test(exists_shape(ANYWHERE), None)] = None
    return tuple(implied.tests), implied.exact


@dataclass(slots=True)
class _Tests:
    twig: Twig
    tests: dict[Test, None] = field(default_factory=dict)
    exact: bool = True
    _below: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, node in enumerate(self.twig):
            self._below.setdefault(node.parent, []).append(place)

    def below(self, parent: int) -> Sequence[int]:
        return self._below.get(parent, ())

    def visit(self, place: int, above: Steps, exact: bool) -> None:
        """Add the tests of a node; `exact` means that everything above applies to a single node."""
        node, children = self.twig[place], self.below(place)
        steps = (*above, LinearStep(node.axis, node.kind, node.name))
        if node.negated:
            self._negated(place, steps, exact)
            return
        single = node.parent == DOCUMENT and node.axis is Axis.CHILD
        alone = single or len(children) + len(node.tests) <= 1
        self.exact &= alone and not node.firsts
        for test in node.tests:
            self._value(steps, test)
        for test in node.firsts:
            self._value(self._end(place, above), test)
        for child in children:
            self.visit(child, steps, single)
        tested = node.tests or node.firsts or node.leads_on
        if not tested and all(self.twig[child].negated for child in children):
            self._add(_exists(steps))

    def _end(self, place: int, above: Steps) -> Steps:
        """Return the linear path to the node that `firsts` apply to."""
        node = self.twig[place]
        steps = (*above, LinearStep(node.axis, node.kind, node.name))
        further = [child for child in self.below(place) if self.twig[child].leads_on]
        return self._end(further[0], steps) if further else steps

    def _negated(self, place: int, steps: Steps, exact: bool) -> None:
        """Add `not(a/b = 1)` as a test if no other test applies to a or b, and if it applies to a single node."""
        node = self.twig[place]
        while exact and not node.tests and not node.firsts:
            children = self.below(place)
            if not children:
                break
            place, node = children[0], self.twig[children[0]]
            if len(children) > 1 or node.negated:
                exact = False
            steps = (*steps, LinearStep(node.axis, node.kind, node.name))
        plain = exact and not node.firsts and len(node.tests) <= 1 and not self.below(place)
        test = _test(steps, node.tests[0]) if plain and node.tests else _exists(steps)
        if plain and test is not None:
            self._add(Test(replace(test.shape, negated=True), test.operand))
        else:
            self.exact = False

    def _value(self, steps: Steps, value_test: ValueTest) -> None:
        test = _test(steps, value_test)
        self.exact &= test is not None
        self._add(test or _exists(steps))

    def _add(self, test: Test) -> None:
        self.tests[test] = None


def _exists(steps: Steps) -> Test:
    return Test(exists_shape(show_steps(steps)), None)


def _test(steps: Steps, value_test: ValueTest) -> Test | None:
    """Convert a test of a node's value; None if no test expresses it."""
    if value_test.negated:
        return None
    literal = value_test.literal
    shape = value_shape(show_steps(steps), value_test.operator, is_string=isinstance(literal, str))
    return None if shape is None else Test(shape, literal)


def exists_shape(path: str) -> TestShape:
    """Return the test that some node exists at a linear path."""
    return _shape(path, Aspect.VALUE, Relation.EXISTS, None)


def value_shape(path: str, operator: ValueOperator, is_string: bool) -> TestShape | None:
    """Return the test that some value at a linear path compares with a literal; None if no test expresses it."""
    if is_string:
        relation = Relation.NE if operator is ValueOperator.UNEQUAL else Relation.EQ
        return _shape(path, _ASPECTS.get(operator, Aspect.VALUE), relation, Kind.STRING)
    if operator is ValueOperator.UNEQUAL:  # also holds for values that are not numbers
        return None
    return _shape(path, Aspect.NUMBER, _RELATIONS[operator], Kind.NUMBER)


@lru_cache(maxsize=1 << 16)
def _shape(path: str, aspect: Aspect, relation: Relation, kind: Kind | None) -> TestShape:
    """Cached: millions of subscriptions refer to some thousands of paths."""
    return TestShape(Column(path, aspect, shape=AtomShape.TREE), relation, kind)
