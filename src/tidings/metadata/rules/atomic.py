"""Atomic rules, into which rules are decomposed (section 3.3 of paper 001).

A triggering rule tests one property of one class; a common index finds those that a resource satisfies. A join rule
combines the results of two atomic rules. Equal atomic rules of different subscriptions are stored once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.metadata.rules.syntax import Operator
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
class JoinPredicate:
    """A comparison of two resources by a property or a path of each; None is the resource itself.

    `contains` has no mirrored operator. With `swapped`, the right value contains the left one.
    """

    left: str | None
    operator: Operator
    right: str | None
    swapped: bool = False

    def flipped(self) -> JoinPredicate:
        """Return the same predicate with the sides exchanged."""
        if self.operator in FLIPPED_OPERATORS:
            return JoinPredicate(self.right, FLIPPED_OPERATORS[self.operator], self.left)
        return JoinPredicate(self.right, self.operator, self.left, not self.swapped)


def is_path(property: str | None) -> bool:
    """Whether a compared property is a path through references."""
    return property is not None and "." in property


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
        flipped = (each.flipped() for each in self.predicates)
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
    canonical = min(predicate, predicate.flipped(), key=_sort_key)
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
    flipped = first.flipped()
    left, right = JoinSide(other, flipped.left), JoinSide(registered, flipped.right)
    return JoinCondition(left, flipped.operator, right, False, tuple(each.flipped() for each in also))


def order_predicates(predicates: Iterable[JoinPredicate], cls: str, schema: Schema) -> list[JoinPredicate]:
    """Return distinct predicates in an order independent of how they were written. `cls` is the class on the left."""

    def rank(each: JoinPredicate) -> int:
        if each.operator is not Operator.EQUAL:
            return 5
        if is_path(each.left) or is_path(each.right):
            return 4
        if each.left is None or each.right is None:
            return int(each.left is not each.right)
        declared = schema.property_of(cls, each.left)
        return 3 if declared is not None and declared.kind is Kind.BOOLEAN else 2

    return sorted(set(predicates), key=lambda each: (rank(each), *_sort_key(each)))


def _sort_key(predicate: JoinPredicate) -> tuple[str, str, str, bool]:
    return predicate.left or "", predicate.operator.value, predicate.right or "", predicate.swapped
