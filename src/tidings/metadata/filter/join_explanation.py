"""Explanations of the relation between two joined resources.

    entered     serverPort 7 < <other.rdf#d>.serverPort
    left        serverInformation.memory 32 is not > serverPort

The registered side comes first. Its partner is shown by a path if it is a reference, otherwise by its URI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.metadata.rules.atomic import JoinCondition, JoinPredicate, JoinSide, is_path
from tidings.metadata.rules.decomposition import format_property
from tidings.metadata.rules.semantics import comparison_holds
from tidings.metadata.rules.syntax import format_name
from tidings.metadata.rules.tree import Operator
from tidings.model import Reason
from tidings.values import Scalar

ResourceLookup = Callable[[str], Resource | None]
"""Returns a resource by URI."""

LocatedValue = tuple[Value, str]
"""A value, and the URI of its resource."""


def orient_sides(condition: JoinCondition) -> tuple[JoinSide, JoinSide]:
    """Return the registered side and its partner's side."""
    return (
        (condition.left, condition.right) if condition.registers_left else (condition.right, condition.left)
    )


def is_along_reference(condition: JoinCondition) -> bool:
    """Whether the partner is the resource itself, or one that it refers to."""
    own, other = orient_sides(condition)
    return (
        condition.operator is Operator.EQUAL
        and other.property in (None, SUBJECT)
        and not is_path(own.property)
    )


def reference_path(condition: JoinCondition, other: str, path: str) -> str:
    """Return the path prefix for properties of the partner."""
    name = orient_sides(condition)[0].property
    if not is_along_reference(condition):
        return f"<{other}>."
    return path if name in (None, SUBJECT) else f"{path}{format_name(name)}."


@dataclass(frozen=True, slots=True)
class JoinPair:
    """A registered resource at `path`, and the URI of its actual or possible partner with its resource, if it exists.

    `find` returns the resources that paths pass through.
    """

    condition: JoinCondition
    own: Resource
    uri: str
    there: Resource | None
    path: str
    find: ResourceLookup

    def look(self) -> None:
        """Look up all compared resources."""
        for asked in self.condition.predicates if self.there is not None else ():
            both = asked if self.condition.registers_left else asked.flipped()
            self._mine(both)
            self._others(both)

    def held(self) -> list[Reason] | None:
        """Return the relations between the two; None if a predicate does not hold."""
        found: list[Reason] = []
        for asked in _further(self.condition):
            pairs = product(self._mine(asked), self._others(asked))
            met = next((own for own, (theirs, _) in pairs if _meet(asked, own[0], theirs)), None)
            if met is None:
                return None
            found.append(_compared(asked, self._theirs(asked), met, self.path))
        return found

    def unheld(self) -> Iterator[Reason]:
        """Return the predicates that do not hold. References without a target are reported elsewhere."""
        for asked in _further(self.condition) if self.there is not None else ():
            mine, theirs = self._mine(asked), self._theirs(asked)
            if not mine:
                yield Reason(f"{display_name(asked.left, self.path)} is missing", None, self.own.uri)
            elif not self._others(asked):
                yield Reason(f"{theirs} is missing", None, self.uri)
            elif not any(
                _meet(asked, own, other) for (own, _), (other, _) in product(mine, self._others(asked))
            ):
                yield _compared(asked, theirs, mine[0], self.path, is_so=False)

    def _mine(self, asked: JoinPredicate) -> tuple[LocatedValue, ...]:
        return locate_values(asked.left, self.own, self.find)

    def _others(self, asked: JoinPredicate) -> tuple[LocatedValue, ...]:
        return locate_values(asked.right, self.there, self.find) if self.there is not None else ()

    def _theirs(self, asked: JoinPredicate) -> str:
        if is_along_reference(self.condition):
            return display_name(asked.right, reference_path(self.condition, self.uri, self.path))
        right = asked.right
        return f"<{self.uri}>" if right in (None, SUBJECT) else f"<{self.uri}>.{format_property(right)}"


def _predicates(condition: JoinCondition) -> tuple[JoinPredicate, ...]:
    """Return the predicates, seen from the registered side."""
    found = condition.predicates
    return found if condition.registers_left else tuple(each.flipped() for each in found)


def _further(condition: JoinCondition) -> tuple[JoinPredicate, ...]:
    """Return the predicates that the path to the partner does not imply: along a reference, it implies the first."""
    return _predicates(condition)[int(is_along_reference(condition)) :]


def describe_missing_partner(
    condition: JoinCondition, resource: Resource, path: str, find: ResourceLookup
) -> Reason:
    """Describe a missing partner: `serverPort 7 = that of no DataProvider.serverPort with synthValue < its memory`."""
    first, *also = _predicates(condition)
    own = next(iter(locate_values(first.left, resource, find)), None)
    if own is None or is_along_reference(condition):
        return Reason(f"{display_name(first.left, path)} is missing", None, resource.uri)
    name = "" if first.right in (None, SUBJECT) else f".{format_property(first.right)}"
    told = _compared(first, f"that of no {format_name(orient_sides(condition)[1].cls)}{name}", own, path)
    with_ = (_compared(each, _its(each.right), own, path).predicate for each in also)
    return replace(told, predicate=" with ".join((told.predicate, *with_)))


def _its(name: str | None) -> str:
    return "itself" if name in (None, SUBJECT) else f"its {format_property(name)}"


def _compared(asked: JoinPredicate, other: str, found: LocatedValue, path: str, is_so: bool = True) -> Reason:
    """Format a comparison with the registered side on the left; `contains` has no mirrored operator."""
    value, at = found
    own, says = display_name(asked.left, path), describe_join(asked.operator, is_so)
    if asked.swapped:
        return Reason(f"{other} {says} {own}", None, at)
    return Reason(f"{own} {says} {other}", None if asked.left in (None, SUBJECT) else to_scalar(value), at)


def describe_join(operator: Operator, is_so: bool) -> str:
    if is_so:
        return operator.value
    return "does not contain" if operator is Operator.CONTAINS else f"is not {operator.value}"


def _meet(asked: JoinPredicate, own: Value, other: Value) -> bool:
    left, right = (other, own) if asked.swapped else (own, other)
    return comparison_holds(left, asked.operator, right)


def compared_values(name: str | None, resource: Resource, find: ResourceLookup) -> tuple[Value, ...]:
    return tuple(value for value, _ in locate_values(name, resource, find))


def locate_values(name: str | None, resource: Resource, find: ResourceLookup) -> tuple[LocatedValue, ...]:
    """Return the compared values of a resource with their resources. Paths pass through resources of any class."""
    if name is None or name == SUBJECT:
        return ((Ref(resource.uri), resource.uri),)
    first, _, further = name.partition(".")
    found = resource.values.get(first, ())
    if not further:
        return tuple((value, resource.uri) for value in found)
    there = [find(value.uri) for value in found if isinstance(value, Ref)]
    return tuple(each for one in there if one is not None for each in locate_values(further, one, find))


def display_name(name: str | None, path: str) -> str:
    return (path[:-1] or "it") if name in (None, SUBJECT) else f"{path}{format_property(name)}"


def to_scalar(value: Value) -> Scalar:
    return value.uri if isinstance(value, Ref) else value
