"""The global dependency graph (sections 3.3.2 to 3.3.4 of paper 001): all atomic rules, without duplicates.

    change = graph.add("passau", decompose(rule, schema))     new atomic rules, inputs before their uses
    change = graph.remove("passau")                           unused atomic rules, in reverse order

Numbers are assigned in order and never reused. A store writes the changes, from which `load` builds the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tidings.errors import IdConflict
from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules.atomic import AtomicRule, JoinCondition, JoinRule, JoinSide, TriggeringRule
from tidings.metadata.rules.normal_form import JoinPredicate, variable_initial
from tidings.metadata.rules.syntax import (
    Comparison,
    Constant,
    Operator,
    Path,
    Step,
    format_comparison,
    format_name,
)
from tidings.metadata.sql.rule_graph import JoinNode, NodeRule

FILTER_RULES = {
    None: "FilterRules",
    Operator.EQUAL: "FilterRulesEQ",
    Operator.UNEQUAL: "FilterRulesNE",
    Operator.LESS: "FilterRulesLT",
    Operator.AT_MOST: "FilterRulesLE",
    Operator.GREATER: "FilterRulesGT",
    Operator.AT_LEAST: "FilterRulesGE",
    Operator.CONTAINS: "FilterRulesCON",
}
"""The paper's tables of triggering rules, by operator."""


@dataclass(frozen=True, slots=True)
class AtomicNode:
    """An atomic rule with its number. Triggering rules have level 0 and no group."""

    number: int
    asked: NodeRule
    level: int = 0
    group: int | None = None

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.asked.left, self.asked.right) if isinstance(self.asked, JoinNode) else ()

    @property
    def text(self) -> str:
        if isinstance(self.asked, TriggeringRule):
            return format_triggering(self.asked)
        return format_join(self.asked.condition, self.asked.left, self.asked.right)


@dataclass(frozen=True, slots=True)
class GraphChange:
    """The effect of adding or removing a rule: its end rules, and the atomic rules added or removed with it."""

    ends: tuple[int, ...]
    added: tuple[AtomicNode, ...] = ()
    removed: tuple[AtomicNode, ...] = ()


