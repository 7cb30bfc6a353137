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

from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules import semantic_errors as problems
from tidings.metadata.rules.atomic import (
    AtomicRule,
    JoinCondition,
    JoinPredicate,
    JoinRule,
    JoinSide,
    TriggeringRule,
    build_join_condition,
    identity_condition,
    self_join_condition,
)
from tidings.metadata.rules.normal_form import class_of, normalize_rule, variable_initial
from tidings.metadata.rules.rule_parser import RULE_LIMITS
from tidings.metadata.rules.syntax import format_comparison, format_name
from tidings.metadata.rules.tree import Comparison, Constant, Operator, Path, Rule, Step
from tidings.metadata.rules.variable_graph import build_adjacency, list_predicates
from tidings.metadata.schema.model import Schema

MAX_LEVELS, MAX_ATOMIC_RULES = 256, 2_000
"""How many joins may stand one above the other, and how many atomic rules there may be: rules in rules add theirs."""

NamedAtomicRules = Mapping[str, tuple[AtomicRule, ...]]
"""What rules with names were taken apart into."""

_NONE: NamedAtomicRules = {}


def decompose(
    rule: Rule, schema: Schema, named: NamedAtomicRules = _NONE, alternatives: int = RULE_LIMITS.alternatives
) -> tuple[AtomicRule, ...]:
    """The end rules of a rule: its results are theirs, united. There are several if there is `or` in it somewhere.

    A rule that is searched by its name is one of its own end rules in each alternative.
    """
    rules = [each.extension for each in rule.searched if each.extension not in schema.classes]
    types = {name: registered_class(named[name][0]) for name in rules}
    found: dict[AtomicRule, None] = {}
    for normal in normalize_rule(rule, schema, types, alternatives):
        classes = {each.variable: class_of(each.extension, schema, types) for each in normal.searched}
        ends = {
            each.variable: named[each.extension]
            for each in normal.searched
            if each.extension not in schema.classes
        }
        for chosen in product(*ends.values()):
            atomic = _Decomposition(normal, schema, classes, dict(zip(ends, chosen, strict=True))).whole()
            found[atomic] = None
            if len(found) > alternatives:
                raise problems.too_many_alternatives(len(found), alternatives)
    return tuple(found)


def registered_class(atomic: AtomicRule) -> str:
    """The class of what an atomic rule registers."""
    if isinstance(atomic, TriggeringRule):
        return atomic.cls
    meeting = atomic.meeting
    return meeting.left.cls if meeting.registers_left else meeting.right.cls


def _refuse_large(atomic: AtomicRule) -> None:
    """Rules that search a rule twice, which searches a rule twice ...: what nobody could walk is never made."""
    waiting, seen = [(atomic, 0)], 0
    while waiting:
        each, level = waiting.pop()
        seen += 1
        if level > MAX_LEVELS or seen > MAX_ATOMIC_RULES:
            raise problems.too_many_joins(MAX_LEVELS, MAX_ATOMIC_RULES)
        if isinstance(each, JoinRule):
            waiting += ((each.left, level + 1), (each.right, level + 1))


class _Decomposition:
    """A normal rule that is taken apart. `ends` are the atomic rules that variables stand for, if not for a class."""

    def __init__(
        self, normal: Rule, schema: Schema, classes: Mapping[str, str], ends: Mapping[str, AtomicRule]
    ) -> None:
        self.normal, self.schema, self.classes = normal, schema, classes
        self.own: dict[str, list[AtomicRule]] = {each.variable: [] for each in normal.searched}
        for variable, end in ends.items():
            self.own[variable].append(end)
        for each in list_predicates(normal):
            if isinstance(each.left, Path) and isinstance(each.right, Constant):
                self.own[each.left.variable].append(self.triggering(each.left, each.compares, each.right))
        self.neighbours = build_adjacency(normal)
        for variable, others in self.neighbours.items():
            compared = (self_join_condition(classes[variable], each) for each in others.pop(variable, ()))
            self.own[variable] += dict.fromkeys(compared)

    def whole(self) -> AtomicRule:
        atomic = self.rule_of(self.normal.register, None)
        _refuse_large(atomic)
        return atomic

    def triggering(self, path: Path, compares: Operator, constant: Constant) -> TriggeringRule:
        property = path.steps[0].property if path.steps else SUBJECT
        return TriggeringRule(
            self.classes[path.variable], property, compares, constant.value, constant.is_resource
        )

    def rule_of(self, variable: str, before: str | None) -> AtomicRule:
        """A variable with all that hangs on it, except for the variable that it was reached from."""
        cls = self.classes[variable]
        own = self.own[variable] or [TriggeringRule(cls)]
        found = reduce(lambda left, right: JoinRule(identity_condition(cls), left, right), own[1:], own[0])
        for other, asked in self.neighbours[variable].items():
            if other != before:
                meeting = build_join_condition(cls, asked, self.classes[other], self.schema)
                theirs = self.rule_of(other, variable)
                found = (
                    JoinRule(meeting, found, theirs)
                    if meeting.registers_left
                    else JoinRule(meeting, theirs, found)
                )
        return found


# Atomic rules and rule groups as text, in the words of figure 7 of paper 001.
#
#     search view(4, ServerInformation) a, view(3, CycleProvider) c register c where c.serverInformation = a
#     search group(ServerInformation) a, group(CycleProvider) c register c where c.serverInformation = a
#
# Atomic rules do not keep the names of variables, since equal ones are one whatever variables were called. So names
# are made from classes.


def format_triggering(rule: TriggeringRule) -> str:
    name = variable_initial(rule.cls)
    head = f"search {format_name(rule.cls)} {name} register {name}"
    if rule.property is None or rule.compares is None or rule.constant is None:
        return head
    left = _path(name, None if rule.property == SUBJECT else rule.property)
    right = Constant(rule.constant, rule.is_resource)
    return f"{head} where {format_comparison(Comparison(left, rule.compares, right))}"


def format_join(meeting: JoinCondition, left: int, right: int) -> str:
    """A join rule. Its inputs are called by their numbers."""
    views = (
        f"view({left}, {format_name(meeting.left.cls)})",
        f"view({right}, {format_name(meeting.right.cls)})",
    )
    return _show_meeting(meeting, *views)


def format_group(meeting: JoinCondition) -> str:
    left, right = format_name(meeting.left.cls), format_name(meeting.right.cls)
    return _show_meeting(meeting, f"group({left})", f"group({right})")


def _show_meeting(meeting: JoinCondition, left_input: str, right_input: str) -> str:
    left, right = "a", _right_name(meeting.left, meeting.right)
    kept, other = (left, right) if meeting.registers_left else (right, left)
    asked = (each if meeting.registers_left else each.back() for each in meeting.predicates)
    head = f"search {left_input} {left}, {right_input} {right} register {kept}"
    return f"{head} where {' and '.join(_shown(kept, each, other) for each in asked)}"


def _shown(kept: str, asked: JoinPredicate, other: str) -> str:
    """What is registered stands first, unless the other one contains it."""
    one, two = _path(kept, asked.left), _path(other, asked.right)
    return format_comparison(
        Comparison(*((two, asked.compares, one) if asked.turned else (one, asked.compares, two)))
    )


def _right_name(left: JoinSide, right: JoinSide) -> str:
    name = variable_initial(right.cls)
    return "b" if name == "a" or left.cls == right.cls else name


def format_property(property: str) -> str:
    """What is compared of a resource, as rules write it; a path has several steps."""
    return ".".join(map(format_name, property.split(".")))


def _path(variable: str, property: str | None) -> Path:
    return Path(variable, () if property is None else tuple(map(Step, property.split("."))))
