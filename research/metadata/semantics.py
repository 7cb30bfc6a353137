"""Naive evaluation of atomic rules and of queries, against which the product's implementations are tested.

`tidings.metadata.rules.semantics` defines the meaning of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key, partial
from itertools import product
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
from tidings.metadata.rules.semantics import Evaluator, comparison_holds
from tidings.metadata.rules.syntax import Path, Query, Rule
from tidings.metadata.rules.validation import check_rule, check_rule_name, order_by_dependency
from tidings.metadata.schema.model import Schema


def infer_types(rules: Mapping[str, Rule], schema: Schema) -> dict[str, str]:
    """Validate named rules in dependency order and return the class that each registers."""
    types: dict[str, str] = {}
    for name in order_by_dependency(rules):
        check_rule_name(name, schema)
        types[name] = check_rule(rules[name], schema, types)
    return types


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
