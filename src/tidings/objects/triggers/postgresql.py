"""Triggers as PostgreSQL has them: each calls a function, and a recursive query has one recursive part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tidings.objects.placing import snake_case
from tidings.objects.triggers.dialect import Piece, Trigger, What, distance
from tidings.objects.triggers.outbox import Types, outbox
from tidings.objects.triggers.places import Places, Way
from tidings.objects.triggers.words import comment, indented, ours, quoted, text, texts

TYPES = Types(
    text="text",
    number="bigint",
    flag="integer",
    json="jsonb",
    identity="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    moment="timestamptz NOT NULL DEFAULT clock_timestamp()",
)
"""Keys are turned back from texts by helpers: see `helpers`."""


@dataclass(frozen=True)
class Postgresql:
    """What is said so in PostgreSQL only."""

    name: str = "postgresql"
    title: str = "PostgreSQL"

    def tables(self) -> Sequence[Piece]:
        return tuple(outbox(TYPES))

    def helpers(self, places: Places) -> Sequence[Piece]:
        """From a text to a key of the type that the table has, so that its index is used.

        Comparing the column as a text would read the whole table, and the model does not know the type.
        """
        found = [_author(places)]
        for family in places.families():
            table = places.placed.tables[family]
            returns = f"{quoted(table.name)}.{quoted(table.key)}%TYPE"
            head = f"(key text) RETURNS {returns} LANGUAGE plpgsql IMMUTABLE STRICT"
            why = f"-- A text as a key of {quoted(table.name)}: its column {quoted(table.key)} has the type."
            found.append(_function(_key_of(family), head, f"\nBEGIN\n    {why}\n    RETURN key;\nEND\n"))
        return found

    def trigger(self, trigger: Trigger) -> Sequence[Piece]:
        """A function finds the outbox where it was installed, whatever search_path whoever changes a row has.

        PostgreSQL does not keep the text of a trigger, so a comment on it says what it was made from. That a row has
        a key is asked in the function: no column's type can be changed that the condition of a trigger names.
        """
        row = "OLD" if trigger.moment.startswith("BEFORE DELETE") else "NEW"
        unless = [f"IF {trigger.key} IS NULL THEN RETURN {row}; END IF;"] if trigger.key else []
        lines = indented("\n".join((comment(trigger.why), *unless, *trigger.statements, f"RETURN {row};")))
        body = f"\nBEGIN\n{lines}\nEND\n"
        function = _function(
            trigger.name, "() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT", body
        )
        when = f"\nWHEN ({trigger.when})" if trigger.when else ""
        sql = f"CREATE TRIGGER {trigger.name} {trigger.moment} FOR EACH ROW{when}\nEXECUTE FUNCTION {trigger.name}();"
        mark = f"Tidings {sha256(sql.encode()).hexdigest()[:16]}"
        said = f"COMMENT ON TRIGGER {trigger.name} ON {quoted(trigger.table)} IS {text(mark)};"
        return [function, Piece(What.TRIGGER, trigger.name, f"{sql}\n{said}", trigger.table, mark)]

    def kept(self, value: str) -> str:
        return f"{value}::text"

    def typed(self, family: str) -> str:
        """CASE, because PostgreSQL may look at conditions in any order: the key of another family may be no number."""
        return f"CASE WHEN r.family = {text(family)} THEN {self.key(family, 'r.key')} END"

    def key(self, family: str, said: str) -> str:
        return f"{_key_of(family)}({said})"

    def differs(self, old: str, new: str) -> str:
        """As texts: not every type can be compared (json)."""
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
        return f"NEW.attributes ?| ARRAY[{texts(attributes)}]"

    def closure(self, ways: Sequence[tuple[Way, str]], most: int | None) -> str:
        far = distance(most)
        arms = [
            f"SELECT {text(way.far_family)} AS family, l.{quoted(way.far)}::text AS key\n"
            f"FROM {quoted(way.relation.table)} AS l\nWHERE {condition}{far.within}"
            for way, condition in ways
        ]
        start = "SELECT NEW.family AS family, NEW.key AS key"
        if not arms:
            return indented(start)
        lateral = indented("\nUNION ALL\n".join(arms))
        on = f"SELECT n.family, n.key{far.next} FROM tidings_closure AS r CROSS JOIN LATERAL (\n{lateral}\n) AS n"
        union = indented(f"{start}{far.start}\nUNION\n{on}")
        recursive = f"WITH RECURSIVE tidings_closure (family, key{far.column}) AS (\n{union}\n)"
        return indented(f"{recursive}\nSELECT {far.once}family, key FROM tidings_closure")

    def author(self) -> str:
        return "(tidings_author_said())[1], (tidings_author_said())[2]"

    def by_code_points(self, value: str) -> str:
        return f'{value} COLLATE "C"'

    def refuse(self, condition: str, message: str) -> str:
        raised = f"RAISE EXCEPTION USING MESSAGE = {text(message)}, ERRCODE = 'check_violation'"
        return f"IF {condition} THEN\n    {raised};\nEND IF;"


def _key_of(family: str) -> str:
    return ours(snake_case(family), "key")


def _author(places: Places) -> Piece:
    """Reads what a program has set for its transaction. What nobody has set is NULL, and afterwards an empty text."""
    classes = places.model.classes
    message = f"tidings.author: Class:key, of a class of the model: {', '.join(classes)}; received "
    body = f"""
DECLARE
    said text := nullif(current_setting('tidings.author', true), '');
    class text := split_part(said, ':', 1);
    key text := substr(said, strpos(said, ':') + 1);
BEGIN
    -- Who makes a change, as its transaction says it: SET LOCAL tidings.author = 'Class:key'.
    IF said NOT LIKE '%:_%' OR class NOT IN ({texts(classes)}) THEN
        RAISE EXCEPTION USING MESSAGE = {text(message)} || said, ERRCODE = 'check_violation';
    END IF;
    RETURN ARRAY[{places.family_of("class")}, key];
END
"""
    return _function("tidings_author_said", "() RETURNS text[] LANGUAGE plpgsql STABLE", body)


def _function(name: str, head: str, body: str) -> Piece:
    tag = "$tidings$"
    while tag in body:  # names are the user's
        tag = f"{tag[:-1]}_$"
    return Piece(What.FUNCTION, name, f"CREATE FUNCTION {name}{head} AS {tag}{body}{tag};", mark=body)
