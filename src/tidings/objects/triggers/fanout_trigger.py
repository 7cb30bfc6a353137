"""Trigger on the outbox that propagates a change and finds its subscribers: the paper's algorithm, once.

The paper generates a trigger with the whole algorithm for each table, which repeats the same text many times.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.objects.model.class_model import ChangeKind, MarkLimits
from tidings.objects.model.relational_view import (
    DirectedAssociation,
    RelationalView,
    build_name,
    indent_sql,
    quote_literal,
    quote_literals,
    quote_name,
)
from tidings.objects.propagation import Limits
from tidings.objects.triggers.dialect import Dialect, SchemaObject, SchemaObjectKind, Trigger

IS_ORIGIN = "(r.family = NEW.family AND r.key = NEW.key)"
REACHED_TABLE = "tidings_reached AS r"


def generate_fanout_triggers(view: RelationalView, dialect: Dialect, limits: Limits) -> Iterator[Trigger]:
    comment = "Find the objects that change with it, the steps to them, and the subscribers to notify."
    statements = (
        _build_closure_insert(view, dialect, limits.steps),
        *_build_step_inserts(view, dialect, limits.steps),
        *_build_hit_inserts(view, dialect, limits.subscribers),
    )
    yield Trigger(
        build_name("changes", "told"),
        "AFTER INSERT ON tidings_changes",
        "tidings_changes",
        statements,
        comment,
    )
    yield CLEANUP_TRIGGER
    yield _build_watch_check(view, dialect)


CLEANUP_TRIGGER = Trigger(
    build_name("changes", "forgotten"),
    "AFTER DELETE ON tidings_changes",
    "tidings_changes",
    tuple(
        f"DELETE FROM tidings_{table} WHERE change = OLD.id;"
        for table in ("reached", "steps", "hits", "cuts")
    ),
    "Delete the consequences of a deleted change.",
)
"""No foreign keys: SQLite only enforces them if configured to, and PostgreSQL would check each row of a hit."""


def _build_closure_insert(view: RelationalView, dialect: Dialect, max_steps: int | None) -> str:
    closure = dialect.closure(
        [(way, _build_link_condition(dialect, way)) for way in view.propagating()], max_steps
    )
    return (
        "-- Changed objects: the object itself, and all objects reached along propagating associations.\n"
        f"INSERT INTO tidings_reached (change, family, key)\nSELECT NEW.id, family, key FROM (\n{closure}\n) AS found;"
    )


def _build_step_inserts(view: RelationalView, dialect: Dialect, max_steps: int | None) -> Iterator[str]:
    # Duplicate links cause duplicates. UNION removes them if there are several parts.
    distinct = "" if len(view.propagating()) > 1 else "DISTINCT "
    parts = [
        f"SELECT {distinct}NEW.id, r.family, r.key, {quote_literal(way.name)}, {int(way.forwards)},"
        f" {_build_far_object(dialect, way)}\n"
        f"FROM {REACHED_TABLE} CROSS JOIN {quote_name(way.relation.table)} AS l\n"
        f"WHERE r.change = NEW.id AND {_build_link_condition(dialect, way)}"
        for way in view.propagating()
    ]
    if parts:
        yield (
            "-- Steps between changed objects: readers find a shortest path to each subscriber among them.\n"
            "INSERT INTO tidings_steps (change, family, key, association, forwards, to_family, to_key)\n"
            + "\nUNION\n".join(parts)
            + ";"
        )
    if parts and max_steps is not None:
        yield from _build_step_limit(max_steps)


def _build_step_limit(max_steps: int) -> Iterator[str]:
    """Count and delete the steps beyond the limit: they start at the farthest objects, so they are few."""
    is_reached = "r.change = NEW.id AND r.family = to_family AND r.key = to_key"
    end = f"SELECT 1 FROM {REACHED_TABLE} WHERE {is_reached}"
    beyond_limit = f"FROM tidings_steps\nWHERE change = NEW.id AND NOT EXISTS ({end})"
    yield (
        f"-- Count the steps beyond the limit of {max_steps}.\n"
        + _build_truncation_insert("steps", max_steps, f"SELECT count(*) AS found {beyond_limit}", 0)
    )
    yield f"DELETE {beyond_limit};"


HIT_COLUMNS = "change, subscriber_family, subscriber_key, family, key, how, by, forwards"


def _build_hit_inserts(view: RelationalView, dialect: Dialect, max_subscribers: int | None) -> Iterator[str]:
    parts = (
        _select_watchers(view),
        *_select_class_watchers(view, dialect),
        *_select_implicit_subscribers(view, dialect),
    )
    union = "\nUNION\n".join(parts)
    yield (
        "-- Subscribers: watchers of a changed object or its class, and far ends of implicit associations.\n"
        f"INSERT INTO tidings_hits ({HIT_COLUMNS})\n"
        + (f"{union};" if max_subscribers is None else _select_hits_of_first(dialect, union, max_subscribers))
    )
    if max_subscribers is not None:
        count = f"SELECT count(*) AS found FROM (SELECT DISTINCT {SUBSCRIBER_COLUMNS} FROM {HITS_CTE}) AS subscribers"
        yield (
            "-- Count all subscribers with another query, because those beyond the limit are not stored.\n"
            + _build_truncation_insert(
                "told", max_subscribers, f"{_build_hits_cte(union)}\n{count}", max_subscribers
            )
        )


SUBSCRIBER_COLUMNS = "subscriber_family, subscriber_key"
HITS_CTE = "tidings_found"
"""Our prefix, since a table of the user may have any other name."""


def _select_hits_of_first(dialect: Dialect, union: str, max_subscribers: int) -> str:
    """Select the hits of the first subscribers, in an order independent of the database's collation."""
    order = ", ".join(dialect.order_by_code_points(each) for each in SUBSCRIBER_COLUMNS.split(", "))
    rank = f"dense_rank() OVER (ORDER BY {order})"
    ranked = f"{_build_hits_cte(union)}\nSELECT {HITS_CTE}.*, {rank} AS place FROM {HITS_CTE}"
    return (
        f"SELECT {HIT_COLUMNS} FROM (\n{indent_sql(ranked)}\n) AS ranked\nWHERE place <= {max_subscribers};"
    )


