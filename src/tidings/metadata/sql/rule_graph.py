"""Queries for the stored dependency graph of rules: each atomic rule, or many grouped by kind.

A rule base may have a million rules. Where there are too many to draw, the database counts them by kind: triggering
rules by property and operator, join rules by group and level, named rules by owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    and_,
    case,
    func,
    literal,
    select,
    true,
    union_all,
)

from tidings.metadata.rules.atomic import JoinCondition, TriggeringRule
from tidings.metadata.sql import rule_base
from tidings.metadata.sql.connections import StorePart, reading_snapshot
from tidings.metadata.sql.tables import atomic_rules, join_rules, metadata_rules, rule_ends, rule_results


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A join rule in the graph: its condition, and its inputs by number."""

    condition: JoinCondition
    left: int
    right: int


NodeRule = TriggeringRule | JoinNode


@dataclass(frozen=True, slots=True)
class AtomicRuleInfo:
    """An atomic rule, its group if it is a join rule, and the number of its results."""

    number: int
    level: int
    rule: NodeRule
    group: int | None
    results: int


@dataclass(frozen=True, slots=True)
class NamedRuleInfo:
    """A named rule with its end rules."""

    name: str
    owner: str
    ends: tuple[int, ...]
    results: int


@dataclass(frozen=True, slots=True)
class RuleGraphView:
    atomic: tuple[AtomicRuleInfo, ...]
    named: tuple[NamedRuleInfo, ...]


class RuleKind(NamedTuple):
    """The common properties of rules of one kind; the others are None. Named rules have level -1."""

    level: int
    cls: str | None = None
    property: str | None = None
    operator: str | None = None
    group: int | None = None
    owner: str | None = None


class RuleKindCount(NamedTuple):
    """The number of rules of a kind, and of their results."""

    rules: int
    results: int


@dataclass(frozen=True, slots=True)
class RuleKindGraph:
    """Rules by kind, counts of inputs between kinds, and the conditions of groups."""

    counts: dict[RuleKind, RuleKindCount]
    inputs: dict[tuple[RuleKind, RuleKind], int]
    groups: dict[int, JoinCondition]


class RuleGraph(StorePart):
    """The rules of a store, all or some by name."""

    def names(self) -> list[str]:
        name = metadata_rules.c.name
        return [row.name for row in self._rows(select(name).order_by(name))]

    def missing(self, names: Collection[str]) -> list[str]:
        """Return those of the names that no rule has."""
        name = metadata_rules.c.name
        existing = {row.name for row in self._rows(select(name).where(name.in_(names)))}
        return [name for name in names if name not in existing]

    def size(self, names: Collection[str] = ()) -> int:
        """Count rules and atomic rules."""
        selection, count = _RuleSelection(names), select(func.count())
        atomic = count.select_from(atomic_rules).where(selection.atomic(atomic_rules.c.rule))
        named = count.select_from(metadata_rules).where(selection.named(metadata_rules.c.name))
        return sum(self._rows(query)[0][0] for query in (atomic, named))

    @reading_snapshot
    def load_all(self, connection: Connection, names: Collection[str] = ()) -> RuleGraphView:
        """Load rules with all atomic rules they depend on."""
        return RuleGraphView(
            _load_atomic(connection, _RuleSelection(names)), _load_named(connection, _RuleSelection(names))
        )

    @reading_snapshot
    def kinds(self, connection: Connection, names: Collection[str] = ()) -> RuleKindGraph:
        """Load rules and atomic rules grouped by kind."""
        selection = _RuleSelection(names)
        counts = {
            RuleKind(*row[:6]): RuleKindCount(row[6], int(row[7]))
            for query in (_select_atomic_kinds(selection), _select_owners(selection))
            for row in connection.execute(query)
        }
        inputs = Counter[tuple[RuleKind, RuleKind]]()
        for query in (*_select_join_inputs(selection), _select_ends(selection)):
            for row in connection.execute(query):
                inputs[RuleKind(*row[:6]), RuleKind(*row[6:12])] += row[12]
        return RuleKindGraph(counts, inputs, rule_base.load_groups(connection))


