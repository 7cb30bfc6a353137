"""What a rule's result is, by definition: all that is faster is tested against this.

A resource of the registered variable's class is in the result if there are resources for all other variables so that
the condition holds. A comparison holds if some value at its left and some value at its right stand so to each other; of
a property that a resource does not have there is none, also for `!=`. References that lead to nothing, or to a resource
of another class than the schema says, lead nowhere; but where they are compared themselves, they are what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from tidings.languages.rules_tree import Both, Compares, Comparison, Condition, Constant, Path, Rule
from tidings.metadata.literals import instant_text
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Property, Schema
from tidings.values import Kind, parse_instant

_OPERATORS: Mapping[Compares, Callable[[Any, Any], bool]] = {
    Compares.EQUAL: eq,
    Compares.UNEQUAL: ne,
    Compares.LESS: lt,
    Compares.AT_MOST: le,
    Compares.GREATER: gt,
    Compares.AT_LEAST: ge,
    Compares.CONTAINS: lambda left, right: str(right) in str(left),
}


def results(
    rule: Rule, resources: Iterable[Resource], schema: Schema, rules: Mapping[str, Rule] | None = None
) -> set[str]:
    """The URIs of what a rule registers among resources. `rules` are those that it may search by name."""
    return Asking({each.uri: each for each in resources}, schema, rules or {}).results(rule)


def holds(left: Value, compares: Compares, right: Value) -> bool:
    """Whether two values stand so to each other. Values of two kinds never do; instants are texts of one form."""
    return _kind(left) is _kind(right) and _OPERATORS[compares](left, right)


def _kind(value: Value) -> type:
    return float if type(value) is int else type(value)


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions about resources. Rules that are searched by name are evaluated, too."""

    resources: Mapping[str, Resource]
    schema: Schema
    rules: Mapping[str, Rule]

    def results(self, rule: Rule) -> set[str]:
        found = {each.variable: self.extension(each.extension) for each in rule.searched}
        others = [each.variable for each in rule.searched if each.variable != rule.register]
        return {
            one.uri
            for one in found[rule.register]
            if any(
                rule.where is None or self.true(rule.where, bound)
                for bound in bindings_of({rule.register: one}, others, found)
            )
        }

    def extension(self, name: str) -> list[Resource]:
        if name in self.schema.classes:
            return [each for each in self.resources.values() if name in self.schema.at_or_above(each.cls)]
        return [self.resources[uri] for uri in sorted(self.results(self.rules[name]))]

    def true(self, condition: Condition, bound: Mapping[str, Resource]) -> bool:
        if isinstance(condition, Comparison):
            return self.compared(condition, bound)
        every = (self.true(part, bound) for part in condition.parts)
        return all(every) if isinstance(condition, Both) else any(every)

    def compared(self, comparison: Comparison, bound: Mapping[str, Resource]) -> bool:
        assert isinstance(comparison.left, Path), "the parser puts constants to the right"
        lefts = list(self.values(comparison.left, bound))
        if isinstance(comparison.right, Path):
            rights = list(self.values(comparison.right, bound))
        else:
            rights = [self.constant(comparison.right, comparison.left, bound)]
        return any(holds(left, comparison.compares, right) for left in lefts for right in rights)

    def values(self, path: Path, bound: Mapping[str, Resource]) -> Iterator[Value]:
        """What stands at the end of a path: any of it will do."""
        found: list[Value] = [Ref(bound[path.variable].uri)]
        leads_to: str | None = bound[path.variable].cls
        for step in path.steps:
            there = list(self.followed(found, leads_to))
            found = [value for each in there for value in each.values.get(step.property, ())]
            leads_to = self.property(leads_to, step.property).leads_to
        return iter(found)

    def followed(self, references: Iterable[Value], cls: str | None) -> Iterator[Resource]:
        for each in references:
            resource = self.resources.get(each.uri) if isinstance(each, Ref) else None
            if resource is not None and cls in self.schema.at_or_above(resource.cls):
                yield resource

    def property(self, cls: str | None, name: str) -> Property:
        found = self.schema.property_of(cls, name) if cls is not None else None
        assert found is not None, "rules are checked before"
        return found

    def constant(self, constant: Constant, path: Path, bound: Mapping[str, Resource]) -> Value:
        """A constant as what it is compared with: a string may be a resource, or an instant."""
        cls: str | None = bound[path.variable].cls
        kind = None
        for step in path.steps:
            found = self.property(cls, step.property)
            cls, kind = found.leads_to, found.kind
        if kind is None:
            return Ref(str(constant.value))
        instant = parse_instant(str(constant.value)) if kind is Kind.INSTANT else None
        text = instant_text(instant) if instant else None
        return constant.value if text is None else text


def bindings_of(
    bound: Mapping[str, Resource], others: list[str], found: Mapping[str, list[Resource]]
) -> Iterator[Mapping[str, Resource]]:
    """All ways to choose resources for the other variables."""
    for chosen in product(*(found[variable] for variable in others)):
        yield {**bound, **dict(zip(others, chosen, strict=True))}
