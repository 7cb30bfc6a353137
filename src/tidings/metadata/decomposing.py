"""Rules into atomic rules, as section 3.3.1 of paper 001 does it.

    search CycleProvider c, ServerInformation s register c
    where c.serverHost contains 'uni-passau.de' and c.serverInformation = s and s.memory > 64 and s.cpu > 500

        c.serverHost contains 'uni-passau.de'     s.memory > 64     s.cpu > 500
                       \\                                 \\__ a = b __/
                        \\____ c.serverInformation = a _____/

Each predicate with a constant is a triggering rule, and those of one variable are joined, left to right. Two properties
of one resource are compared by a join of all resources of the class with themselves. Then a variable is joined with
what hangs on it, variable by variable, so that the registered one is left in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product

from tidings.languages.rules import DEFAULT
from tidings.languages.rules_tree import Compares, Constant, Path, Rule
from tidings.metadata import rule_problems as problems
from tidings.metadata.atomic import Atomic, Join, Triggering
from tidings.metadata.connecting import neighbours, predicates
from tidings.metadata.meeting import meeting_of, same, with_itself
from tidings.metadata.normal import class_of, normalised
from tidings.metadata.resources import SUBJECT
from tidings.metadata.schema import Schema

LEVELS, LARGEST = 256, 2_000
"""How many joins may stand one above the other, and how many atomic rules there may be: rules in rules add theirs."""

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
            atomic = _Taking(normal, schema, classes, dict(zip(ends, chosen, strict=True))).whole()
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

    def __init__(
        self, normal: Rule, schema: Schema, classes: Mapping[str, str], ends: Mapping[str, Atomic]
    ) -> None:
        self.normal, self.schema, self.classes = normal, schema, classes
        self.own: dict[str, list[Atomic]] = {each.variable: [] for each in normal.searched}
        for variable, end in ends.items():
            self.own[variable].append(end)
        for each in predicates(normal):
            if isinstance(each.left, Path) and isinstance(each.right, Constant):
                self.own[each.left.variable].append(self.triggering(each.left, each.compares, each.right))
        self.neighbours = neighbours(normal)
        for variable, others in self.neighbours.items():
            compared = (with_itself(classes[variable], each) for each in others.pop(variable, ()))
            self.own[variable] += dict.fromkeys(compared)

    def whole(self) -> Atomic:
        atomic = self.rule_of(self.normal.register, None)
        _refuse_large(atomic)
        return atomic

    def triggering(self, path: Path, compares: Compares, constant: Constant) -> Triggering:
        property = path.steps[0].property if path.steps else SUBJECT
        return Triggering(
            self.classes[path.variable], property, compares, constant.value, constant.is_resource
        )

    def rule_of(self, variable: str, before: str | None) -> Atomic:
        """A variable with all that hangs on it, except for the variable that it was reached from."""
        cls = self.classes[variable]
        own = self.own[variable] or [Triggering(cls)]
        found = reduce(lambda left, right: Join(same(cls), left, right), own[1:], own[0])
        for other, asked in self.neighbours[variable].items():
            if other != before:
                meeting = meeting_of(cls, asked, self.classes[other], self.schema)
                theirs = self.rule_of(other, variable)
                found = (
                    Join(meeting, found, theirs) if meeting.registers_left else Join(meeting, theirs, found)
                )
        return found
