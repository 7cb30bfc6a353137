"""Normal rules (section 3.3 of paper 001): `or` is split up, and no path has more than one step.

    search CycleProvider c register c where c.serverInformation.memory > 64

    search CycleProvider c, ServerInformation s register c where c.serverInformation = s and s.memory > 64

A normal rule is a rule still, and reads as one. Rules are checked before; here nothing is refused but their size. Where
variables would run in a circle, `folding` puts longer paths back.
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
    """The normal rules whose results together are those of a rule. `types` are the classes of named rules."""
    count = 1 if rule.where is None else _count(rule.where)
    if count > limit:
        raise problems.too_many_alternatives(count, limit)
    every = ((),) if rule.where is None else _alternatives(rule.where)
    found = (_Splitting(rule, schema, types).normal(each) for each in every)
    return tuple(dict.fromkeys(found))


def _count(condition: Condition) -> int:
    """How many alternatives there are: known before any of them is made."""
    if isinstance(condition, Comparison):
        return 1
    counts = [_count(part) for part in condition.parts]
    return prod(counts) if isinstance(condition, And) else sum(counts)


def _alternatives(condition: Condition) -> tuple[Conjunction, ...]:
    if isinstance(condition, Comparison):
        return ((condition,),)
    parts = [_alternatives(part) for part in condition.parts]
    if not isinstance(condition, And):
        return tuple(each for part in parts for each in part)
    found: tuple[Conjunction, ...] = ((),)
    for part in parts:
        found = tuple((*before, *each) for before in found for each in part)
    return found


def class_of(extension: str, schema: Schema, types: Mapping[str, str]) -> str:
    """The class of what a variable stands for."""
    return extension if extension in schema.classes else types[extension]


class _Splitting:
    """One alternative on its way to a normal rule."""

    def __init__(self, rule: Rule, schema: Schema, types: Mapping[str, str]) -> None:
        self.schema = schema
        self.register = rule.register
        self.searched = list(rule.searched)
        self.classes = {each.variable: class_of(each.extension, schema, types) for each in rule.searched}
        self.reached: dict[tuple[str, str], str] = {}
        self.predicates: list[Comparison] = []

    def normal(self, comparisons: Conjunction) -> Rule:
        for each in comparisons:
            assert isinstance(each.left, Path), "the parser puts constants to the right"
            left = self.access(each.left)
            right = (
                self.access(each.right) if isinstance(each.right, Path) else self.constant(each.right, left)
            )
            self.predicates.append(Comparison(left, each.compares, right, each.span))
        unique = tuple(dict.fromkeys(self.predicates))
        where = And(unique) if len(unique) > 1 else unique[0] if unique else None
        return break_cycles(Rule(tuple(self.searched), self.register, where), self.schema, self.classes)

    def access(self, path: Path) -> Path:
        """A path of one step at most. Where two paths go the same way, they go through the same variable."""
        variable = path.variable
        for step in path.steps[:-1]:
            variable = self.along(variable, step, path.span)
        return Path(variable, path.steps[-1:], path.span)

    def along(self, variable: str, step: Step, span: Span) -> str:
        """The variable at the end of a reference.

        `c.hosts?.memory > 64 and c.hosts?.cpu > 500` may be true of two hosts: `?` leads to a new variable each time.
        """
        known = self.reached.get((variable, step.property))
        if known is not None and not step.any:
            return known
        found = self.schema.property_of(self.classes[variable], step.property)
        assert found is not None and found.leads_to is not None, "rules are checked before"
        new = self.new_variable(found.leads_to)
        self.searched.append(Variable(found.leads_to, new, span))
        self.classes[new] = found.leads_to
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

    def constant(self, constant: Constant, path: Path) -> Constant:
        """A constant as the property has it: a URI in quotes is a resource, and an instant has one form only."""
        cls = self.classes[path.variable]
        found = self.schema.property_of(cls, path.steps[0].property) if path.steps else None
        if found is None or found.leads_to is not None:
            return Constant(constant.value, True, constant.span)
        if found.kind is Kind.INSTANT and isinstance(constant.value, str):
            instant = parse_instant(constant.value)
            text = format_instant(instant) if instant else None
            assert text is not None, "rules are checked before"
            return Constant(text, span=constant.span)
        return constant


def variable_initial(cls: str) -> str:
    """A variable's name for instances of a class: `s` for ServerInformation, as the paper has it."""
    first = cls.rpartition(":")[2][:1].lower()
    return first if first.isalpha() else "x"
