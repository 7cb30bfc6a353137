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
        yield _inserted(view, dialect, rows)
        if rows.columns:
            yield _updated(view, dialect, rows)
        yield _deleted(view, dialect, rows)
    for way in view.propagating():
        yield from _links(view, dialect, way)


def _inserted(view: RelationalView, dialect: Dialect, rows: ObjectTable) -> Trigger:
    key = f"NEW.{quote_name(rows.key)}"
    values = f"'insert', {_which(view, dialect, rows, key)}, {_all_values(dialect, rows, 'NEW')}"
    said = f"{_written(dialect, 'kind, class, family, key, after', values)};"
    last = _last_change(dialect, rows, key)
    forget = f"DELETE FROM tidings_changes WHERE kind = 'insert' AND id = {last};"
    moment, name = f"AFTER INSERT ON {quote_name(rows.table)}", build_name(rows.table, "inserted")
    why, before = f"A row of {rows.table} is a new {rows.family}.", list[str]()
    if not rows.is_topmost:
        why = f"The rest of a new {rows.family}: this says more than what its other row said a moment ago."
        before = [forget]
    return Trigger(name, moment, rows.table, (*before, said), why, key=key)


def _updated(view: RelationalView, dialect: Dialect, rows: ObjectTable) -> Trigger:
    key = f"NEW.{quote_name(rows.key)}"
    differences = [
        (name, f"OLD.{quote_name(column)}", f"NEW.{quote_name(column)}") for name, column in rows.columns
    ]
    changed = "\n    UNION ALL ".join(
        f"SELECT {quote_literal(name)} AS name, {dialect.value(old)} AS was, {dialect.value(new)} AS became"
        f" WHERE {dialect.differs(old, new)}"
        for name, old, new in differences
    )
    values = (
        f"'update', {_which(view, dialect, rows, key)}, {dialect.names('name')},\n"
        f"    {dialect.object('name', 'was')}, {dialect.object('name', 'became')}"
    )
    written = _written(dialect, "kind, class, family, key, attributes, before, after", values)
    said = f"{written}\nFROM (\n    {changed}\n) AS changed;"
    when = " OR ".join(dialect.differs(old, new) for _, old, new in differences)
    why = f"A {rows.family} is another only if a value is: an update to the same value is none."
    name, moment = build_name(rows.table, "updated"), f"{AFTER_UPDATE} ON {quote_name(rows.table)}"
    return Trigger(name, moment, rows.table, (said,), why, when, key)


def _deleted(view: RelationalView, dialect: Dialect, rows: ObjectTable) -> Trigger:
    key = f"OLD.{quote_name(rows.key)}"
    values = f"'delete', {_which(view, dialect, rows, key)}, {_all_values(dialect, rows, 'OLD')}"
    said = _written(dialect, "kind, class, family, key, before", values)
    if rows.has_others:  # an object has several rows: the first that goes is its end
        last = (
            f"SELECT 1 FROM tidings_changes WHERE kind = 'delete' AND id = {_last_change(dialect, rows, key)}"
        )
        said += f"\nWHERE NOT EXISTS ({last})"
    why = f"Before a {rows.family} goes, while its links are still there."
    moment = f"BEFORE DELETE ON {quote_name(rows.table)}"
    return Trigger(build_name(rows.table, "deleted"), moment, rows.table, (f"{said};",), why, key=key)


def _written(dialect: Dialect, columns: str, values: str) -> str:
    return (
        f"INSERT INTO tidings_changes ({columns}, author_family, author_key)\n"
        f"SELECT {values},\n    {dialect.author()}"
    )


def _which(view: RelationalView, dialect: Dialect, rows: ObjectTable, key: str) -> str:
    return f"{view.class_of(rows.family, key)}, {quote_literal(rows.family)}, {dialect.kept(key)}"


def _last_change(dialect: Dialect, rows: ObjectTable, key: str) -> str:
    of = f"family = {quote_literal(rows.family)} AND key = {dialect.kept(key)}"
    return f"(SELECT max(id) FROM tidings_changes WHERE {of})"


def _all_values(dialect: Dialect, rows: ObjectTable, row: str) -> str:
    """Build the JSON object of a row's attributes; NULL if the class has none."""
    if not rows.columns:
        return "NULL"
    values = "\n    UNION ALL ".join(
        f"SELECT {quote_literal(name)} AS name, {dialect.value(f'{row}.{quote_name(column)}')} AS value"
        for name, column in rows.columns
    )
    return f"(SELECT {dialect.object('name', 'value')} FROM (\n    {values}\n) AS row_values)"


