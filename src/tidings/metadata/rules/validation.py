"""Whether a rule makes sense: its names are those of the schema, and what it compares can be compared.

Each problem underlines its place in the text. What is checked here is not asked again: taking rules apart relies on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidings.core.source_text import Span
from tidings.errors import Place
from tidings.metadata.queries.answers import selected_variables
from tidings.metadata.rules import semantic_errors as problems
from tidings.metadata.rules.normal_form import class_of, normalize_rule
from tidings.metadata.rules.rule_parser import RULE_LIMITS
from tidings.metadata.rules.semantic_errors import ValueKind
from tidings.metadata.rules.syntax import format_rule
from tidings.metadata.rules.syntax_errors import unknown_registered, unknown_variable
from tidings.metadata.rules.tree import And, Comparison, Condition, Constant, Operator, Path, Query, Rule
from tidings.metadata.rules.variable_graph import check_connected
from tidings.metadata.schema.literals import format_instant
from tidings.metadata.schema.model import Property, Schema
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
    """The class of what a rule registers, if the rule makes sense. `types` are the classes of the rules with names."""
    checking = _Checking(rule, schema, types, format_rule(rule) if text is None else text)
    cls = checking.whole()
    if _is_plain(rule):
        return cls
    for normal in (every := normalize_rule(rule, schema, types, alternatives)):
        check_connected(normal, rule, len(every) > 1, checking.place)
    return cls


def _is_plain(rule: Rule) -> bool:
    """Whether nothing has to connect, as in most rules: one variable, compared with constants, and no `or`."""
    where = rule.where
    parts = where.parts if isinstance(where, And) else () if where is None else (where,)
    plain = (isinstance(each, Comparison) and isinstance(each.right, Constant) for each in parts)
    return len(rule.searched) == 1 and all(plain)


def check_query(query: Query, schema: Schema, types: Mapping[str, str], text: str | None = None) -> str:
    """The same for a query: what it is ordered by is shown, and has one value."""
    written = format_rule(query) if text is None else text
    cls = check_rule(query.rule, schema, types, written)
    checking = _Checking(query.rule, schema, types, written)
    for path in (*query.select, *(path for path, _ in query.order)):
        checking.reached(path)
    for path, _ in query.order:
        if path.variable not in (variables := selected_variables(query)):
            raise problems.order_not_selected(path.variable, variables, checking.place(path.span))
        several = next((step for step in path.steps if step.any), None)
        if several is not None:
            raise problems.multivalued_order(several, checking.place(several.span))
    return cls


def check_rule_name(name: str, schema: Schema) -> None:
    """Refuse a name for a rule that would hide a class, or be hidden by it."""
    if name in schema.classes:
        raise problems.name_of_class(name)


def infer_types(rules: Mapping[str, Rule], schema: Schema) -> dict[str, str]:
    """The class of what each of the rules with names registers, in an order in which each knows those it searches."""
    types: dict[str, str] = {}
    for name in order_by_dependency(rules):
        check_rule_name(name, schema)
        types[name] = check_rule(rules[name], schema, types)
    return types


def order_by_dependency(rules: Mapping[str, Rule]) -> list[str]:
    """The names of rules, those that are searched before those that search them. A loop: chains may be long."""
    done: dict[str, None] = {}
    for first in rules:
        open_ = {first: _searched_in(rules[first], rules)} if first not in done else {}
        while open_:
            name, left = next(reversed(open_.items()))
            following = next((each for each in left if each not in done), None)
            if following is None:
                done[name] = None
                del open_[name]
            elif following in open_:
                raise problems.cyclic_rules([*list(open_)[list(open_).index(following) :], following])
            else:
                open_[following] = _searched_in(rules[following], rules)
    return list(done)


def _searched_in(rule: Rule, rules: Mapping[str, Rule]) -> Iterator[str]:
    return iter([each.extension for each in rule.searched if each.extension in rules])


def list_comparisons(condition: Condition | None) -> Iterator[Comparison]:
    """The predicates of a condition, in the order of the text."""
    if isinstance(condition, Comparison):
        yield condition
    elif condition is not None:
        for part in condition.parts:
            yield from list_comparisons(part)


class _Checking:
    """One rule with its text."""

    def __init__(self, rule: Rule, schema: Schema, types: Mapping[str, str], text: str) -> None:
        self.rule, self.schema, self.text = rule, schema, text
        self.classes: dict[str, str] = {}
        for each in rule.searched:
            if each.extension not in schema.classes and each.extension not in types:
                place = self.place(each.span, len(each.extension))
                raise problems.unknown_extension(each.extension, schema, types, place)
            self.classes[each.variable] = class_of(each.extension, schema, types)

    def place(self, span: Span, length: int | None = None) -> Place:
        return Place.at(self.text, span.start, span.end if length is None else span.start + length)

    def whole(self) -> str:
        if self.rule.register not in self.classes:
            raise unknown_registered(self.rule.register, self.classes, None)
        for comparison in list_comparisons(self.rule.where):
            self.comparison(comparison)
        return self.classes[self.rule.register]

    def comparison(self, comparison: Comparison) -> None:
        assert isinstance(comparison.left, Path), "the parser puts constants to the right"
        left, leads_to = self.reached(comparison.left)
        if isinstance(comparison.right, Constant):
            self.constant(left, comparison, comparison.right)
            return
        right, also_to = self.reached(comparison.right)
        self.operator(left, right, comparison)
        if leads_to and also_to and not self.schema.at_or_below(leads_to) & self.schema.at_or_below(also_to):
            raise problems.disjoint_classes(leads_to, also_to, self.place(comparison.span))

    def operator(self, left: ValueKind, right: ValueKind, comparison: Comparison) -> None:
        place = self.place(comparison.span)
        if left is not right:
            is_written = isinstance(comparison.right, Constant)
            raise problems.incompatible_kinds(left, right, is_written, place)
        if comparison.compares not in _OPERATORS[left]:
            raise problems.unsupported_operator(comparison.compares, left, _OPERATORS[left], place)

    def constant(self, left: ValueKind, comparison: Comparison, constant: Constant) -> None:
        """A string may stand for a resource, or for an instant."""
        kind = None if constant.is_resource else kind_of(constant.value)
        read = left if kind is Kind.STRING and left in (None, Kind.INSTANT) else kind
        self.operator(left, read, comparison)
        if left is Kind.INSTANT:
            instant = parse_instant(str(constant.value))
            if instant is None or format_instant(instant) is None:
                raise problems.constant_not_instant(self.place(constant.span))
        if comparison.compares is Operator.CONTAINS and not constant.value:
            raise problems.contains_empty_string(self.place(constant.span))

    def reached(self, path: Path) -> tuple[ValueKind, str | None]:
        """What stands at the end of a path: values of a kind, or resources of a class."""
        if path.variable not in self.classes:
            place = self.place(path.span, len(path.variable))
            raise unknown_variable(path.variable, self.classes, not path.steps, place)
        sort: ValueKind = None
        cls: str | None = self.classes[path.variable]
        for at, step in enumerate(path.steps):
            if cls is None:
                assert sort is not None
                raise problems.path_through_literal(path.steps[at - 1], sort, step, self.place(step.span))
            found = self.property(path, at, cls)
            sort, cls = found.kind, found.leads_to
        return sort, cls

    def property(self, path: Path, at: int, cls: str) -> Property:
        step = path.steps[at]
        found = self.schema.property_of(cls, step.property)
        if found is None:
            raise problems.unknown_property(step, cls, self.schema, self.place(step.span))
        if found.several != step.any:
            refuse = problems.missing_any if found.several else problems.superfluous_any
            raise refuse(step, self.place(step.span))
        return found
