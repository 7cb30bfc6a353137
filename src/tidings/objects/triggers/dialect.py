"""Protocol of the SQL dialects, objects to install, and the schema of the outbox.

Everything that SQLite and PostgreSQL share is written once, in the generator. Keys in the outbox are texts, whatever
their type in the user's tables: a watch of '1' matches 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tidings.objects.model.relational_view import DirectedAssociation, RelationalView


class SchemaObjectKind(Enum):
    """Kinds of installed objects, in the order of their creation."""

    TABLE = "table"
    COLUMN = "column"
    FUNCTION = "function"
    INDEX = "index"
    TRIGGER = "trigger"


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """An object to install: its name, its table if it has one, and the SQL that creates it.

    `mark` identifies its version in a database; None if it only has to exist, as a table does: its rows cannot be
    recreated. `added_columns` are columns that are added to a table of an earlier version.
    """

    what: SchemaObjectKind
    name: str
    sql: str
    on: str | None = None
    mark: str | None = None
    added_columns: tuple[SchemaObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: its event (`AFTER UPDATE ON "course"`), condition and statements, with a comment.

    Rows whose `key` is NULL are not objects: SQLite allows them, and PostgreSQL if the key is only unique.
    """

    name: str
    event: str
    table: str
    statements: tuple[str, ...]
    comment: str
    condition: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class DistanceColumn:
    """Fragments of a recursive query for the distance of an object, if steps are limited; empty otherwise.

    An object that is reached on several paths has one row for each distance up to the limit.
    """

    column: str = ""
    start: str = ""
    next: str = ""
    within: str = ""
    distinct: str = ""


def build_distance_column(max_steps: int | None) -> DistanceColumn:
    """Build the fragments. Without a limit there must be none: rows in a cycle would always be new."""
    if max_steps is None:
        return DistanceColumn()
    return DistanceColumn(
        ", distance", ", 0", ", r.distance + 1", f" AND r.distance < {max_steps}", "DISTINCT "
    )


class Dialect(Protocol):
    """SQL that differs between databases."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def tables(self) -> Sequence[SchemaObject]:
        """Return the tables of the outbox: changes, reached objects, steps, hits, truncations; watches."""

    def support_objects(self, view: RelationalView) -> Sequence[SchemaObject]:
        """Return the objects that triggers need besides the tables."""

    def trigger(self, trigger: Trigger) -> Sequence[SchemaObject]: ...

    def key_to_text(self, value: str) -> str:
        """Convert a key to its form in the outbox."""

    def reached_key(self, family: str) -> str:
        """Convert the key of the reached object `r` to the type of its family's tables."""

    def text_to_key(self, family: str, text: str) -> str:
        """Convert a text to a key of a family's type."""

    def differs(self, old: str, new: str) -> str: ...

    def to_json(self, value: str) -> str:
        """Convert a value of any type to one for JSON."""

    def to_text(self, value: str) -> str:
        """Convert a value of any type to text."""

    def format_timestamp(self, column: str) -> str:
        """Convert a timestamp to text, independent of the session's time zone."""

    def json_values(self, parameter: str) -> str:
        """Build a query for each `value` of a JSON array of texts."""

    def aggregate_names(self, name: str) -> str:
        """Aggregate the names of a group to a JSON array."""

    def aggregate_values(self, name: str, value: str) -> str:
        """Aggregate the values of a group by name to a JSON object."""

    def has_changed_attribute(self, attributes: Collection[str]) -> str:
        """Test whether the change NEW has one of the attributes."""

    def closure(self, ways: Sequence[tuple[DirectedAssociation, str]], max_steps: int | None) -> str:
        """Build a query for family and key of all objects reached from NEW; each way has its condition."""

    def author(self) -> str:
        """Build the expressions of the author's family and key; NULL if the program has set none."""

    def order_by_code_points(self, value: str) -> str:
        """Order a text by code points, independent of the database's collation."""

    def reject(self, condition: str, message: str) -> str:
        """Build a statement that aborts the user's statement under a condition."""


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
    class {text} NOT NULL, -- the class of the object
    family {text} NOT NULL, -- the topmost ancestor of the class; with the key it identifies the object
    key {text} NOT NULL,
    attributes {json}, -- of an update: the names of changed attributes, as a JSON array
    before {json}, -- their values, as a JSON object
    after {json},
    association {text}, -- of a link: the association and the object at its other end
    other_family {text},
    other_key {text},
    author_family {text}, -- who made the change, if the program set it
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
    found {number} NOT NULL, -- the number of steps beyond the limit, or of subscribers without it
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
    """A database's types for the outbox; `by_key` follows a table that is only read by its key."""

    text: str
    number: str
    flag: str
    json: str
    identity: str
    moment: str
    by_key: str = ""

    def fields(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}


def build_outbox_schema(types: ColumnTypes) -> Iterator[SchemaObject]:
    """Yield the tables, then their indexes."""
    for name, columns in _TABLES.items():
        sql = f"CREATE TABLE {name} {columns.format_map(types.fields())};"
        yield SchemaObject(
            SchemaObjectKind.TABLE, name, sql, added_columns=tuple(_build_added_columns(name, types))
        )
    for name, on in _INDEXES.items():
        yield SchemaObject(SchemaObjectKind.INDEX, name, f"CREATE INDEX {name} ON {on};", on.split()[0])


def _build_added_columns(table: str, types: ColumnTypes) -> Iterator[SchemaObject]:
    for name in _ADDED_COLUMNS.get(table, ()):
        sql = f"ALTER TABLE {table} ADD COLUMN {name} {types.text};"
        yield SchemaObject(SchemaObjectKind.COLUMN, name, sql, table)
