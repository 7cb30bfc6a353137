"""Validation of rules and queries against the schema: names exist, and compared kinds match.

Errors underline their place in the text. Decomposition relies on these checks and does not repeat them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidings.core.source_text import Span
from tidings.errors import Place
from tidings.metadata.queries.answers import selected_variables
from tidings.metadata.rules import rule_errors as problems
from tidings.metadata.rules.normal_form import check_connected, class_of, normalize_rule
from tidings.metadata.rules.rule_errors import ValueKind, unknown_registered, unknown_variable
from tidings.metadata.rules.rule_parser import RULE_LIMITS
from tidings.metadata.rules.syntax import (
    And,
    Comparison,
    Condition,
    Constant,
    Operator,
    Path,
    Query,
    Rule,
    Step,
    format_rule,
)
from tidings.metadata.schema.model import Property, Schema, format_instant
from tidings.values import Kind, kind_of, parse_instant

_EQUALITY = (Operator.EQUAL, Operator.UNEQUAL)
_ORDERED = (*_EQUALITY, Operator.LESS, Operator.AT_MOST, Operator.GREATER, Operator.AT_LEAST)
_OPERATORS: dict[ValueKind, tuple[Operator, ...]] = {
    None: _EQUALITY,
    Kind.BOOLEAN: _EQUALITY,
    Kind.STRING: (*_EQUALITY, Operator.CONTAINS),
    Kind.NUMBER: _ORDERED,
    Kind.INSTANT: _ORDERED,
}


def check_rule(
    rule: Rule,
    schema: Schema,
    types: Mapping[str, str],
    text: str | None = None,
    alternatives: int = RULE_LIMITS.alternatives,
) -> str:
    """Validate a rule and return the class it registers. `types` are the classes of named rules."""
    validator = _Validator(rule, schema, types, format_rule(rule) if text is None else text)
    cls = validator.check()
    if _is_plain(rule):
        return cls
    for normal in (every := normalize_rule(rule, schema, types, alternatives)):
        check_connected(normal, rule, len(every) > 1, validator.place)
    return cls


def _is_plain(rule: Rule) -> bool:
    """Whether a rule, like most, has one variable that is compared with constants only, without `or`."""
    where = rule.where
    parts = where.parts if isinstance(where, And) else () if where is None else (where,)
    plain = (isinstance(each, Comparison) and isinstance(each.right, Constant) for each in parts)
    return len(rule.searched) == 1 and all(plain)


def check_query(query: Query, schema: Schema, types: Mapping[str, str], text: str | None = None) -> str:
    """Validate a query and return the class of its results. Paths to order by must be selected and single-valued."""
    written = format_rule(query) if text is None else text
    cls = check_rule(query.rule, schema, types, written)
    validator = _Validator(query.rule, schema, types, written)
    for path in (*query.select, *(path for path, _ in query.order)):
        validator.resolve_path(path)
    for path, _ in query.order:
        if path.variable not in (variables := selected_variables(query)):
            raise problems.order_not_selected(path.variable, variables, validator.place(path.span))
        several = next((step for step in path.steps if step.any), None)
        if several is not None:
            raise problems.multivalued_order(several, validator.place(several.span))
    return cls


def check_rule_name(name: str, schema: Schema) -> None:
    """Refuse a name for a rule that would hide a class, or be hidden by it."""
    if name in schema.classes:
        raise problems.name_of_class(name)


def order_by_dependency(rules: Mapping[str, Rule]) -> list[str]:
    """Sort the names of rules topologically, searched rules first. Not recursive: chains may be long."""
    done: dict[str, None] = {}
    for first in rules:
        stack = {first: _searched_rules(rules[first], rules)} if first not in done else {}
        while stack:
            name, remaining = next(reversed(stack.items()))
            following = next((each for each in remaining if each not in done), None)
            if following is None:
                done[name] = None
                del stack[name]
            elif following in stack:
                raise problems.cyclic_rules([*list(stack)[list(stack).index(following) :], following])
            else:
                stack[following] = _searched_rules(rules[following], rules)
    return list(done)


def _searched_rules(rule: Rule, rules: Mapping[str, Rule]) -> Iterator[str]:
    return iter([each.extension for each in rule.searched if each.extension in rules])


def list_comparisons(condition: Condition | None) -> Iterator[Comparison]:
    """Yield the comparisons of a condition in the order of the text."""
    if isinstance(condition, Comparison):
        yield condition
    elif condition is not None:
        for part in condition.parts:
            yield from list_comparisons(part)


class _Validator:
    """Validation of one rule; errors point into its text."""

    def __init__(self, rule: Rule, schema: Schema, types: Mapping[str, str], text: str) -> None:
        self.rule, self.schema, self.text = rule, schema, text
        self.classes: dict[str, str] = {}
        for variable in rule.searched:
            if variable.extension not in schema.classes and variable.extension not in types:
                place = self.place(variable.span, len(variable.extension))
                raise problems.unknown_extension(variable.extension, schema, types, place)
            self.classes[variable.variable] = class_of(variable.extension, schema, types)

    def place(self, span: Span, length: int | None = None) -> Place:
        return Place.at(self.text, span.start, span.end if length is None else span.start + length)

    def check(self) -> str:
        if self.rule.register not in self.classes:
            raise unknown_registered(self.rule.register, self.classes, None)
        for comparison in list_comparisons(self.rule.where):
            self.check_comparison(comparison)
        return self.classes[self.rule.register]

    def check_comparison(self, comparison: Comparison) -> None:
        assert isinstance(comparison.left, Path), "the parser puts constants to the right"
        left, left_class = self.resolve_path(comparison.left)
        if isinstance(comparison.right, Constant):
            self.check_constant(left, comparison, comparison.right)
            return
        right, right_class = self.resolve_path(comparison.right)
        self.check_operator(left, right, comparison)
        if not left_class or not right_class:
            return
        if not self.schema.at_or_below(left_class) & self.schema.at_or_below(right_class):
            raise problems.disjoint_classes(left_class, right_class, self.place(comparison.span))

    def check_operator(self, left: ValueKind, right: ValueKind, comparison: Comparison) -> None:
        place = self.place(comparison.span)
        if left is not right:
            is_written = isinstance(comparison.right, Constant)
            raise problems.incompatible_kinds(left, right, is_written, place)
        if comparison.operator not in _OPERATORS[left]:
            raise problems.unsupported_operator(comparison.operator, left, _OPERATORS[left], place)

    def check_constant(self, left: ValueKind, comparison: Comparison, constant: Constant) -> None:
        """Check a constant. A string may denote a resource or an instant."""
        written = None if constant.is_resource else kind_of(constant.value)
        kind = left if written is Kind.STRING and left in (None, Kind.INSTANT) else written
        self.check_operator(left, kind, comparison)
        if left is Kind.INSTANT:
            instant = parse_instant(str(constant.value))
            if instant is None or format_instant(instant) is None:
                raise problems.constant_not_instant(place=self.place(constant.span))
        if comparison.operator is Operator.CONTAINS and not constant.value:
            raise problems.contains_empty_string(place=self.place(constant.span))

    def resolve_path(self, path: Path) -> tuple[ValueKind, str | None]:
        """Return the kind of the values at the end of a path, or the class of the resources."""
        if path.variable not in self.classes:
            place = self.place(path.span, len(path.variable))
            raise unknown_variable(path.variable, self.classes, not path.steps, place)
        kind: ValueKind = None
        cls: str | None = self.classes[path.variable]
        for index, step in enumerate(path.steps):
            if cls is None:
                assert kind is not None
                raise problems.path_through_literal(path.steps[index - 1], kind, step, self.place(step.span))
            property = self.resolve_step(step, cls)
            kind, cls = property.kind, property.leads_to
        return kind, cls

    def resolve_step(self, step: Step, cls: str) -> Property:
        property = self.schema.property_of(cls, step.property)
        if property is None:
            raise problems.unknown_property(step, cls, self.schema, self.place(step.span))
        if property.several != step.any:
            error = problems.missing_any if property.several else problems.superfluous_any
            raise error(step, self.place(step.span))
        return property
