"""Triggers on the user's tables: they notice that an object is another, and write that down. Nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.objects.model import Kind
from tidings.objects.triggers.dialect import Dialect, Trigger
from tidings.objects.triggers.places import Places, Rows, Way
from tidings.objects.triggers.words import ours, quoted, text

AFTER_UPDATE, BEFORE_UPDATE = "AFTER UPDATE", "BEFORE UPDATE"
"""Of any column: which ones count is a condition. `UPDATE OF title` is not heard where a statement names another column
and a trigger of the user's sets the title (PostgreSQL), or the title is generated from it (SQLite)."""


def recording(places: Places, dialect: Dialect) -> Iterator[Trigger]:
    for rows in places.rows():
        yield _inserted(places, dialect, rows)
        if rows.columns:
            yield _updated(places, dialect, rows)
        yield _deleted(places, dialect, rows)
    for way in places.propagating():
        yield from _links(places, dialect, way)


def _inserted(places: Places, dialect: Dialect, rows: Rows) -> Trigger:
    key = f"NEW.{quoted(rows.key)}"
    values = f"'insert', {_which(places, dialect, rows, key)}, {_all_values(dialect, rows, 'NEW')}"
    said = f"{_written(dialect, 'kind, class, family, key, after', values)};"
    last = _last_change(dialect, rows, key)
    forget = f"DELETE FROM tidings_changes WHERE kind = 'insert' AND id = {last};"
    moment, name = f"AFTER INSERT ON {quoted(rows.table)}", ours(rows.table, "inserted")
    why, before = f"A row of {rows.table} is a new {rows.family}.", list[str]()
    if not rows.is_topmost:
        why = f"The rest of a new {rows.family}: this says more than what its other row said a moment ago."
        before = [forget]
    return Trigger(name, moment, rows.table, (*before, said), why, key=key)


def _updated(places: Places, dialect: Dialect, rows: Rows) -> Trigger:
    key = f"NEW.{quoted(rows.key)}"
    differences = [(name, f"OLD.{quoted(column)}", f"NEW.{quoted(column)}") for name, column in rows.columns]
    changed = "\n    UNION ALL ".join(
        f"SELECT {text(name)} AS name, {dialect.value(old)} AS was, {dialect.value(new)} AS became"
        f" WHERE {dialect.differs(old, new)}"
        for name, old, new in differences
    )
    values = (
        f"'update', {_which(places, dialect, rows, key)}, {dialect.names('name')},\n"
        f"    {dialect.object('name', 'was')}, {dialect.object('name', 'became')}"
    )
    written = _written(dialect, "kind, class, family, key, attributes, before, after", values)
    said = f"{written}\nFROM (\n    {changed}\n) AS changed;"
    when = " OR ".join(dialect.differs(old, new) for _, old, new in differences)
    why = f"A {rows.family} is another only if a value is: an update to the same value is none."
    name, moment = ours(rows.table, "updated"), f"{AFTER_UPDATE} ON {quoted(rows.table)}"
    return Trigger(name, moment, rows.table, (said,), why, when, key)


def _deleted(places: Places, dialect: Dialect, rows: Rows) -> Trigger:
    key = f"OLD.{quoted(rows.key)}"
    values = f"'delete', {_which(places, dialect, rows, key)}, {_all_values(dialect, rows, 'OLD')}"
    said = _written(dialect, "kind, class, family, key, before", values)
    if rows.has_others:  # an object has several rows: the first that goes is its end
        last = (
            f"SELECT 1 FROM tidings_changes WHERE kind = 'delete' AND id = {_last_change(dialect, rows, key)}"
        )
        said += f"\nWHERE NOT EXISTS ({last})"
    why = f"Before a {rows.family} goes, while its links are still there."
    moment = f"BEFORE DELETE ON {quoted(rows.table)}"
    return Trigger(ours(rows.table, "deleted"), moment, rows.table, (f"{said};",), why, key=key)


