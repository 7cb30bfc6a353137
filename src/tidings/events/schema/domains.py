"""Domains: the values an attribute may have, and how they compare.

A domain is validated when it is created, so its order is known to be an order: every value named as a parent
is itself a value, and no value is above itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from tidings.core.suggest import did_you_mean, is_name
from tidings.core.text import plural
from tidings.errors import SchemaError
from tidings.events.schema.concept_hierarchy import ConceptHierarchy, find_cycle
from tidings.values import parse_instant


class DomainKind(StrEnum):
    NUMERIC = "numeric"
    STRING = "string"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    ENUMERATED = "enumerated"
    HIERARCHICAL = "hierarchical"


LISTED = (DomainKind.ENUMERATED, DomainKind.HIERARCHICAL)
"""The kinds whose values are listed one by one."""


@dataclass(frozen=True)
class Domain:
    """A named domain. For listed values, `below` maps each value to those directly above it.

    The order is a DAG: `a <= b` if b can be reached from a, which includes `a` itself; `<` excludes it. In a
    hierarchy that reads "a is a kind of b". A numeric domain may have a minimum and a maximum.
    """

    name: str
    kind: DomainKind
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    minimum: int | float | None = None
    maximum: int | float | None = None

    def __post_init__(self) -> None:
        # The listing order of parents has no meaning: equal orders must be equal domains.
        sorted_above = {value: tuple(sorted(set(above))) for value, above in self.below.items()}
        object.__setattr__(self, "below", sorted_above)
        for rule in _RULES:
            rule(self)

    def __hash__(self) -> int:
        return hash((self.name, self.kind))

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(self.below)

    @property
    def is_ordered(self) -> bool:
        """Whether `<` is meaningful; booleans and plain enumerations have no order."""
        if self.kind is DomainKind.ENUMERATED:
            return any(self.below.values())
        return self.kind is not DomainKind.BOOLEAN

    @cached_property
    def _hierarchy(self) -> ConceptHierarchy:
        return ConceptHierarchy(self.below)

    def at_most(self, low: str, high: str) -> bool:
        """Return whether low <= high: low is high or below it."""
        return self._hierarchy.is_a(low, high)

    def ancestors(self, value: str) -> frozenset[str]:
        """Return the value and everything above it; empty for an unknown value."""
        return self._hierarchy.ancestors(value)

    def accepts(self, value: object) -> bool:
        """Return whether an event may have this value; an instant is a string in a date format."""
        if self.kind in LISTED:
            return isinstance(value, str) and value in self.below
        if self.kind is DomainKind.NUMERIC:
            return (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and self._contains_number(value)
            )
        if self.kind is DomainKind.BOOLEAN:
            return isinstance(value, bool)
        return isinstance(value, str) and (self.kind is DomainKind.STRING or parse_instant(value) is not None)

    def describe(self) -> str:
        """Describe the domain briefly: `enumerated, 4 values, ordered`."""
        if self.kind is DomainKind.HIERARCHICAL:
            return f"hierarchical, {plural(len(self.below), 'concept')}"
        if self.kind is DomainKind.ENUMERATED:
            return f"enumerated, {plural(len(self.below), 'value')}" + (
                ", ordered" if self.is_ordered else ""
            )
        bounds = [("from", self.minimum), ("up to", self.maximum)]
        return " ".join(
            [self.kind.value, *(f"{word} {number}" for word, number in bounds if number is not None)]
        )

    def _contains_number(self, number: int | float) -> bool:
        return (self.minimum is None or number >= self.minimum) and (
            self.maximum is None or number <= self.maximum
        )


def _check_name(domain: Domain) -> None:
    if not is_name(domain.name):
        raise SchemaError("a domain needs a name", received=repr(domain.name))


def _check_bounds(domain: Domain) -> None:
    low, high = domain.minimum, domain.maximum
    if (low, high) == (None, None):
        return
    if domain.kind is not DomainKind.NUMERIC:
        raise SchemaError(f"domain {domain.name} is {domain.kind}: only numeric domains have bounds")
    if low is not None and high is not None and not low <= high:
        raise SchemaError(f"domain {domain.name} is empty: its minimum {low} is above its maximum {high}")


def _check_values(domain: Domain) -> None:
    if domain.kind in LISTED and not domain.below:
        raise SchemaError(f"domain {domain.name} is {domain.kind} and has no values")
    if domain.kind not in LISTED and domain.below:
        raise SchemaError(f"domain {domain.name} is {domain.kind}: it cannot list values")
    for value in domain.below:
        if not is_name(value):
            raise SchemaError(f"a value of domain {domain.name} is not a valid name", received=repr(value))


def _check_order(domain: Domain) -> None:
    for value, above in domain.below.items():
        for parent in above:
            if parent not in domain.below:
                message = f"'{value}' is below '{parent}', which is not a value of domain {domain.name}"
                raise SchemaError(message, hint=did_you_mean(parent, domain.below))
    cycle = find_cycle(domain.below)
    if cycle:
        message = f"domain {domain.name} has a cycle: {' < '.join(cycle)}"
        raise SchemaError(message, accepted="an order without cycles")


_RULES = (_check_name, _check_bounds, _check_values, _check_order)


BUILT_IN = {
    kind.value: Domain(kind.value, kind)
    for kind in (DomainKind.NUMERIC, DomainKind.STRING, DomainKind.BOOLEAN, DomainKind.INSTANT)
}
"""The domains that every schema has implicitly."""
