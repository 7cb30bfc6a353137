"""Explanation of results: why a resource is in the results of a rule, or no longer is, by comparisons and values.

    large: search CycleProvider c register c where c.serverInformation.memory > 64

    entered     serverInformation.memory 92 > 64            at doc.rdf#info
    left        serverInformation.memory 32 is not > 64     at doc.rdf#info

Rules are explained by their atomic rules. Partners along references are shown as a path, others by their URI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.metadata.rules.atomic import JoinCondition, TriggeringRule
from tidings.metadata.rules.normal_form import JoinPredicate, is_path
from tidings.metadata.rules.semantics import comparison_holds
from tidings.metadata.rules.syntax import Operator, format_name, format_property
from tidings.metadata.schema.model import Schema
from tidings.model import Reason
from tidings.values import Scalar, show

ResourceLookup = Callable[[str], Resource | None]
"""Returns a resource by URI."""

LocatedValue = tuple[Value, str]
"""A value, and the URI of its resource."""


def is_along_reference(condition: JoinCondition) -> bool:
    """Whether the partner is the resource itself, or one that it refers to."""
    own, other = condition.sides
    is_resource = other.property in (None, SUBJECT)
    return condition.operator is Operator.EQUAL and is_resource and not is_path(own.property)


def reference_path(condition: JoinCondition, other: str, path: str) -> str:
    """Return the path prefix for properties of the partner."""
    name = condition.sides[0].property
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
        for predicate in self.condition.oriented if self.there is not None else ():
            self._mine(predicate)
            self._others(predicate)

    def held(self) -> list[Reason] | None:
        """Return the relations between the two; None if a predicate does not hold."""
        found: list[Reason] = []
        for asked in self._further():
            pairs = product(self._mine(asked), self._others(asked))
            met = next((own for own, (theirs, _) in pairs if _meet(asked, own[0], theirs)), None)
            if met is None:
                return None
            found.append(_compared(asked, self._theirs(asked), met, self.path))
        return found

    def unheld(self) -> Iterator[Reason]:
        """Return the predicates that do not hold. References without a target are reported elsewhere."""
        for asked in self._further() if self.there is not None else ():
            mine, theirs = self._mine(asked), self._theirs(asked)
            if not mine:
                yield Reason(f"{display_name(asked.left, self.path)} is missing", None, self.own.uri)
            elif not self._others(asked):
                yield Reason(f"{theirs} is missing", None, self.uri)
            elif not any(
                _meet(asked, own, other) for (own, _), (other, _) in product(mine, self._others(asked))
            ):
                yield _compared(asked, theirs, mine[0], self.path, is_so=False)

    def _further(self) -> tuple[JoinPredicate, ...]:
        """Return the predicates that the path to the partner does not imply; a reference implies the first."""
        return self.condition.oriented[int(is_along_reference(self.condition)) :]

    def _mine(self, asked: JoinPredicate) -> tuple[LocatedValue, ...]:
        return locate_values(asked.left, self.own, self.find)

    def _others(self, asked: JoinPredicate) -> tuple[LocatedValue, ...]:
        return locate_values(asked.right, self.there, self.find) if self.there is not None else ()

    def _theirs(self, asked: JoinPredicate) -> str:
        if is_along_reference(self.condition):
            return display_name(asked.right, reference_path(self.condition, self.uri, self.path))
        right = asked.right
        return f"<{self.uri}>" if right in (None, SUBJECT) else f"<{self.uri}>.{format_property(right)}"


def describe_missing_partner(
    condition: JoinCondition, resource: Resource, path: str, find: ResourceLookup
) -> Reason:
    """Describe a missing partner: `serverPort 7 = that of no DataProvider.serverPort with synthValue < its memory`."""
    first, *also = condition.oriented
    own = next(iter(locate_values(first.left, resource, find)), None)
    if own is None or is_along_reference(condition):
        return Reason(f"{display_name(first.left, path)} is missing", None, resource.uri)
    name = "" if first.right in (None, SUBJECT) else f".{format_property(first.right)}"
    told = _compared(first, f"that of no {format_name(condition.sides[1].cls)}{name}", own, path)
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


MAX_REASONS = 20
"""The maximal number of reasons in a notification."""


@dataclass(frozen=True, slots=True)
class RuleTree:
    """An atomic rule with its inputs. In a join, `kept` is the registered input and `other` its partner's.

    `group` is the number of the rule group.
    """

    number: int
    asks: TriggeringRule | JoinCondition
    kept: RuleTree | None = None
    other: RuleTree | None = None
    group: int = 0


@dataclass(slots=True)
class ExplanationContext:
    """Data loaded for explanations: resources (None if missing), and partners by number of the join and URI.

    Partners are only needed for joins that are not along one reference. Missing data is recorded as requested.
    """

    schema: Schema
    resources: dict[str, Resource | None] = field(default_factory=dict)
    met: dict[tuple[int, str], str | None] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    unmet: set[tuple[int, str]] = field(default_factory=set)

    def find(self, uri: str) -> Resource | None:
        if uri not in self.resources:
            self.unknown.add(uri)
        return self.resources.get(uri)

    def meets(self, tree: RuleTree, uri: str) -> str | None:
        if (tree.number, uri) not in self.met:
            self.unmet.add((tree.number, uri))
        return self.met.get((tree.number, uri))


def request_facts(tree: RuleTree, uri: str, world: ExplanationContext) -> None:
    """Request everything needed to explain a rule; what depends on it is requested in the next round."""
    resource = world.find(uri)
    if tree.kept is None or tree.other is None:
        return
    request_facts(tree.kept, uri, world)
    other = _other(tree, resource, world) if resource is not None else None
    if resource is None or other is None:
        return
    request_facts(tree.other, other, world)
    assert isinstance(tree.asks, JoinCondition)
    JoinPair(tree.asks, resource, other, world.find(other), "", world.find).look()


def explain_match(tree: RuleTree, uri: str, world: ExplanationContext) -> list[Reason]:
    """Return the comparisons that hold, or the class if there are none."""
    found = list(dict.fromkeys(_proof(tree, uri, "", world) or ()))
    return ([each for each in found if not each.predicate.startswith(_CLASS)] or found[:1])[:MAX_REASONS]


def explain_mismatch(tree: RuleTree, uri: str, world: ExplanationContext) -> list[Reason]:
    """Return the comparisons that do not hold, with current values."""
    if world.find(uri) is None:
        return [Reason("removed", None, uri)]
    return list(dict.fromkeys(_lacking(tree, uri, "", world)))[:MAX_REASONS]


_CLASS = "is a "


def _other(tree: RuleTree, resource: Resource, world: ExplanationContext) -> str | None:
    """Return the join partner, or if there is none, a possible one.

    Of several targets, the actual partner is requested. Trying all of them, and all of their targets along a path,
    would enumerate all paths of a graph.
    """
    assert isinstance(tree.asks, JoinCondition)
    if not is_along_reference(tree.asks):
        return world.meets(tree, resource.uri)
    name = tree.asks.sides[0].property
    if name in (None, SUBJECT):
        return resource.uri
    named = [value.uri for value in resource.values.get(name, ()) if isinstance(value, Ref)]
    met = world.meets(tree, resource.uri) if len(named) > 1 else None
    return met or next(iter(named), None)


def _proof(tree: RuleTree, uri: str, path: str, world: ExplanationContext) -> list[Reason] | None:
    """Return the reasons why a resource is a result; None if it is not."""
    resource = world.find(uri)
    if resource is None:
        return None
    if isinstance(tree.asks, TriggeringRule):
        return _held(tree.asks, resource, path, world)
    assert tree.kept is not None and tree.other is not None
    own, other = _proof(tree.kept, uri, path, world), _other(tree, resource, world)
    if own is None or other is None:
        return None
    between = JoinPair(tree.asks, resource, other, world.find(other), path, world.find).held()
    found = _proof(tree.other, other, reference_path(tree.asks, other, path), world)
    return None if between is None or found is None else [*own, *between, *found]


def _held(
    asks: TriggeringRule, resource: Resource, path: str, world: ExplanationContext
) -> list[Reason] | None:
    if asks.cls not in world.schema.at_or_above(resource.cls):
        return None
    constant = _constant(asks)
    if asks.operator is None or constant is None:
        return [Reason(f"{_CLASS}{format_name(asks.cls)}", None, resource.uri)]
    for value in compared_values(asks.property, resource, world.find):
        if comparison_holds(value, asks.operator, constant):
            predicate = f"{display_name(asks.property, path)} {asks.operator.value} {display_value(constant)}"
            return [Reason(predicate, to_scalar(value), resource.uri)]
    return None


def _lacking(tree: RuleTree, uri: str, path: str, world: ExplanationContext) -> list[Reason]:
    """Return the reasons why a resource is not a result; empty if it is."""
    resource = world.find(uri)
    if resource is None:
        return [Reason(f"{path[:-1]} leads nowhere", None, uri)]
    if isinstance(tree.asks, TriggeringRule):
        return list(_unheld(tree.asks, resource, path, world))
    assert tree.kept is not None and tree.other is not None
    own = _lacking(tree.kept, uri, path, world)
    other = _other(tree, resource, world)
    if other is None:
        return [*own, describe_missing_partner(tree.asks, resource, path, world.find)]
    between = JoinPair(tree.asks, resource, other, world.find(other), path, world.find).unheld()
    return [*own, *between, *_lacking(tree.other, other, reference_path(tree.asks, other, path), world)]


def _unheld(
    asks: TriggeringRule, resource: Resource, path: str, world: ExplanationContext
) -> Iterator[Reason]:
    constant, name = _constant(asks), display_name(asks.property, path)
    found = compared_values(asks.property, resource, world.find)
    if asks.cls not in world.schema.at_or_above(resource.cls):
        yield Reason(f"{path[:-1]} is no {format_name(asks.cls)}".lstrip(), None, resource.uri)
    elif asks.operator is None or constant is None:
        return
    elif not found:
        yield Reason(f"{name} is missing", None, resource.uri)
    elif not any(comparison_holds(value, asks.operator, constant) for value in found):
        predicate = f"{name} {describe_join(asks.operator, is_so=False)} {display_value(constant)}"
        for value in found[:_VALUES]:
            yield Reason(predicate, to_scalar(value), resource.uri)


_VALUES = 3
"""How many values of a property are reported that do not satisfy a comparison."""


def _constant(asks: TriggeringRule) -> Value | None:
    if asks.constant is None:
        return None
    return Ref(str(asks.constant)) if asks.is_resource or asks.property == SUBJECT else asks.constant


def display_value(value: Value) -> str:
    return f"<{value.uri}>" if isinstance(value, Ref) else show(value)
