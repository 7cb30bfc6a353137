"""Dead letters of destinations: what was given up after the last attempt, until it is delivered after all or expires.

Replaying one makes it due: it is tried as often as it was the first time, while its lane goes on with what is newer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from tidings.delivery.sql.destination_store import ACTIVE, DISABLED, stop_destination
from tidings.delivery.sql.tables import delivery_lanes, destinations, undelivered
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.encoding import Clock, escape_unstorable, format_instant

COUNTER = "undelivered"


@dataclass(frozen=True, slots=True)
class DeadDelivery:
    """The entries `first` to `last` of a subscription that a destination did not take; several are a digest.

    `attempts` is how often it was tried, `tries` how often since somebody replayed it; `due` is when it is tried again,
    if it is. `message` is the id that the receiver knows it by.
    """

    destination: str
    subscription: str
    subscriber: str
    place: str
    first: int
    last: int
    digest: bool
    message: str
    problem: str
    attempts: int
    time: str = ""
    due: str | None = None
    tries: int = 0
    number: int = 0


class DeadDeliveries:
    """The dead letters of all destinations."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def list(self, destination: str, after: int = 0, limit: int = 100) -> list[DeadDelivery]:
        """Those of a destination, oldest first, after a number."""
        mine = undelivered.c.destination == destination, undelivered.c.number > after
        with self._database.read() as connection:
            wanted = select(*_COLUMNS).where(*mine).order_by(undelivered.c.number).limit(limit)
            return [_letter(row) for row in connection.execute(wanted)]

    def count(self, destination: str) -> int:
        wanted = select(func.count()).where(undelivered.c.destination == destination)
        with self._database.read() as connection:
            return int(connection.execute(wanted).scalar_one())

    def replay(self, destination: str, number: int | None = None) -> int:
        """Try one again, or all; how many there are to be tried now."""
        mine = [undelivered.c.destination == destination, undelivered.c.due.is_(None)]
        mine += [undelivered.c.number == number] if number is not None else []
        due = format_instant(self._clock())
        again = update(undelivered).where(*mine).values(due=due, tries=0)
        return self._database.transact(lambda c: c.execute(again).rowcount)

    def take(self, most: int, lease: timedelta) -> Sequence[DeadDelivery]:
        """Letters that are to be tried now, the oldest first, for as long as the lease."""
        with self._database.read() as connection:
            if not connection.execute(_ANY_DUE, {"now": format_instant(self._clock())}).first():
                return []
        return self._database.transact(lambda c: _take(c, most, self._clock(), lease))

    def delivered(self, letter: DeadDelivery) -> None:
        """Its receiver has it: forget it."""
        self._database.transact(lambda c: _delivered(c, letter, format_instant(self._clock())))

    def failed(self, letter: DeadDelivery, problem: str, wait: float | None, gone: str | None = None) -> None:
        """It was not taken again: try it later, or leave it where it is. If its receiver wants no more at all, `gone`
        says so, and the destination is disabled.
        """
        moment = self._clock()
        due = None if wait is None else format_instant(moment + timedelta(seconds=wait))
        values = {"problem": escape_unstorable(problem), "due": due, "attempts": letter.attempts + 1}
        values |= {"since": format_instant(moment)}

        def note(connection: Connection) -> None:
            if gone is not None:
                stop_destination(connection, letter.destination, DISABLED, gone)
            connection.execute(_this(letter).values(values))

        self._database.transact(note)

    def release(self, letter: DeadDelivery) -> None:
        """Give back what was not tried."""
        values = {"due": format_instant(self._clock()), "tries": letter.tries}
        self._database.transact(lambda c: c.execute(_this(letter).values(values)))

    def expire(self, lasting: timedelta) -> int:
        """Forget those that are older than this, and are not being tried; how many."""
        old = undelivered.c.time < format_instant(self._clock() - lasting), undelivered.c.due.is_(None)
        with self._database.read() as connection:
            if not connection.execute(select(undelivered.c.number).where(*old).limit(1)).first():
                return 0
        return self._database.transact(lambda c: c.execute(delete(undelivered).where(*old)).rowcount)


_ANY_DUE = select(undelivered.c.number).where(undelivered.c.due <= bindparam("now")).limit(1)
_COLUMNS = tuple(undelivered.c[name] for name in DeadDelivery.__dataclass_fields__)


def _letter(row: Any) -> DeadDelivery:
    return DeadDelivery(**row._asdict() | {"digest": bool(row.digest)})


def _this(letter: DeadDelivery) -> Any:
    return update(undelivered).where(undelivered.c.number == letter.number)


def add_dead_delivery(connection: Connection, letter: DeadDelivery) -> int:
    """Keep a letter, under the next number."""
    number = counters.step(connection, COUNTER)
    row = {name: getattr(letter, name) for name in DeadDelivery.__dataclass_fields__}
    row |= {"number": number, "digest": int(letter.digest), "problem": escape_unstorable(letter.problem)}
    connection.execute(insert(undelivered), row)
    return number


def _take(connection: Connection, most: int, moment: datetime, lease: timedelta) -> Sequence[DeadDelivery]:
    active = select(destinations.c.id).where(destinations.c.state == ACTIVE)
    due = undelivered.c.due <= format_instant(moment), undelivered.c.destination.in_(active)
    wanted = select(*_COLUMNS).where(*due).order_by(undelivered.c.number).limit(most)
    found = [_letter(row) for row in connection.execute(wanted.with_for_update(skip_locked=True))]
    for one in found:
        connection.execute(
            _this(one).values(
                due=format_instant(moment + lease), since=format_instant(moment), tries=one.tries + 1
            )
        )
    return found


def _delivered(connection: Connection, letter: DeadDelivery, now: str) -> None:
    if not connection.execute(delete(undelivered).where(undelivered.c.number == letter.number)).rowcount:
        return
    c = delivery_lanes.c
    mine = c.destination == letter.destination, c.subscription == letter.subscription
    counted = c.delivered + letter.last - letter.first + 1
    connection.execute(update(delivery_lanes).where(*mine).values(delivered=counted, last_success=now))