@dataclass(slots=True)
class DependencyGraph:
    """All atomic rules with their numbers of uses (as an end rule or as an input), and the groups of joins."""

    nodes: dict[int, AtomicNode] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    ends: dict[str, tuple[int, ...]] = field(default_factory=dict)
    groups: dict[JoinCondition, int] = field(default_factory=dict)
    members: dict[int, set[int]] = field(default_factory=dict)
    """The join rules of each group."""

    last: int = 0
    last_group: int = 0
    """The last assigned numbers of an atomic rule and of a group, which may have been removed since."""

    _numbers: dict[NodeRule, int] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        nodes: Iterable[AtomicNode],
        ends: Mapping[str, tuple[int, ...]],
        last: int = 0,
        last_group: int = 0,
    ) -> DependencyGraph:
        """Build the graph of atomic rules that have numbers already."""
        network = cls(ends=dict(ends), last=last, last_group=last_group)
        for node in sorted(nodes, key=lambda each: each.number):
            network._keep(node)
        for used in ends.values():
            network._use(used)
        return network

    def add(self, name: str, atomics: Iterable[AtomicRule]) -> GraphChange:
        """Merge a decomposed rule into the graph, sharing existing atomic rules."""
        if name in self.ends:
            raise IdConflict("there is a rule of this name", received=name)
        added: list[AtomicNode] = []
        ends = tuple(dict.fromkeys(self._merge(atomic, added) for atomic in atomics))
        self._use(ends)
        self.ends[name] = ends
        return GraphChange(ends, added=tuple(added))

    def remove(self, name: str) -> GraphChange:
        """Remove a rule with the atomic rules that only it used; raise KeyError if it does not exist."""
        ends = self.ends.pop(name)
        removed: list[AtomicNode] = []
        waiting = list(reversed(ends))
        while waiting:
            number = waiting.pop()
            self.uses[number] -= 1
            if not self.uses[number]:
                node = self._drop(number)
                removed.append(node)
                waiting += reversed(node.inputs)
        return GraphChange(ends, removed=tuple(sorted(removed, key=lambda node: -node.number)))

    def _merge(self, atomic: AtomicRule, added: list[AtomicNode]) -> int:
        """Number an atomic rule as in figure 7: first all triggering rules in it, then joins."""
        for each in _leaves(atomic):
            self._number(each, added)
        return self._merge_joins(atomic, added)

    def _merge_joins(self, atomic: AtomicRule, added: list[AtomicNode]) -> int:
        if isinstance(atomic, TriggeringRule):
            return self._numbers[atomic]
        left, right = self._merge_joins(atomic.left, added), self._merge_joins(atomic.right, added)
        return self._number(JoinNode(atomic.condition, left, right), added)

    def _number(self, asked: NodeRule, added: list[AtomicNode]) -> int:
        known = self._numbers.get(asked)
        if known is not None:
            return known
        node = AtomicNode(self.last + 1, asked)
        if isinstance(asked, JoinNode):
            level = 1 + max(self.nodes[asked.left].level, self.nodes[asked.right].level)
            group = self.groups.get(asked.condition, self.last_group + 1)
            node = AtomicNode(self.last + 1, asked, level, group)
        self._keep(node)
        added.append(node)
        return node.number

    def _keep(self, node: AtomicNode) -> None:
        self.nodes[node.number] = node
        self.uses[node.number] = 0
        self._numbers[node.asked] = node.number
        self.last = max(self.last, node.number)
        if isinstance(node.asked, JoinNode) and node.group is not None:
            self.groups[node.asked.condition] = node.group
            self.members.setdefault(node.group, set()).add(node.number)
            self.last_group = max(self.last_group, node.group)
            self._use(node.inputs)

    def _use(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.uses[number] += 1

    def _drop(self, number: int) -> AtomicNode:
        node = self.nodes.pop(number)
        del self.uses[number], self._numbers[node.asked]
        if isinstance(node.asked, JoinNode) and node.group is not None:
            members = self.members[node.group]
            members.discard(number)
            if not members:
                del self.members[node.group], self.groups[node.asked.condition]
        return node

    def atomic_rules(self) -> Iterator[tuple[int, str, int | None]]:
        """Figure 7's AtomicRules: number, text, group."""
        for node in self.nodes.values():
            yield node.number, node.text, node.group

    def rule_dependencies(self) -> Iterator[tuple[int, int, int, int]]:
        """Figure 7's RuleDependencies: source, target, which parameter of the target it is, group of the target."""
        for node in self.nodes.values():
            for parameter, source in enumerate(node.inputs, 1):
                assert node.group is not None
                yield source, node.number, parameter, node.group

    def rule_groups(self) -> Iterator[tuple[int, str]]:
        """Figure 7's RuleGroups: number, text."""
        for condition, group in self.groups.items():
            yield group, format_group(condition)

    def filter_rules(self, operator: Operator | None) -> Iterator[tuple[int, str, str | None, object]]:
        """Figure 8's tables: number, class, property and constant of the triggering rules with an operator."""
        for node in self.nodes.values():
            if isinstance(node.asked, TriggeringRule) and node.asked.operator is operator:
                yield node.number, node.asked.cls, node.asked.property, node.asked.constant


def _leaves(atomic: AtomicRule) -> Iterator[TriggeringRule]:
    if isinstance(atomic, JoinRule):
        yield from _leaves(atomic.left)
        yield from _leaves(atomic.right)
    else:
        yield atomic


# Atomic rules and rule groups as text, in the notation of figure 7 of paper 001:
#
#     search view(4, ServerInformation) a, view(3, CycleProvider) c register c where c.serverInformation = a
#     search group(ServerInformation) a, group(CycleProvider) c register c where c.serverInformation = a
#
# Equal atomic rules are shared whatever their variables were called, so names are derived from classes.


def format_triggering(rule: TriggeringRule) -> str:
    name = variable_initial(rule.cls)
    head = f"search {format_name(rule.cls)} {name} register {name}"
    if rule.property is None or rule.operator is None or rule.constant is None:
        return head
    left = _path(name, None if rule.property == SUBJECT else rule.property)
    right = Constant(rule.constant, rule.is_resource)
    return f"{head} where {format_comparison(Comparison(left, rule.operator, right))}"


def format_join(condition: JoinCondition, left: int, right: int) -> str:
    """Format a join rule with the numbers of its inputs."""
    views = (
        f"view({left}, {format_name(condition.left.cls)})",
        f"view({right}, {format_name(condition.right.cls)})",
    )
    return _format_condition(condition, *views)


def format_group(condition: JoinCondition) -> str:
    left, right = format_name(condition.left.cls), format_name(condition.right.cls)
    return _format_condition(condition, f"group({left})", f"group({right})")


def _format_condition(condition: JoinCondition, left_input: str, right_input: str) -> str:
    left, right = "a", _right_name(condition.left, condition.right)
    registered, other = (left, right) if condition.registers_left else (right, left)
    predicates = (each if condition.registers_left else each.flip() for each in condition.predicates)
    head = f"search {left_input} {left}, {right_input} {right} register {registered}"
    return f"{head} where {' and '.join(_format_predicate(registered, each, other) for each in predicates)}"


def _format_predicate(registered: str, predicate: JoinPredicate, other: str) -> str:
    """Format a predicate with the registered variable first, unless the other one contains it."""
    left, right = _path(registered, predicate.left), _path(other, predicate.right)
    if predicate.swapped:
        left, right = right, left
    return format_comparison(Comparison(left, predicate.operator, right))


def _right_name(left: JoinSide, right: JoinSide) -> str:
    name = variable_initial(right.cls)
    return "b" if name == "a" or left.cls == right.cls else name


def _path(variable: str, property: str | None) -> Path:
    return Path(variable, () if property is None else tuple(map(Step, property.split("."))))
