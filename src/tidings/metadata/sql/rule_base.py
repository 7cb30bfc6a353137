"""The stored rules, decomposed into shared atomic rules (section 3.3 of paper 001).

Atomic rules are numbered as in figure 7: first the triggering rules in order of appearance, then join rules, inputs
first. A rule is removed with all atomic rules that no other rule uses.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, or_, select

from tidings.errors import IdConflict, pointing
from tidings.metadata.resources import SUBJECT, Ref, Value
from tidings.metadata.rules.atomic import AtomicRule, JoinCondition, JoinRule, JoinSide, TriggeringRule
from tidings.metadata.rules.normal_form import JoinPredicate
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import join_statements
from tidings.metadata.sql.resource_rows import from_comparable, to_comparable
from tidings.metadata.sql.tables import (
    atomic_rules,
    join_rules,
    metadata_rules,
    rule_ends,
    rule_group_predicates,
    rule_groups,
    rule_inputs,
    rule_results,
    rule_uses,
)
from tidings.store import bulk, counters, names

ATOMIC_RULE_COUNTER = "atomic_rules"
"""Numbers atomic rules. It is also the lock for changes of rules and metadata, since results depend on both."""


ANALYZE_THRESHOLD = 1_000
"""Minimum number of new atomic rules after which the database collects statistics."""


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A named rule with its end rules: one for each alternative of `or`.

    `name` begins with its scope. `uses` are the names of other rules that it searches.
    """

    name: str
    owner: str
    text: str
    ends: tuple[AtomicRule, ...]
    scope: str = ""
    within: int | None = None
    uses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NewAtomicRule:
    """An atomic rule to store. Its key is a hash of its condition and its inputs."""

    key: str
    level: int
    rule: AtomicRule
    columns: tuple[object, ...] = (None,) * 6
    inputs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Graph:
    """The dependency graph of some rules: nodes by key, in order of appearance."""

    schema: Schema
    nodes: dict[str, NewAtomicRule] = field(default_factory=dict)

    def add(self, rule: AtomicRule) -> NewAtomicRule:
        node = self._join(rule) if isinstance(rule, JoinRule) else self._triggering_node(rule)
        return self.nodes.setdefault(node.key, node)

    def _triggering_node(self, rule: TriggeringRule) -> NewAtomicRule:
        columns = _triggering_row(rule, self.schema)
        return NewAtomicRule(_hash_key(columns), 0, rule, columns)

    def _join(self, rule: JoinRule) -> NewAtomicRule:
        left, right = self.add(rule.left), self.add(rule.right)
        also = [_also_row(each) for each in rule.condition.also]
        # Without further predicates, the key must stay as in older versions: keys are stored.
        key = _hash_key((*_condition_row(rule.condition), *([also] if also else ()), left.key, right.key))
        return NewAtomicRule(key, 1 + max(left.level, right.level), rule, inputs=(left.key, right.key))


def _hash_key(parts: Sequence[object]) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _triggering_row(rule: TriggeringRule, schema: Schema) -> tuple[object, ...]:
    """Return the columns of a triggering rule, with the constant in comparable form. `True` and `1` differ."""
    property = None if rule.property == SUBJECT else rule.property
    if rule.operator is None or rule.constant is None:
        return rule.cls, None, None, None, None, None
    value: Value = Ref(str(rule.constant)) if rule.is_resource or property is None else rule.constant
    declared = schema.property_of(rule.cls, property) if property else None
    return rule.cls, property, rule.operator.value, *to_comparable(value, declared)


def _condition_row(condition: JoinCondition) -> tuple[object, ...]:
    left, right = condition.left, condition.right
    columns = (left.cls, left.property, condition.operator.value, right.cls, right.property)
    return *columns, int(condition.registers_left)


def _also_row(predicate: JoinPredicate) -> tuple[object, ...]:
    return predicate.left, predicate.operator.value, predicate.right, int(predicate.swapped)


@dataclass(frozen=True, slots=True)
class RuleInsertion:
    """The effect of an insertion: the first new number, levels of new join rules, and numbers of new rules by key."""

    first: int
    levels: tuple[int, ...]
    numbers: Mapping[str, int]


def insert_rules(connection: Connection, schema: Schema, rules: Sequence[NamedRule]) -> RuleInsertion:
    """Store rules; new atomic rules have no results yet."""
    last = counters.lock(connection, ATOMIC_RULE_COUNTER)
    check_names_free(connection, rules)
    graph = _Graph(schema)
    ends = [(rule.name, graph.add(end).key) for rule in rules for end in rule.ends]
    numbers = _load_numbers(connection, graph.nodes)
    new = sorted(
        (node for node in graph.nodes.values() if node.key not in numbers), key=lambda node: node.level
    )
    numbers.update({node.key: last + i for i, node in enumerate(new, start=1)})
    _insert_atomic(connection, new, numbers)
    rows = [(rule.name, rule.owner, rule.text, rule.scope, rule.within) for rule in rules]
    bulk.insert_rows(connection, metadata_rules, rows)
    uses = [(rule.name, used) for rule in rules for used in sorted(rule.uses)]
    bulk.insert_rows(connection, rule_uses, uses)
    bulk.insert_rows(connection, rule_ends, sorted({(name, numbers[key]) for name, key in ends}))
    counters.advance(connection, ATOMIC_RULE_COUNTER, last + len(new))
    levels = tuple(sorted({node.level for node in new if node.level}))
    return RuleInsertion(last + 1, levels, {node.key: numbers[node.key] for node in new})