def _written(dialect: Dialect, columns: str, values: str) -> str:
    return (
        f"INSERT INTO tidings_changes ({columns}, author_family, author_key)\n"
        f"SELECT {values},\n    {dialect.author()}"
    )


def _which(places: Places, dialect: Dialect, rows: Rows, key: str) -> str:
    return f"{places.class_of(rows.family, key)}, {text(rows.family)}, {dialect.kept(key)}"


def _last_change(dialect: Dialect, rows: Rows, key: str) -> str:
    of = f"family = {text(rows.family)} AND key = {dialect.kept(key)}"
    return f"(SELECT max(id) FROM tidings_changes WHERE {of})"


def _all_values(dialect: Dialect, rows: Rows, row: str) -> str:
    """The values of a row by the names of their attributes; NULL if the class has none."""
    if not rows.columns:
        return "NULL"
    values = "\n    UNION ALL ".join(
        f"SELECT {text(name)} AS name, {dialect.value(f'{row}.{quoted(column)}')} AS value"
        for name, column in rows.columns
    )
    return f"(SELECT {dialect.object('name', 'value')} FROM (\n    {values}\n) AS row_values)"


def _links(places: Places, dialect: Dialect, way: Way) -> Iterator[Trigger]:
    """What is linked or unlinked along a propagating association changes the object that it leads to."""
    table, reference = way.relation.table, way.relation.reference
    columns = [way.near, way.far] if reference is None else [reference]
    when = " OR ".join(dialect.differs(f"OLD.{quoted(each)}", f"NEW.{quoted(each)}") for each in columns)
    linked, unlinked = ("moved_to", "moved_from") if reference is None else ("linked", "unlinked")
    if way.limits.admits(Kind.LINK):
        said, why = (
            _linked(places, dialect, way),
            f"{way.name}: a {way.far_class} has one more {way.near_class}.",
        )
        if reference is None:
            yield _trigger(table, "linked", "AFTER INSERT", said, why)
        yield _trigger(table, "_".join(filter(None, (reference, linked))), AFTER_UPDATE, said, why, when)
    if way.limits.admits(Kind.UNLINK):
        said = _unlinked(places, dialect, way)
        why = f"{way.name}: a {way.far_class} has lost a {way.near_class}, unless one of them is gone itself."
        if reference is None:
            yield _trigger(table, "unlinked", "BEFORE DELETE", said, why)
        yield _trigger(table, "_".join(filter(None, (reference, unlinked))), BEFORE_UPDATE, said, why, when)


def _trigger(table: str, does: str, moment: str, said: str, why: str, when: str | None = None) -> Trigger:
    return Trigger(ours(table, does), f"{moment} ON {quoted(table)}", table, (said,), why, when)


def _linked(places: Places, dialect: Dialect, way: Way) -> str:
    near, far = f"NEW.{quoted(way.near)}", f"NEW.{quoted(way.far)}"
    return _link(places, dialect, way, Kind.LINK, "NEW", f"{near} IS NOT NULL AND {far} IS NOT NULL")


def _unlinked(places: Places, dialect: Dialect, way: Way) -> str:
    """Of what goes with an object that is deleted, the end of the object has told already."""
    near, far = f"OLD.{quoted(way.near)}", f"OLD.{quoted(way.far)}"
    both = f"{places.exists(way.near_class, near)}\n    AND {places.exists(way.far_class, far)}"
    return _link(places, dialect, way, Kind.UNLINK, "OLD", both)


def _link(places: Places, dialect: Dialect, way: Way, kind: Kind, row: str, condition: str) -> str:
    near, far = f"{row}.{quoted(way.near)}", f"{row}.{quoted(way.far)}"
    which = f"{places.class_of(way.far_family, far)}, {text(way.far_family)}, {dialect.kept(far)}"
    other = f"{text(way.name)}, {text(way.near_family)}, {dialect.kept(near)}"
    columns = "kind, class, family, key, association, other_family, other_key"
    return f"{_written(dialect, columns, f'{text(kind.value)}, {which}, {other}')}\nWHERE {condition};"
