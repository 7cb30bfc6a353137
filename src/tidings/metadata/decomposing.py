"""Rules into atomic rules, as section 3.3.1 of paper 001 does it.

    search CycleProvider c, ServerInformation s register c
    where c.serverHost contains 'uni-passau.de' and c.serverInformation = s and s.memory > 64 and s.cpu > 500

        c.serverHost contains 'uni-passau.de'     s.memory > 64     s.cpu > 500
                       \\                                 \\__ a = b __/
                        \\____ c.serverInformation = a _____/

Each predicate with a constant is a triggering rule, and those of one variable are joined, left to right. Then a
variable is joined with what hangs on it, predicate by predicate, so that the registered one is left in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product

from tidings.languages.rules import DEFAULT
from tidings.languages.rules_tree import Compares, Comparison, Constant, Path, Rule
from tidings.metadata import rule_problems as problems
from tidings.metadata.atomic import Atomic, Join, Meeting, Side, Triggering
from tidings.metadata.connecting import joins, predicates
from tidings.metadata.normal import class_of, normalised
from tidings.metadata.resources import SUBJECT
from tidings.metadata.schema import Schema

LEVELS, LARGEST = 256, 2_000
"""How many joins may stand one above the other, and how many atomic rules there may be: rules in rules add theirs."""

FLIPPED = {
    Compares.LESS: Compares.GREATER,
    Compares.AT_MOST: Compares.AT_LEAST,
    Compares.GREATER: Compares.LESS,
    Compares.AT_LEAST: Compares.AT_MOST,
    Compares.EQUAL: Compares.EQUAL,
    Compares.UNEQUAL: Compares.UNEQUAL,
}

Named = Mapping[str, tuple[Atomic, ...]]
"""What rules with names were taken apart into."""

_NONE: Named = {}


def decompose(
    rule: Rule, schema: Schema, named: Named = _NONE, alternatives: int = DEFAULT.alternatives
) -> tuple[Atomic, ...]:
    """The end rules of a rule: its results are theirs, united. There are several if there is `or` in it somewhere.

    A rule that is searched by its name is one of its own end rules in each alternative.
    """
    rules = [each.extension for each in rule.searched if each.extension not in schema.classes]
    types = {name: type_of(named[name][0]) for name in rules}
    found: dict[Atomic, None] = {}
    for normal in normalised(rule, schema, types, alternatives):
        classes = {each.variable: class_of(each.extension, schema, types) for each in normal.searched}
        ends = {
            each.variable: named[each.extension]
            for each in normal.searched
            if each.extension not in schema.classes
        }
        for chosen in product(*ends.values()):
            atomic = _Taking(normal, classes, dict(zip(ends, chosen, strict=True))).whole()
            found[atomic] = None
            if len(found) > alternatives:
                raise problems.too_many_alternatives(len(found), alternatives)
    return tuple(found)


def type_of(atomic: Atomic) -> str:
    """The class of what an atomic rule registers."""
    if isinstance(atomic, Triggering):
        return atomic.cls
    meeting = atomic.meeting
    return meeting.left.cls if meeting.registers_left else meeting.right.cls


def _refuse_large(atomic: Atomic) -> None:
    """Rules that search a rule twice, which searches a rule twice ...: what nobody could walk is never made."""
    waiting, seen = [(atomic, 0)], 0
    while waiting:
        each, level = waiting.pop()
        seen += 1
        if level > LEVELS or seen > LARGEST:
            raise problems.too_many_joins(LEVELS, LARGEST)
        if isinstance(each, Join):
            waiting += ((each.left, level + 1), (each.right, level + 1))


class _Taking:
    """A normal rule that is taken apart. `ends` are the atomic rules that variables stand for, if not for a class."""

    def __init__(self, normal: Rule, classes: Mapping[str, str], ends: Mapping[str, Atomic]) -> None:
        self.normal, self.classes = normal, classes
        self.own: dict[str, list[Atomic]] = {each.variable: [] for each in normal.searched}
        for variable, end in ends.items():
            self.own[variable].append(end)
        for each in predicates(normal):
            if isinstance(each.left, Path) and isinstance(each.right, Constant):
                self.own[each.left.variable].append(self.triggering(each.left, each.compares, each.right))
        self.joins = list(joins(normal))

    def whole(self) -> Atomic:
        atomic = self.rule_of(self.normal.register, None)
        _refuse_large(atomic)
        return atomic

    def triggering(self, path: Path, compares: Compares, constant: Constant) -> Triggering:
        property = path.steps[0].property if path.steps else SUBJECT
        return Triggering(
            self.classes[path.variable], property, compares, constant.value, constant.is_resource
        )

    def rule_of(self, variable: str, through: Comparison | None) -> Atomic:
        """A variable with all that hangs on it, except for what it was reached through."""
        cls = self.classes[variable]
        same = Meeting(Side(cls), Compares.EQUAL, Side(cls), registers_left=True)
        own = self.own[variable] or [Triggering(cls)]
        found = reduce(lambda left, right: Join(same, left, right), own[1:], own[0])
        for left, right, comparison in self.joins:
            if comparison is not through and variable in (left.variable, right.variable):
                keeps_left = variable == left.variable
                other = self.rule_of((right if keeps_left else left).variable, comparison)
                meeting = _meeting(self.side(left), comparison.compares, self.side(right), keeps_left)
                found = Join(meeting, found, other) if meeting.registers_left else Join(meeting, other, found)
        return found

    def side(self, path: Path) -> Side:
        return Side(self.classes[path.variable], path.steps[0].property if path.steps else None)


def _meeting(left: Side, compares: Compares, right: Side, keeps_left: bool) -> Meeting:
    """How two sides meet of which one is kept.

    What is kept stands on the right, as in figure 7. Of two sides of which only the resources themselves are compared,
    it stands on the left, as where the rules of one variable are joined; and `contains` has no opposite.
    """
    alone = compares is Compares.EQUAL and left.property is None and right.property is None
    turned = not keeps_left if alone else keeps_left and compares is not Compares.CONTAINS
    if turned:
        return Meeting(right, FLIPPED[compares], left, registers_left=not keeps_left)
    return Meeting(left, compares, right, registers_left=keeps_left)
