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
"""Functions convert keys back from text: see `helpers`."""


@dataclass(frozen=True)
class PostgresqlDialect:
    """SQL of PostgreSQL."""

    name: str = "postgresql"
    title: str = "PostgreSQL"

    def tables(self) -> Sequence[SchemaObject]:
        return tuple(build_outbox_schema(POSTGRESQL_TYPES))

    def helpers(self, view: RelationalView) -> Sequence[SchemaObject]:
        """Build functions that convert a text to a key of the table's type, so that its index is used.

        Comparing the column as text would read the whole table, and the model does not know the type.
        """
        found = [_author(view)]
        for family in view.families():
            table = view.mapped.tables[family]
            returns = f"{quote_name(table.name)}.{quote_name(table.key)}%TYPE"
            head = f"(key text) RETURNS {returns} LANGUAGE plpgsql IMMUTABLE STRICT"
            why = f"-- A text as a key of {quote_name(table.name)}: its column {quote_name(table.key)} has the type."
            found.append(_function(_key_of(family), head, f"\nBEGIN\n    {why}\n    RETURN key;\nEND\n"))
        return found

    def trigger(self, trigger: Trigger) -> Sequence[SchemaObject]:
        """Build a trigger and its function, which finds the outbox whatever the search path of the session is.

        PostgreSQL does not store the text of a trigger, so a comment has a hash of it. The function checks that a row
        has a key: the type of a column in a trigger's condition could not be changed.
        """
        row = "OLD" if trigger.moment.startswith("BEFORE DELETE") else "NEW"
        unless = [f"IF {trigger.key} IS NULL THEN RETURN {row}; END IF;"] if trigger.key else []
        lines = indent_sql(
            "\n".join((format_comment(trigger.why), *unless, *trigger.statements, f"RETURN {row};"))
        )
        body = f"\nBEGIN\n{lines}\nEND\n"
        function = _function(
            trigger.name, "() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT", body
        )
        when = f"\nWHEN ({trigger.when})" if trigger.when else ""
        sql = f"CREATE TRIGGER {trigger.name} {trigger.moment} FOR EACH ROW{when}\nEXECUTE FUNCTION {trigger.name}();"
        mark = f"Tidings {sha256(sql.encode()).hexdigest()[:16]}"
        said = f"COMMENT ON TRIGGER {trigger.name} ON {quote_name(trigger.table)} IS {quote_literal(mark)};"
        return [
            function,
            SchemaObject(SchemaObjectKind.TRIGGER, trigger.name, f"{sql}\n{said}", trigger.table, mark),
        ]

    def kept(self, value: str) -> str:
        return f"{value}::text"

    def typed(self, family: str) -> str:
        """Use CASE: PostgreSQL may evaluate conditions in any order, and a key of another family may not convert."""
        return f"CASE WHEN r.family = {quote_literal(family)} THEN {self.key(family, 'r.key')} END"

    def key(self, family: str, said: str) -> str:
        return f"{_key_of(family)}({said})"

    def differs(self, old: str, new: str) -> str:
        """Compare as text: not every type can be compared (json)."""
        return f"{old}::text IS DISTINCT FROM {new}::text"

    def value(self, value: str) -> str:
        return f"to_jsonb({value})"

    def shown(self, value: str) -> str:
        return f"{value}::text"

    def moment(self, column: str) -> str:
        return f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

    def listed(self, parameter: str) -> str:
        return f"SELECT value FROM jsonb_array_elements_text({parameter}::jsonb) AS value"

    def names(self, name: str) -> str:
        return f"jsonb_agg({name})"

    def object(self, name: str, value: str) -> str:
        return f"jsonb_object_agg({name}, {value})"

    def touches(self, attributes: Collection[str]) -> str:
        return f"NEW.attributes ?| ARRAY[{quote_literals(attributes)}]"

    def closure(self, ways: Sequence[tuple[DirectedAssociation, str]], most: int | None) -> str:
        far = build_distance_column(most)
        arms = [
            f"SELECT {quote_literal(way.far_family)} AS family, l.{quote_name(way.far)}::text AS key\n"
            f"FROM {quote_name(way.relation.table)} AS l\nWHERE {condition}{far.within}"
            for way, condition in ways
        ]
        start = "SELECT NEW.family AS family, NEW.key AS key"
        if not arms:
            return indent_sql(start)
        lateral = indent_sql("\nUNION ALL\n".join(arms))
        on = f"SELECT n.family, n.key{far.next} FROM tidings_closure AS r CROSS JOIN LATERAL (\n{lateral}\n) AS n"
        union = indent_sql(f"{start}{far.start}\nUNION\n{on}")
        recursive = f"WITH RECURSIVE tidings_closure (family, key{far.column}) AS (\n{union}\n)"
        return indent_sql(f"{recursive}\nSELECT {far.once}family, key FROM tidings_closure")

    def author(self) -> str:
        return "(tidings_author_said())[1], (tidings_author_said())[2]"

    def by_code_points(self, value: str) -> str:
        return f'{value} COLLATE "C"'

    def refuse(self, condition: str, message: str) -> str:
        raised = f"RAISE EXCEPTION USING MESSAGE = {quote_literal(message)}, ERRCODE = 'check_violation'"
        return f"IF {condition} THEN\n    {raised};\nEND IF;"


def _key_of(family: str) -> str:
    return build_name(to_snake_case(family), "key")


def _author(view: RelationalView) -> SchemaObject:
    """Build the function that reads the author of a transaction; unset is NULL, and an empty text afterwards."""
    classes = view.model.classes
    message = f"tidings.author: Class:key, of a class of the model: {', '.join(classes)}; received "
    body = f"""
DECLARE
    said text := nullif(current_setting('tidings.author', true), '');
    class text := split_part(said, ':', 1);
    key text := substr(said, strpos(said, ':') + 1);
BEGIN
    -- Who makes a change, as its transaction says it: SET LOCAL tidings.author = 'Class:key'.
    IF said NOT LIKE '%:_%' OR class NOT IN ({quote_literals(classes)}) THEN
        RAISE EXCEPTION USING MESSAGE = {quote_literal(message)} || said, ERRCODE = 'check_violation';
    END IF;
    RETURN ARRAY[{view.family_of("class")}, key];
END
"""
    return _function("tidings_author_said", "() RETURNS text[] LANGUAGE plpgsql STABLE", body)


def _function(name: str, head: str, body: str) -> SchemaObject:
    tag = "$tidings$"
    while tag in body:  # names are the user's
        tag = f"{tag[:-1]}_$"
    return SchemaObject(
        SchemaObjectKind.FUNCTION, name, f"CREATE FUNCTION {name}{head} AS {tag}{body}{tag};", mark=body
    )
