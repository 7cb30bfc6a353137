"""How the resources of two variables must meet: all their comparisons as one meeting, equal ones written alike.

    search CycleProvider c, DataProvider d register c where c.serverPort = d.serverPort and d = c.partners?

    group(DataProvider) a, group(CycleProvider) c register c where c.partners = a and c.serverPort = a.serverPort

The first predicate is that by which a partner is found. So it is an equality if there is one: best of the resources
themselves, then of a reference with a resource, then of values; half of all there is have an equal boolean. Paths, for
which there is no index, come after all these.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.languages.rules_tree import Compares
from tidings.metadata.atomic import Join, Meeting, Predicate, Side, Triggering, is_path
from tidings.metadata.schema import Schema
from tidings.values import Kind


def same(cls: str, *also: Predicate) -> Meeting:
    """Both sides are the same resource."""
    return Meeting(Side(cls), Compares.EQUAL, Side(cls), registers_left=True, also=also)


def with_itself(cls: str, asked: Predicate) -> Join:
    """The resources of a class of which two properties stand so to each other: one rule for all who ask that."""
    written = min(asked, asked.back(), key=_order)
    return Join(same(cls, written), Triggering(cls), Triggering(cls))


def meeting_of(kept: str, asked: Iterable[Predicate], other: str, schema: Schema) -> Meeting:
    """How resources of two classes meet, of which the first are kept. Predicates are seen from what is kept.

    What is kept stands on the right, as in figure 7. If it is the resources themselves that are compared first, it
    stands on the left, as where the rules of one variable are joined; and `contains` has no opposite.
    """
    first, *also = ranked(asked, kept, schema)
    contains = first.compares is Compares.CONTAINS and not first.turned
    if contains or first == Predicate(None, Compares.EQUAL, None):
        sides = Side(kept, first.left), Side(other, first.right)
        return Meeting(sides[0], first.compares, sides[1], True, tuple(also))
    back = first.back()
    sides = Side(other, back.left), Side(kept, back.right)
    return Meeting(sides[0], back.compares, sides[1], False, tuple(each.back() for each in also))


def ranked(asked: Iterable[Predicate], cls: str, schema: Schema) -> list[Predicate]:
    """Predicates, each once, in an order that does not depend on how they were written. `cls` is that of the left."""

    def rank(each: Predicate) -> int:
        if each.compares is not Compares.EQUAL:
            return 5
        if is_path(each.left) or is_path(each.right):
            return 4
        if each.left is None or each.right is None:
            return int(each.left is not each.right)
        declared = schema.property_of(cls, each.left)
        return 3 if declared is not None and declared.kind is Kind.BOOLEAN else 2

    return sorted(set(asked), key=lambda each: (rank(each), *_order(each)))


def _order(each: Predicate) -> tuple[str, str, str, bool]:
    return each.left or "", each.compares.value, each.right or "", each.turned
