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
    partner: Resource | None
    path: str
    find: ResourceLookup

    def request_values(self) -> None:
        """Look up all compared resources."""
        for predicate in self.condition.oriented if self.partner is not None else ():
            self._locate_own(predicate)
            self._locate_others(predicate)

    def list_relations(self) -> list[Reason] | None:
        """Return the relations between the two; None if a predicate does not hold."""
        reasons: list[Reason] = []
        for predicate in self._list_checked_predicates():
            pairs = product(self._locate_own(predicate), self._locate_others(predicate))
            match = next(
                (value for value, (other, _) in pairs if _predicate_holds(predicate, value[0], other)), None
            )
            if match is None:
                return None
            reasons.append(_format_comparison(predicate, self._describe_other(predicate), match, self.path))
        return reasons

    def list_mismatches(self) -> Iterator[Reason]:
        """Return the predicates that do not hold. References without a target are reported elsewhere."""
        for predicate in self._list_checked_predicates() if self.partner is not None else ():
            own_values, other_description = self._locate_own(predicate), self._describe_other(predicate)
            if not own_values:
                yield Reason(f"{display_name(predicate.left, self.path)} is missing", None, self.own.uri)
            elif not self._locate_others(predicate):
                yield Reason(f"{other_description} is missing", None, self.uri)
            elif not any(
                _predicate_holds(predicate, own, other)
                for (own, _), (other, _) in product(own_values, self._locate_others(predicate))
            ):
                yield _format_comparison(predicate, other_description, own_values[0], self.path, is_so=False)

    def _list_checked_predicates(self) -> tuple[JoinPredicate, ...]:
        """Return the predicates that the path to the partner does not imply; a reference implies the first."""
        return self.condition.oriented[int(is_along_reference(self.condition)) :]

    def _locate_own(self, predicate: JoinPredicate) -> tuple[LocatedValue, ...]:
        return locate_values(predicate.left, self.own, self.find)

    def _locate_others(self, predicate: JoinPredicate) -> tuple[LocatedValue, ...]:
        return locate_values(predicate.right, self.partner, self.find) if self.partner is not None else ()

    def _describe_other(self, predicate: JoinPredicate) -> str:
        if is_along_reference(self.condition):
            return display_name(predicate.right, reference_path(self.condition, self.uri, self.path))
        right = predicate.right
        return f"<{self.uri}>" if right in (None, SUBJECT) else f"<{self.uri}>.{format_property(right)}"


def describe_missing_partner(
    condition: JoinCondition, resource: Resource, path: str, find: ResourceLookup
) -> Reason:
    """Describe a missing partner: `serverPort 7 is not = any DataProvider.serverPort with synthValue < its memory`."""
    first, *others = condition.oriented
    own = next(iter(locate_values(first.left, resource, find)), None)
    if own is None or is_along_reference(condition):
        return Reason(f"{display_name(first.left, path)} is missing", None, resource.uri)
    name = "" if first.right in (None, SUBJECT) else f".{format_property(first.right)}"
    quantifier = "no" if first.swapped else "any"
    other = f"{quantifier} {format_name(condition.sides[1].cls)}{name}"
    reason = _format_comparison(first, other, own, path, is_so=first.swapped)
    further_conditions = (
        _format_comparison(further, _describe_own_property(further.right), own, path).predicate
        for further in others
    )
    return replace(reason, predicate=" with ".join((reason.predicate, *further_conditions)))


def _describe_own_property(name: str | None) -> str:
    return "itself" if name in (None, SUBJECT) else f"its {format_property(name)}"


def _format_comparison(
    predicate: JoinPredicate, other: str, located: LocatedValue, path: str, is_so: bool = True
) -> Reason:
    """Format a comparison with the registered side on the left; `contains` has no mirrored operator."""
    value, uri = located
    own_name, operator_text = display_name(predicate.left, path), describe_join(predicate.operator, is_so)
    if predicate.swapped:
        return Reason(f"{other} {operator_text} {own_name}", None, uri)
    return Reason(
        f"{own_name} {operator_text} {other}",
        None if predicate.left in (None, SUBJECT) else to_scalar(value),
        uri,
    )


def describe_join(operator: Operator, is_so: bool) -> str:
    if is_so:
        return operator.value
    return "does not contain" if operator is Operator.CONTAINS else f"is not {operator.value}"


