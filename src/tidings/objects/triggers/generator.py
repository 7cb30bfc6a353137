"""Generation of SQL from a mapped model: the outbox, triggers that capture changes, and the fan-out trigger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidings.core.suggest import printable
from tidings.errors import InputError
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.model.relational_view import (
    DirectedAssociation,
    ObjectTable,
    RelationalView,
    build_name,
    quote_literal,
    quote_name,
)
from tidings.objects.model.summary import summarize_model
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.propagation import UNLIMITED, Limits
from tidings.objects.triggers.dialect import Dialect, SchemaObject, SchemaObjectKind, Trigger
from tidings.objects.triggers.fanout_trigger import generate_fanout_triggers, generate_indexes

AFTER_UPDATE, BEFORE_UPDATE = "AFTER UPDATE", "BEFORE UPDATE"
"""Of any column; a condition selects columns. `UPDATE OF title` does not fire if a statement sets another column and
the user's trigger sets the title (PostgreSQL), or if the title is generated from it (SQLite)."""


def generate_capture_triggers(view: RelationalView, dialect: Dialect) -> Iterator[Trigger]:
    for rows in view.rows():
        yield _build_insert_trigger(view, dialect, rows)
        if rows.columns:
            yield _build_update_trigger(view, dialect, rows)
        yield _build_delete_trigger(view, dialect, rows)
    for way in view.propagating():
        yield from _build_link_triggers(view, dialect, way)


def _build_insert_trigger(view: RelationalView, dialect: Dialect, rows: ObjectTable) -> Trigger:
    key = f"NEW.{quote_name(rows.key)}"
    values = f"'insert', {_build_object_columns(view, dialect, rows, key)}, {_build_all_values(dialect, rows, 'NEW')}"
    statement = f"{_build_change_insert(dialect, 'kind, class, family, key, after', values)};"
    last_change = _select_last_change(dialect, rows, key)
    delete_previous = f"DELETE FROM tidings_changes WHERE kind = 'insert' AND id = {last_change};"
    event, name = f"AFTER INSERT ON {quote_name(rows.table)}", build_name(rows.table, "inserted")
    comment, first_statements = f"A row of {rows.table} is a new {rows.family}.", list[str]()
    if not rows.is_topmost:
        comment = f"Another row of a new {rows.family}: this change replaces the change of the previous row."
        first_statements = [delete_previous]
    return Trigger(name, event, rows.table, (*first_statements, statement), comment, key=key)


def _build_update_trigger(view: RelationalView, dialect: Dialect, rows: ObjectTable) -> Trigger:
    key = f"NEW.{quote_name(rows.key)}"
    differences = [
        (name, f"OLD.{quote_name(column)}", f"NEW.{quote_name(column)}") for name, column in rows.columns
    ]
    changed = "\n    UNION ALL ".join(
        f"SELECT {quote_literal(name)} AS name, {dialect.to_json(old)} AS was, {dialect.to_json(new)} AS became"
        f" WHERE {dialect.differs(old, new)}"
        for name, old, new in differences
    )
    values = (
        f"'update', {_build_object_columns(view, dialect, rows, key)}, {dialect.aggregate_names('name')},\n"
        f"    {dialect.aggregate_values('name', 'was')}, {dialect.aggregate_values('name', 'became')}"
    )
    insert = _build_change_insert(dialect, "kind, class, family, key, attributes, before, after", values)
    statement = f"{insert}\nFROM (\n    {changed}\n) AS changed;"
    condition = " OR ".join(dialect.differs(old, new) for _, old, new in differences)
    comment = f"A {rows.family} is updated if a value differs: setting the same value does not count."
    name, event = build_name(rows.table, "updated"), f"{AFTER_UPDATE} ON {quote_name(rows.table)}"
    return Trigger(name, event, rows.table, (statement,), comment, condition, key)


