"""What a rule's result is, by definition: all that is faster is tested against this.

A resource of the registered variable's class is in the result if there are resources for all other variables so that
the condition holds. A comparison holds if some value at its left and some value at its right stand so to each other; of
a property that a resource does not have there is none, also for `!=`. References that lead to nothing, or to a resource
of another class than the schema says, lead nowhere; but where they are compared themselves, they are what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cmp_to_key, partial
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from tidings.metadata.queries.answers import (
    Cell,
    QueryAnswer,
    column_names,
    evaluate_cell,
    selected_variables,
)
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.rules.atomic import AtomicRule, JoinPredicate, JoinRule, TriggeringRule
from tidings.metadata.rules.tree import And, Comparison, Condition, Constant, Operator, Path, Query, Rule
from tidings.metadata.schema.literals import format_instant
from tidings.metadata.schema.model import Property, Schema
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
    """The URIs of what a rule registers among resources. `rules` are those that it may search by name."""
    return Evaluator({each.uri: each for each in resources}, schema, rules or {}).results(rule)


def comparison_holds(left: Value, compares: Operator, right: Value) -> bool:
    """Whether two values stand so to each other. Values of two kinds never do; instants are texts of one form."""
    return _kind(left) is _kind(right) and _OPERATORS[compares](left, right)


def _kind(value: Value) -> type:
    return float if type(value) is int else type(value)


@dataclass(frozen=True, slots=True)
class Evaluator:
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
                for bound in enumerate_bindings({rule.register: one}, others, found)
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
        return all(every) if isinstance(condition, And) else any(every)

    def compared(self, comparison: Comparison, bound: Mapping[str, Resource]) -> bool:
        assert isinstance(comparison.left, Path), "the parser puts constants to the right"
        lefts = list(self.values(comparison.left, bound))
        if isinstance(comparison.right, Path):
            rights = list(self.values(comparison.right, bound))
        else:
            rights = [self.constant(comparison.right, comparison.left, bound)]
        return any(comparison_holds(left, comparison.compares, right) for left in lefts for right in rights)

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
        text = format_instant(instant) if instant else None
        return constant.value if text is None else text


def enumerate_bindings(
    bound: Mapping[str, Resource], others: list[str], found: Mapping[str, list[Resource]]
) -> Iterator[Mapping[str, Resource]]:
    """All ways to choose resources for the other variables."""
    for chosen in product(*(found[variable] for variable in others)):
        yield {**bound, **dict(zip(others, chosen, strict=True))}


# Atomic rules evaluated without any cleverness: what the filter must agree with, and what it is tested against.


def evaluate_atomic_rule(atomic: AtomicRule, resources: Iterable[Resource], schema: Schema) -> set[str]:
    """The URIs of what an atomic rule registers among resources."""
    return _results(atomic, {each.uri: each for each in resources}, schema)


def _results(atomic: AtomicRule, resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    if isinstance(atomic, JoinRule):
        return _joined(atomic, resources, schema)
    return {
        each.uri
        for each in resources.values()
        if atomic.cls in schema.at_or_above(each.cls) and _satisfies(each, atomic)
    }


def _satisfies(resource: Resource, rule: TriggeringRule) -> bool:
    if rule.compares is None or rule.constant is None:
        return True
    constant: Value = Ref(str(rule.constant)) if rule.is_resource else rule.constant
    values = [atom.value for atom in resource.atoms() if atom.property == rule.property]
    return any(comparison_holds(value, rule.compares, constant) for value in values)


def _joined(rule: JoinRule, resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    meeting = rule.meeting
    lefts = [resources[uri] for uri in _results(rule.left, resources, schema)]
    rights = [resources[uri] for uri in _results(rule.right, resources, schema)]
    return {
        (left if meeting.registers_left else right).uri
        for left in lefts
        for right in rights
        if all(_meet(left, each, right, resources) for each in meeting.predicates)
    }


def _meet(left: Resource, asked: JoinPredicate, right: Resource, resources: Mapping[str, Resource]) -> bool:
    lefts, rights = _values(left, asked.left, resources), _values(right, asked.right, resources)
    pairs = ((one, other) for one in lefts for other in rights)
    if asked.turned:
        return any(comparison_holds(other, asked.compares, one) for one, other in pairs)
    return any(comparison_holds(one, asked.compares, other) for one, other in pairs)


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


# What a query answers, by definition: whoever is faster is tested against this.
#
# Of all ways to choose resources for the variables, those count with which the condition holds. What they choose for
# the variables that are shown is a row, once: the variable that is asked for, and others that something is selected
# of. Rows are ordered by values; those without one come last, whichever way the order goes, and ties are ordered by
# URIs.
#
# `search Rule x` stands for what the rule has as its results, not for what its text would find here: a repository has
# not all that the provider has seen.


QueryBinding = dict[str, Resource]


def evaluate_query(
    query: Query,
    resources: Iterable[Resource],
    schema: Schema,
    members: Mapping[str, Collection[str]] | None = None,
) -> QueryAnswer:
    """The answer among resources. `members` are the results of rules that may be searched by name."""
    return _Asked({each.uri: each for each in resources}, schema, {}, members or {}).answer(query)


@dataclass(frozen=True, slots=True)
class _Asked(Evaluator):
    members: Mapping[str, Collection[str]]

    def extension(self, name: str) -> list[Resource]:
        if name in self.schema.classes:
            return Evaluator.extension(self, name)
        return [self.resources[uri] for uri in self.members[name] if uri in self.resources]

    def answer(self, query: Query) -> QueryAnswer:
        before: Callable[[QueryBinding, QueryBinding], int] = partial(self.compare, query)
        rows = sorted(self.rows(query), key=cmp_to_key(before))
        kept = rows[: query.limit]
        if not query.select:
            return QueryAnswer(resources=tuple(row[query.of] for row in kept))
        cells = (tuple(self.cell(path, row) for path in query.select) for row in kept)
        return QueryAnswer(column_names(query), tuple(cells))

    def rows(self, query: Query) -> list[QueryBinding]:
        variables = [each.variable for each in query.searched]
        found: dict[tuple[str, ...], QueryBinding] = {}
        for chosen in product(*(self.extension(each.extension) for each in query.searched)):
            bound = dict(zip(variables, chosen, strict=True))
            if query.where is None or self.true(query.where, bound):
                row = {variable: bound[variable] for variable in selected_variables(query)}
                found[tuple(each.uri for each in row.values())] = row
        return list(found.values())

    def cell(self, path: Path, row: QueryBinding) -> Cell:
        return evaluate_cell(path, self.values(path, row))

    def compare(self, query: Query, one: QueryBinding, other: QueryBinding) -> int:
        """Which of two rows comes first: -1 for the first one."""
        for path, falls in query.order:
            left, right = self.cell(path, one), self.cell(path, other)
            if (left is None) != (right is None):
                return 1 if left is None else -1
            if left != right:
                return -_compared(left, right) if falls else _compared(left, right)
        return _compared([each.uri for each in one.values()], [each.uri for each in other.values()])


def _compared(left: Any, right: Any) -> int:
    return -1 if left < right else int(left > right)
