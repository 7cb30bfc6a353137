"""Atomic rules, and the decomposition of rules into them (section 3.3 of paper 001).

A triggering rule tests one property of one class; a common index finds those that a resource satisfies. A join rule
combines the results of two atomic rules. Equal atomic rules of different subscriptions are stored once.

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product

from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules import rule_errors as problems
from tidings.metadata.rules.normal_form import (
    JoinPredicate,
    build_adjacency,
    class_of,
    is_path,
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
from tidings.values import Kind, Scalar


@dataclass(frozen=True, slots=True)
class TriggeringRule:
    """The resources of a class and its subclasses with a value of `property` for which the comparison holds.

    Without a comparison, all resources of the class. With `is_resource`, the constant is a URI reference.
    """

    cls: str
    property: str | None = None
    operator: Operator | None = None
    constant: Scalar | None = None
    is_resource: bool = False


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join: the class of its resources and the compared property; None is the resource itself.

    A property with dots is a path: `serverInformation.memory` is the memory of the referenced resource.
    """

    cls: str
    property: str | None = None


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """The condition of a join rule without its inputs: the paper's rule group. Either side may be registered.

    The paper's joins have one predicate. `also` are further ones that must hold for the same two resources.
    """

    left: JoinSide
    operator: Operator
    right: JoinSide
    registers_left: bool
    also: tuple[JoinPredicate, ...] = ()

    @property
    def predicates(self) -> tuple[JoinPredicate, ...]:
        """All predicates; the first is the one by which partners are found."""
        return JoinPredicate(self.left.property, self.operator, self.right.property), *self.also

    @property
    def oriented(self) -> tuple[JoinPredicate, ...]:
        """All predicates, seen from the registered side."""
        flipped = (each.flip() for each in self.predicates)
        return self.predicates if self.registers_left else tuple(flipped)

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        """The registered side, and its partner's."""
        return (self.left, self.right) if self.registers_left else (self.right, self.left)


@dataclass(frozen=True, slots=True)
class JoinRule:
    """A join of the results of two atomic rules."""

    condition: JoinCondition
    left: AtomicRule
    right: AtomicRule


AtomicRule = TriggeringRule | JoinRule


# Construction of join conditions: all comparisons of two variables become one condition in a canonical form.
#
#     search CycleProvider c, DataProvider d register c where c.serverPort = d.serverPort and d = c.partners?
#
#     group(DataProvider) a, group(CycleProvider) c register c where c.partners = a and c.serverPort = a.serverPort
#
# The first predicate is the one by which partners are found, so the most selective goes first: equality of the
# resources themselves, then of a reference and a resource, then of values, then of booleans (half of all resources have
# an equal one), then of paths, which have no index.


def identity_condition(cls: str, *also: JoinPredicate) -> JoinCondition:
    """Build the condition that both sides are the same resource."""
    return JoinCondition(JoinSide(cls), Operator.EQUAL, JoinSide(cls), registers_left=True, also=also)


def build_self_join(cls: str, predicate: JoinPredicate) -> JoinRule:
    """Build the rule that compares two properties of the same resource, in a canonical form."""
    canonical = min(predicate, predicate.flip(), key=_sort_key)
    return JoinRule(identity_condition(cls, canonical), TriggeringRule(cls), TriggeringRule(cls))


def build_join_condition(
    registered: str, predicates: Iterable[JoinPredicate], other: str, schema: Schema
) -> JoinCondition:
    """Build the join of two classes. The left side of each predicate belongs to the registered class.

    The registered class becomes the right side, as in figure 7. It stays on the left where the resources themselves
    are compared first, as in joins of one variable, and for `contains`, which has no mirrored operator.
    """
    first, *also = order_predicates(predicates, registered, schema)
    contains = first.operator is Operator.CONTAINS and not first.swapped
    if contains or first == JoinPredicate(None, Operator.EQUAL, None):
        left, right = JoinSide(registered, first.left), JoinSide(other, first.right)
        return JoinCondition(left, first.operator, right, True, tuple(also))
    flipped = first.flip()
    left, right = JoinSide(other, flipped.left), JoinSide(registered, flipped.right)
    return JoinCondition(left, flipped.operator, right, False, tuple(each.flip() for each in also))


def order_predicates(predicates: Iterable[JoinPredicate], cls: str, schema: Schema) -> list[JoinPredicate]:
    """Return distinct predicates in an order independent of how they were written. `cls` is the class on the left."""

    def rank(predicate: JoinPredicate) -> int:
        if predicate.operator is not Operator.EQUAL:
            return 5
        if is_path(predicate.left) or is_path(predicate.right):
            return 4
        if predicate.left is None or predicate.right is None:
            return int(predicate.left is not predicate.right)
        declared = schema.property_of(cls, predicate.left)
        return 3 if declared is not None and declared.kind is Kind.BOOLEAN else 2

    return sorted(set(predicates), key=lambda each: (rank(each), *_sort_key(each)))


def _sort_key(predicate: JoinPredicate) -> tuple[str, str, str, bool]:
    return predicate.left or "", predicate.operator.value, predicate.right or "", predicate.swapped


MAX_LEVELS, MAX_ATOMIC_RULES = 256, 2_000
"""Maximum nesting of joins, and maximum number of atomic rules of a rule, including those of rules it searches."""

NamedAtomicRules = Mapping[str, tuple[AtomicRule, ...]]
"""The end rules of named rules."""

_NONE: NamedAtomicRules = {}


def decompose(
    rule: Rule, schema: Schema, named: NamedAtomicRules = _NONE, alternatives: int = RULE_LIMITS.alternatives
) -> tuple[AtomicRule, ...]:
    """Return the end rules of a rule: the union of their results is its result. Each alternative of `or` has one.

    A rule that is searched by name stands for each of its own end rules in turn.
    """
    rules = [variable.extension for variable in rule.searched if variable.extension not in schema.classes]
    types = {name: registered_class(named[name][0]) for name in rules}
    end_rules: dict[AtomicRule, None] = {}
    for normal in normalize_rule(rule, schema, types, alternatives):
        classes = {
            variable.variable: class_of(variable.extension, schema, types) for variable in normal.searched
        }
        ends = {
            variable.variable: named[variable.extension]
            for variable in normal.searched
            if variable.extension not in schema.classes
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
        self.own: dict[str, list[AtomicRule]] = {searched.variable: [] for searched in normal.searched}
        for variable, end in ends.items():
            self.own[variable].append(end)
        for searched in list_predicates(normal):
            if isinstance(searched.left, Path) and isinstance(searched.right, Constant):
                self.own[searched.left.variable].append(
                    self.build_triggering_rule(searched.left, searched.operator, searched.right)
                )
        self.neighbours = build_adjacency(normal)
        for variable, others in self.neighbours.items():
            self_joins = (
                build_self_join(classes[variable], searched) for searched in others.pop(variable, ())
            )
            self.own[variable] += dict.fromkeys(self_joins)

    def end_rule(self) -> AtomicRule:
        atomic = self.join_variable(self.normal.register, None)
        _check_size(atomic)
        return atomic

    def build_triggering_rule(self, path: Path, operator: Operator, constant: Constant) -> TriggeringRule:
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
