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
    why = "What counts as changed with it, by which steps, and who is told."
    statements = (
        _reached(view, dialect, limits.steps),
        *_steps(view, dialect, limits.steps),
        *_hits(view, dialect, limits.subscribers),
    )
    yield Trigger(
        build_name("changes", "told"), "AFTER INSERT ON tidings_changes", "tidings_changes", statements, why
    )
    yield CLEANUP_TRIGGER
    yield _watched(view, dialect)


CLEANUP_TRIGGER = Trigger(
    build_name("changes", "forgotten"),
    "AFTER DELETE ON tidings_changes",
    "tidings_changes",
    tuple(
        f"DELETE FROM tidings_{table} WHERE change = OLD.id;"
        for table in ("reached", "steps", "hits", "cuts")
    ),
    "With a change goes all that followed from it.",
)
"""No foreign keys: SQLite only enforces them if configured to, and PostgreSQL would check each row of a hit."""


def _reached(view: RelationalView, dialect: Dialect, most: int | None) -> str:
    closure = dialect.closure([(way, _condition(dialect, way)) for way in view.propagating()], most)
    return (
        "-- Changed are the object itself and all that is reached along propagating associations.\n"
        f"INSERT INTO tidings_reached (change, family, key)\nSELECT NEW.id, family, key FROM (\n{closure}\n) AS found;"
    )


def _steps(view: RelationalView, dialect: Dialect, most: int | None) -> Iterator[str]:
    once = (
        "" if len(view.propagating()) > 1 else "DISTINCT "
    )  # UNION removes duplicates, which duplicate links cause
    arms = [
        f"SELECT {once}NEW.id, r.family, r.key, {quote_literal(way.name)}, {int(way.forwards)}, {_far(dialect, way)}\n"
        f"FROM {REACHED_TABLE} CROSS JOIN {quote_name(way.relation.table)} AS l\n"
        f"WHERE r.change = NEW.id AND {_condition(dialect, way)}"
        for way in view.propagating()
    ]
    if arms:
        yield (
            "-- The steps between them: whoever tells somebody why finds the shortest way among these.\n"
            "INSERT INTO tidings_steps (change, family, key, association, forwards, to_family, to_key)\n"
            + "\nUNION\n".join(arms)
            + ";"
        )
    if arms and most is not None:
        yield from _steps_that_lead_farther(most)


def _steps_that_lead_farther(most: int) -> Iterator[str]:
    """Count and delete the steps beyond the limit: they start at the farthest objects, so they are few."""
    to = "r.change = NEW.id AND r.family = to_family AND r.key = to_key"
    farther = (
        f"FROM tidings_steps\nWHERE change = NEW.id AND NOT EXISTS (SELECT 1 FROM {REACHED_TABLE} WHERE {to})"
    )
    yield (
        f"-- Steps lead on from there: it ends after {most}.\n"
        + _cut("steps", most, f"SELECT count(*) AS found {farther}", 0)
    )
    yield f"DELETE {farther};"


HIT_COLUMNS = "change, subscriber_family, subscriber_key, family, key, how, by, forwards"


def _hits(view: RelationalView, dialect: Dialect, most: int | None) -> Iterator[str]:
    arms = (_watchers(view), *_class_watchers(view, dialect), *_implicit(view, dialect))
    union = "\nUNION\n".join(arms)
    yield (
        "-- Told are those who watch one of them or its class, and those at the far end of implicit associations.\n"
        f"INSERT INTO tidings_hits ({HIT_COLUMNS})\n"
        + (f"{union};" if most is None else _of_the_first(dialect, union, most))
    )
    if most is not None:
        count = f"SELECT count(*) AS found FROM (SELECT DISTINCT {SUBSCRIBER_COLUMNS} FROM {HITS_CTE}) AS subscribers"
        yield (
            "-- How many would have been told: found out again, since what is not told is not stored.\n"
            + _cut("told", most, f"{_with_hits(union)}\n{count}", most)
        )


SUBSCRIBER_COLUMNS = "subscriber_family, subscriber_key"
HITS_CTE = "tidings_found"
"""Our prefix, since a table of the user may have any other name."""


def _of_the_first(dialect: Dialect, union: str, most: int) -> str:
    """Select the hits of the first subscribers, in an order independent of the database's collation."""
    order = ", ".join(dialect.by_code_points(each) for each in SUBSCRIBER_COLUMNS.split(", "))
    ranked = f"{_with_hits(union)}\nSELECT {HITS_CTE}.*, dense_rank() OVER (ORDER BY {order}) AS place FROM {HITS_CTE}"
    return f"SELECT {HIT_COLUMNS} FROM (\n{indent_sql(ranked)}\n) AS ranked\nWHERE place <= {most};"


