"""Explanation of results: why a resource is in the results of a rule, or no longer is, by comparisons and values.

    large: search CycleProvider c register c where c.serverInformation.memory > 64

    entered     serverInformation.memory 92 > 64            at doc.rdf#info
    left        serverInformation.memory 32 is not > 64     at doc.rdf#info

Rules are explained by their atomic rules. Partners along references are shown as a path, others by their URI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidings.metadata.filter.join_explanation import (
    JoinPair,
    compared_values,
    describe_join,
    describe_missing_partner,
    display_name,
    is_along_reference,
    orient_sides,
    reference_path,
    to_scalar,
)
from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.metadata.rules.atomic import JoinCondition, TriggeringRule
from tidings.metadata.rules.semantics import comparison_holds
from tidings.metadata.rules.syntax import format_name
from tidings.metadata.schema.model import Schema
from tidings.model import Reason
from tidings.values import show

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
    name = orient_sides(tree.asks)[0].property
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
            predicate = f"{display_name(asks.property, path)} {asks.operator.value} {_shown(constant)}"
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
        predicate = f"{name} {describe_join(asks.operator, is_so=False)} {_shown(constant)}"
        for value in found[:_VALUES]:
            yield Reason(predicate, to_scalar(value), resource.uri)


_VALUES = 3
"""How many values of a property are reported that do not satisfy a comparison."""


def _constant(asks: TriggeringRule) -> Value | None:
    if asks.constant is None:
        return None
    return Ref(str(asks.constant)) if asks.is_resource or asks.property == SUBJECT else asks.constant


def _shown(value: Value) -> str:
    return f"<{value.uri}>" if isinstance(value, Ref) else show(value)