def find_new_triggering(
    connection: Connection, schema: Schema, rules: Sequence[NamedRule]
) -> dict[str, TriggeringRule]:
    """Find the triggering rules that these rules would add, by key."""
    graph = _Graph(schema)
    for rule in rules:
        for end in rule.ends:
            graph.add(end)
    numbers = _load_numbers(connection, graph.nodes)
    new = (node for key, node in graph.nodes.items() if key not in numbers)
    return {node.key: node.rule for node in new if isinstance(node.rule, TriggeringRule)}


def check_names_free(connection: Connection, rules: Sequence[NamedRule]) -> None:
    """Raise IdConflict for names that other rules have, or that occur twice."""
    counts = Counter(names.check("a rule's name", rule.name, "/id") for rule in rules)
    owners = {rule.name: rule.owner for rule in rules}
    statement = select(metadata_rules.c.name, metadata_rules.c.owner)
    existing = [*bulk.select_among(connection, statement, metadata_rules.c.name, counts)]
    for name, owner in existing:
        if owner != owners[name]:
            raise names.id_taken_error(name)
    conflicts = [*(row.name for row in existing), *(name for name, count in counts.items() if count > 1)]
    if conflicts:
        hint = "remove that rule with `tidings provider remove-rule`, or choose another name"
        with pointing("/id"):
            raise IdConflict("a rule of this name already exists", received=conflicts[0], hint=hint)


def _load_numbers(connection: Connection, keys: Iterable[str]) -> dict[str, int]:
    statement = select(atomic_rules.c.key, atomic_rules.c.rule)
    rows = bulk.select_among(connection, statement, atomic_rules.c.key, list(keys))
    return dict(tuple(row) for row in rows)


def _insert_atomic(connection: Connection, new: Sequence[NewAtomicRule], numbers: Mapping[str, int]) -> None:
    rows = [(numbers[node.key], node.key, node.level, *node.columns) for node in new]
    bulk.insert_rows(connection, atomic_rules, rows)
    joins = [(node, node.rule.condition) for node in new if isinstance(node.rule, JoinRule)]
    groups = _get_group_numbers(connection, dict.fromkeys(condition for _, condition in joins))
    _insert_joins(
        connection,
        [
            (numbers[node.key], groups[condition], *(numbers[key] for key in node.inputs), node.level)
            for node, condition in joins
        ],
        first=min((numbers[node.key] for node in new), default=0),
    )
    if len(new) >= ANALYZE_THRESHOLD:
        join_statements.analyze_table(connection, join_rules)


def _insert_joins(connection: Connection, rows: Sequence[tuple[int, ...]], first: int) -> None:
    """Insert join rules and their feeds. New inputs have no feeds yet."""
    bulk.insert_rows(connection, join_rules, rows)
    feeds = {(left, grp, level, 1) for _, grp, left, _, level in rows}
    feeds |= {(right, grp, level, 0) for _, grp, _, right, level in rows}
    bulk.insert_rows(connection, rule_inputs, sorted(feed for feed in feeds if feed[0] >= first))
    columns = ("rule", "grp", "level", "is_left")
    old = [dict(zip(columns, feed, strict=True)) for feed in sorted(feeds) if feed[0] < first]
    bulk.insert_missing(connection, rule_inputs, old)


def _get_group_numbers(
    connection: Connection, conditions: Iterable[JoinCondition]
) -> dict[JoinCondition, int]:
    """Return the numbers of groups; new groups are inserted."""
    existing = {condition: number for number, condition in load_groups(connection).items()}
    new = [condition for condition in conditions if condition not in existing]
    last = max(existing.values(), default=0)
    created = {condition: last + i for i, condition in enumerate(new, start=1)}
    rows = [
        (number, *_condition_row(new_condition), len(new_condition.also) or None)
        for new_condition, number in created.items()
    ]
    bulk.insert_rows(connection, rule_groups, rows)
    also = [
        (number, place, *_also_row(predicate))
        for new_condition, number in created.items()
        for place, predicate in enumerate(new_condition.also)
    ]
    bulk.insert_rows(connection, rule_group_predicates, also)
    return existing | created


def load_groups(connection: Connection, among: Sequence[int] | None = None) -> dict[int, JoinCondition]:
    """Load groups by number, all or some. Groups stay without rules: there are only as many as kinds of conditions."""
    statement = select(*rule_groups.c).order_by(rule_groups.c.grp)
    rows = connection.execute(
        statement if among is None else statement.where(rule_groups.c.grp.in_(among))
    ).all()
    also = _load_also(connection, [row.grp for row in rows if row.further_predicates])
    return {
        grp: JoinCondition(
            JoinSide(left_class, left),
            Operator(compares),
            JoinSide(right_class, right),
            bool(registers_left),
            also.get(grp, ()),
        )
        for grp, left_class, left, compares, right_class, right, registers_left, _ in rows
    }


