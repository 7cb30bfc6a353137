"""Atomic rules: what rules are taken apart into (section 3.3 of paper 001), equal ones once.

A triggering rule asks about one property of one class; the common index finds those that a resource satisfies. A join
rule brings the results of two atomic rules together. The rules that many subscriptions share are one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.languages.rules_tree import Compares
from tidings.values import Scalar

FLIPPED = {
    Compares.LESS: Compares.GREATER,
    Compares.AT_MOST: Compares.AT_LEAST,
    Compares.GREATER: Compares.LESS,
    Compares.AT_LEAST: Compares.AT_MOST,
    Compares.EQUAL: Compares.EQUAL,
    Compares.UNEQUAL: Compares.UNEQUAL,
}


@dataclass(frozen=True, slots=True)
class Triggering:
    """Resources of a class (subclasses included) with a value of `property` for which the comparison holds.

    Without a comparison, all resources of the class. `is_resource` says that the constant is a URI reference.
    """

    cls: str
    property: str | None = None
    compares: Compares | None = None
    constant: Scalar | None = None
    is_resource: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: the class of its resources, and the property that is compared; None is itself.

    `serverInformation.memory` is a path: the memory of what is referred to. Names have no dots.
    """

    cls: str
    property: str | None = None


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison of two resources by a property (or a path) of each; None is the resource itself.

    `contains` has no opposite. If it is `turned`, the right one has the left one in it.
    """

    left: str | None
    compares: Compares
    right: str | None
    turned: bool = False

    def back(self) -> Predicate:
        """The same, seen from the other resource."""
        if self.compares in FLIPPED:
            return Predicate(self.right, FLIPPED[self.compares], self.left)
        return Predicate(self.right, self.compares, self.left, not self.turned)


def is_path(property: str | None) -> bool:
    """Whether what is compared stands behind a reference."""
    return property is not None and "." in property


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a join rule asks, whatever its inputs: the paper's rule group. Either side may be what is registered.

    The paper's joins have one predicate. `also` are further ones, which must hold for the same two resources.
    """

    left: Side
    compares: Compares
    right: Side
    registers_left: bool
    also: tuple[Predicate, ...] = ()

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """All of them, that by which partners are found first."""
        return Predicate(self.left.property, self.compares, self.right.property), *self.also


@dataclass(frozen=True, slots=True)
class Join:
    """A join rule: the results of two atomic rules, and how they must meet."""

    meeting: Meeting
    left: Atomic
    right: Atomic


Atomic = Triggering | Join
