"""Whether one test of a plan holds for an event, evaluated on its own: `predmatch` of paper 004."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from tidings.atoms import Aspect, Column, Event
from tidings.compiler.plan import Plan, Relation, Test
from tidings.schema.domains import Domain
from tidings.values import Scalar, kind_of, parse_instant

Domains = Mapping[str, Domain]

_COMPARE: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
}


def satisfies(plan: Plan, event: Event) -> bool:
    """Some clause of the plan has all its tests hold."""
    domains = {domain.name: domain for domain in plan.domains}
    return any(all(test_holds(test, event, domains) for test in clause) for clause in plan.clauses)


def test_holds(test: Test, event: Event, domains: Domains) -> bool:
    """Some value at the test's path stands in its relation to the operand; negated, none does."""
    some = any(_stands(value, test, domains) for value in event.get(test.shape.column.path, ()))
    return some is not test.shape.negated


test_holds.__test__ = False  # type: ignore[attr-defined]


def _stands(value: Scalar, test: Test, domains: Domains) -> bool:
    column, relation, operand = test.shape.column, test.shape.relation, test.operand
    if relation is Relation.EXISTS:
        return True
    if relation is Relation.NE:
        return not _equals(value, column, operand, domains)
    if relation is Relation.IN and isinstance(operand, tuple):
        return any(_equals(value, column, one, domains) for one in operand)
    if relation is Relation.EQ:
        return _equals(value, column, operand, domains)
    return _compares(_read(value, column), relation, operand)


def _read(value: Scalar, column: Column) -> Any:
    """The value itself, or the moment it names; None when it names none."""
    if column.aspect is not Aspect.INSTANT:
        return value
    return parse_instant(value) if isinstance(value, str) else None


def _compares(value: Any, relation: Relation, operand: Any) -> bool:
    if relation is Relation.BETWEEN:
        low, high = operand
        return _compares(value, Relation.GE, low) and _compares(value, Relation.LE, high)
    return value is not None and kind_of(value) is kind_of(operand) and _COMPARE[relation](value, operand)


def _equals(value: Scalar, column: Column, operand: Any, domains: Domains) -> bool:
    """Equality through the aspect: a string "equals" its prefixes, a concept what it is a kind of."""
    if column.aspect in (Aspect.VALUE, Aspect.INSTANT):
        read = _read(value, column)
        return read is not None and kind_of(read) is kind_of(operand) and bool(read == operand)
    return isinstance(value, str) and _ASPECTS[column.aspect](value, operand, domains.get(column.domain))


_ASPECTS: dict[Aspect, Callable[[str, str, Domain | None], bool]] = {
    Aspect.PREFIX: lambda value, text, _: value.startswith(text),
    Aspect.SUFFIX: lambda value, text, _: value.endswith(text),
    Aspect.SUBSTRING: lambda value, text, _: text in value,
    Aspect.AT_MOST: lambda value, bound, domain: domain is not None and domain.at_most(value, bound),
    Aspect.BELOW: lambda value, bound, domain: (
        domain is not None and value != bound and domain.at_most(value, bound)
    ),
    Aspect.AT_LEAST: lambda value, bound, domain: domain is not None and domain.at_most(bound, value),
    Aspect.ABOVE: lambda value, bound, domain: (
        domain is not None and value != bound and domain.at_most(bound, value)
    ),
}
