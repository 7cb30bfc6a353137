"""Evaluation of single tests (`predmatch` of paper 004), and the view of an event that the algorithms share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tidings.atoms import Aspect, Column, Event
from tidings.events.operators import compare, literals_of
from tidings.events.schema.domains import Domain
from tidings.matching.compiler.plan import Plan, Relation, Test
from tidings.values import Kind, Literal, Scalar, kind_of, parse_instant

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
    """Return whether all tests of some clause of the plan hold."""
    domains = {domain.name: domain for domain in plan.domains}
    return any(all(test_holds(test, event, domains) for test in clause) for clause in plan.clauses)


def test_holds(test: Test, event: Event, domains: Domains) -> bool:
    """Return whether some value at the test's path satisfies it; if it is negated, whether none does."""
    some = any(_value_holds(value, test, domains) for value in event.get(test.shape.column.path, ()))
    return some is not test.shape.negated


test_holds.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test of its own


def _value_holds(value: Scalar, test: Test, domains: Domains) -> bool:
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
    """Compare through the aspect: a string "equals" its prefixes, a concept everything it is a kind of."""
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


Key = tuple[Kind, Any]
"""A value with its kind: in Python True == 1, but a boolean is not a number."""


def key_of(value: Any) -> Key:
    return kind_of(value), value


class EventView:
    """The values of an event by column, the extremes for comparisons, and the evaluation of whole tests."""

    def __init__(self, event: Event, domains: Mapping[str, Domain]) -> None:
        self.event = event
        self._domains = domains
        self._keys: dict[Column, frozenset[Key]] = {}
        self._extremes: dict[tuple[Column, Kind], tuple[Any, Any] | None] = {}

    def keys(self, column: Column) -> frozenset[Key]:
        """Return everything that the column's value may equal: for a prefix column, all prefixes of the values."""
        found = self._keys.get(column)
        if found is None:
            values = self.event.get(column.path, ())
            found = frozenset(key_of(image) for value in values for image in self._images(value, column))
            self._keys[column] = found
        return found

    def extremes(self, column: Column, kind: Kind) -> tuple[Any, Any] | None:
        """Return the least and the greatest value of a kind.

        Some value is below a bound exactly if the least one is, so comparisons need no other values.
        """
        if (column, kind) not in self._extremes:
            values = self.values(column, kind)
            self._extremes[column, kind] = (min(values), max(values)) if values else None
        return self._extremes[column, kind]

    def values(self, column: Column, kind: Kind) -> list[Any]:
        return [value for found, value in self.keys(column) if found is kind]

    def holds(self, tests: Iterable[Test]) -> bool:
        """Return whether all tests hold, evaluated one by one as in the naive algorithm."""
        return all(test_holds(test, self.event, self._domains) for test in tests)

    def _images(self, value: Scalar, column: Column) -> Iterable[Any]:
        if column.aspect is Aspect.VALUE:
            return (value,)
        return (
            _text_images(value, column.aspect, self._domains.get(column.domain))
            if isinstance(value, str)
            else ()
        )


def _text_images(value: str, aspect: Aspect, domain: Domain | None) -> Iterable[Any]:
    if aspect is Aspect.INSTANT:
        moment = parse_instant(value)
        return () if moment is None else (moment,)
    if aspect is Aspect.PREFIX:
        return (value[:end] for end in range(len(value) + 1))
    if aspect is Aspect.SUFFIX:
        return (value[start:] for start in range(len(value) + 1))
    if aspect is Aspect.SUBSTRING:
        raise ValueError("a string has too many substrings to list them")
    return _ordered_images(value, aspect, domain) if domain is not None else ()


def _ordered_images(value: str, aspect: Aspect, domain: Domain) -> Iterable[str]:
    """Return the operands that the value is below (AT_MOST, BELOW) or above (AT_LEAST, ABOVE)."""
    if aspect in (Aspect.AT_MOST, Aspect.BELOW):
        images = domain.ancestors(value)
    else:
        images = frozenset(other for other in domain.values if domain.at_most(other, value))
    return images - {value} if aspect in (Aspect.BELOW, Aspect.ABOVE) else images
