"""Compilation of a graph pattern to its plan: the tests that lead to it, on the keys of edges.

`(?page, dc:subject, ?s) (?page, dc:date, 2005) AND ?s <= ex:Academia` implies a dc:subject below ex:Academia and a
dc:date of 2005, possibly of two different pages: graphs that pass the tests are joined afterwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tidings.atoms import Aspect, AtomShape, Column
from tidings.graphs.keys import ANY, Key, TermMeaning, path_of, term_meaning, term_text
from tidings.graphs.model import Term, meaning
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.patterns.pattern_tree import Constraint, ConstraintKind, Pattern, PatternEdge, Variable
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.plan import Clause, Operand, Plan, Relation, Test, TestShape
from tidings.values import INT64_MAX, Kind

_ORDERS = {
    ConstraintKind.LESS: Relation.LT,
    ConstraintKind.AT_MOST: Relation.LE,
    ConstraintKind.GREATER: Relation.GT,
    ConstraintKind.AT_LEAST: Relation.GE,
}
_CLASSES = {
    ConstraintKind.AT_CLASS: (Key.SUBJECT_AT, Key.OBJECT_AT, True),
    ConstraintKind.AT_OR_BELOW: (Key.SUBJECT_BELOW, Key.OBJECT_BELOW, True),
    ConstraintKind.BELOW: (Key.SUBJECT_BELOW, Key.OBJECT_BELOW, False),
    ConstraintKind.AT_OR_ABOVE: (Key.SUBJECT_ABOVE, Key.OBJECT_ABOVE, True),
    ConstraintKind.ABOVE: (Key.SUBJECT_ABOVE, Key.OBJECT_ABOVE, False),
}
"""The key for each class constraint, on a subject and on an object, and whether the key expresses it completely."""

_LARGE = 1e300
"""Infinity is stored as the largest double: bounds near it are left to the join."""


def compile_gql(context: Context) -> Plan:
    """Compile one text."""
    return plan_of(pattern_parser.parse(context.text))


def plan_of(pattern: Pattern) -> Plan:
    """Make the plan of a pattern: one clause."""
    tests, exact = tests_of(pattern)
    return Plan((tests,), twigs=(pattern,), exact=(exact,))


def tests_of(pattern: Pattern) -> tuple[Clause, bool]:
    """Return the tests that a matching graph must pass, and whether they are sufficient."""
    collector = _Tests(tuple(dict.fromkeys(pattern.edges)))
    for constraint in pattern.constraints:
        collector.constrain(constraint)
    for edge in collector.edges:
        collector.visit(edge)
    return tuple(collector.tests), collector.exact


class EndTest(NamedTuple):
    """A test of one end of an edge, and whether it expresses the constraint completely."""

    key: Key
    relation: Relation
    kind: Kind | None
    operand: Operand
    aspect: Aspect = Aspect.VALUE
    whole: bool = True


@dataclass(slots=True)
class _Tests:
    edges: tuple[PatternEdge, ...]
    tests: dict[Test, None] = field(default_factory=dict)
    exact: bool = True
    _test_counts: Counter[PatternEdge] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Mark patterns with a variable in two places as inexact: it has to be joined."""
        names = Counter(place.name for edge in self.edges for place in _variables(edge))
        self.exact = all(count == 1 for count in names.values())

    def visit(self, edge: PatternEdge) -> None:
        """Add the tests of an edge itself; two tests of one edge need the join."""
        for place, key in ((edge.subject, Key.SUBJECT), (edge.object, Key.OBJECT)):
            if isinstance(place, Term):
                self._add(edge, EndTest(key, Relation.EQ, Kind.STRING, term_text(place)))
        if not self._test_counts[edge]:
            self._add(edge, EndTest(Key.OBJECT, Relation.EXISTS, None, None))
        self.exact &= self._test_counts[edge] == 1

    def constrain(self, constraint: Constraint) -> None:
        """Add the test of a constraint, on the first edge with its variable at an end."""
        for edge in self.edges:
            for place, is_subject in ((edge.object, False), (edge.subject, True)):
                if isinstance(place, Variable) and place.name == constraint.variable:
                    end_test = end_test_of(constraint, is_subject)
                    self.exact &= end_test is not None and end_test.whole
                    if end_test is not None:
                        self._add(edge, end_test)
                    return
        self.exact = False  # the constraint is on a property

    def _add(self, edge: PatternEdge, end_test: EndTest) -> None:
        property = edge.property.text if isinstance(edge.property, Term) else ANY
        shape = shape_of(path_of(end_test.key, property), end_test.aspect, end_test.relation, end_test.kind)
        self.tests[Test(shape, end_test.operand)] = None
        self._test_counts[edge] += 1


