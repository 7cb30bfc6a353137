"""Triggers as SQLite has them: statements between BEGIN and END, and a recursive query only inside another query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidings.objects.triggers.dialect import Piece, Trigger, What
from tidings.objects.triggers.places import Places, Way
from tidings.objects.triggers.words import comment, indented, quoted, text, texts

# Keys are texts, whatever they are in tables: without a type, somebody who watches '1' would never hear of 1.
# Compared with a column of numbers, SQLite takes a text for the number that it says, and uses the column's index.
_TABLES = {
    "tidings_watches": """(
    subscriber_class TEXT NOT NULL,
    subscriber_key TEXT NOT NULL,
    class TEXT NOT NULL,
    key TEXT -- NULL: all objects of the class
)""",
    "tidings_changes": """(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    kind TEXT NOT NULL, -- insert, update, delete, link, unlink
    class TEXT NOT NULL, -- of which the object is made
    family TEXT NOT NULL, -- the topmost class above it: with the key it says which object it is
    key TEXT NOT NULL,
    attributes TEXT, -- of an update: what is another, as a JSON array
    before TEXT, -- their values, as a JSON object
    after TEXT,
    association TEXT, -- of a link: with what
    other_family TEXT,
    other_key TEXT
)""",
    "tidings_reached": """(
    change INTEGER NOT NULL,
    family TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (change, family, key)
) WITHOUT ROWID""",
    "tidings_steps": """(
    change INTEGER NOT NULL,
    family TEXT NOT NULL,
    key TEXT NOT NULL,
    association TEXT NOT NULL,
    forwards INTEGER NOT NULL, -- 1: from source to target
    to_family TEXT NOT NULL,
    to_key TEXT NOT NULL
)""",
    "tidings_hits": """(
    change INTEGER NOT NULL,
    subscriber_family TEXT NOT NULL,
    subscriber_key TEXT NOT NULL,
    family TEXT NOT NULL, -- the changed object that concerns the subscriber
    key TEXT NOT NULL,
    how TEXT NOT NULL, -- watched, class, implicit
    by TEXT NOT NULL, -- the class that is watched, or the association
    forwards INTEGER NOT NULL
)""",
}
_INDEXES = {
    "tidings_watches_by_key": "tidings_watches (key)",
    "tidings_watches_by_class": "tidings_watches (class, key)",
    "tidings_changes_by_object": "tidings_changes (family, key)",
    "tidings_steps_by_change": "tidings_steps (change)",
    "tidings_hits_by_change": "tidings_hits (change)",
}


@dataclass(frozen=True)
class Sqlite:
    """What is said so in SQLite only."""

    name: str = "sqlite"
    title: str = "SQLite"

    def tables(self) -> Sequence[Piece]:
        tables = [
            Piece(What.TABLE, name, f"CREATE TABLE {name} {columns};") for name, columns in _TABLES.items()
        ]
        indexes = [
            Piece(What.INDEX, name, f"CREATE INDEX {name} ON {on};", on.split()[0])
            for name, on in _INDEXES.items()
        ]
        return [*tables, *indexes]

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

    def differs(self, old: str, new: str) -> str:
        return f"{old} IS NOT {new}"

    def value(self, value: str) -> str:
        """JSON has no bytes, and SQLite would refuse the user's own update because of them."""
        return f"CASE typeof({value}) WHEN 'blob' THEN hex({value}) ELSE {value} END"

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
