"""Reference semantics of rules and queries: naive evaluation, against which faster implementations are tested.

A resource of the registered variable's class is in the result if the other variables can be bound to resources so that
the condition holds. A comparison holds if it holds for some value on its left and some value on its right; a missing
property has no value, also for `!=`. Paths do not pass through references to a missing resource or to a resource of
another class than the schema says; a reference that is itself compared is the URI as written.
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
from tidings.metadata.rules.atomic import AtomicRule, JoinRule, TriggeringRule
from tidings.metadata.rules.normal_form import JoinPredicate
from tidings.metadata.rules.syntax import And, Comparison, Condition, Constant, Operator, Path, Query, Rule
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


# Naive evaluation of atomic rules.


def evaluate_atomic_rule(atomic: AtomicRule, resources: Iterable[Resource], schema: Schema) -> set[str]:
    """Return the URIs of the resources that an atomic rule registers."""
    return _evaluate(atomic, {each.uri: each for each in resources}, schema)


def _evaluate(atomic: AtomicRule, resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    if isinstance(atomic, JoinRule):
        return _evaluate_join(atomic, resources, schema)
    return {
        each.uri
        for each in resources.values()
        if atomic.cls in schema.at_or_above(each.cls) and _satisfies(each, atomic)
    }


def _satisfies(resource: Resource, rule: TriggeringRule) -> bool:
    if rule.operator is None or rule.constant is None:
        return True
    constant: Value = Ref(str(rule.constant)) if rule.is_resource else rule.constant
    values = [atom.value for atom in resource.atoms() if atom.property == rule.property]
    return any(comparison_holds(value, rule.operator, constant) for value in values)


def _evaluate_join(rule: JoinRule, resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    condition = rule.condition
    lefts = [resources[uri] for uri in _evaluate(rule.left, resources, schema)]
    rights = [resources[uri] for uri in _evaluate(rule.right, resources, schema)]
    return {
        (left if condition.registers_left else right).uri
        for left in lefts
        for right in rights
        if all(_predicate_holds(left, each, right, resources) for each in condition.predicates)
    }


def _predicate_holds(
    left: Resource, predicate: JoinPredicate, right: Resource, resources: Mapping[str, Resource]
) -> bool:
    lefts, rights = _values(left, predicate.left, resources), _values(right, predicate.right, resources)
    if predicate.swapped:
        lefts, rights = rights, lefts
    return any(comparison_holds(one, predicate.operator, other) for one in lefts for other in rights)


def _values(resource: Resource, property: str | None, resources: Mapping[str, Resource]) -> list[Value]:
    """Return the compared values of a resource. Paths pass through resources of any class."""
    if property is None:
        return [Ref(resource.uri)]
    *before, last = property.split(".")
    reached = [resource]
    for name in before:
        targets = (
            value.uri for each in reached for value in each.values.get(name, ()) if isinstance(value, Ref)
        )
        reached = [resources[uri] for uri in targets if uri in resources]
    return [value for each in reached for value in each.values.get(last, ())]


# Naive evaluation of queries.
#
# The bindings for which the condition holds, projected to the registered and the selected variables, are the rows,
# without duplicates. Rows are ordered by values; missing values come last in either direction, and ties are ordered by
# URI.
#
# `search Rule x` ranges over the stored results of the rule. Its text could find fewer in a repository, which does not
# have everything that the provider has.


QueryBinding = dict[str, Resource]


def evaluate_query(
    query: Query,
    resources: Iterable[Resource],
    schema: Schema,
    members: Mapping[str, Collection[str]] | None = None,
) -> QueryAnswer:
    """Answer a query over resources. `members` are the results of rules that may be searched by name."""
    return _QueryEvaluator({each.uri: each for each in resources}, schema, {}, members or {}).answer(query)


@dataclass(frozen=True, slots=True)
class _QueryEvaluator(Evaluator):
    members: Mapping[str, Collection[str]]

    def extension(self, name: str) -> list[Resource]:
        if name in self.schema.classes:
            return Evaluator.extension(self, name)
        return [self.resources[uri] for uri in self.members[name] if uri in self.resources]

    def answer(self, query: Query) -> QueryAnswer:
        before: Callable[[QueryBinding, QueryBinding], int] = partial(self.compare, query)
        rows = sorted(self.rows(query), key=cmp_to_key(before))
        limited = rows[: query.limit]
        if not query.select:
            return QueryAnswer(resources=tuple(row[query.of] for row in limited))
        cells = (tuple(self.cell(path, row) for path in query.select) for row in limited)
        return QueryAnswer(column_names(query), tuple(cells))

    def rows(self, query: Query) -> list[QueryBinding]:
        variables = [each.variable for each in query.searched]
        rows: dict[tuple[str, ...], QueryBinding] = {}
        for chosen in product(*(self.extension(each.extension) for each in query.searched)):
            bound = dict(zip(variables, chosen, strict=True))
            if query.where is None or self.holds(query.where, bound):
                row = {variable: bound[variable] for variable in selected_variables(query)}
                rows[tuple(each.uri for each in row.values())] = row
        return list(rows.values())

    def cell(self, path: Path, row: QueryBinding) -> Cell:
        return evaluate_cell(path, self.values(path, row))

    def compare(self, query: Query, one: QueryBinding, other: QueryBinding) -> int:
        """Compare two rows: -1 if the first one comes first."""
        for path, is_descending in query.order:
            left, right = self.cell(path, one), self.cell(path, other)
            if (left is None) != (right is None):
                return 1 if left is None else -1
            if left != right:
                return -_compare(left, right) if is_descending else _compare(left, right)
        return _compare([each.uri for each in one.values()], [each.uri for each in other.values()])


def _compare(left: Any, right: Any) -> int:
    return -1 if left < right else int(left > right)