def _predicate_holds(predicate: JoinPredicate, own: Value, other: Value) -> bool:
    left, right = (other, own) if predicate.swapped else (own, other)
    return comparison_holds(left, predicate.operator, right)


def compared_values(name: str | None, resource: Resource, find: ResourceLookup) -> tuple[Value, ...]:
    return tuple(value for value, _ in locate_values(name, resource, find))


def locate_values(name: str | None, resource: Resource, find: ResourceLookup) -> tuple[LocatedValue, ...]:
    """Return the compared values of a resource with their resources. Paths pass through resources of any class."""
    if name is None or name == SUBJECT:
        return ((Ref(resource.uri), resource.uri),)
    first, _, remaining = name.partition(".")
    values = resource.values.get(first, ())
    if not remaining:
        return tuple((value, resource.uri) for value in values)
    targets = [find(value.uri) for value in values if isinstance(value, Ref)]
    return tuple(
        located
        for target in targets
        if target is not None
        for located in locate_values(remaining, target, find)
    )


def display_name(name: str | None, path: str) -> str:
    return (path[:-1] or "it") if name in (None, SUBJECT) else f"{path}{format_property(name)}"


def to_scalar(value: Value) -> Scalar:
    return value.uri if isinstance(value, Ref) else value


MAX_REASONS = 20
"""The maximal number of reasons in a notification."""


@dataclass(frozen=True, slots=True)
class RuleTree:
    """An atomic rule with its inputs. In a join, `registered` is the registered input and `other` its partner's.

    `group` is the number of the rule group.
    """

    number: int
    condition: TriggeringRule | JoinCondition
    registered: RuleTree | None = None
    other: RuleTree | None = None
    group: int = 0


@dataclass(slots=True)
class ExplanationContext:
    """Data loaded for explanations: resources (None if missing), and partners by number of the join and URI.

    Partners are only needed for joins that are not along one reference. Missing data is recorded as requested.
    """

    schema: Schema
    resources: dict[str, Resource | None] = field(default_factory=dict)
    partners: dict[tuple[int, str], str | None] = field(default_factory=dict)
    unknown_resources: set[str] = field(default_factory=set)
    unknown_partners: set[tuple[int, str]] = field(default_factory=set)

    def find(self, uri: str) -> Resource | None:
        if uri not in self.resources:
            self.unknown_resources.add(uri)
        return self.resources.get(uri)

    def find_partner(self, tree: RuleTree, uri: str) -> str | None:
        if (tree.number, uri) not in self.partners:
            self.unknown_partners.add((tree.number, uri))
        return self.partners.get((tree.number, uri))


def request_facts(tree: RuleTree, uri: str, context: ExplanationContext) -> None:
    """Request everything needed to explain a rule; dependent resources are requested in the next round."""
    resource = context.find(uri)
    if tree.registered is None or tree.other is None:
        return
    request_facts(tree.registered, uri, context)
    other = _find_other(tree, resource, context) if resource is not None else None
    if resource is None or other is None:
        return
    request_facts(tree.other, other, context)
    assert isinstance(tree.condition, JoinCondition)
    JoinPair(tree.condition, resource, other, context.find(other), "", context.find).request_values()


def explain_match(tree: RuleTree, uri: str, context: ExplanationContext) -> list[Reason]:
    """Return the comparisons that hold, or the class if there are none."""
    reasons = list(dict.fromkeys(_prove_match(tree, uri, "", context) or ()))
    return ([each for each in reasons if not each.predicate.startswith(_CLASS)] or reasons[:1])[:MAX_REASONS]


def explain_mismatch(tree: RuleTree, uri: str, context: ExplanationContext) -> list[Reason]:
    """Return the comparisons that do not hold, with current values."""
    if context.find(uri) is None:
        return [Reason("removed", None, uri)]
    return list(dict.fromkeys(_list_missing(tree, uri, "", context)))[:MAX_REASONS]


_CLASS = "is a "


