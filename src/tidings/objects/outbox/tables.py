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

    `refusal` is the exception of the driver if one of our triggers rejects a row, `unfit` if a text is not a value of a
    column's type.
    """

    dialect: Dialect
    refusal: type[Exception]
    unfit: type[Exception]

    @abstractmethod
    def ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def do(self, sql: str, *values: str) -> int:
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

    def need_outbox(self) -> None:
        """Raise if no outbox is installed: the database's own error would name an unknown table."""
        columns = self.columns("tidings_changes")
        if not columns:
            raise InputError("this database has no outbox", hint=f"{INSTALL_COMMAND} installs it")
        if "author_key" not in columns:
            raise InputError(
                "the outbox of this database is of an earlier version",
                hint=f"{INSTALL_COMMAND} renews it and keeps what is in it",
            )


MAX_ROWS = 50_000
"""Maximum number of consequences in memory, unless a single change has more."""

OutboxRow = tuple[Any, ...]
RowsByChange = Mapping[int, list[OutboxRow]]


class OutboxReader(DatabaseConnection):
    """Reader of the outbox."""

    def changes(self, most: int) -> list[ObjectChange]:
        """Read the oldest changes, at most `most`, and fewer if they have very many consequences."""
        self.need_outbox()
        with self.snapshot():
            found = self.ask(
                f"{_CHANGES.format(id=_id(self.dialect), at=_at(self.dialect))} LIMIT {int(most)}"
            )
            rows = found[: _fitting(self._counts(found))]
            found_in = [self._following(query, rows) for query in (_REACHED, _STEPS, _HITS, _CUTS)]
        return [_build_object_change(row, *(each.get(row[0], []) for each in found_in)) for row in rows]

    def forget(self, ids: Iterable[str]) -> int:
        """Delete changes with their consequences, and return their number.

        The time of a change is compared, too: an outbox that was reinstalled has other changes with the same numbers.
        """
        self.need_outbox()
        all = sorted(set(ids))
        numbers = quote_literals(int(each.rpartition("/")[2]) for each in all)
        if not all:
            return 0
        these = f"id IN ({numbers}) AND {_id(self.dialect)} IN ({self.dialect.listed('$1')})"
        return self.do(f"DELETE FROM tidings_changes WHERE {these}", json.dumps(all))

    def _counts(self, changes: Collection[OutboxRow]) -> list[int]:
        """Count the consequences of each change."""
        counted: dict[int, int] = {}
        for table in ("reached", "steps", "hits"):
            for change, count in self._of(
                f"SELECT change, count(*) FROM tidings_{table}", changes, "GROUP BY change"
            ):
                counted[change] = counted.get(change, 0) + count
        return [counted.get(row[0], 0) for row in changes]

    def _following(self, query: str, changes: Collection[OutboxRow]) -> RowsByChange:
        found: dict[int, list[OutboxRow]] = {}
        for change, *row in self._of(query, changes):
            found.setdefault(change, []).append(tuple(row))
        return found

    def _of(self, query: str, changes: Collection[OutboxRow], then: str = "") -> list[OutboxRow]:
        numbers = quote_literals(int(row[0]) for row in changes)
        return self.ask(f"{query} WHERE change IN ({numbers}) {then}") if changes else []


_CHANGES = """
SELECT id, {id}, {at}, kind, class, family, key, CAST(attributes AS text), CAST(before AS text), CAST(after AS text),
    association, other_family, other_key, author_family, author_key
FROM tidings_changes ORDER BY id"""
_REACHED = "SELECT change, family, key FROM tidings_reached"
_STEPS = "SELECT change, family, key, association, forwards, to_family, to_key FROM tidings_steps"
_HITS = "SELECT change, subscriber_family, subscriber_key, family, key, how, by, forwards FROM tidings_hits"
_CUTS = "SELECT change, what, most, found FROM tidings_cuts"


def _id(dialect: Dialect) -> str:
    """Build the expression of a change's id: the number alone is reused once the outbox is reinstalled."""
    return f"{_at(dialect)} || '/' || CAST(id AS text)"


def _at(dialect: Dialect) -> str:
    return dialect.moment("at")


def _fitting(counts: Iterable[int]) -> int:
    """Return how many of the changes fit into `MAX_ROWS`: at least one, or reading would never advance."""
    return max(1, sum(total <= MAX_ROWS for total in accumulate(counts)))


