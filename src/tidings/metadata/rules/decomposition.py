"""Decomposition of rules into atomic rules (section 3.3.1 of paper 001).

    search CycleProvider c, ServerInformation s register c
    where c.serverHost contains 'uni-passau.de' and c.serverInformation = s and s.memory > 64 and s.cpu > 500

        c.serverHost contains 'uni-passau.de'     s.memory > 64     s.cpu > 500
                       \\                                 \\__ a = b __/
                        \\____ c.serverInformation = a _____/

Each predicate with a constant becomes a triggering rule; those of one variable are joined from left to right. Two
properties of one resource are compared by a self-join of its class. Then variables are joined along the tree of their
comparisons, whose root is the registered variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product

from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules import rule_errors as problems
from tidings.metadata.rules.atomic import (
    AtomicRule,
    JoinRule,
    TriggeringRule,
    build_join_condition,
    build_self_join,
    identity_condition,
)
from tidings.metadata.rules.normal_form import (
    build_adjacency,
    class_of,
    list_predicates,
    normalize_rule,
)
from tidings.metadata.rules.rule_parser import RULE_LIMITS
from tidings.metadata.rules.syntax import (
    Constant,
    Operator,
    Path,
    Rule,
)
from tidings.metadata.schema.model import Schema

MAX_LEVELS, MAX_ATOMIC_RULES = 256, 2_000
"""How deeply joins may be nested, and how many atomic rules a rule may have, including those of rules it searches."""

NamedAtomicRules = Mapping[str, tuple[AtomicRule, ...]]
"""The end rules of named rules."""

_NONE: NamedAtomicRules = {}


def decompose(
    rule: Rule, schema: Schema, named: NamedAtomicRules = _NONE, alternatives: int = RULE_LIMITS.alternatives
) -> tuple[AtomicRule, ...]:
    """Return the end rules of a rule: the union of their results is its result. Each alternative of `or` has one.

    A rule that is searched by name stands for each of its own end rules in turn.
    """
    rules = [each.extension for each in rule.searched if each.extension not in schema.classes]
    types = {name: registered_class(named[name][0]) for name in rules}
    end_rules: dict[AtomicRule, None] = {}
    for normal in normalize_rule(rule, schema, types, alternatives):
        classes = {each.variable: class_of(each.extension, schema, types) for each in normal.searched}
        ends = {
            each.variable: named[each.extension]
            for each in normal.searched
            if each.extension not in schema.classes
        }
        for chosen in product(*ends.values()):
            decomposition = _Decomposition(normal, schema, classes, dict(zip(ends, chosen, strict=True)))
            end_rules[decomposition.end_rule()] = None
            if len(end_rules) > alternatives:
                raise problems.too_many_alternatives(len(end_rules), alternatives)
    return tuple(end_rules)


def registered_class(atomic: AtomicRule) -> str:
    """Return the class of the resources that an atomic rule registers."""
    if isinstance(atomic, TriggeringRule):
        return atomic.cls
    return atomic.condition.sides[0].cls


def _check_size(atomic: AtomicRule) -> None:
    """Limit the size of a rule: one that searches a rule twice, which searches a rule twice, grows exponentially."""
    pending, seen = [(atomic, 0)], 0
    while pending:
        rule, level = pending.pop()
        seen += 1
        if level > MAX_LEVELS or seen > MAX_ATOMIC_RULES:
            raise problems.too_many_joins(MAX_LEVELS, MAX_ATOMIC_RULES)
        if isinstance(rule, JoinRule):
            pending += ((rule.left, level + 1), (rule.right, level + 1))


class _Decomposition:
    """The decomposition of a normal rule. `ends` are the end rules of variables that range over a rule."""

    def __init__(
        self, normal: Rule, schema: Schema, classes: Mapping[str, str], ends: Mapping[str, AtomicRule]
    ) -> None:
        self.normal, self.schema, self.classes = normal, schema, classes
        self.own: dict[str, list[AtomicRule]] = {each.variable: [] for each in normal.searched}
        for variable, end in ends.items():
            self.own[variable].append(end)
        for each in list_predicates(normal):
            if isinstance(each.left, Path) and isinstance(each.right, Constant):
                self.own[each.left.variable].append(self.triggering(each.left, each.operator, each.right))
        self.neighbours = build_adjacency(normal)
        for variable, others in self.neighbours.items():
            self_joins = (build_self_join(classes[variable], each) for each in others.pop(variable, ()))
            self.own[variable] += dict.fromkeys(self_joins)

    def end_rule(self) -> AtomicRule:
        atomic = self.join_variable(self.normal.register, None)
        _check_size(atomic)
        return atomic

    def triggering(self, path: Path, operator: Operator, constant: Constant) -> TriggeringRule:
        property = path.steps[0].property if path.steps else SUBJECT
        return TriggeringRule(
            self.classes[path.variable], property, operator, constant.value, constant.is_resource
        )

    def join_variable(self, variable: str, parent: str | None) -> AtomicRule:
        """Join a variable with the subtrees of its neighbours, except for its parent."""
        cls = self.classes[variable]
        own = self.own[variable] or [TriggeringRule(cls)]
        rule = reduce(lambda left, right: JoinRule(identity_condition(cls), left, right), own[1:], own[0])
        for other, predicates in self.neighbours[variable].items():
            if other != parent:
                condition = build_join_condition(cls, predicates, self.classes[other], self.schema)
                partner = self.join_variable(other, variable)
                rule = (
                    JoinRule(condition, rule, partner)
                    if condition.registers_left
                    else JoinRule(condition, partner, rule)
                )
        return rule
