"""One event as the algorithms look at it: its values by column, each computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from research.events.truth import test_holds
from tidings.atoms import Aspect, Column, Event
from tidings.events.schema.domains import Domain
from tidings.matching.compiler.plan import Test
from tidings.values import Kind, Scalar, kind_of, parse_instant

Key = tuple[Kind, Any]
"""A value beside its kind. Python says True == 1, but a boolean is no number."""


def key_of(value: Any) -> Key:
    return kind_of(value), value


class EventView:
    """The values of an event by column, the extremes for comparisons, and whether a whole test holds."""

    def __init__(self, event: Event, domains: Mapping[str, Domain]) -> None:
        self.event = event
        self._domains = domains
        self._keys: dict[Column, frozenset[Key]] = {}
        self._extremes: dict[tuple[Column, Kind], tuple[Any, Any] | None] = {}

    def keys(self, column: Column) -> frozenset[Key]:
        """What the column's value may be equal to: for a prefix column, all prefixes of the values."""
        found = self._keys.get(column)
        if found is None:
            values = self.event.get(column.path, ())
            found = frozenset(key_of(image) for value in values for image in self._images(value, column))
            self._keys[column] = found
        return found

    def extremes(self, column: Column, kind: Kind) -> tuple[Any, Any] | None:
        """The least and the greatest value of a kind.

        Some value is below a bound exactly when the least one is, so comparisons need no other values.
        """
        if (column, kind) not in self._extremes:
            values = self.values(column, kind)
            self._extremes[column, kind] = (min(values), max(values)) if values else None
        return self._extremes[column, kind]

    def values(self, column: Column, kind: Kind) -> list[Any]:
        return [value for found, value in self.keys(column) if found is kind]

    def holds(self, tests: Iterable[Test]) -> bool:
        """Whether all tests hold, evaluated one by one as the naive algorithm does."""
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
    """The operands the value stands below (AT_MOST, BELOW) or above (AT_LEAST, ABOVE)."""
    if aspect in (Aspect.AT_MOST, Aspect.BELOW):
        images = domain.ancestors(value)
    else:
        images = frozenset(other for other in domain.values if domain.at_most(other, value))
    return images - {value} if aspect in (Aspect.BELOW, Aspect.ABOVE) else images
