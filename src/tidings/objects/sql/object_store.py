"""Storage of notices as notifications: each is stored once, with the change and its reasons.

The id of a notice is derived from its source, change and subscriber. So notices that arrive again, because a process
was killed before it acknowledged them or because two processes read the same changes, are recognized as repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Column, Connection, Table, Text, delete, insert, select

from tidings.errors import InputError
from tidings.model import Reason
from tidings.objects.notices import Notice
from tidings.store import bulk, names
from tidings.store.database import Database
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.encoding import Clock, MatchRow, encode_mapping, utc_now
from tidings.store.notifications import sequences
from tidings.store.notifications.batch_commit import write_part
from tidings.store.tables import Name, metadata, notifications

object_sources = Table(
    "object_sources",
    metadata,
    Column("name", Name, primary_key=True),
    Column("model", Text, nullable=False),
    Column("database", Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A registered database: its name, where to read its model, and its URL without a password."""

    name: str
    model: str
    database: str


class ObjectSources:
    """Rows of the table of sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> list[ObjectSource]:
        """Load all sources, sorted by name."""
        with self._database.read() as connection:
            rows = connection.execute(select(*object_sources.c).order_by(object_sources.c.name)).all()
        return [ObjectSource(*row) for row in rows]

    def add(self, source: ObjectSource) -> None:
        """Add a source; it replaces a source of the same name."""
        names.check("a source's name", source.name)
        for title, text in (("a model's name", source.model), ("a URL", source.database)):
            names.check_text(title, text)

        def replace_row(connection: Connection) -> None:
            connection.execute(delete(object_sources).where(object_sources.c.name == source.name))
            connection.execute(insert(object_sources), asdict(source))

        self._database.transact(replace_row)

    def remove(self, name: str) -> bool:
        """Remove a source, and return whether there was one."""
        statement = delete(object_sources).where(object_sources.c.name == name)
        return bool(self._database.transact(lambda connection: connection.execute(statement).rowcount))


@dataclass(frozen=True, slots=True)
class NotificationOutcome:
    """Numbers of new notifications, of repeated ones, and of new dead letters."""

    new: int
    repeated: int
    dead: int = 0


class ObjectNotifications:
    """Notifications about objects of other databases."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def add(self, source: str, notices: Iterable[Notice]) -> NotificationOutcome:
        """Store the notices that are not stored yet, in the given order and in one transaction.

        A notice for an invalid subscriber name becomes a dead letter: rejecting it would block all others forever.
        """
        names.check("a source's name", source)
        listed = list(notices)
        return self._database.transact(
            lambda connection: write_notices(connection, source, listed, self._clock())
        )


def write_notices(
    connection: Connection, source: str, notices: Sequence[Notice], moment: datetime
) -> NotificationOutcome:
    """Store notices inside a transaction of the caller's."""
    problems = {
        each.subscriber: names.find_problem("a subscriber's name", each.subscriber) for each in notices
    }
    valid = [each for each in notices if problems[each.subscriber] is None]
    numbers = sequences.lock_sequences(connection, {each.subscriber for each in valid})
    previous = dict(numbers)
    new = _select_new(connection, valid)
    write_part(connection, _build_rows(source, new), numbers, {}, moment)
    sequences.advance_sequences(connection, numbers, previous)
    letters = [
        _build_dead_letter(each, problem) for each in notices if (problem := problems[each.subscriber])
    ]
    return NotificationOutcome(
        len(new), len(valid) - len(new), dead=add_dead_letters(connection, source, letters)
    )


def _select_new(connection: Connection, notices: Sequence[Notice]) -> dict[str, Notice]:
    """Select the notices that are not stored yet, in their order; the subscribers must be locked."""
    new = {each.id: each for each in notices}
    ids = select(notifications.c.id)
    for row in list(bulk.select_among(connection, ids, notifications.c.id, list(new))):
        del new[row.id]
    return new


def _build_rows(source: str, new: Mapping[str, Notice]) -> dict[str, MatchRow]:
    """Build rows; each change is encoded once, not once per subscriber: it may have very many."""
    changes = {id(notice.changed): notice.changed for notice in new.values()}
    texts = {identity: encode_mapping(dict(changed)) for identity, changed in changes.items()}
    return {
        notice.id: MatchRow(
            notice.object,
            source,
            notice.subscriber,
            [Reason(text, None, at) for text, at in notice.because],
            texts[id(notice.changed)],
            notice.kind,
        )
        for notice in new.values()
    }


def _build_dead_letter(notice: Notice, problem: InputError) -> DeadLetter:
    """Build a dead letter under the id of the notice: the same object may change and fail again."""
    reason = f"{notice.object} {notice.kind}: {problem.message()}"
    body = encode_mapping(dict(notice.changed)) or ""
    return DeadLetter(notice.id, reason, problem.facts(), body=body.encode())
