"""Triggers as SQLite has them: statements between BEGIN and END, and a recursive query only inside another query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidings.objects.triggers.dialect import Piece, Trigger, What, distance
from tidings.objects.triggers.outbox import Types, outbox
from tidings.objects.triggers.places import Places, Way
from tidings.objects.triggers.words import comment, indented, quoted, text, texts

TYPES = Types(
    text="TEXT",
    number="INTEGER",
    flag="INTEGER",
    json="TEXT",
    identity="INTEGER PRIMARY KEY AUTOINCREMENT",
    moment="TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
    by_key=" WITHOUT ROWID",
)
"""A text that is compared with a column of numbers is taken for the number that it says, and its index is used."""

AUTHOR = """-- Who makes the changes of a transaction: inserted at its begin, deleted at its end.
CREATE TABLE tidings_author (
    class TEXT NOT NULL,
    key TEXT NOT NULL
);"""


@dataclass(frozen=True)
class Sqlite:
    """What is said so in SQLite only."""

    name: str = "sqlite"
    title: str = "SQLite"

    def tables(self) -> Sequence[Piece]:
        return (*outbox(TYPES), Piece(What.TABLE, "tidings_author", AUTHOR))

    def helpers(self, places: Places) -> Sequence[Piece]:
        """Who is said to change things next takes the place of whoever was, and is known by the family."""
        classes = places.model.classes
        message = f"tidings_author.class: the model has {', '.join(classes)}"
        statements = (
            self.refuse(f"NEW.class NOT IN ({texts(classes)})", message),
            "DELETE FROM tidings_author WHERE rowid <> NEW.rowid;",
            f"UPDATE tidings_author SET class = {places.family_of('class')};",
        )
        moment, why = "AFTER INSERT ON tidings_author", "One author at a time, of a class of the model."
        return self.trigger(Trigger("tidings_author_said", moment, "tidings_author", statements, why))

    def trigger(self, trigger: Trigger) -> Sequence[Piece]:
        """Comments stand inside: what is before CREATE, SQLite does not keep."""
        has_key = f"{trigger.key} IS NOT NULL" if trigger.key else ""
        when = f"({trigger.when})" if trigger.when and has_key else trigger.when
        conditions = " AND ".join(filter(None, (has_key, when)))
        head = f"\nWHEN {conditions}" if conditions else ""
        body = indented("\n".join((comment(trigger.why), *trigger.statements)))
        sql = f"CREATE TRIGGER {trigger.name} {trigger.moment}{head}\nBEGIN\n{body}\nEND;"
        return [Piece(What.TRIGGER, trigger.name, sql, trigger.table, sql.rstrip(";"))]

    def kept(self, value: str) -> str:
        return f"CAST({value} AS TEXT)"

    def typed(self, family: str) -> str:
        return "r.key"

    def key(self, family: str, said: str) -> str:
        return said

    def differs(self, old: str, new: str) -> str:
        return f"{old} IS NOT {new}"

    def value(self, value: str) -> str:
        """JSON has no bytes, because of which SQLite would refuse the user's own update, and no infinite numbers."""
        finite = f"typeof({value}) <> 'real' OR abs({value}) < 9e999"
        return (
            f"CASE WHEN typeof({value}) = 'blob' THEN hex({value}) WHEN {finite} THEN {value}"
            f" ELSE CAST({value} AS TEXT) END"
        )

    def shown(self, value: str) -> str:
        return f"CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE CAST({value} AS TEXT) END"

    def moment(self, column: str) -> str:
        return column

    def listed(self, parameter: str) -> str:
        return f"SELECT value FROM json_each({parameter})"

    def names(self, name: str) -> str:
        return f"json_group_array({name})"

    def object(self, name: str, value: str) -> str:
        return f"json_group_object({name}, {value})"

    def touches(self, attributes: Collection[str]) -> str:
        return f"EXISTS (SELECT 1 FROM json_each(NEW.attributes) WHERE value IN ({texts(attributes)}))"

    def closure(self, ways: Sequence[tuple[Way, str]], most: int | None) -> str:
        far = distance(most)
        arms = [
            f"SELECT {text(way.far_family)}, {self.kept(f'l.{quoted(way.far)}')}{far.next}\n"
            f"FROM tidings_closure AS r CROSS JOIN {quoted(way.relation.table)} AS l\nWHERE {condition}{far.within}"
            for way, condition in ways
        ]
        union = "\nUNION\n".join((f"SELECT NEW.family, NEW.key{far.start}", *arms))
        recursive = f"WITH RECURSIVE tidings_closure (family, key{far.column}) AS (\n{indented(union)}\n)"
        return indented(f"{recursive}\nSELECT {far.once}family, key FROM tidings_closure")

    def author(self) -> str:
        return "(SELECT class FROM tidings_author), (SELECT key FROM tidings_author)"

    def by_code_points(self, value: str) -> str:
        return f"{value} COLLATE BINARY"

    def refuse(self, condition: str, message: str) -> str:
        return f"SELECT RAISE(ABORT, {text(message)}) WHERE {condition};"
