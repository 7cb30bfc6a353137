"""Atomic rules: what rules are taken apart into (section 3.3 of paper 001), equal ones once.

A triggering rule asks about one property of one class; the common index finds those that a resource satisfies. A join
rule brings the results of two atomic rules together. The rules that many subscriptions share are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.metadata.rules.tree import Operator
from tidings.metadata.schema.model import Schema
from tidings.values import Kind, Scalar

FLIPPED_OPERATORS = {
    Operator.LESS: Operator.GREATER,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.GREATER: Operator.LESS,
    Operator.AT_LEAST: Operator.AT_MOST,
    Operator.EQUAL: Operator.EQUAL,
    Operator.UNEQUAL: Operator.UNEQUAL,
}


@dataclass(frozen=True, slots=True)
class TriggeringRule:
    """Resources of a class (subclasses included) with a value of `property` for which the comparison holds.

    Without a comparison, all resources of the class. `is_resource` says that the constant is a URI reference.
    """

    cls: str
    property: str | None = None
    compares: Operator | None = None
    constant: Scalar | None = None
    is_resource: bool = False


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join: the class of its resources, and the property that is compared; None is itself.

    `serverInformation.memory` is a path: the memory of what is referred to. Names have no dots.
    """

    cls: str
    property: str | None = None


@dataclass(frozen=True, slots=True)
class JoinPredicate:
    """A comparison of two resources by a property (or a path) of each; None is the resource itself.

    `contains` has no opposite. If it is `turned`, the right one has the left one in it.
    """

    left: str | None
    compares: Operator
    right: str | None
    turned: bool = False

    def back(self) -> JoinPredicate:
        """The same, seen from the other resource."""
        if self.compares in FLIPPED_OPERATORS:
            return JoinPredicate(self.right, FLIPPED_OPERATORS[self.compares], self.left)
        return JoinPredicate(self.right, self.compares, self.left, not self.turned)


def is_path(property: str | None) -> bool:
    """Whether what is compared stands behind a reference."""
    return property is not None and "." in property


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """What a join rule asks, whatever its inputs: the paper's rule group. Either side may be what is registered.

    The paper's joins have one predicate. `also` are further ones, which must hold for the same two resources.
    """

    left: JoinSide
    compares: Operator
    right: JoinSide
    registers_left: bool
    also: tuple[JoinPredicate, ...] = ()

    @property
    def predicates(self) -> tuple[JoinPredicate, ...]:
        """All of them, that by which partners are found first."""
        return JoinPredicate(self.left.property, self.compares, self.right.property), *self.also


@dataclass(frozen=True, slots=True)
class JoinRule:
    """A join rule: the results of two atomic rules, and how they must meet."""

    meeting: JoinCondition
    left: AtomicRule
    right: AtomicRule


AtomicRule = TriggeringRule | JoinRule


# How the resources of two variables must meet: all their comparisons as one meeting, equal ones written alike.
#
#     search CycleProvider c, DataProvider d register c where c.serverPort = d.serverPort and d = c.partners?
#
#     group(DataProvider) a, group(CycleProvider) c register c where c.partners = a and c.serverPort = a.serverPort
#
# The first predicate is that by which a partner is found. So it is an equality if there is one: best of the resources
# themselves, then of a reference with a resource, then of values; half of all there is have an equal boolean. Paths,
# for which there is no index, come after all these.


def identity_condition(cls: str, *also: JoinPredicate) -> JoinCondition:
    """Both sides are the same resource."""
    return JoinCondition(JoinSide(cls), Operator.EQUAL, JoinSide(cls), registers_left=True, also=also)


def self_join_condition(cls: str, asked: JoinPredicate) -> JoinRule:
    """The resources of a class of which two properties stand so to each other: one rule for all who ask that."""
    written = min(asked, asked.back(), key=_order)
    return JoinRule(identity_condition(cls, written), TriggeringRule(cls), TriggeringRule(cls))


def build_join_condition(
    kept: str, asked: Iterable[JoinPredicate], other: str, schema: Schema
) -> JoinCondition:
    """How resources of two classes meet, of which the first are kept. Predicates are seen from what is kept.

    What is kept stands on the right, as in figure 7. If it is the resources themselves that are compared first, it
    stands on the left, as where the rules of one variable are joined; and `contains` has no opposite.
    """
    first, *also = order_predicates(asked, kept, schema)
    contains = first.compares is Operator.CONTAINS and not first.turned
    if contains or first == JoinPredicate(None, Operator.EQUAL, None):
        sides = JoinSide(kept, first.left), JoinSide(other, first.right)
        return JoinCondition(sides[0], first.compares, sides[1], True, tuple(also))
    back = first.back()
    sides = JoinSide(other, back.left), JoinSide(kept, back.right)
    return JoinCondition(sides[0], back.compares, sides[1], False, tuple(each.back() for each in also))


def order_predicates(asked: Iterable[JoinPredicate], cls: str, schema: Schema) -> list[JoinPredicate]:
    """Predicates, each once, in an order that does not depend on how they were written. `cls` is that of the left."""

    def rank(each: JoinPredicate) -> int:
        if each.compares is not Operator.EQUAL:
            return 5
        if is_path(each.left) or is_path(each.right):
            return 4
        if each.left is None or each.right is None:
            return int(each.left is not each.right)
        declared = schema.property_of(cls, each.left)
        return 3 if declared is not None and declared.kind is Kind.BOOLEAN else 2

    return sorted(set(asked), key=lambda each: (rank(each), *_order(each)))


def _order(each: JoinPredicate) -> tuple[str, str, str, bool]:
    return each.left or "", each.compares.value, each.right or "", each.turned
