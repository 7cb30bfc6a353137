"""PostgreSQL dialect: each trigger calls a function, and a recursive query has one recursive part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tidings.objects.model.relational_view import (
    DirectedAssociation,
    RelationalView,
    build_name,
    format_comment,
    indent_sql,
    quote_literal,
    quote_literals,
    quote_name,
)
from tidings.objects.model.table_mapping import to_snake_case
from tidings.objects.triggers.dialect import (
    ColumnTypes,
    SchemaObject,
    SchemaObjectKind,
    Trigger,
    build_distance_column,
    build_outbox_schema,
)

POSTGRESQL_TYPES = ColumnTypes(
    text="text",
    number="bigint",
    flag="integer",
    json="jsonb",
    identity="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    moment="timestamptz NOT NULL DEFAULT clock_timestamp()",
)
"""Functions convert keys back from text: see `support_objects`."""


@dataclass(frozen=True)
class PostgresqlDialect:
    """SQL of PostgreSQL."""

    name: str = "postgresql"
    title: str = "PostgreSQL"

    def tables(self) -> Sequence[SchemaObject]:
        return tuple(build_outbox_schema(POSTGRESQL_TYPES))

    def support_objects(self, view: RelationalView) -> Sequence[SchemaObject]:
        """Build functions that convert a text to a key of the table's type, so that its index is used.

        Comparing the column as text would read the whole table, and the model does not contain the type.
        """
        functions = [_build_author_function(view)]
        for family in view.families():
            table = view.mapped.tables[family]
            name, column = quote_name(table.name), quote_name(table.key)
            head = f"(key text) RETURNS {name}.{column}%TYPE LANGUAGE plpgsql IMMUTABLE STRICT"
            comment = f"-- Convert a text to a key of {name}: its column {column} has the type."
            functions.append(
                _build_function(
                    _build_key_function_name(family), head, f"\nBEGIN\n    {comment}\n    RETURN key;\nEND\n"
                )
            )
        return functions

    def trigger(self, trigger: Trigger) -> Sequence[SchemaObject]:
        """Build a trigger and its function, which finds the outbox whatever the search path of the session is.

        PostgreSQL does not store the text of a trigger, so a comment has a hash of it. The function checks that a row
        has a key: the type of a column in a trigger's condition could not be changed.
        """
        row = "OLD" if trigger.event.startswith("BEFORE DELETE") else "NEW"
        key_check = [f"IF {trigger.key} IS NULL THEN RETURN {row}; END IF;"] if trigger.key else []
        lines = indent_sql(
            "\n".join((format_comment(trigger.comment), *key_check, *trigger.statements, f"RETURN {row};"))
        )
        body = f"\nBEGIN\n{lines}\nEND\n"
        function = _build_function(
            trigger.name, "() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT", body
        )
        when_clause = f"\nWHEN ({trigger.condition})" if trigger.condition else ""
        head = f"CREATE TRIGGER {trigger.name} {trigger.event} FOR EACH ROW{when_clause}"
        sql = f"{head}\nEXECUTE FUNCTION {trigger.name}();"
        mark = f"Tidings {sha256(sql.encode()).hexdigest()[:16]}"
        comment = (
            f"COMMENT ON TRIGGER {trigger.name} ON {quote_name(trigger.table)} IS {quote_literal(mark)};"
        )
        return [
            function,
            SchemaObject(SchemaObjectKind.TRIGGER, trigger.name, f"{sql}\n{comment}", trigger.table, mark),
        ]

    def key_to_text(self, value: str) -> str:
        return f"{value}::text"

    def reached_key(self, family: str) -> str:
        """Use CASE: PostgreSQL may evaluate conditions in any order, and a key of another family may not convert."""
        return f"CASE WHEN r.family = {quote_literal(family)} THEN {self.text_to_key(family, 'r.key')} END"

    def text_to_key(self, family: str, text: str) -> str:
        return f"{_build_key_function_name(family)}({text})"

    def differs(self, old: str, new: str) -> str:
        """Compare as text: not every type can be compared (json)."""
        return f"{old}::text IS DISTINCT FROM {new}::text"

    def to_json(self, value: str) -> str:
        return f"to_jsonb({value})"

    def to_text(self, value: str) -> str:
        return f"{value}::text"

    def format_timestamp(self, column: str) -> str:
        return f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

    def json_values(self, parameter: str) -> str:
        return f"SELECT value FROM jsonb_array_elements_text({parameter}::jsonb) AS value"

    def aggregate_names(self, name: str) -> str:
        return f"jsonb_agg({name})"

    def aggregate_values(self, name: str, value: str) -> str:
        return f"jsonb_object_agg({name}, {value})"

    def has_changed_attribute(self, attributes: Collection[str]) -> str:
        return f"NEW.attributes ?| ARRAY[{quote_literals(attributes)}]"

    def closure(self, ways: Sequence[tuple[DirectedAssociation, str]], max_steps: int | None) -> str:
        distance = build_distance_column(max_steps)
        parts = [
            f"SELECT {quote_literal(way.far_family)} AS family, l.{quote_name(way.far)}::text AS key\n"
            f"FROM {quote_name(way.relation.table)} AS l\nWHERE {condition}{distance.within}"
            for way, condition in ways
        ]
        start = "SELECT NEW.family AS family, NEW.key AS key"
        if not parts:
            return indent_sql(start)
        lateral = indent_sql("\nUNION ALL\n".join(parts))
        columns = f"n.family, n.key{distance.next}"
        recursive_part = f"SELECT {columns} FROM tidings_closure AS r CROSS JOIN LATERAL (\n{lateral}\n) AS n"
        union = indent_sql(f"{start}{distance.start}\nUNION\n{recursive_part}")
        recursive = f"WITH RECURSIVE tidings_closure (family, key{distance.column}) AS (\n{union}\n)"
        return indent_sql(f"{recursive}\nSELECT {distance.distinct}family, key FROM tidings_closure")

    def author(self) -> str:
        return "(tidings_author_said())[1], (tidings_author_said())[2]"

    def order_by_code_points(self, value: str) -> str:
        return f'{value} COLLATE "C"'

    def reject(self, condition: str, message: str) -> str:
        raised = f"RAISE EXCEPTION USING MESSAGE = {quote_literal(message)}, ERRCODE = 'check_violation'"
        return f"IF {condition} THEN\n    {raised};\nEND IF;"


def _build_key_function_name(family: str) -> str:
    return build_name(to_snake_case(family), "key")


def _build_author_function(view: RelationalView) -> SchemaObject:
    """Build the function that reads the author of a transaction; unset is NULL, and an empty text afterwards."""
    classes = view.model.classes
    message = f"tidings.author: Class:key, of a class of the model: {', '.join(classes)}; received "
    body = f"""
DECLARE
    author text := nullif(current_setting('tidings.author', true), '');
    class text := split_part(author, ':', 1);
    key text := substr(author, strpos(author, ':') + 1);
BEGIN
    -- The author of a change, which its transaction sets: SET LOCAL tidings.author = 'Class:key'.
    IF author NOT LIKE '%:_%' OR class NOT IN ({quote_literals(classes)}) THEN
        RAISE EXCEPTION USING MESSAGE = {quote_literal(message)} || author, ERRCODE = 'check_violation';
    END IF;
    RETURN ARRAY[{view.family_of("class")}, key];
END
"""
    return _build_function("tidings_author_said", "() RETURNS text[] LANGUAGE plpgsql STABLE", body)


def _build_function(name: str, head: str, body: str) -> SchemaObject:
    tag = "$tidings$"
    while tag in body:  # names in the body come from the user
        tag = f"{tag[:-1]}_$"
    return SchemaObject(
        SchemaObjectKind.FUNCTION, name, f"CREATE FUNCTION {name}{head} AS {tag}{body}{tag};", mark=body
    )