def _build_hits_cte(union: str) -> str:
    return f"WITH {HITS_CTE} ({HIT_COLUMNS}) AS (\n{indent_sql(union)}\n)"


def _build_truncation_insert(kind: str, limit: int, count: str, threshold: int) -> str:
    """Insert a row for a limit that was reached, if a query counts more than allowed."""
    return (
        "INSERT INTO tidings_cuts (change, what, most, found)\n"
        f"SELECT NEW.id, {quote_literal(kind)}, {limit}, counted.found FROM (\n{indent_sql(count)}\n) AS counted\n"
        f"WHERE counted.found > {threshold};"
    )


def _select_watchers(view: RelationalView) -> str:
    return (
        f"SELECT NEW.id, {view.family_of('w.subscriber_class')}, w.subscriber_key, r.family, r.key,"
        " 'watched', '', 0\n"
        f"FROM {REACHED_TABLE} CROSS JOIN tidings_watches AS w\n"
        f"WHERE r.change = NEW.id AND w.key = r.key AND {view.family_of('w.class')} = r.family"
    )


def _select_class_watchers(view: RelationalView, dialect: Dialect) -> Iterator[str]:
    """One part for all topmost classes, one for the classes below each: SQLite takes at most 500 parts."""
    yield _select_watchers_of_class(view, "w.class = r.family")
    for family in view.families():
        key, descendants = dialect.reached_key(family), view.below(family)
        cases = "".join(
            f"\n        WHEN {quote_literal(name)} THEN {view.is_a(name, key)}" for name in descendants
        )
        if descendants:
            condition = f"r.family = {quote_literal(family)} AND w.class IN ({quote_literals(descendants)})"
            yield f"{_select_watchers_of_class(view, condition)}\n    AND CASE w.class{cases} END"