class _RuleSelection:
    """A selection of rules: all, or some by name with the atomic rules they depend on."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._needed = _select_needed(names) if names else None

    def atomic(self, rule: ColumnElement[int]) -> ColumnElement[bool]:
        return true() if self._needed is None else rule.in_(self._needed)

    def named(self, name: ColumnElement[str]) -> ColumnElement[bool]:
        return true() if self._needed is None else name.in_(self._names)


def _select_needed(names: Collection[str]) -> Select[tuple[int]]:
    """Select the end rules of rules with all their inputs, recursively."""
    ends = select(rule_ends.c.rule).where(rule_ends.c.name.in_(names)).cte("needed", recursive=True)
    joins, sides = (
        join_rules.c,
        union_all(select(literal(0).label("side")), select(literal(1))).subquery("sides"),
    )
    either = case((sides.c.side == 0, joins.left_rule), else_=joins.right_rule)
    further = select(either).select_from(ends.join(join_rules, joins.rule == ends.c.rule).join(sides, true()))
    every = ends.union(further)
    return select(every.c.rule)


def _load_atomic(connection: Connection, selection: _RuleSelection) -> tuple[AtomicRuleInfo, ...]:
    c, j, results = atomic_rules.c, join_rules.c, rule_results.c
    counted = select(results.rule, func.count()).where(selection.atomic(results.rule)).group_by(results.rule)
    counts: dict[int, int] = dict(tuple(row) for row in connection.execute(counted))
    groups = rule_base.load_groups(connection)
    joins = {
        row.rule: (row.grp, JoinNode(groups[row.grp], row.left_rule, row.right_rule))
        for row in connection.execute(select(*j).where(selection.atomic(j.rule)))
    }
    statement = select(c.rule, c.level, c["class"], c.property, c.compares, c.value, c.kind)
    rows = connection.execute(statement.where(selection.atomic(c.rule)).order_by(c.rule))
    infos: list[AtomicRuleInfo] = []
    for number, level, *fields in rows:
        group, join = joins.get(number, (None, None))
        atomic_rule = join or rule_base.triggering_from_row(*fields)
        infos.append(AtomicRuleInfo(number, level, atomic_rule, group, counts.get(number, 0)))
    return tuple(infos)


def _load_named(connection: Connection, selection: _RuleSelection) -> tuple[NamedRuleInfo, ...]:
    ends, results, rules = rule_ends.c, rule_results.c, metadata_rules.c
    ends_by_name: dict[str, list[int]] = {}
    statement = select(ends.name, ends.rule).where(selection.named(ends.name)).order_by(ends.name, ends.rule)
    for name, rule in connection.execute(statement):
        ends_by_name.setdefault(name, []).append(rule)
    counts_by_name = select(ends.name, func.count(results.uri.distinct())).group_by(ends.name)
    counted = counts_by_name.where(results.rule == ends.rule, selection.named(ends.name))
    counts: dict[str, int] = dict(tuple(row) for row in connection.execute(counted))
    owners = select(rules.name, rules.owner).where(selection.named(rules.name)).order_by(rules.name)
    return tuple(
        NamedRuleInfo(name, owner, tuple(ends_by_name.get(name, ())), counts.get(name, 0))
        for name, owner in connection.execute(owners)
    )


def _build_kind_columns(atomic: Any, join: Any) -> tuple[ColumnElement[Any], ...]:
    """Return the columns of an atomic rule's kind."""
    c = atomic.c
    return c.level, c["class"], c.property, c.compares, join.c.grp, literal(None)


def _count_results() -> Subquery:
    c = rule_results.c
    return select(c.rule, func.count().label("results")).group_by(c.rule).subquery("counted")


def _select_atomic_kinds(selection: _RuleSelection) -> Select[Any]:
    counted, rule = _count_results(), atomic_rules.c.rule
    kind = _build_kind_columns(atomic_rules, join_rules)
    tables = atomic_rules.outerjoin(join_rules, join_rules.c.rule == rule)
    results = func.coalesce(func.sum(counted.c.results), 0)
    return (
        select(*kind, func.count(), results)
        .select_from(tables.outerjoin(counted, counted.c.rule == rule))
        .where(selection.atomic(rule))
        .group_by(*kind[:5])
    )


def _build_owner_columns() -> tuple[ColumnElement[Any], ...]:
    nothing = literal(None)
    return literal(-1), nothing, nothing, nothing, nothing, metadata_rules.c.owner


def _select_owners(selection: _RuleSelection) -> Select[Any]:
    """Count rules and results by owner. A resource that two alternatives of `or` find counts once."""
    ends, results, rules = rule_ends.c, rule_results.c, metadata_rules.c
    query = select(ends.name, func.count(results.uri.distinct()).label("results"))
    counted = query.where(results.rule == ends.rule).group_by(ends.name).subquery("counted")
    total = func.coalesce(func.sum(counted.c.results), 0)
    return (
        select(*_build_owner_columns(), func.count(), total)
        .select_from(metadata_rules.outerjoin(counted, counted.c.name == rules.name))
        .where(selection.named(rules.name))
        .group_by(rules.owner)
    )


def _select_join_inputs(selection: _RuleSelection) -> tuple[Select[Any], ...]:
    """Count the join rules of a kind with inputs of another kind, for each side."""
    return tuple(
        _select_inputs(selection, side) for side in (join_rules.c.left_rule, join_rules.c.right_rule)
    )


def _select_inputs(selection: _RuleSelection, side: ColumnElement[int]) -> Select[Any]:
    into, nothing = join_rules.c, literal(None)
    atomic, join = atomic_rules.alias("source"), join_rules.alias("source_join")
    source = _build_kind_columns(atomic, join)
    tables = join_rules.join(atomic, atomic.c.rule == side).outerjoin(join, join.c.rule == side)
    target = (into.level, nothing, nothing, nothing, into.grp, nothing)
    return (
        select(*source, *target, func.count())
        .select_from(tables)
        .where(selection.atomic(into.rule))
        .group_by(*source[:5], into.level, into.grp)
    )


def _select_ends(selection: _RuleSelection) -> Select[Any]:
    """Count the rules of an owner with end rules of a kind."""
    ends, rules = rule_ends.c, metadata_rules.c
    source = _build_kind_columns(atomic_rules, join_rules)
    tables = (
        rule_ends.join(metadata_rules, rules.name == ends.name)
        .join(atomic_rules, atomic_rules.c.rule == ends.rule)
        .outerjoin(join_rules, and_(join_rules.c.rule == ends.rule))
    )
    return (
        select(*source, *_build_owner_columns(), func.count())
        .select_from(tables)
        .where(selection.named(rules.name))
        .group_by(*source[:5], rules.owner)
    )