def _build_delete_trigger(view: RelationalView, dialect: Dialect, rows: ObjectTable) -> Trigger:
    key = f"OLD.{quote_name(rows.key)}"
    values = f"'delete', {_build_object_columns(view, dialect, rows, key)}, {_build_all_values(dialect, rows, 'OLD')}"
    statement = _build_change_insert(dialect, "kind, class, family, key, before", values)
    if rows.has_others:  # of an object with several rows, the first deletion counts
        last = _select_last_change(dialect, rows, key)
        earlier_deletion = f"SELECT 1 FROM tidings_changes WHERE kind = 'delete' AND id = {last}"
        statement += f"\nWHERE NOT EXISTS ({earlier_deletion})"
    comment = f"Before a {rows.family} is deleted, while its links still exist."
    event = f"BEFORE DELETE ON {quote_name(rows.table)}"
    return Trigger(build_name(rows.table, "deleted"), event, rows.table, (f"{statement};",), comment, key=key)


def _build_change_insert(dialect: Dialect, columns: str, values: str) -> str:
    return (
        f"INSERT INTO tidings_changes ({columns}, author_family, author_key)\n"
        f"SELECT {values},\n    {dialect.author()}"
    )


def _build_object_columns(view: RelationalView, dialect: Dialect, rows: ObjectTable, key: str) -> str:
    return f"{view.class_of(rows.family, key)}, {quote_literal(rows.family)}, {dialect.key_to_text(key)}"


def _select_last_change(dialect: Dialect, rows: ObjectTable, key: str) -> str:
    condition = f"family = {quote_literal(rows.family)} AND key = {dialect.key_to_text(key)}"
    return f"(SELECT max(id) FROM tidings_changes WHERE {condition})"


def _build_all_values(dialect: Dialect, rows: ObjectTable, row: str) -> str:
    """Build the JSON object of a row's attributes; NULL if the class has none."""
    if not rows.columns:
        return "NULL"
    values = "\n    UNION ALL ".join(
        f"SELECT {quote_literal(name)} AS name, {dialect.to_json(f'{row}.{quote_name(column)}')} AS value"
        for name, column in rows.columns
    )
    return f"(SELECT {dialect.aggregate_values('name', 'value')} FROM (\n    {values}\n) AS row_values)"


def _build_link_triggers(
    view: RelationalView, dialect: Dialect, way: DirectedAssociation
) -> Iterator[Trigger]:
    """Generate triggers for links of a propagating association: they change the object that it propagates to."""
    table, reference = way.relation.table, way.relation.reference
    columns = [way.near, way.far] if reference is None else [reference]
    condition = " OR ".join(
        dialect.differs(f"OLD.{quote_name(column)}", f"NEW.{quote_name(column)}") for column in columns
    )
    link_event, unlink_event = ("moved_to", "moved_from") if reference is None else ("linked", "unlinked")
    if way.limits.admits(ChangeKind.LINK):
        statement, comment = (
            _build_link_insert(view, dialect, way),
            f"{way.name}: a {way.near_class} is linked to a {way.far_class}.",
        )
        if reference is None:
            yield _build_trigger(table, "linked", "AFTER INSERT", statement, comment)
        yield _build_trigger(
            table,
            "_".join(filter(None, (reference, link_event))),
            AFTER_UPDATE,
            statement,
            comment,
            condition,
        )
    if way.limits.admits(ChangeKind.UNLINK):
        statement = _build_unlink_insert(view, dialect, way)
        comment = (
            f"{way.name}: a {way.near_class} is unlinked from a {way.far_class}, and neither is deleted."
        )
        if reference is None:
            yield _build_trigger(table, "unlinked", "BEFORE DELETE", statement, comment)
        yield _build_trigger(
            table,
            "_".join(filter(None, (reference, unlink_event))),
            BEFORE_UPDATE,
            statement,
            comment,
            condition,
        )


def _build_trigger(
    table: str, event_name: str, event: str, statement: str, comment: str, condition: str | None = None
) -> Trigger:
    return Trigger(
        build_name(table, event_name),
        f"{event} ON {quote_name(table)}",
        table,
        (statement,),
        comment,
        condition,
    )


