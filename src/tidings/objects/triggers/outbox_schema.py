"""The outbox: what changed, what was reached, by which steps, who is told, where that ended; and who watches what.

Keys are texts, whatever they are in the user's tables: somebody who watches '1' hears of 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidings.objects.triggers.dialect import SchemaObject, SchemaObjectKind

_TABLES = {
    "tidings_watches": """(
    subscriber_class {text} NOT NULL,
    subscriber_key {text} NOT NULL,
    class {text} NOT NULL,
    key {text} -- NULL: all objects of the class
)""",
    "tidings_changes": """(
    id {identity},
    at {moment},
    kind {text} NOT NULL, -- insert, update, delete, link, unlink
    class {text} NOT NULL, -- of which the object is made
    family {text} NOT NULL, -- the topmost class above it: with the key it says which object it is
    key {text} NOT NULL,
    attributes {json}, -- of an update: what is another, as a JSON array
    before {json}, -- their values, as a JSON object
    after {json},
    association {text}, -- of a link: with what
    other_family {text},
    other_key {text},
    author_family {text}, -- who made the change, if the program said so
    author_key {text}
)""",
    "tidings_reached": """(
    change {number} NOT NULL,
    family {text} NOT NULL,
    key {text} NOT NULL,
    PRIMARY KEY (change, family, key)
){by_key}""",
    "tidings_steps": """(
    change {number} NOT NULL,
    family {text} NOT NULL,
    key {text} NOT NULL,
    association {text} NOT NULL,
    forwards {flag} NOT NULL, -- 1: from source to target
    to_family {text} NOT NULL,
    to_key {text} NOT NULL
)""",
    "tidings_hits": """(
    change {number} NOT NULL,
    subscriber_family {text} NOT NULL,
    subscriber_key {text} NOT NULL,
    family {text} NOT NULL, -- the changed object that concerns the subscriber
    key {text} NOT NULL,
    how {text} NOT NULL, -- watched, class, implicit
    by {text} NOT NULL, -- the class that is watched, or the association
    forwards {flag} NOT NULL
)""",
    "tidings_cuts": """(
    change {number} NOT NULL,
    what {text} NOT NULL, -- steps, told
    most {number} NOT NULL, -- the limit that was reached
    found {number} NOT NULL, -- how many steps led farther, or how many would have been told
    PRIMARY KEY (change, what)
){by_key}""",
}
_ADDED_COLUMNS = {"tidings_changes": ("author_family", "author_key")}
"""Columns that outboxes of earlier versions do not have."""
_INDEXES = {
    "tidings_watches_by_key": "tidings_watches (key)",
    "tidings_watches_by_class": "tidings_watches (class, key)",
    "tidings_changes_by_object": "tidings_changes (family, key)",
    "tidings_steps_by_change": "tidings_steps (change)",
    "tidings_hits_by_change": "tidings_hits (change)",
}


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """What a database calls the types of the outbox. `by_key` follows a table that is sought by its key only."""

    text: str
    number: str
    flag: str
    json: str
    identity: str
    moment: str
    by_key: str = ""

    def words(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}


def build_outbox_schema(types: ColumnTypes) -> Iterator[SchemaObject]:
    """The tables, then their indexes."""
    for name, columns in _TABLES.items():
        sql = f"CREATE TABLE {name} {columns.format_map(types.words())};"
        yield SchemaObject(SchemaObjectKind.TABLE, name, sql, later=tuple(_build_added_columns(name, types)))
    for name, on in _INDEXES.items():
        yield SchemaObject(SchemaObjectKind.INDEX, name, f"CREATE INDEX {name} ON {on};", on.split()[0])


def _build_added_columns(table: str, types: ColumnTypes) -> Iterator[SchemaObject]:
    for name in _ADDED_COLUMNS.get(table, ()):
        sql = f"ALTER TABLE {table} ADD COLUMN {name} {types.text};"
        yield SchemaObject(SchemaObjectKind.COLUMN, name, sql, table)
