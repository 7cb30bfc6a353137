"""SQLite dialect: statements between BEGIN and END, and recursive queries only inside another query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidings.objects.model.relational_view import (
    DirectedAssociation,
    RelationalView,
    format_comment,
    indent_sql,
    quote_literal,
    quote_literals,
    quote_name,
)
from tidings.objects.triggers.dialect import (
    ColumnTypes,
    SchemaObject,
    SchemaObjectKind,
    Trigger,
    build_distance_column,
    build_outbox_schema,
)

SQLITE_TYPES = ColumnTypes(
    text="TEXT",
    number="INTEGER",
    flag="INTEGER",
    json="TEXT",
    identity="INTEGER PRIMARY KEY AUTOINCREMENT",
    moment="TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
    by_key=" WITHOUT ROWID",
)
"""SQLite converts a text that is compared with a numeric column, and uses its index."""

AUTHOR = """-- The author of a transaction's changes: insert it at the start, delete it at the end.
CREATE TABLE tidings_author (
    class TEXT NOT NULL,
    key TEXT NOT NULL
);"""


@dataclass(frozen=True)
class SqliteDialect:
    """SQL of SQLite."""

    name: str = "sqlite"
    title: str = "SQLite"

    def tables(self) -> Sequence[SchemaObject]:
        return (
            *build_outbox_schema(SQLITE_TYPES),
            SchemaObject(SchemaObjectKind.TABLE, "tidings_author", AUTHOR),
        )

    def support_objects(self, view: RelationalView) -> Sequence[SchemaObject]:
        """Build the trigger of the author's table: a new author replaces the previous one."""
        classes = view.model.classes
        message = f"tidings_author.class: the model has {', '.join(classes)}"
        statements = (
            self.reject(f"NEW.class NOT IN ({quote_literals(classes)})", message),
            "DELETE FROM tidings_author WHERE rowid <> NEW.rowid;",
            f"UPDATE tidings_author SET class = {view.family_of('class')};",
        )
        event, comment = "AFTER INSERT ON tidings_author", "One author at a time, of a class of the model."
        return self.trigger(Trigger("tidings_author_said", event, "tidings_author", statements, comment))

    def trigger(self, trigger: Trigger) -> Sequence[SchemaObject]:
        """Build a trigger; comments are inside, since SQLite does not store text before CREATE."""
        key_test = f"{trigger.key} IS NOT NULL" if trigger.key else ""
        condition = f"({trigger.condition})" if trigger.condition and key_test else trigger.condition
        conditions = " AND ".join(filter(None, (key_test, condition)))
        when_clause = f"\nWHEN {conditions}" if conditions else ""
        body = indent_sql("\n".join((format_comment(trigger.comment), *trigger.statements)))
        sql = f"CREATE TRIGGER {trigger.name} {trigger.event}{when_clause}\nBEGIN\n{body}\nEND;"
        return [SchemaObject(SchemaObjectKind.TRIGGER, trigger.name, sql, trigger.table, sql.rstrip(";"))]

    def key_to_text(self, value: str) -> str:
        return f"CAST({value} AS TEXT)"

    def reached_key(self, family: str) -> str:
        return "r.key"

    def text_to_key(self, family: str, text: str) -> str:
        return text

    def differs(self, old: str, new: str) -> str:
        return f"{old} IS NOT {new}"

    def to_json(self, value: str) -> str:
        """Convert blobs and infinite numbers, which JSON lacks: SQLite would reject the user's update."""
        finite = f"typeof({value}) <> 'real' OR abs({value}) < 9e999"
        return (
            f"CASE WHEN typeof({value}) = 'blob' THEN hex({value}) WHEN {finite} THEN {value}"
            f" ELSE CAST({value} AS TEXT) END"
        )

    def to_text(self, value: str) -> str:
        return f"CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE CAST({value} AS TEXT) END"

    def format_timestamp(self, column: str) -> str:
        return column

    def json_values(self, parameter: str) -> str:
        return f"SELECT value FROM json_each({parameter})"

    def aggregate_names(self, name: str) -> str:
        return f"json_group_array({name})"

    def aggregate_values(self, name: str, value: str) -> str:
        return f"json_group_object({name}, {value})"

    def has_changed_attribute(self, attributes: Collection[str]) -> str:
        return (
            f"EXISTS (SELECT 1 FROM json_each(NEW.attributes) WHERE value IN ({quote_literals(attributes)}))"
        )

    def closure(self, ways: Sequence[tuple[DirectedAssociation, str]], max_steps: int | None) -> str:
        distance = build_distance_column(max_steps)
        parts = [
            f"SELECT {quote_literal(way.far_family)}, {self.key_to_text(f'l.{quote_name(way.far)}')}{distance.next}\n"
            f"FROM tidings_closure AS r CROSS JOIN {quote_name(way.relation.table)} AS l\n"
            f"WHERE {condition}{distance.within}"
            for way, condition in ways
        ]
        union = "\nUNION\n".join((f"SELECT NEW.family, NEW.key{distance.start}", *parts))
        recursive = (
            f"WITH RECURSIVE tidings_closure (family, key{distance.column}) AS (\n{indent_sql(union)}\n)"
        )
        return indent_sql(f"{recursive}\nSELECT {distance.distinct}family, key FROM tidings_closure")

    def author(self) -> str:
        return "(SELECT class FROM tidings_author), (SELECT key FROM tidings_author)"

    def order_by_code_points(self, value: str) -> str:
        return f"{value} COLLATE BINARY"

    def reject(self, condition: str, message: str) -> str:
        return f"SELECT RAISE(ABORT, {quote_literal(message)}) WHERE {condition};"
