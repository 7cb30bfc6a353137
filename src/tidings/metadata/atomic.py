"""Atomic rules: what rules are taken apart into (section 3.3 of paper 001), equal ones once.

A triggering rule asks about one property of one class; the common index finds those that a resource satisfies. A join
rule brings the results of two atomic rules together. The rules that many subscriptions share are one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.languages.rules_tree import Compares
from tidings.values import Scalar


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
    """One side of a join: the class of its resources, and the property that is compared; None is itself."""

    cls: str
    property: str | None = None


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a join rule asks, whatever its inputs: the paper's rule group. Either side may be what is registered."""

    left: Side
    compares: Compares
    right: Side
    registers_left: bool


@dataclass(frozen=True, slots=True)
class Join:
    """A join rule: the results of two atomic rules, and how they must meet."""

    meeting: Meeting
    left: Atomic
    right: Atomic


Atomic = Triggering | Join
