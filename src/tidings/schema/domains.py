"""Domains: what values an attribute may have and how they compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class DomainKind(StrEnum):
    NUMERIC = "numeric"
    STRING = "string"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    ENUMERATED = "enumerated"
    HIERARCHICAL = "hierarchical"


@dataclass(frozen=True)
class Domain:
    """A named domain. For enumerated and hierarchical ones, `below` maps each value to those directly above it.

    The order is a DAG: `a <= b` when b can be reached from a, `a` itself included; `<` leaves `a` out. In a hierarchy
    that reads "a is a kind of b".
    """

    name: str
    kind: DomainKind
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(self.below)

    @cached_property
    def _above(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        pending = list(self.below)
        while pending:
            value = pending[-1]
            missing = [parent for parent in self.below[value] if parent not in found]
            if value in found or not missing:
                pending.pop()
                found[value] = frozenset({value}).union(*(found[parent] for parent in self.below[value]))
            else:
                pending.extend(missing)
        return found

    def at_most(self, low: str, high: str) -> bool:
        """low <= high: low is high or stands below it."""
        return high in self._above.get(low, ())

    def ancestors(self, value: str) -> frozenset[str]:
        """The value and everything above it; nothing for an unknown value."""
        return self._above.get(value, frozenset())
