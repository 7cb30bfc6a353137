"""The outbox: what changed, what was reached, by which steps, who is told, where that ended; and who watches what.

Keys are texts, whatever they are in the user's tables: somebody who watches '1' hears of 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tidings.objects.model.relational_view import DirectedAssociation, RelationalView


class SchemaObjectKind(Enum):
    """What is installed, in the order in which it can be."""

    TABLE = "table"
    COLUMN = "column"
    FUNCTION = "function"
    INDEX = "index"
    TRIGGER = "trigger"


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """One thing to install: its name, the table that it is on if it is on one, and the statements that make it.

    `mark` is what a database that has it tells about it; None where it is enough that it is there. A table is: what
    people have in it cannot be made anew. `later` are columns that a table of an earlier version gets then.
    """

    what: SchemaObjectKind
    name: str
    sql: str
    on: str | None = None
    mark: str | None = None
    later: tuple[SchemaObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """`AFTER UPDATE ON "course"`, when something is so, does some statements. `why` is its comment.

    Without its `key` a row is no object: SQLite takes such rows, and PostgreSQL where a key is only unique.
    """

    name: str
    moment: str
    table: str
    statements: tuple[str, ...]
    why: str
    when: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class DistanceColumn:
    """What a recursive query says beside family and key: nothing, or how far an object is if steps are limited.

    One that is reached on several ways is there once for each distance up to the limit.
    """

    column: str = ""
    start: str = ""
    next: str = ""
    within: str = ""
    once: str = ""


def build_distance_column(most: int | None) -> DistanceColumn:
    """Without a limit there must be none: rows of a circle would never be the same again."""
    if most is None:
        return DistanceColumn()
    return DistanceColumn(", distance", ", 0", ", r.distance + 1", f" AND r.distance < {most}", "DISTINCT ")


class Dialect(Protocol):
    """How a database says it."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def tables(self) -> Sequence[SchemaObject]:
        """The outbox: what changed, what was reached by which steps, who is told, where it ended; who watches what."""

    def helpers(self, view: RelationalView) -> Sequence[SchemaObject]:
        """What the rest needs beside the tables."""

    def trigger(self, trigger: Trigger) -> Sequence[SchemaObject]: ...

    def kept(self, value: str) -> str:
        """A key as the outbox keeps it."""

    def typed(self, family: str) -> str:
        """The key of the reached object `r` as tables of its family have it."""

    def key(self, family: str, said: str) -> str:
        """A text as a key of the type that the tables of a family have."""

    def differs(self, old: str, new: str) -> str: ...

    def value(self, value: str) -> str:
        """A value of any type, fit for JSON."""

    def shown(self, value: str) -> str:
        """A value of any type as a text."""

    def moment(self, column: str) -> str:
        """A moment as a text, the same for everybody who asks."""

    def listed(self, parameter: str) -> str:
        """A query for each `value` of a JSON array of texts."""

    def names(self, name: str) -> str:
        """All names of a group as a JSON array."""

    def object(self, name: str, value: str) -> str:
        """All values of a group by name, as a JSON object."""

    def touches(self, attributes: Collection[str]) -> str:
        """Whether the change NEW has one of these attributes."""

    def closure(self, ways: Sequence[tuple[DirectedAssociation, str]], most: int | None) -> str:
        """A query for the family and key of all that is reached from NEW, by so many steps at most.

        Each way has its condition.
        """

    def author(self) -> str:
        """Family and key of who makes the change, as the program has said it; NULL if it has not."""

    def by_code_points(self, value: str) -> str:
        """A text as it is ordered everywhere in the same way."""

    def refuse(self, condition: str, message: str) -> str:
        """A statement that ends the user's one if something is so."""


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
