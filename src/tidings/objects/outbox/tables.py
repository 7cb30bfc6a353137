"""Tables of the outbox: changes with their consequences, oldest first, and watches.

Nothing is marked as read. A reader deletes the changes that it has stored elsewhere, and reads the next ones. A cursor
over ids would lose changes: in PostgreSQL, a transaction that began earlier may commit later.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any

from tidings.core.suggest import did_you_mean, printable
from tidings.errors import InputError
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.model.relational_view import quote_literals
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import (
    Change,
    Hit,
    HitKind,
    Object,
    PropagationResult,
    Step,
    Truncation,
    Watch,
)
from tidings.objects.triggers.dialect import Dialect

INSTALL_COMMAND = "`tidings model triggers MODEL --install URL`"


class DatabaseConnection(ABC):
    """An open connection, the same for both drivers; statements have parameters $1, $2.

    `rejection` is the exception of the driver if one of our triggers rejects a row, `conversion_error` if a text is not
    a value of a column's type.
    """

    dialect: Dialect
    rejection: type[Exception]
    conversion_error: type[Exception]

    @abstractmethod
    def query(self, sql: str, *values: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def execute(self, sql: str, *values: str) -> int:
        """Execute a statement, and return the number of affected rows."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Open a read-only transaction, so that all queries in it see one state."""

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """List the columns of a table; none if there is no such table."""

    def tables(self, names: Sequence[str]) -> list[str]:
        """Return those of the tables that exist."""
        return [name for name in names if self.columns(name)]

    def require_outbox(self) -> None:
        """Raise if no outbox is installed: the database's own error would name an unknown table."""
        columns = self.columns("tidings_changes")
        if not columns:
            raise InputError("this database has no outbox", hint=f"{INSTALL_COMMAND} installs it")
        if "author_key" not in columns:
            raise InputError(
                "the outbox of this database has an earlier version",
                hint=f"{INSTALL_COMMAND} updates it and keeps its content",
            )


MAX_ROWS = 50_000
"""Maximum number of consequences in memory, unless a single change has more."""

OutboxRow = tuple[Any, ...]
RowsByChange = Mapping[int, list[OutboxRow]]


class OutboxReader(DatabaseConnection):
    """Reader of the outbox."""

    def changes(self, limit: int) -> list[ObjectChange]:
        """Read the oldest changes, at most `limit`, and fewer if they have very many consequences."""
        self.require_outbox()
        with self.snapshot():
            changes = self.query(
                f"{_CHANGES.format(id=_change_id(self.dialect), at=_change_time(self.dialect))} LIMIT {int(limit)}"
            )
            rows = changes[: _count_fitting(self._count_consequences(changes))]
            consequences = [
                self._select_consequences(query, rows) for query in (_REACHED, _STEPS, _HITS, _CUTS)
            ]
        return [_build_object_change(row, *(each.get(row[0], []) for each in consequences)) for row in rows]

    def delete_changes(self, ids: Iterable[str]) -> int:
        """Delete changes with their consequences, and return their number.

        The time of a change is compared, too: an outbox that was reinstalled has other changes with the same numbers.
        """
        self.require_outbox()
        sorted_ids = sorted(set(ids))
        numbers = quote_literals(int(each.rpartition("/")[2]) for each in sorted_ids)
        if not sorted_ids:
            return 0
        condition = f"id IN ({numbers}) AND {_change_id(self.dialect)} IN ({self.dialect.json_values('$1')})"
        return self.execute(f"DELETE FROM tidings_changes WHERE {condition}", json.dumps(sorted_ids))

    def _count_consequences(self, changes: Collection[OutboxRow]) -> list[int]:
        """Count the consequences of each change."""
        counts: dict[int, int] = {}
        for table in ("reached", "steps", "hits"):
            for change, count in self._select_for_changes(
                f"SELECT change, count(*) FROM tidings_{table}", changes, "GROUP BY change"
            ):
                counts[change] = counts.get(change, 0) + count
        return [counts.get(row[0], 0) for row in changes]

    def _select_consequences(self, statement: str, changes: Collection[OutboxRow]) -> RowsByChange:
        rows: dict[int, list[OutboxRow]] = {}
        for change, *row in self._select_for_changes(statement, changes):
            rows.setdefault(change, []).append(tuple(row))
        return rows

    def _select_for_changes(
        self, statement: str, changes: Collection[OutboxRow], suffix: str = ""
    ) -> list[OutboxRow]:
        numbers = quote_literals(int(row[0]) for row in changes)
        return self.query(f"{statement} WHERE change IN ({numbers}) {suffix}") if changes else []


_CHANGES = """
SELECT id, {id}, {at}, kind, class, family, key, CAST(attributes AS text), CAST(before AS text), CAST(after AS text),
    association, other_family, other_key, author_family, author_key
FROM tidings_changes ORDER BY id"""
_REACHED = "SELECT change, family, key FROM tidings_reached"
_STEPS = "SELECT change, family, key, association, forwards, to_family, to_key FROM tidings_steps"
_HITS = "SELECT change, subscriber_family, subscriber_key, family, key, how, by, forwards FROM tidings_hits"
_CUTS = "SELECT change, what, most, found FROM tidings_cuts"


