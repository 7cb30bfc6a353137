"""Whether one test of a plan holds for an event, evaluated on its own: `predmatch` of paper 004."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.atoms import Aspect, Column, Event
from tidings.events.operators import compare, literals_of
from tidings.events.schema.domains import Domain
from tidings.matching.compiler.plan import Plan, Relation, Test
from tidings.values import Literal, Scalar

Domains = Mapping[str, Domain]

_ACCEPTED: dict[Relation, frozenset[int]] = {
    Relation.LT: frozenset({-1}),
    Relation.LE: frozenset({-1, 0}),
    Relation.GT: frozenset({1}),
    Relation.GE: frozenset({0, 1}),
}
"""How a value may compare with the operand."""

_TEXTS: dict[Aspect, Callable[[str, str], bool]] = {
    Aspect.PREFIX: str.startswith,
    Aspect.SUFFIX: str.endswith,
    Aspect.SUBSTRING: str.__contains__,
}


def satisfies(plan: Plan, event: Event) -> bool:
    """Some clause of the plan has all its tests hold."""
    domains = {domain.name: domain for domain in plan.domains}
    return any(all(test_holds(test, event, domains) for test in clause) for clause in plan.clauses)


def test_holds(test: Test, event: Event, domains: Domains) -> bool:
    """Some value at the test's path stands in its relation to the operand; negated, none does."""
    some = any(_stands(value, test, domains) for value in event.get(test.shape.column.path, ()))
    return some is not test.shape.negated


test_holds.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test of its own


def _stands(value: Scalar, test: Test, domains: Domains) -> bool:
    column, relation, literals = test.shape.column, test.shape.relation, literals_of(test.operand)
    if relation is Relation.EXISTS:
        return True
    if relation is Relation.NE:
        return not _equals(value, column, literals[0], domains)
    if relation in (Relation.EQ, Relation.IN):
        return any(_equals(value, column, literal, domains) for literal in literals)
    if relation is Relation.BETWEEN:
        low, high = literals
        return compare(value, low) in (0, 1) and compare(value, high) in (-1, 0)
    return compare(value, literals[0]) in _ACCEPTED[relation]


def _equals(value: Scalar, column: Column, literal: Literal, domains: Domains) -> bool:
    """Equality through the aspect: a string "equals" its prefixes, a concept what it is a kind of."""
    if column.aspect in (Aspect.VALUE, Aspect.INSTANT):
        return compare(value, literal) == 0
    if not (isinstance(value, str) and isinstance(literal, str)):
        return False
    if column.aspect in _TEXTS:
        return _TEXTS[column.aspect](value, literal)
    return _is_ordered(value, column.aspect, literal, domains[column.domain])


def _is_ordered(value: str, aspect: Aspect, literal: str, domain: Domain) -> bool:
    if aspect in (Aspect.BELOW, Aspect.ABOVE) and value == literal:
        return False
    if aspect in (Aspect.AT_MOST, Aspect.BELOW):
        return domain.at_most(value, literal)
    return domain.at_most(literal, value)
