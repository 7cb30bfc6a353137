"""Atomic rules evaluated without any cleverness: what the filter must agree with, and what it is tested against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.metadata.atomic import Atomic, Join, Predicate, Triggering
from tidings.metadata.definition import holds
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Schema


def atomic_results(atomic: Atomic, resources: Iterable[Resource], schema: Schema) -> set[str]:
    """The URIs of what an atomic rule registers among resources."""
    return _results(atomic, {each.uri: each for each in resources}, schema)


def _results(atomic: Atomic, resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    if isinstance(atomic, Join):
        return _joined(atomic, resources, schema)
    return {
        each.uri
        for each in resources.values()
        if atomic.cls in schema.at_or_above(each.cls) and _satisfies(each, atomic)
    }


def _satisfies(resource: Resource, rule: Triggering) -> bool:
    if rule.compares is None or rule.constant is None:
        return True
    constant: Value = Ref(str(rule.constant)) if rule.is_resource else rule.constant
    values = [atom.value for atom in resource.atoms() if atom.property == rule.property]
    return any(holds(value, rule.compares, constant) for value in values)


def _joined(rule: Join, resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    meeting = rule.meeting
    lefts = [resources[uri] for uri in _results(rule.left, resources, schema)]
    rights = [resources[uri] for uri in _results(rule.right, resources, schema)]
    return {
        (left if meeting.registers_left else right).uri
        for left in lefts
        for right in rights
        if all(_meet(left, each, right, resources) for each in meeting.predicates)
    }


def _meet(left: Resource, asked: Predicate, right: Resource, resources: Mapping[str, Resource]) -> bool:
    lefts, rights = _values(left, asked.left, resources), _values(right, asked.right, resources)
    pairs = ((one, other) for one in lefts for other in rights)
    if asked.turned:
        return any(holds(other, asked.compares, one) for one, other in pairs)
    return any(holds(one, asked.compares, other) for one, other in pairs)


def _values(resource: Resource, property: str | None, resources: Mapping[str, Resource]) -> list[Value]:
    """What is compared of a resource; a path leads through whatever there is."""
    if property is None:
        return [Ref(resource.uri)]
    *before, last = property.split(".")
    there = [resource]
    for name in before:
        led_to = (
            value.uri for each in there for value in each.values.get(name, ()) if isinstance(value, Ref)
        )
        there = [resources[uri] for uri in led_to if uri in resources]
    return [value for each in there for value in each.values.get(last, ())]
