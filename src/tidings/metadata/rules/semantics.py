"""Reference semantics of rules: naive evaluation, against which faster implementations are tested.

A resource of the registered variable's class is in the result if the other variables can be bound to resources so that
the condition holds. A comparison holds if it holds for some value on its left and some value on its right; a missing
property has no value, also for `!=`. Paths do not pass through references to a missing resource or to a resource of
another class than the schema declares; a reference that is itself compared is the URI as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.rules.syntax import And, Comparison, Condition, Constant, Operator, Path, Rule
from tidings.metadata.schema.model import Property, Schema, format_instant
from tidings.values import Kind, parse_instant

_OPERATORS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: eq,
    Operator.UNEQUAL: ne,
    Operator.LESS: lt,
    Operator.AT_MOST: le,
    Operator.GREATER: gt,
    Operator.AT_LEAST: ge,
    Operator.CONTAINS: lambda left, right: str(right) in str(left),
}


def evaluate_rule(
    rule: Rule, resources: Iterable[Resource], schema: Schema, rules: Mapping[str, Rule] | None = None
) -> set[str]:
    """Return the URIs of the resources that a rule registers. `rules` are those that it may search by name."""
    return Evaluator({each.uri: each for each in resources}, schema, rules or {}).results(rule)


def comparison_holds(left: Value, operator: Operator, right: Value) -> bool:
    """Whether a comparison of two values holds. Values of different kinds never match; instants are canonical texts."""
    return _kind(left) is _kind(right) and _OPERATORS[operator](left, right)


def _kind(value: Value) -> type:
    return float if type(value) is int else type(value)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluation over a set of resources, including rules that are searched by name."""

    resources: Mapping[str, Resource]
    schema: Schema
    rules: Mapping[str, Rule]

    def results(self, rule: Rule) -> set[str]:
        extensions = {each.variable: self.extension(each.extension) for each in rule.searched}
        others = [each.variable for each in rule.searched if each.variable != rule.register]
        return {
            resource.uri
            for resource in extensions[rule.register]
            if any(
                rule.where is None or self.holds(rule.where, bound)
                for bound in enumerate_bindings({rule.register: resource}, others, extensions)
            )
        }

    def extension(self, name: str) -> list[Resource]:
        if name in self.schema.classes:
            return [each for each in self.resources.values() if name in self.schema.at_or_above(each.cls)]
        return [self.resources[uri] for uri in sorted(self.results(self.rules[name]))]

    def holds(self, condition: Condition, bound: Mapping[str, Resource]) -> bool:
        if isinstance(condition, Comparison):
            return self.comparison_holds(condition, bound)
        parts = (self.holds(part, bound) for part in condition.parts)
        return all(parts) if isinstance(condition, And) else any(parts)

    def comparison_holds(self, comparison: Comparison, bound: Mapping[str, Resource]) -> bool:
        assert isinstance(comparison.left, Path), "the parser puts constants to the right"
        lefts = list(self.values(comparison.left, bound))
        if isinstance(comparison.right, Path):
            rights = list(self.values(comparison.right, bound))
        else:
            rights = [self.constant(comparison.right, comparison.left, bound)]
        return any(comparison_holds(left, comparison.operator, right) for left in lefts for right in rights)

    def values(self, path: Path, bound: Mapping[str, Resource]) -> Iterator[Value]:
        """Return the values at the end of a path."""
        values: list[Value] = [Ref(bound[path.variable].uri)]
        leads_to: str | None = bound[path.variable].cls
        for step in path.steps:
            targets = list(self.follow(values, leads_to))
            values = [value for target in targets for value in target.values.get(step.property, ())]
            leads_to = self.property(leads_to, step.property).leads_to
        return iter(values)

    def follow(self, references: Iterable[Value], cls: str | None) -> Iterator[Resource]:
        for reference in references:
            resource = self.resources.get(reference.uri) if isinstance(reference, Ref) else None
            if resource is not None and cls in self.schema.at_or_above(resource.cls):
                yield resource

    def property(self, cls: str | None, name: str) -> Property:
        declared = self.schema.property_of(cls, name) if cls is not None else None
        assert declared is not None, "rules are validated before"
        return declared

    def constant(self, constant: Constant, path: Path, bound: Mapping[str, Resource]) -> Value:
        """Convert a constant to the kind of its path: a string may be a resource or an instant."""
        cls: str | None = bound[path.variable].cls
        kind = None
        for step in path.steps:
            declared = self.property(cls, step.property)
            cls, kind = declared.leads_to, declared.kind
        if kind is None:
            return Ref(str(constant.value))
        instant = parse_instant(str(constant.value)) if kind is Kind.INSTANT else None
        text = format_instant(instant) if instant else None
        return constant.value if text is None else text


def enumerate_bindings(
    bound: Mapping[str, Resource], others: list[str], extensions: Mapping[str, list[Resource]]
) -> Iterator[Mapping[str, Resource]]:
    """Yield all bindings of the other variables."""
    for chosen in product(*(extensions[variable] for variable in others)):
        yield {**bound, **dict(zip(others, chosen, strict=True))}
