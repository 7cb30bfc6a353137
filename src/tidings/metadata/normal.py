"""Normal rules (section 3.3 of paper 001): `or` is split up, and no path has more than one step.

    search CycleProvider c register c where c.serverInformation.memory > 64

    search CycleProvider c, ServerInformation s register c where c.serverInformation = s and s.memory > 64

A normal rule is a rule still, and reads as one. Rules are checked before; here nothing is refused but their size. Where
variables would run in a circle, `folding` puts longer paths back.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tidings.languages.rules import DEFAULT
from tidings.languages.rules_tree import (
    Both,
    Compares,
    Comparison,
    Condition,
    Constant,
    Path,
    Rule,
    Searched,
    Step,
)
from tidings.languages.tree import Span
from tidings.metadata import rule_problems as problems
from tidings.metadata.folding import folded
from tidings.metadata.literals import instant_text
from tidings.metadata.schema import Schema
from tidings.values import Kind, parse_instant

Conjunction = tuple[Comparison, ...]


def normalised(
    rule: Rule, schema: Schema, types: Mapping[str, str], limit: int = DEFAULT.alternatives
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
    return prod(counts) if isinstance(condition, Both) else sum(counts)


def _alternatives(condition: Condition) -> tuple[Conjunction, ...]:
    if isinstance(condition, Comparison):
        return ((condition,),)
    parts = [_alternatives(part) for part in condition.parts]
    if not isinstance(condition, Both):
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
        where = Both(unique) if len(unique) > 1 else unique[0] if unique else None
        return folded(Rule(tuple(self.searched), self.register, where), self.schema, self.classes)

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
        self.searched.append(Searched(found.leads_to, new, span))
        self.classes[new] = found.leads_to
        self.reached[variable, step.property] = new
        self.predicates.append(
            Comparison(Path(variable, (step,), span), Compares.EQUAL, Path(new, (), span), span)
        )
        return new

    def new_variable(self, cls: str) -> str:
        name = initial(cls)
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
            text = instant_text(instant) if instant else None
            assert text is not None, "rules are checked before"
            return Constant(text, span=constant.span)
        return constant


def initial(cls: str) -> str:
    """A variable's name for instances of a class: `s` for ServerInformation, as the paper has it."""
    first = cls.rpartition(":")[2][:1].lower()
    return first if first.isalpha() else "x"