def _with_hits(union: str) -> str:
    return f"WITH {HITS_CTE} ({HIT_COLUMNS}) AS (\n{indent_sql(union)}\n)"


def _cut(what: str, most: int, count: str, above: int) -> str:
    """Insert a row for a limit that was reached, if a query counts more than allowed."""
    return (
        "INSERT INTO tidings_cuts (change, what, most, found)\n"
        f"SELECT NEW.id, {quote_literal(what)}, {most}, counted.found FROM (\n{indent_sql(count)}\n) AS counted\n"
        f"WHERE counted.found > {above};"
    )


def _watchers(view: RelationalView) -> str:
    return (
        f"SELECT NEW.id, {view.family_of('w.subscriber_class')}, w.subscriber_key, r.family, r.key,"
        " 'watched', '', 0\n"
        f"FROM {REACHED_TABLE} CROSS JOIN tidings_watches AS w\n"
        f"WHERE r.change = NEW.id AND w.key = r.key AND {view.family_of('w.class')} = r.family"
    )


def _class_watchers(view: RelationalView, dialect: Dialect) -> Iterator[str]:
    """One part for all topmost classes, one for the classes below each: SQLite takes at most 500 parts."""
    yield _class_watcher(view, "w.class = r.family")
    for family in view.families():
        key, below = dialect.typed(family), view.below(family)
        cases = "".join(f"\n        WHEN {quote_literal(name)} THEN {view.is_a(name, key)}" for name in below)
        if below:
            of = f"r.family = {quote_literal(family)} AND w.class IN ({quote_literals(below)})"
            yield f"{_class_watcher(view, of)}\n    AND CASE w.class{cases} END"


def _class_watcher(view: RelationalView, of: str) -> str:
    return (
        f"SELECT NEW.id, {view.family_of('w.subscriber_class')}, w.subscriber_key, r.family, r.key,"
        " 'class', w.class, 0\n"
        f"FROM {REACHED_TABLE} CROSS JOIN tidings_watches AS w\n"
        f"WHERE r.change = NEW.id AND {of} AND w.key IS NULL"
    )


def _implicit(view: RelationalView, dialect: Dialect) -> Iterator[str]:
    for way in view.implicit():
        yield (
            f"SELECT NEW.id, {_far(dialect, way)}, r.family, r.key, 'implicit',"
            f" {quote_literal(way.name)}, {int(way.forwards)}\n"
            f"FROM {REACHED_TABLE} CROSS JOIN {quote_name(way.relation.table)} AS l\n"
            f"WHERE r.change = NEW.id AND {_condition(dialect, way)}"
        )


def _far(dialect: Dialect, way: DirectedAssociation) -> str:
    return f"{quote_literal(way.far_family)}, {dialect.kept(f'l.{quote_name(way.far)}')}"


def _condition(dialect: Dialect, way: DirectedAssociation) -> str:
    """Build the test whether a link leads on from the reached object `r`."""
    near = f"l.{quote_name(way.near)} = {dialect.typed(way.near_family)}"
    joined = f"r.family = {quote_literal(way.near_family)} AND {near}"
    return " AND ".join((joined, f"l.{quote_name(way.far)} IS NOT NULL", *_limits(dialect, way.limits)))


def _limits(dialect: Dialect, limits: MarkLimits) -> Iterator[str]:
    """Build the limits of a mark. Kinds apply at each step, attributes only to the object that was updated."""
    if limits.kinds is not None:
        yield f"NEW.kind IN ({quote_literals(each.value for each in ChangeKind if each in limits.kinds)})"
    if limits.attributes is not None:
        yield f"(NEW.kind <> 'update' OR NOT {IS_ORIGIN} OR {dialect.touches(sorted(limits.attributes))})"


def _watched(view: RelationalView, dialect: Dialect) -> Trigger:
    """Build the trigger that checks classes of watches: a mistyped class would never match."""
    model = view.model
    tellable = [name for name in model.classes if model.is_subscriber(name)]
    told = quote_literals(tellable) or "NULL"
    statements = (
        dialect.refuse(
            f"NEW.class NOT IN ({quote_literals(model.classes)})",
            f"tidings_watches.class: the model has {', '.join(model.classes)}",
        ),
        dialect.refuse(
            f"NEW.subscriber_class NOT IN ({told})" if tellable else "1 = 1",
            f"tidings_watches.subscriber_class: subscribers are {', '.join(tellable) or 'not in the model'}",
        ),
    )
    moment, why = "BEFORE INSERT ON tidings_watches", "Only classes of the model can be watched or told."
    return Trigger(build_name("watches", "checked"), moment, "tidings_watches", statements, why)


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