def _change_id(dialect: Dialect) -> str:
    """Build the expression of a change's id: the number alone is reused once the outbox is reinstalled."""
    return f"{_change_time(dialect)} || '/' || CAST(id AS text)"


def _change_time(dialect: Dialect) -> str:
    return dialect.format_timestamp("at")


def _count_fitting(counts: Iterable[int]) -> int:
    """Return how many of the changes fit into `MAX_ROWS`: at least one, or reading would never advance."""
    return max(1, sum(total <= MAX_ROWS for total in accumulate(counts)))


def _build_object_change(
    row: OutboxRow,
    reached: list[OutboxRow],
    steps: list[OutboxRow],
    hits: list[OutboxRow],
    truncations: list[OutboxRow],
) -> ObjectChange:
    _, id, at, kind, cls, family, key, attributes, before, after, association, *others = row
    propagation = PropagationResult(
        frozenset(Object(*each) for each in reached),
        frozenset(_build_steps(steps)),
        frozenset(_build_hits(hits)),
        frozenset(Truncation(*each) for each in truncations),
    )
    change = Change(ChangeKind(kind), Object(family, key), frozenset(_parse_json(attributes) or ()))
    other, author = _build_object(*others[:2]), _build_object(*others[2:])
    return ObjectChange(
        id, at, cls, change, propagation, _parse_json(before), _parse_json(after), association, other, author
    )


def _build_object(family: str | None, key: str | None) -> Object | None:
    return None if family is None else Object(family, key)


def _build_steps(rows: Iterable[OutboxRow]) -> Iterator[Step]:
    for family, key, association, forwards, to_family, to_key in rows:
        yield Step(Object(family, key), association, bool(forwards), Object(to_family, to_key))


def _build_hits(rows: Iterable[OutboxRow]) -> Iterator[Hit]:
    for subscriber_family, subscriber_key, family, key, how, by, forwards in rows:
        yield Hit(
            Object(subscriber_family, subscriber_key), Object(family, key), HitKind(how), by, bool(forwards)
        )


def _parse_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


_SAME = "subscriber_class = $1 AND subscriber_key = $2 AND class = $3"
_SAME_OBJECT = f"{_SAME} AND key = $4"
_SAME_CLASS = f"{_SAME} AND key IS NULL"


class WatchTable(DatabaseConnection):
    """Table of watches, which programs may also write themselves.

    A subscriber is named by its own class and key here: `Object("Student", "3")`, even if a student is a person.
    """

    def watch(self, subscriber: Object, cls: str, key: str | None = None) -> bool:
        """Watch an object, or without a key all objects of a class; False if the subscriber watched it before.

        The object need not exist yet.
        """
        self.require_outbox()
        values, condition = _build_condition(subscriber, cls, key)
        row = "$1, $2, $3, NULL" if key is None else "$1, $2, $3, $4"
        insert = "INSERT INTO tidings_watches (subscriber_class, subscriber_key, class, key)"
        try:
            return bool(
                self.execute(
                    f"{insert} SELECT {row} WHERE NOT EXISTS (SELECT 1 FROM tidings_watches WHERE {condition})",
                    *values,
                )
            )
        except self.rejection as error:
            raise _parse_rejection(str(error).partition("\n")[0], subscriber, cls) from error

    def unwatch(self, subscriber: Object, cls: str, key: str | None = None) -> bool:
        """Stop watching, and return whether the subscriber watched it; duplicate rows are deleted, too."""
        self.require_outbox()
        values, condition = _build_condition(subscriber, cls, key)
        return bool(self.execute(f"DELETE FROM tidings_watches WHERE {condition}", *values))

    def watches(self, subscriber: Object | None = None) -> list[Watch]:
        """List all watches, or those of one subscriber."""
        self.require_outbox()
        statement = "SELECT DISTINCT subscriber_class, subscriber_key, class, key FROM tidings_watches"
        condition = "" if subscriber is None else " WHERE subscriber_class = $1 AND subscriber_key = $2"
        values = () if subscriber is None else (subscriber.family, str(subscriber.key))
        rows = sorted(self.query(f"{statement}{condition}", *values), key=lambda row: (row[:3], row[3] or ""))
        return [Watch(Object(family, subscriber_key), cls, key) for family, subscriber_key, cls, key in rows]


def _build_condition(subscriber: Object, cls: str, key: str | None) -> tuple[tuple[str, ...], str]:
    values = (subscriber.family, str(subscriber.key), cls)
    return (values, _SAME_CLASS) if key is None else ((*values, str(key)), _SAME_OBJECT)


def _parse_rejection(message: str, subscriber: Object, cls: str) -> InputError:
    """Parse the message of the trigger, which names the classes: `tidings_watches.class: the model has A, B`."""
    column, _, classes = message.partition(": ")
    description, received = ("no such class can be watched", cls)
    if column.endswith("subscriber_class"):
        description, received = "objects of this class cannot be notified", subscriber.family
    accepted = classes.removeprefix("the model has ").removeprefix("subscribers are ")
    hint = did_you_mean(received, accepted.split(", "))
    return InputError(description, received=printable(received), accepted=accepted, hint=hint)
