"""Triggers as SQLite has them: statements between BEGIN and END, and a recursive query only inside another query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidings.objects.triggers.dialect import Piece, Trigger, What
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


@dataclass(frozen=True)
class Sqlite:
    """What is said so in SQLite only."""

    name: str = "sqlite"
    title: str = "SQLite"

    def tables(self) -> Sequence[Piece]:
        return tuple(outbox(TYPES))

    def helpers(self, places: Places) -> Sequence[Piece]:
        return ()

    def trigger(self, trigger: Trigger) -> Sequence[Piece]:
        """Comments stand inside: what is before CREATE, SQLite does not keep."""
        when = f"\nWHEN {trigger.when}" if trigger.when else ""
        body = indented("\n".join((comment(trigger.why), *trigger.statements)))
        sql = f"CREATE TRIGGER {trigger.name} {trigger.moment}{when}\nBEGIN\n{body}\nEND;"
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
        """JSON has no bytes, and SQLite would refuse the user's own update because of them."""
        return f"CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE {value} END"

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

    def closure(self, ways: Sequence[tuple[Way, str]]) -> str:
        arms = [
            f"SELECT {text(way.far_family)}, {self.kept(f'l.{quoted(way.far)}')}\n"
            f"FROM reached AS r CROSS JOIN {quoted(way.relation.table)} AS l\nWHERE {condition}"
            for way, condition in ways
        ]
        union = "\nUNION\n".join(("SELECT NEW.family, NEW.key", *arms))
        recursive = f"WITH RECURSIVE reached (family, key) AS (\n{indented(union)}\n)"
        return indented(f"{recursive}\nSELECT family, key FROM reached")

    def refuse(self, condition: str, message: str) -> str:
        return f"SELECT RAISE(ABORT, {text(message)}) WHERE {condition};"