def _find_other(tree: RuleTree, resource: Resource, context: ExplanationContext) -> str | None:
    """Return the join partner, or if there is none, a possible one.

    Of several targets, the actual partner is requested. Trying all of them, and all of their targets along a path,
    would enumerate all paths of a graph.
    """
    assert isinstance(tree.condition, JoinCondition)
    if not is_along_reference(tree.condition):
        return context.find_partner(tree, resource.uri)
    name = tree.condition.sides[0].property
    if name in (None, SUBJECT):
        return resource.uri
    targets = [value.uri for value in resource.values.get(name, ()) if isinstance(value, Ref)]
    partner = context.find_partner(tree, resource.uri) if len(targets) > 1 else None
    return partner or next(iter(targets), None)


def _prove_match(tree: RuleTree, uri: str, path: str, context: ExplanationContext) -> list[Reason] | None:
    """Return the reasons why a resource is a result; None if it is not."""
    resource = context.find(uri)
    if resource is None:
        return None
    if isinstance(tree.condition, TriggeringRule):
        return _explain_trigger(tree.condition, resource, path, context)
    assert tree.registered is not None and tree.other is not None
    own, other = _prove_match(tree.registered, uri, path, context), _find_other(tree, resource, context)
    if own is None or other is None:
        return None
    relations = JoinPair(
        tree.condition, resource, other, context.find(other), path, context.find
    ).list_relations()
    other_reasons = _prove_match(tree.other, other, reference_path(tree.condition, other, path), context)
    return None if relations is None or other_reasons is None else [*own, *relations, *other_reasons]


def _explain_trigger(
    condition: TriggeringRule, resource: Resource, path: str, context: ExplanationContext
) -> list[Reason] | None:
    if condition.cls not in context.schema.at_or_above(resource.cls):
        return None
    constant = _get_constant(condition)
    if condition.operator is None or constant is None:
        return [Reason(f"{_CLASS}{format_name(condition.cls)}", None, resource.uri)]
    for value in compared_values(condition.property, resource, context.find):
        if comparison_holds(value, condition.operator, constant):
            predicate = f"{display_name(condition.property, path)} {condition.operator.value} {display_value(constant)}"
            return [Reason(predicate, to_scalar(value), resource.uri)]
    return None


def _list_missing(tree: RuleTree, uri: str, path: str, context: ExplanationContext) -> list[Reason]:
    """Return the reasons why a resource is not a result; empty if it is."""
    resource = context.find(uri)
    if resource is None:
        return [Reason(f"{path[:-1]} has no target", None, uri)]
    if isinstance(tree.condition, TriggeringRule):
        return list(_explain_missing_trigger(tree.condition, resource, path, context))
    assert tree.registered is not None and tree.other is not None
    own = _list_missing(tree.registered, uri, path, context)
    other = _find_other(tree, resource, context)
    if other is None:
        return [*own, describe_missing_partner(tree.condition, resource, path, context.find)]
    mismatches = JoinPair(
        tree.condition, resource, other, context.find(other), path, context.find
    ).list_mismatches()
    return [
        *own,
        *mismatches,
        *_list_missing(tree.other, other, reference_path(tree.condition, other, path), context),
    ]


def _explain_missing_trigger(
    condition: TriggeringRule, resource: Resource, path: str, context: ExplanationContext
) -> Iterator[Reason]:
    constant, name = _get_constant(condition), display_name(condition.property, path)
    values = compared_values(condition.property, resource, context.find)
    if condition.cls not in context.schema.at_or_above(resource.cls):
        yield Reason(f"{path[:-1]} is not a {format_name(condition.cls)}".lstrip(), None, resource.uri)
    elif condition.operator is None or constant is None:
        return
    elif not values:
        yield Reason(f"{name} is missing", None, resource.uri)
    elif not any(comparison_holds(value, condition.operator, constant) for value in values):
        predicate = f"{name} {describe_join(condition.operator, is_so=False)} {display_value(constant)}"
        for value in values[:MAX_MISMATCHED_VALUES]:
            yield Reason(predicate, to_scalar(value), resource.uri)


MAX_MISMATCHED_VALUES = 3
"""Maximum number of reported values of a property that do not satisfy a comparison."""


def _get_constant(condition: TriggeringRule) -> Value | None:
    if condition.constant is None:
        return None
    return (
        Ref(str(condition.constant))
        if condition.is_resource or condition.property == SUBJECT
        else condition.constant
    )


def display_value(value: Value) -> str:
    return f"<{value.uri}>" if isinstance(value, Ref) else show(value)
