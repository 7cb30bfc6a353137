"""The filter: resources that enter, change in, and leave the results of rules (sections 3.4 and 3.5 of paper 001).

The results of all atomic rules are materialized. A run gets the changed resources and the triggering rules that they
satisfy now. The difference to the stored results propagates through the join rules, level by level and group by group.
Added results are found from new inputs and their partners; candidates for removal are found from old inputs, and
checked again. New rules use the same statements: all results of one input count as new.

Everything runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from sqlalchemy import Connection, bindparam, delete, func, select, text

from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import JoinCondition
from tidings.metadata.rules.normal_form import JoinPredicate, is_path
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import join_statements, resource_rows, rule_base, trigger_evaluation
from tidings.metadata.sql.join_statements import keep_join_order
from tidings.metadata.sql.resource_rows import VersionDifference
from tidings.metadata.sql.rule_base import ATOMIC_RULE_COUNTER, NamedRule
from tidings.metadata.sql.tables import (
    INDEXED_LENGTH,
    RUN_TABLES,
    atomic_rules,
    join_rules,
    rule_ends,
    rule_results,
    run_changed,
    run_delta,
    run_gone,
    run_seeds,
    run_touched,
)
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.store import bulk, counters

RuleResult = tuple[str, str]
"""The name of a rule, and the URI of a resource."""


@dataclass(frozen=True, slots=True)
class FilterOutcome:
    """Changes of the results of rules. `ends` are the end rules by which a pair entered or left."""

    entered: frozenset[RuleResult] = frozenset()
    changed: frozenset[RuleResult] = frozenset()
    left: frozenset[RuleResult] = frozenset()
    ends: Mapping[RuleResult, Sequence[int]] = field(default_factory=dict, compare=False, repr=False)


def run_filter(
    connection: Connection,
    schema: Schema,
    versions: Mapping[str, Resource | None],
    satisfied: Iterable[tuple[str, int]],
) -> FilterOutcome:
    """Store new versions of resources (None if deleted), and return the changes of the results of rules.

    `satisfied` has the URIs of the new versions with the numbers of the triggering rules that they satisfy. Old
    versions and the rules that they satisfied are stored.
    """
    counters.lock(connection, ATOMIC_RULE_COUNTER)
    _prepare(connection, schema)
    difference = resource_rows.write_versions(connection, schema, versions)
    bulk.insert_rows(connection, run_changed, sorted(difference.classes))
    bulk.insert_rows(connection, run_touched, difference.touched)
    removed = [(row.uri, row.property, row.text, row.kind, row.number) for row in difference.removed]
    bulk.insert_rows(connection, run_gone, removed)
    with keep_join_order(connection):
        _trigger(connection, difference, satisfied)
        connection.execute(_FEED, {"level": 0})
        if difference.touched:
            connection.execute(_FEED_TOUCHED)
        _feed_paths(connection)
        _climb(connection)
        return _outcome(connection)


def add_rules(
    connection: Connection, schema: Schema, rules: Sequence[NamedRule], results: TriggerResults | None = None
) -> FilterOutcome:
    """Store rules and return their results; `found` are those of triggering rules, if computed before."""
    new = rule_base.insert_rules(connection, schema, rules)
    _prepare(connection, schema)
    with keep_join_order(connection):
        if results is None:
            trigger_evaluation.evaluate_triggering(connection, new.first)
        else:
            trigger_evaluation.insert_trigger_results(connection, results, new.numbers)
        for level in new.levels:
            _seed(connection, level, new.first)
            _evaluate(connection, level, new.first)
    named = [rule.name for rule in rules]
    columns = (rule_ends.c.name, rule_results.c.uri, rule_ends.c.rule)
    query = select(*columns).where(rule_ends.c.rule == rule_results.c.rule)
    ends: dict[RuleResult, list[int]] = {}
    for name, uri, rule in bulk.select_among(connection, query, rule_ends.c.name, named):
        ends.setdefault((name, uri), []).append(rule)
    return FilterOutcome(frozenset(ends), ends=ends)


def _prepare(connection: Connection, schema: Schema) -> None:
    resource_rows.store_classes(connection, schema)
    # All were created in one transaction, so it suffices to check one.
    if connection.dialect.has_table(connection, RUN_TABLES[-1].name):
        for statement in _EMPTY:
            connection.execute(statement)
    else:
        for table in RUN_TABLES:
            table.create(connection, checkfirst=False)


_EMPTY = tuple(delete(table) for table in RUN_TABLES)


def _trigger(
    connection: Connection, difference: VersionDifference, satisfied: Iterable[tuple[str, int]]
) -> None:
    """Compare the triggering rules that are satisfied now with those before."""
    stored = bulk.select_among(connection, _SATISFIED, rule_results.c.uri, difference.before)
    old = {tuple(row) for row in stored}
    now = {(uri, rule) for uri, rule in satisfied if uri in difference.now}
    came, went = sorted(now - old), sorted(old - now)
    bulk.insert_rows(connection, rule_results, came)
    if went:
        c, parameters = rule_results.c, [{"u": uri, "r": rule} for uri, rule in went]
        connection.execute(
            delete(rule_results).where(c.uri == bindparam("u"), c.rule == bindparam("r")), parameters
        )
    rows = [(*pair, 0, 0) for pair in came] + [(*pair, 0, 1) for pair in went]
    bulk.insert_rows(connection, run_delta, rows)


_SATISFIED = select(rule_results.c.uri, rule_results.c.rule).join_from(
    rule_results, atomic_rules, (rule_results.c.rule == atomic_rules.c.rule) & (atomic_rules.c.level == 0)
)

# The groups that changed results of a level affect: those with their rules as inputs.
_FEED = text(
    "INSERT INTO run_moved (level, grp, is_left, rule, uri, comes, goes)"
    " SELECT f.level, f.grp, f.is_left, d.rule, d.uri, 1 - d.went, d.went"
    " FROM run_delta d CROSS JOIN rule_inputs f WHERE d.level = :level AND f.rule = d.rule"
)

# A resource that stays a result may have new partners by another value of a compared property.
_FEED_TOUCHED = text(
    "INSERT INTO run_moved (level, grp, is_left, rule, uri, comes, goes)"
    " SELECT f.level, f.grp, f.is_left, r.rule, r.uri, 1, 1"
    " FROM run_touched t CROSS JOIN rule_results r CROSS JOIN rule_inputs f CROSS JOIN rule_groups g"
    " WHERE r.uri = t.uri AND f.rule = r.rule AND g.grp = f.grp"
    " AND (t.property = CASE f.is_left WHEN 1 THEN g.left_property ELSE g.right_property END"
    " OR g.further_predicates IS NOT NULL AND (SELECT 1 FROM rule_group_predicates o WHERE o.grp = g.grp"
    " AND t.property = CASE f.is_left WHEN 1 THEN o.left_property ELSE o.right_property END LIMIT 1) IS NOT NULL)"
)


def _feed_paths(connection: Connection) -> None:
    """Find the resources that are affected by a change at the end of a path, through references to it.

    Current references suffice: a resource that no longer refers to the changed one was changed itself.
    """
    for grp in connection.execute(_WITH_PATHS).scalars().all():
        (condition,) = rule_base.load_groups(connection, [grp]).values()
        for is_left, steps in _paths(condition):
            bound = {f"step{at}": step for at, step in enumerate(steps)}
            for length in range(len(steps)):
                statement = text(_feed_path(length))
                connection.execute(statement, {"grp": grp, "is_left": is_left, **bound})


_WITH_PATHS = text(
    "SELECT g.grp FROM rule_groups g WHERE g.left_property LIKE '%.%' OR g.right_property LIKE '%.%'"
    " OR g.further_predicates IS NOT NULL AND (SELECT 1 FROM rule_group_predicates o WHERE o.grp = g.grp"
    " AND (o.left_property LIKE '%.%' OR o.right_property LIKE '%.%') LIMIT 1) IS NOT NULL ORDER BY g.grp"
)


def _paths(condition: JoinCondition) -> set[tuple[int, tuple[str, ...]]]:
    """Return the compared paths of a group, with their side."""
    both = ((is_left, each) for asked in condition.predicates for is_left, each in _compared(asked))
    return {(is_left, tuple(each.split("."))) for is_left, each in both if is_path(each)}


def _compared(predicate: JoinPredicate) -> tuple[tuple[int, str], ...]:
    return (1, predicate.left or ""), (0, predicate.right or "")


@lru_cache(maxsize=100)
def _feed_path(length: int) -> str:
    """Select the resources from which a number of steps of a path leads to a changed one."""
    tables, conditions, uri = ["run_changed u"], list[str](), "u.uri"
    for index in reversed(range(length)):
        tables.append(f"metadata_atoms a{index}")
        conditions += (
            f"a{index}.property = :step{index}",
            f"substr(a{index}.value, 1, {INDEXED_LENGTH}) = substr({uri}, 1, {INDEXED_LENGTH})",
            f"a{index}.value = {uri}",
        )
        uri = f"a{index}.uri"
    tables += ("rule_results r", "rule_inputs f")
    conditions += (f"r.uri = {uri}", "f.rule = r.rule", "f.grp = :grp", "f.is_left = :is_left")
    return (
        "INSERT INTO run_moved (level, grp, is_left, rule, uri, comes, goes)"
        " SELECT DISTINCT f.level, f.grp, f.is_left, r.rule, r.uri, 1, 1"
        f" FROM {' CROSS JOIN '.join(tables)} WHERE {' AND '.join(conditions)}"
    )


def _climb(connection: Connection) -> None:
    """Evaluate joins level by level: results of one level affect higher levels only."""
    level = 0
    while (level := connection.execute(_NEXT, {"level": level}).scalar() or 0) > 0:
        _evaluate(connection, level)
        connection.execute(_FEED, {"level": level})


_NEXT = text("SELECT min(level) FROM run_moved WHERE level > :level")


def _evaluate(connection: Connection, level: int, first: int = 0) -> None:
    """Evaluate the join rules of a level from the number `first` on, by group, and apply the changes."""
    groups = connection.execute(_GROUPS, {"level": level}).scalars().all()
    conditions = rule_base.load_groups(connection, groups)
    for grp in groups:
        bound = {
            "level": level,
            "grp": grp,
            "first": first,
            **join_statements.join_parameters(conditions[grp]),
        }
        for statement in join_statements.build_join_statements(conditions[grp], connection.dialect.name):
            connection.execute(statement, bound)
    for statement in (_MATERIALISE, _FORGET):
        connection.execute(statement, {"level": level})


_GROUPS = text("SELECT DISTINCT grp FROM run_moved WHERE level = :level ORDER BY grp")


_MATERIALISE = text(
    "INSERT INTO rule_results (uri, rule) SELECT uri, rule FROM run_delta WHERE level = :level AND went = 0"
)
_FORGET = text(
    "DELETE FROM rule_results WHERE (uri, rule) IN"
    " (SELECT uri, rule FROM run_delta WHERE level = :level AND went = 1)"
)


def _seed(connection: Connection, level: int, first: int) -> None:
    """Mark all results of the smaller input of each new join rule of a level as new.

    The larger one may have all resources of a class: for 100,000 new rules, each resource would be marked 100,000
    times.
    """
    c = join_rules.c
    joins = connection.execute(
        select(c.grp, c.left_rule, c.right_rule).where(c.rule >= first, c.level == level)
    ).all()
    sizes = _sizes(connection, {rule for _, left, right in joins for rule in (left, right)})
    seeds = {
        (level, grp, 1, left) if sizes[left] <= sizes[right] else (level, grp, 0, right)
        for grp, left, right in joins
        if left in sizes and right in sizes
    }
    bulk.insert_rows(connection, run_seeds, sorted(seeds))
    connection.execute(_FEED_SEEDS, {"level": level})


_FEED_SEEDS = text(
    "INSERT INTO run_moved (level, grp, is_left, rule, uri, comes, goes)"
    " SELECT s.level, s.grp, s.is_left, r.rule, r.uri, 1, 0"
    " FROM run_seeds s CROSS JOIN rule_results r WHERE s.level = :level AND r.rule = s.rule"
)


def _sizes(connection: Connection, rules: Collection[int]) -> dict[int, int]:
    """Count the results of rules; rules without results are omitted."""
    sizes: dict[int, int] = {}
    c = rule_results.c
    if connection.execute(select(c.rule).limit(1)).first() is None:
        return {}
    for piece in bulk.iter_chunks(sorted(rules), bulk.KEYS):
        counted = select(c.rule, func.count()).where(c.rule.in_(piece)).group_by(c.rule)
        sizes |= dict(tuple(row) for row in connection.execute(counted))
    return sizes


def _outcome(connection: Connection) -> FilterOutcome:
    """Combine the changes of end rules: a resource enters a rule if none of its end rules had it before."""
    earlier: dict[RuleResult, int] = {}
    now: dict[RuleResult, int] = {}
    ends: dict[RuleResult, list[int]] = {}
    for name, uri, rule, went, count in connection.execute(_MOVES):
        pair = (name, uri)
        now[pair] = count
        earlier[pair] = earlier.get(pair, count) + (1 if went else -1)
        ends.setdefault(pair, []).append(rule)
    # A pair enters or leaves by all changed end rules: one that changed the other way would have kept it a result.
    entered = frozenset(pair for pair, count in earlier.items() if not count and now[pair])
    left = frozenset(pair for pair, count in earlier.items() if count and not now[pair])
    inside = {tuple(row) for row in connection.execute(_INSIDE)}
    return FilterOutcome(entered, frozenset(inside - entered), left, ends)


_MOVES = text(
    "SELECT e.name, d.uri, d.rule, d.went, (SELECT count(*) FROM rule_ends s CROSS JOIN rule_results r"
    " WHERE s.name = e.name AND r.rule = s.rule AND r.uri = d.uri)"
    " FROM run_delta d CROSS JOIN rule_ends e WHERE e.rule = d.rule"
)

# Members that changed, and members from which strong references lead to a changed resource. References to a resource of
# another class are ignored. UNION, not UNION ALL: references may form a cycle. Current references suffice: a resource
# that no longer refers to the changed one was changed itself.
_INSIDE = text(
    "WITH RECURSIVE reached (uri, class) AS (SELECT uri, class FROM run_changed UNION"
    " SELECT a.uri, a.class FROM reached r CROSS JOIN metadata_atoms a CROSS JOIN metadata_classes c"
    f" WHERE a.strong IS NOT NULL AND substr(a.value, 1, {INDEXED_LENGTH}) = substr(r.uri, 1, {INDEXED_LENGTH})"
    " AND a.value = r.uri AND c.class = r.class AND c.superclass = a.strong)"
    " SELECT e.name, r.uri FROM reached u CROSS JOIN rule_results r CROSS JOIN rule_ends e"
    " WHERE r.uri = u.uri AND e.rule = r.rule"
)
