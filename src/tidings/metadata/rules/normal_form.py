"""Normal form of rules (section 3.3 of paper 001): without `or`, and with paths of at most one step.

    search CycleProvider c register c where c.serverInformation.memory > 64

    search CycleProvider c, ServerInformation s register c where c.serverInformation = s and s.memory > 64

A normal rule is a rule, too. Rules are validated before; only their size is checked here. Where the variables would
form a cycle, `break_cycles` restores longer paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tidings.core.source_text import Span
from tidings.metadata.rules import semantic_errors as problems
from tidings.metadata.rules.rule_parser import RULE_LIMITS
from tidings.metadata.rules.tree import (
    And,
    Comparison,
    Condition,
    Constant,
    Operator,
    Path,
    Rule,
    Step,
    Variable,
)
from tidings.metadata.rules.variable_graph import break_cycles
from tidings.metadata.schema.literals import format_instant
from tidings.metadata.schema.model import Schema
from tidings.values import Kind, parse_instant

Conjunction = tuple[Comparison, ...]


def normalize_rule(
    rule: Rule, schema: Schema, types: Mapping[str, str], limit: int = RULE_LIMITS.alternatives
) -> tuple[Rule, ...]:
    """Return the normal rules whose union is a rule. `types` are the classes of named rules."""
    count = 1 if rule.where is None else _count_alternatives(rule.where)
    if count > limit:
        raise problems.too_many_alternatives(count, limit)
    alternatives = ((),) if rule.where is None else _alternatives(rule.where)
    normal = (_Normalization(rule, schema, types).normalize(each) for each in alternatives)
    return tuple(dict.fromkeys(normal))


def _count_alternatives(condition: Condition) -> int:
    """Count alternatives without building them."""
    if isinstance(condition, Comparison):
        return 1
    counts = [_count_alternatives(part) for part in condition.parts]
    return prod(counts) if isinstance(condition, And) else sum(counts)


def _alternatives(condition: Condition) -> tuple[Conjunction, ...]:
    if isinstance(condition, Comparison):
        return ((condition,),)
    parts = [_alternatives(part) for part in condition.parts]
    if not isinstance(condition, And):
        return tuple(each for part in parts for each in part)
    product: tuple[Conjunction, ...] = ((),)
    for part in parts:
        product = tuple((*before, *each) for before in product for each in part)
    return product


def class_of(extension: str, schema: Schema, types: Mapping[str, str]) -> str:
    """Return the class of the resources that a variable ranges over."""
    return extension if extension in schema.classes else types[extension]


class _Normalization:
    """The normalization of one alternative of a rule."""

    def __init__(self, rule: Rule, schema: Schema, types: Mapping[str, str]) -> None:
        self.schema = schema
        self.register = rule.register
        self.searched = list(rule.searched)
        self.classes = {each.variable: class_of(each.extension, schema, types) for each in rule.searched}
        self.reached: dict[tuple[str, str], str] = {}
        self.predicates: list[Comparison] = []

    def normalize(self, comparisons: Conjunction) -> Rule:
        for each in comparisons:
            assert isinstance(each.left, Path), "the parser puts constants to the right"
            left = self.shorten(each.left)
            right = (
                self.shorten(each.right)
                if isinstance(each.right, Path)
                else self.convert_constant(each.right, left)
            )
            self.predicates.append(Comparison(left, each.operator, right, each.span))
        unique = tuple(dict.fromkeys(self.predicates))
        where = And(unique) if len(unique) > 1 else unique[0] if unique else None
        return break_cycles(Rule(tuple(self.searched), self.register, where), self.schema, self.classes)

    def shorten(self, path: Path) -> Path:
        """Return a path of at most one step. Equal prefixes of paths use the same variable."""
        variable = path.variable
        for step in path.steps[:-1]:
            variable = self.variable_at(variable, step, path.span)
        return Path(variable, path.steps[-1:], path.span)

    def variable_at(self, variable: str, step: Step, span: Span) -> str:
        """Return the variable at the end of a reference.

        `c.hosts?.memory > 64 and c.hosts?.cpu > 500` may hold for two different hosts: `?` creates a new variable.
        """
        known = self.reached.get((variable, step.property))
        if known is not None and not step.any:
            return known
        property = self.schema.property_of(self.classes[variable], step.property)
        assert property is not None and property.leads_to is not None, "rules are validated before"
        new = self.new_variable(property.leads_to)
        self.searched.append(Variable(property.leads_to, new, span))
        self.classes[new] = property.leads_to
        self.reached[variable, step.property] = new
        self.predicates.append(
            Comparison(Path(variable, (step,), span), Operator.EQUAL, Path(new, (), span), span)
        )
        return new

    def new_variable(self, cls: str) -> str:
        name = variable_initial(cls)
        return next(
            each
            for each in (name, *(f"{name}{n}" for n in range(2, len(self.classes) + 3)))
            if each not in self.classes
        )

    def convert_constant(self, constant: Constant, path: Path) -> Constant:
        """Convert a constant to the kind of the property: quoted URIs to resources, dates to canonical instants."""
        cls = self.classes[path.variable]
        property = self.schema.property_of(cls, path.steps[0].property) if path.steps else None
        if property is None or property.leads_to is not None:
            return Constant(constant.value, True, constant.span)
        if property.kind is Kind.INSTANT and isinstance(constant.value, str):
            instant = parse_instant(constant.value)
            text = format_instant(instant) if instant else None
            assert text is not None, "rules are validated before"
            return Constant(text, span=constant.span)
        return constant


def variable_initial(cls: str) -> str:
    """Return the name of a variable for a class: `s` for ServerInformation, as in the paper."""
    first = cls.rpartition(":")[2][:1].lower()
    return first if first.isalpha() else "x"