def _load_also(connection: Connection, groups: Sequence[int]) -> dict[int, tuple[JoinPredicate, ...]]:
    """Load the further predicates of groups that have some."""
    predicates: dict[int, tuple[JoinPredicate, ...]] = {}
    if not groups:
        return predicates
    c = rule_group_predicates.c
    rows = connection.execute(select(*c).where(c.grp.in_(groups)).order_by(c.grp, c.place))
    for grp, _, left, compares, right, swapped in rows:
        predicates[grp] = (
            *predicates.get(grp, ()),
            JoinPredicate(left, Operator(compares), right, bool(swapped)),
        )
    return predicates


def load_triggering(connection: Connection, after: int = 0) -> dict[int, TriggeringRule]:
    """Load the triggering rules with greater numbers, for the trigger index."""
    return {row[0]: triggering_from_row(*row[1:]) for row in connection.execute(_LATER, {"after": after})}


_TRIGGERING = select(
    *(atomic_rules.c[name] for name in ("rule", "class", "property", "compares", "value", "kind"))
)
_LATER = _TRIGGERING.where(atomic_rules.c.level == 0, atomic_rules.c.rule > bindparam("after")).order_by(
    atomic_rules.c.rule
)


def load_triggering_by_number(connection: Connection, numbers: Collection[int]) -> dict[int, TriggeringRule]:
    """Load triggering rules by number."""
    rows = bulk.select_among(connection, _TRIGGERING, atomic_rules.c.rule, numbers, numbers=True)
    return {row[0]: triggering_from_row(*row[1:]) for row in rows}


def triggering_from_row(
    cls: str, property: str | None, compares: str | None, value: str | None, kind: int | None
) -> TriggeringRule:
    if compares is None or value is None or kind is None:
        return TriggeringRule(cls)
    constant = from_comparable(value, kind)
    if isinstance(constant, Ref):
        return TriggeringRule(cls, property or SUBJECT, Operator(compares), constant.uri, True)
    return TriggeringRule(cls, property, Operator(compares), constant)


@dataclass(frozen=True, slots=True)
class RuleRemoval:
    """The removed rules that existed, and the numbers of the atomic rules removed with them."""

    rules: tuple[str, ...]
    atomic: tuple[int, ...]


def delete_rules(connection: Connection, names: Collection[str]) -> RuleRemoval:
    """Delete rules with the atomic rules that no other rule uses, and their results."""
    counters.lock(connection, ATOMIC_RULE_COUNTER)
    existing = [
        row.name
        for row in bulk.select_among(connection, select(metadata_rules.c.name), metadata_rules.c.name, names)
    ]
    pending = {
        row.rule
        for row in bulk.select_among(connection, select(rule_ends.c.rule), rule_ends.c.name, existing)
    }
    for table in (rule_ends, rule_uses, metadata_rules):
        bulk.delete_among(connection, table.c.name, existing)
    deleted: list[int] = []
    # An input is checked again whenever a join that used it was deleted.
    while unused := [
        rule
        for piece in bulk.iter_chunks(sorted(pending), bulk.KEYS)
        for rule in _select_unused(connection, piece)
    ]:
        pending = set()
        for piece in bulk.iter_chunks(unused, bulk.KEYS):
            pending |= _delete_atomic(connection, piece)
        deleted += unused
    return RuleRemoval(tuple(sorted(existing)), tuple(sorted(deleted)))


def _select_unused(connection: Connection, rules: Sequence[int]) -> list[int]:
    rule = atomic_rules.c.rule
    references = (rule_ends.c.rule, join_rules.c.left_rule, join_rules.c.right_rule)
    statement = select(rule).where(
        rule.in_(rules), *(~exists().where(column == rule) for column in references)
    )
    return list(connection.execute(statement).scalars())


def _delete_atomic(connection: Connection, rules: Sequence[int]) -> set[int]:
    """Delete atomic rules, and return their inputs."""
    c = join_rules.c
    joins = connection.execute(
        select(c.grp, c.level, c.left_rule, c.right_rule).where(c.rule.in_(rules))
    ).all()
    for table in (join_rules, atomic_rules, rule_results):
        connection.execute(delete(table).where(table.c.rule.in_(rules)))
    inputs = {rule for row in joins for rule in row[2:]}
    for piece in bulk.iter_chunks(sorted(inputs), bulk.KEYS):
        connection.execute(_IDLE_FEEDS.where(rule_inputs.c.rule.in_(piece)))
    return inputs


def _is_fed(column: ColumnElement[int], is_left: int) -> ColumnElement[bool]:
    feeds, joins = rule_inputs.c, join_rules.c
    fed = exists().where(column == feeds.rule, joins.grp == feeds.grp, joins.level == feeds.level)
    return and_(feeds.is_left == is_left, ~fed)


_IDLE_FEEDS = delete(rule_inputs).where(
    or_(_is_fed(join_rules.c.left_rule, 1), _is_fed(join_rules.c.right_rule, 0))
)
