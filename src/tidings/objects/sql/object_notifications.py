"""Notifications of changed objects: whoever a change concerns is told of it once, with what changed and why.

The id of a notice follows from its source, its change and its subscriber. So whatever is handed over again, because a
process was killed before it could say that it was done, or because two processes read the same changes, is known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from tidings.errors import InputError
from tidings.model import Reason
from tidings.objects.notices import Notice
from tidings.store import bulk, counters, names
from tidings.store.database import Database
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.encoding import Clock, MatchRow, encode_mapping, utc_now
from tidings.store.notifications import write_part
from tidings.store.tables import notifications


@dataclass(frozen=True, slots=True)
class NotificationOutcome:
    """What became of notices: new notifications, those that had been told before, and new dead letters."""

    new: int
    repeated: int
    dead: int = 0


class ObjectNotifications:
    """What is told about objects of other databases."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def tell(self, source: str, notices: Iterable[Notice]) -> NotificationOutcome:
        """Tell what is not told yet, in the order given and in one transaction. Who has a name that cannot be told
        becomes a dead letter: refusing it would hold up all others for ever."""
        names.check("a source's name", source)
        given = list(notices)
        return self._database.transact(
            lambda connection: write_notices(connection, source, given, self._clock())
        )


def write_notices(
    connection: Connection, source: str, notices: Sequence[Notice], moment: datetime
) -> NotificationOutcome:
    """The same inside a transaction of the caller's."""
    problems = {
        each.subscriber: names.find_problem("a subscriber's name", each.subscriber) for each in notices
    }
    good = [each for each in notices if problems[each.subscriber] is None]
    numbers = counters.lock_sequences(connection, {each.subscriber for each in good})
    before = dict(numbers)
    new = _unknown(connection, good)
    write_part(connection, _found(source, new), numbers, {}, moment)
    counters.advance_sequences(connection, numbers, before)
    letters = [_letter(each, problem) for each in notices if (problem := problems[each.subscriber])]
    return NotificationOutcome(
        len(new), len(good) - len(new), dead=add_dead_letters(connection, source, letters)
    )


def _unknown(connection: Connection, given: Sequence[Notice]) -> dict[str, Notice]:
    """Those that nobody has told, in their order; the subscribers must be locked."""
    new = {each.id: each for each in given}
    wanted = select(notifications.c.id)
    for row in list(bulk.select_among(connection, wanted, notifications.c.id, list(new))):
        del new[row.id]
    return new


def _found(source: str, new: Mapping[str, Notice]) -> dict[str, MatchRow]:
    """What changed is written as a text once for each change, not for each subscriber: there may be very many."""
    changes = {id(each.changed): each.changed for each in new.values()}
    texts = {which: encode_mapping(dict(changed)) for which, changed in changes.items()}
    return {
        each.id: MatchRow(
            each.object,
            source,
            each.subscriber,
            [Reason(text, None, at) for text, at in each.because],
            texts[id(each.changed)],
            each.kind,
        )
        for each in new.values()
    }


def _letter(notice: Notice, problem: InputError) -> DeadLetter:
    """Called after the notice: an object may change again, and both times could not be told."""
    reason = f"{notice.object} {notice.kind}: {problem.message()}"
    body = encode_mapping(dict(notice.changed)) or ""
    return DeadLetter(notice.id, reason, problem.facts(), body=body.encode())
