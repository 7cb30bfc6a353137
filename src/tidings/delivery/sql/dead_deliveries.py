"""Dead letters of destinations: messages given up after the last attempt, until they are delivered or expire.

A replay makes a letter due. It is retried as often as a new message, while its cursor continues with newer entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from tidings.delivery.sql.destination_store import ACTIVE, DISABLED, stop_destination
from tidings.delivery.sql.tables import dead_deliveries, delivery_cursors, destinations
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.encoding import Clock, escape_unstorable, format_instant

COUNTER = "dead_deliveries"


@dataclass(frozen=True, slots=True)
class DeadDelivery:
    """The entries `first` to `last` of a subscription, which a destination did not accept; several are a digest.

    `attempts` counts all attempts, `attempts_since_replay` those since the last replay. `due` is the time of the next
    attempt, if there is one. `message` is the id of the message that the receiver got.
    """

    destination: str
    subscription: str
    subscriber: str
    host: str
    first: int
    last: int
    digest: bool
    message: str
    problem: str
    attempts: int
    time: str = ""
    due: str | None = None
    attempts_since_replay: int = 0
    number: int = 0


class DeadDeliveries:
    """The dead letters of all destinations."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def list(self, destination: str, after: int = 0, limit: int = 100) -> list[DeadDelivery]:
        """List the letters of a destination, oldest first, after a number."""
        own = dead_deliveries.c.destination == destination, dead_deliveries.c.number > after
        with self._database.read() as connection:
            query = select(*_COLUMNS).where(*own).order_by(dead_deliveries.c.number).limit(limit)
            return [_letter_from_row(row) for row in connection.execute(query)]

    def count(self, destination: str) -> int:
        query = select(func.count()).where(dead_deliveries.c.destination == destination)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def replay(self, destination: str, number: int | None = None) -> int:
        """Make a letter due, or all letters of a destination; return how many became due."""
        own = [dead_deliveries.c.destination == destination, dead_deliveries.c.due.is_(None)]
        own += [dead_deliveries.c.number == number] if number is not None else []
        due = format_instant(self._clock())
        again = update(dead_deliveries).where(*own).values(due=due, attempts_since_replay=0)
        return self._database.transact(lambda c: c.execute(again).rowcount)

    def take(self, most: int, lease: timedelta) -> Sequence[DeadDelivery]:
        """Lease letters that are due, oldest first."""
        with self._database.read() as connection:
            if not connection.execute(_ANY_DUE, {"now": format_instant(self._clock())}).first():
                return []
        return self._database.transact(lambda c: _take(c, most, self._clock(), lease))

    def remove_delivered(self, letter: DeadDelivery) -> None:
        """Remove a letter that the receiver has accepted."""
        self._database.transact(lambda c: _delivered(c, letter, format_instant(self._clock())))

    def record_failure(
        self, letter: DeadDelivery, problem: str, wait: float | None, gone: str | None = None
    ) -> None:
        """Record a failed attempt: retry after `wait` seconds, or without a wait leave the letter as it is.

        With `gone` the destination is disabled, for that reason.
        """
        moment = self._clock()
        due = None if wait is None else format_instant(moment + timedelta(seconds=wait))
        values = {"problem": escape_unstorable(problem), "due": due, "attempts": letter.attempts + 1}
        values |= {"since": format_instant(moment)}

        def record(connection: Connection) -> None:
            if gone is not None:
                stop_destination(connection, letter.destination, DISABLED, gone)
            connection.execute(_update_letter(letter).values(values))

        self._database.transact(record)

    def release(self, letter: DeadDelivery) -> None:
        """Release a letter that was not sent."""
        values = {"due": format_instant(self._clock()), "attempts_since_replay": letter.attempts_since_replay}
        self._database.transact(lambda c: c.execute(_update_letter(letter).values(values)))

    def expire(self, max_age: timedelta) -> int:
        """Remove letters that are older than this and not due; return how many."""
        old = (
            dead_deliveries.c.time < format_instant(self._clock() - max_age),
            dead_deliveries.c.due.is_(None),
        )
        with self._database.read() as connection:
            if not connection.execute(select(dead_deliveries.c.number).where(*old).limit(1)).first():
                return 0
        return self._database.transact(lambda c: c.execute(delete(dead_deliveries).where(*old)).rowcount)


_ANY_DUE = select(dead_deliveries.c.number).where(dead_deliveries.c.due <= bindparam("now")).limit(1)
_COLUMNS = tuple(dead_deliveries.c[name] for name in DeadDelivery.__dataclass_fields__)


def _letter_from_row(row: Any) -> DeadDelivery:
    return DeadDelivery(**row._asdict() | {"digest": bool(row.digest)})


def _update_letter(letter: DeadDelivery) -> Any:
    return update(dead_deliveries).where(dead_deliveries.c.number == letter.number)


def add_dead_delivery(connection: Connection, letter: DeadDelivery) -> int:
    """Add a letter under the next number; return the number."""
    number = counters.step(connection, COUNTER)
    row = {name: getattr(letter, name) for name in DeadDelivery.__dataclass_fields__}
    row |= {"number": number, "digest": int(letter.digest), "problem": escape_unstorable(letter.problem)}
    connection.execute(insert(dead_deliveries), row)
    return number


def _take(connection: Connection, most: int, moment: datetime, lease: timedelta) -> Sequence[DeadDelivery]:
    active = select(destinations.c.id).where(destinations.c.state == ACTIVE)
    due = dead_deliveries.c.due <= format_instant(moment), dead_deliveries.c.destination.in_(active)
    query = select(*_COLUMNS).where(*due).order_by(dead_deliveries.c.number).limit(most)
    rows = connection.execute(query.with_for_update(skip_locked=True))
    letters = [_letter_from_row(row) for row in rows]
    until, now = format_instant(moment + lease), format_instant(moment)
    for letter in letters:
        connection.execute(
            _update_letter(letter).values(
                due=until, since=now, attempts_since_replay=letter.attempts_since_replay + 1
            )
        )
    return letters


def _delivered(connection: Connection, letter: DeadDelivery, now: str) -> None:
    if not connection.execute(
        delete(dead_deliveries).where(dead_deliveries.c.number == letter.number)
    ).rowcount:
        return
    c = delivery_cursors.c
    own = c.destination == letter.destination, c.subscription == letter.subscription
    counted = c.delivered + letter.last - letter.first + 1
    connection.execute(update(delivery_cursors).where(*own).values(delivered=counted, last_success=now))