def _variables(edge: PatternEdge) -> Iterator[Variable]:
    for place in (edge.subject, edge.property, edge.object):
        if isinstance(place, Variable):
            yield place


@lru_cache(maxsize=1 << 16)
def shape_of(path: str, aspect: Aspect, relation: Relation, kind: Kind | None) -> TestShape:
    """Cached: millions of subscriptions refer to some hundreds of properties."""
    return TestShape(Column(path, aspect, shape=AtomShape.EDGES), relation, kind)


def end_test_of(constraint: Constraint, is_subject: bool) -> EndTest | None:
    """Convert a constraint on one end of an edge to a test; None if no test expresses it."""
    kind, operand = constraint.kind, constraint.operands[0]
    if kind in _CLASSES:
        of_subject, of_object, whole = _CLASSES[kind]
        key = of_subject if is_subject else of_object
        return EndTest(key, Relation.EQ, Kind.STRING, term_text(operand), whole=whole)
    if kind is ConstraintKind.IS:
        return _is(is_subject, operand)
    if is_subject:
        return None  # a subject is not a value
    if kind in (ConstraintKind.CONTAINS, ConstraintKind.STARTS_WITH):
        aspect = Aspect.SUBSTRING if kind is ConstraintKind.CONTAINS else Aspect.PREFIX
        return EndTest(Key.TEXT, Relation.EQ, Kind.STRING, operand.text, aspect) if operand.text else None
    if kind is ConstraintKind.IN:
        return _among(constraint.operands)
    return _equals(operand) if kind is ConstraintKind.EQUAL else _ordered(kind, operand)


def _is(is_subject: bool, operand: Term) -> EndTest:
    return EndTest(Key.SUBJECT if is_subject else Key.OBJECT, Relation.EQ, Kind.STRING, term_text(operand))


def _equals(operand: Term) -> EndTest | None:
    """Test equality. Equal numbers and instants have many spellings; every other equal value is the same term."""
    value = meaning(operand)
    kind = term_meaning(value)
    if value is None or kind in (TermMeaning.NODE, TermMeaning.LANGUAGE, TermMeaning.STRING):
        return _is(False, operand)
    if kind is TermMeaning.BOOLEAN:
        return EndTest(Key.VALUE, Relation.EQ, Kind.BOOLEAN, value.value)
    return _number(Relation.EQ, operand)


def _among(operands: tuple[Term, ...]) -> EndTest | None:
    tests = [_equals(operand) for operand in operands]
    exact = [test for test in tests if test is not None]
    if len(exact) < len(tests) or len({(test.key, test.kind) for test in exact}) > 1:
        return None
    literals = tuple(dict.fromkeys(test.operand for test in exact))
    whole = all(test.whole for test in exact)
    return exact[0]._replace(relation=Relation.IN, operand=literals, whole=whole)  # type: ignore[arg-type]


def _ordered(constraint_kind: ConstraintKind, operand: Term) -> EndTest | None:
    relation, kind = _ORDERS.get(constraint_kind), term_meaning(meaning(operand))
    if relation is None:
        return None  # unequal
    if kind is TermMeaning.STRING:
        return EndTest(Key.VALUE, relation, Kind.STRING, operand.text)
    return _number(relation, operand) if kind in (TermMeaning.NUMBER, TermMeaning.MOMENT) else None


def _number(relation: Relation, operand: Term) -> EndTest | None:
    value = meaning(operand)
    assert value is not None
    if term_meaning(value) is TermMeaning.MOMENT:
        ticks: int = value.value.ticks
        return EndTest(Key.MOMENT, relation, Kind.NUMBER, ticks) if abs(ticks) <= INT64_MAX else None
    if math.isnan(value.value) or abs(value.value) > _LARGE:
        return None
    return EndTest(Key.VALUE, relation, Kind.NUMBER, value.value)