def _build_object_change(
    row: OutboxRow,
    reached: list[OutboxRow],
    steps: list[OutboxRow],
    hits: list[OutboxRow],
    cuts: list[OutboxRow],
) -> ObjectChange:
    _, id, at, kind, cls, family, key, attributes, before, after, association, *others = row
    told = PropagationResult(
        frozenset(Object(*each) for each in reached),
        frozenset(_steps(steps)),
        frozenset(_hits(hits)),
        frozenset(Truncation(*each) for each in cuts),
    )
    change = Change(ChangeKind(kind), Object(family, key), frozenset(_json(attributes) or ()))
    other, author = _object(*others[:2]), _object(*others[2:])
    return ObjectChange(id, at, cls, change, told, _json(before), _json(after), association, other, author)


def _object(family: str | None, key: str | None) -> Object | None:
    return None if family is None else Object(family, key)


def _steps(rows: Iterable[OutboxRow]) -> Iterator[Step]:
    for family, key, association, forwards, to_family, to_key in rows:
        yield Step(Object(family, key), association, bool(forwards), Object(to_family, to_key))


def _hits(rows: Iterable[OutboxRow]) -> Iterator[Hit]:
    for who_family, who_key, family, key, how, by, forwards in rows:
        yield Hit(Object(who_family, who_key), Object(family, key), HitKind(how), by, bool(forwards))


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


_SAME = "subscriber_class = $1 AND subscriber_key = $2 AND class = $3"
_ONE = f"{_SAME} AND key = $4"
_ALL = f"{_SAME} AND key IS NULL"


class WatchTable(DatabaseConnection):
    """Table of watches, which programs may also write themselves.

    A subscriber is named by its own class and key here: `Object("Student", "3")`, even if a student is a person.
    """

    def watch(self, subscriber: Object, cls: str, key: str | None = None) -> bool:
        """Watch an object, or without a key all objects of a class; False if the subscriber watched it before.

        The object need not exist yet.
        """
        self.need_outbox()
        values, same = _values(subscriber, cls, key)
        row = "$1, $2, $3, NULL" if key is None else "$1, $2, $3, $4"
        insert = "INSERT INTO tidings_watches (subscriber_class, subscriber_key, class, key)"
        try:
            return bool(
                self.do(
                    f"{insert} SELECT {row} WHERE NOT EXISTS (SELECT 1 FROM tidings_watches WHERE {same})",
                    *values,
                )
            )
        except self.refusal as error:
            raise _refused(str(error).partition("\n")[0], subscriber, cls) from error

    def unwatch(self, subscriber: Object, cls: str, key: str | None = None) -> bool:
        """Stop watching, and return whether the subscriber watched it; duplicate rows are deleted, too."""
        self.need_outbox()
        values, same = _values(subscriber, cls, key)
        return bool(self.do(f"DELETE FROM tidings_watches WHERE {same}", *values))

    def watches(self, subscriber: Object | None = None) -> list[Watch]:
        """List all watches, or those of one subscriber."""
        self.need_outbox()
        query = "SELECT DISTINCT subscriber_class, subscriber_key, class, key FROM tidings_watches"
        mine = "" if subscriber is None else " WHERE subscriber_class = $1 AND subscriber_key = $2"
        values = () if subscriber is None else (subscriber.family, str(subscriber.key))
        rows = sorted(self.ask(f"{query}{mine}", *values), key=lambda row: (row[:3], row[3] or ""))
        return [Watch(Object(family, who), cls, key) for family, who, cls, key in rows]


def _values(subscriber: Object, cls: str, key: str | None) -> tuple[tuple[str, ...], str]:
    values = (subscriber.family, str(subscriber.key), cls)
    return (values, _ALL) if key is None else ((*values, str(key)), _ONE)


def _refused(message: str, subscriber: Object, cls: str) -> InputError:
    """Parse the message of the trigger, which names the classes: `tidings_watches.class: the model has A, B`."""
    column, _, said = message.partition(": ")
    what, received = ("no such class can be watched", cls)
    if column.endswith("subscriber_class"):
        what, received = "objects of this class cannot be told", subscriber.family
    accepted = said.removeprefix("the model has ").removeprefix("subscribers are ")
    hint = did_you_mean(received, accepted.split(", "))
    return InputError(what, received=printable(received), accepted=accepted, hint=hint)