def _select_watchers_of_class(view: RelationalView, condition: str) -> str:
    return (
        f"SELECT NEW.id, {view.family_of('w.subscriber_class')}, w.subscriber_key, r.family, r.key,"
        " 'class', w.class, 0\n"
        f"FROM {REACHED_TABLE} CROSS JOIN tidings_watches AS w\n"
        f"WHERE r.change = NEW.id AND {condition} AND w.key IS NULL"
    )


def _select_implicit_subscribers(view: RelationalView, dialect: Dialect) -> Iterator[str]:
    for way in view.implicit():
        yield (
            f"SELECT NEW.id, {_build_far_object(dialect, way)}, r.family, r.key, 'implicit',"
            f" {quote_literal(way.name)}, {int(way.forwards)}\n"
            f"FROM {REACHED_TABLE} CROSS JOIN {quote_name(way.relation.table)} AS l\n"
            f"WHERE r.change = NEW.id AND {_build_link_condition(dialect, way)}"
        )


def _build_far_object(dialect: Dialect, way: DirectedAssociation) -> str:
    return f"{quote_literal(way.far_family)}, {dialect.key_to_text(f'l.{quote_name(way.far)}')}"


def _build_link_condition(dialect: Dialect, way: DirectedAssociation) -> str:
    """Build the test whether a link propagates from the reached object `r`."""
    near = f"l.{quote_name(way.near)} = {dialect.reached_key(way.near_family)}"
    joined = f"r.family = {quote_literal(way.near_family)} AND {near}"
    return " AND ".join(
        (joined, f"l.{quote_name(way.far)} IS NOT NULL", *_build_limit_conditions(dialect, way.limits))
    )


def _build_limit_conditions(dialect: Dialect, limits: MarkLimits) -> Iterator[str]:
    """Build the limits of a mark. Kinds apply at each step, attributes only to the object that was updated."""
    if limits.kinds is not None:
        yield f"NEW.kind IN ({quote_literals(each.value for each in ChangeKind if each in limits.kinds)})"
    if limits.attributes is not None:
        yield f"(NEW.kind <> 'update' OR NOT {IS_ORIGIN} OR {dialect.has_changed_attribute(sorted(limits.attributes))})"


def _build_watch_check(view: RelationalView, dialect: Dialect) -> Trigger:
    """Build the trigger that checks classes of watches: a mistyped class would never match."""
    model = view.model
    subscriber_classes = [name for name in model.classes if model.is_subscriber(name)]
    accepted = quote_literals(subscriber_classes) or "NULL"
    statements = (
        dialect.reject(
            f"NEW.class NOT IN ({quote_literals(model.classes)})",
            f"tidings_watches.class: the model has {', '.join(model.classes)}",
        ),
        dialect.reject(
            f"NEW.subscriber_class NOT IN ({accepted})" if subscriber_classes else "1 = 1",
            f"tidings_watches.subscriber_class: subscribers are {', '.join(subscriber_classes) or 'not in the model'}",
        ),
    )
    event, comment = (
        "BEFORE INSERT ON tidings_watches",
        "Only classes of the model can be watched or notified.",
    )
    return Trigger(build_name("watches", "checked"), event, "tidings_watches", statements, comment)


def generate_indexes(view: RelationalView) -> Iterator[SchemaObject]:
    """Generate indexes from objects to their links, so that a change costs as much as it reaches."""
    seen: set[tuple[str, str]] = set()
    for way in (*view.propagating(), *view.implicit()):
        table, column, reference = way.relation.table, way.near, way.relation.reference
        if (table, column) not in seen and reference in (None, column):
            seen.add((table, column))
            name = build_name(table, "by", column)
            sql = f"CREATE INDEX {name} ON {quote_name(table)} ({quote_name(column)});"
            yield SchemaObject(SchemaObjectKind.INDEX, name, sql, table)