def _build_link_insert(view: RelationalView, dialect: Dialect, way: DirectedAssociation) -> str:
    near, far = f"NEW.{quote_name(way.near)}", f"NEW.{quote_name(way.far)}"
    return _build_link_change(
        view, dialect, way, ChangeKind.LINK, "NEW", f"{near} IS NOT NULL AND {far} IS NOT NULL"
    )


def _build_unlink_insert(view: RelationalView, dialect: Dialect, way: DirectedAssociation) -> str:
    """Build the change of an unlinked object; links of a deleted object are part of its deletion."""
    near, far = f"OLD.{quote_name(way.near)}", f"OLD.{quote_name(way.far)}"
    both_exist = f"{view.exists(way.near_class, near)}\n    AND {view.exists(way.far_class, far)}"
    return _build_link_change(view, dialect, way, ChangeKind.UNLINK, "OLD", both_exist)


def _build_link_change(
    view: RelationalView,
    dialect: Dialect,
    way: DirectedAssociation,
    kind: ChangeKind,
    row: str,
    condition: str,
) -> str:
    near, far = f"{row}.{quote_name(way.near)}", f"{row}.{quote_name(way.far)}"
    object_columns = (
        f"{view.class_of(way.far_family, far)}, {quote_literal(way.far_family)}, {dialect.key_to_text(far)}"
    )
    other_columns = (
        f"{quote_literal(way.name)}, {quote_literal(way.near_family)}, {dialect.key_to_text(near)}"
    )
    columns = "kind, class, family, key, association, other_family, other_key"
    values = f"{quote_literal(kind.value)}, {object_columns}, {other_columns}"
    return f"{_build_change_insert(dialect, columns, values)}\nWHERE {condition};"


def generate_schema(
    mapped: MappedModel, dialect: Dialect, limits: Limits = UNLIMITED
) -> tuple[SchemaObject, ...]:
    """Generate everything to install, in the order of creation."""
    view = RelationalView(mapped)
    schema_objects = [*dialect.tables(), *generate_indexes(view), *dialect.support_objects(view)]
    for trigger in (
        *generate_fanout_triggers(view, dialect, limits),
        *generate_capture_triggers(view, dialect),
    ):
        schema_objects += dialect.trigger(trigger)
    _check_unique_names(schema_objects)
    return tuple(schema_objects)


def _check_unique_names(schema_objects: list[SchemaObject]) -> None:
    """Raise if names collide: the link table `a_b` and the column `b` of `a` would share a name."""
    counts = Counter((schema_object.what, schema_object.name) for schema_object in schema_objects)
    for (kind, name), count in counts.items():
        if count > 1:
            hint = "set another table or column: <<stored {table = ...}>>, {column = ...}"
            raise InputError(
                f"{count} elements of the model would need the same {kind.value}", received=name, hint=hint
            )


def render_script(mapped: MappedModel, dialect: Dialect, source: str, limits: Limits = UNLIMITED) -> str:
    """Render a readable script that `sqlite3` and `psql` can run."""
    return "\n".join((*_build_header(mapped, dialect, source), *_build_statements(mapped, dialect, limits)))


def _build_header(mapped: MappedModel, dialect: Dialect, source: str) -> Iterator[str]:
    yield f"-- Triggers with which {dialect.title} finds the subscribers of each change, in its transaction."
    yield f"-- Generated from {printable(source)}: {summarize_model(mapped.model)}"
    yield "-- Do not edit this file: change the model and generate again. All names begin with tidings_."
    yield ""


def _build_statements(mapped: MappedModel, dialect: Dialect, limits: Limits) -> Iterator[str]:
    yield "BEGIN;"
    yield ""
    for schema_object in generate_schema(mapped, dialect, limits):
        yield schema_object.sql
        yield ""
    yield "COMMIT;"
    yield ""


def count_triggers(schema_objects: tuple[SchemaObject, ...]) -> int:
    return sum(schema_object.what is SchemaObjectKind.TRIGGER for schema_object in schema_objects)