def _links(view: RelationalView, dialect: Dialect, way: DirectedAssociation) -> Iterator[Trigger]:
    """Generate triggers for links of a propagating association: they change the object that it leads to."""
    table, reference = way.relation.table, way.relation.reference
    columns = [way.near, way.far] if reference is None else [reference]
    when = " OR ".join(
        dialect.differs(f"OLD.{quote_name(each)}", f"NEW.{quote_name(each)}") for each in columns
    )
    linked, unlinked = ("moved_to", "moved_from") if reference is None else ("linked", "unlinked")
    if way.limits.admits(ChangeKind.LINK):
        said, why = (
            _linked(view, dialect, way),
            f"{way.name}: a {way.far_class} has one more {way.near_class}.",
        )
        if reference is None:
            yield _trigger(table, "linked", "AFTER INSERT", said, why)
        yield _trigger(table, "_".join(filter(None, (reference, linked))), AFTER_UPDATE, said, why, when)
    if way.limits.admits(ChangeKind.UNLINK):
        said = _unlinked(view, dialect, way)
        why = f"{way.name}: a {way.far_class} has lost a {way.near_class}, unless one of them is gone itself."
        if reference is None:
            yield _trigger(table, "unlinked", "BEFORE DELETE", said, why)
        yield _trigger(table, "_".join(filter(None, (reference, unlinked))), BEFORE_UPDATE, said, why, when)


def _trigger(table: str, does: str, moment: str, said: str, why: str, when: str | None = None) -> Trigger:
    return Trigger(build_name(table, does), f"{moment} ON {quote_name(table)}", table, (said,), why, when)


def _linked(view: RelationalView, dialect: Dialect, way: DirectedAssociation) -> str:
    near, far = f"NEW.{quote_name(way.near)}", f"NEW.{quote_name(way.far)}"
    return _link(view, dialect, way, ChangeKind.LINK, "NEW", f"{near} IS NOT NULL AND {far} IS NOT NULL")


def _unlinked(view: RelationalView, dialect: Dialect, way: DirectedAssociation) -> str:
    """Build the change of an unlinked object; links that go with a deleted object are part of the deletion."""
    near, far = f"OLD.{quote_name(way.near)}", f"OLD.{quote_name(way.far)}"
    both = f"{view.exists(way.near_class, near)}\n    AND {view.exists(way.far_class, far)}"
    return _link(view, dialect, way, ChangeKind.UNLINK, "OLD", both)


def _link(
    view: RelationalView,
    dialect: Dialect,
    way: DirectedAssociation,
    kind: ChangeKind,
    row: str,
    condition: str,
) -> str:
    near, far = f"{row}.{quote_name(way.near)}", f"{row}.{quote_name(way.far)}"
    which = f"{view.class_of(way.far_family, far)}, {quote_literal(way.far_family)}, {dialect.kept(far)}"
    other = f"{quote_literal(way.name)}, {quote_literal(way.near_family)}, {dialect.kept(near)}"
    columns = "kind, class, family, key, association, other_family, other_key"
    return (
        f"{_written(dialect, columns, f'{quote_literal(kind.value)}, {which}, {other}')}\nWHERE {condition};"
    )


def generate_schema(
    mapped: MappedModel, dialect: Dialect, limits: Limits = UNLIMITED
) -> tuple[SchemaObject, ...]:
    """Generate everything to install, in the order of creation."""
    view = RelationalView(mapped)
    pieces = [*dialect.tables(), *generate_indexes(view), *dialect.helpers(view)]
    for trigger in (
        *generate_fanout_triggers(view, dialect, limits),
        *generate_capture_triggers(view, dialect),
    ):
        pieces += dialect.trigger(trigger)
    _check_names(pieces)
    return tuple(pieces)


def _check_names(pieces: list[SchemaObject]) -> None:
    """Raise if names collide: the link table `a_b` and the column `b` of `a` would share a name."""
    counted = Counter((piece.what, piece.name) for piece in pieces)
    for (what, name), count in counted.items():
        if count > 1:
            hint = "say another table or column: <<stored {table = ...}>>, {column = ...}"
            raise InputError(f"{count} of the model would need one {what.value}", received=name, hint=hint)


def render_script(mapped: MappedModel, dialect: Dialect, source: str, limits: Limits = UNLIMITED) -> str:
    """Render a readable script that `sqlite3` and `psql` can run."""
    return "\n".join((*_head(mapped, dialect, source), *_statements(mapped, dialect, limits)))


def _head(mapped: MappedModel, dialect: Dialect, source: str) -> Iterator[str]:
    yield f"-- Whom a change concerns, found out by {dialect.title} itself in the transaction of the change."
    yield f"-- Generated from {printable(source)}: {summarize_model(mapped.model)}"
    yield "-- Change the model and generate again rather than this. All names begin with tidings_."
    yield ""


def _statements(mapped: MappedModel, dialect: Dialect, limits: Limits) -> Iterator[str]:
    yield "BEGIN;"
    yield ""
    for piece in generate_schema(mapped, dialect, limits):
        yield piece.sql
        yield ""
    yield "COMMIT;"
    yield ""


def count_triggers(pieces: tuple[SchemaObject, ...]) -> int:
    return sum(piece.what is SchemaObjectKind.TRIGGER for piece in pieces)
