"""Lanes: how far each destination was told of each subscription, and who works on that.

A lane is worked on by one at a time, so its entries arrive in order, and a receiver that is slow delays no other. Who
takes it moves its due time ahead; if they vanish, another takes it then, and that was an attempt, too: what ends
whoever takes it must not be taken for ever. Who comes back after another took it finds that the ticket is not
theirs any more.

Waking lanes is by subscriber: those with destinations whose sequence went on since the last look. A look at each lane
would cost as much as there are lanes, each time. What is asked or written of lanes that were taken is asked or written
of all of them at once: most have a single entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection, bindparam, func, select, update

from tidings.store import bulk, lane_rows
from tidings.store.database import Database
from tidings.store.destination_tables import delivery_lanes, destinations
from tidings.store.destinations import ACTIVE
from tidings.store.encoding import Clock, instant
from tidings.store.feed_tables import feed_entries
from tidings.store.finishing import Progress, finish
from tidings.store.given import as_given, given
from tidings.store.lane_rows import Lane
from tidings.store.waking import AT_ONCE, BEHIND, wake


class Lanes:
    """The lanes of all destinations."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def now(self) -> datetime:
        return self._clock()

    def wake(self, most: int) -> int:
        """Make lanes due that have new entries, of so many subscribers at most; how many subscribers those were."""
        with self._database.read() as connection:
            found = connection.execute(BEHIND, {"most": most}).scalars().all()
        for some in bulk.pieces(found, AT_ONCE):
            self._database.transact(partial(wake, subscribed=some, now=instant(self.now())))
        return len(found)

    def take(
        self, most: int, lease: timedelta, running: Mapping[str, int] | None = None, per_place: int = 1_000
    ) -> list[Lane]:
        """Lanes to work on now, for as long as the lease; a place has no more than `per_place` of them, with those that
        are running already.
        """
        if self._database.is_sqlite and not self._any_due():
            return []
        return self._database.transact(
            lambda c: _take(c, most, self.now(), lease, Counter(running or {}), per_place)
        )

    def _any_due(self) -> bool:
        """Whether there is anything to take: SQLite has one lock for all who write, which is not taken for nothing."""
        with self._database.read() as connection:
            return connection.execute(_ANY_DUE, {"now": instant(self.now())}).first() is not None

    def gather(self, lanes: Sequence[Lane], most: int) -> list[Lane]:
        """Begin digests of what there is, `most` entries at most: each has the same entries however often it is tried.
        The lanes as they are then, without those that are another's now.
        """
        return self._database.transact(lambda c: _gather(c, lanes, most))

    def put_off(self, lanes: Sequence[tuple[Lane, datetime]]) -> int:
        """Wait for the end of quiet hours; what comes meanwhile is delivered together then. How many do: some may be
        another's now.
        """
        now = instant(self.now())
        values = {
            lane.key: {
                "due": instant(until),
                "busy": 0,
                "attempts": lane.attempts,
                "gathers": 1,
                "since": now,
            }
            for lane, until in lanes
        }
        return self._database.transact(lambda c: _write_mine(c, [lane for lane, _ in lanes], values))

    def release(self, lanes: Sequence[Lane]) -> int:
        """Give back what was not worked on; a destination that is not active has nothing to do. How many were given
        back: some may be another's now.
        """
        return self._database.transact(lambda c: _release(c, lanes, instant(self.now())))

    def finish(self, runs: Sequence[tuple[Lane, Progress]]) -> list[bool]:
        """Note what became of runs, all in one transaction; false where the lane is another's now, and nothing was
        noted.
        """
        return self._database.transact(lambda c: finish(c, runs, self.now()))

    def rouse(self, subscriber: str) -> None:
        """Look at once again at what waits for the end of quiet hours: they have changed."""
        c = delivery_lanes.c
        waiting = c.subscriber == subscriber, c.gathers == 1, c.busy == 0, c.due.is_not(None)
        woken = update(delivery_lanes).where(*waiting).values(due=instant(self.now()))
        self._database.transact(lambda connection: connection.execute(woken))


_ANY_DUE = select(delivery_lanes.c.due).where(delivery_lanes.c.due <= bindparam("now")).limit(1)
_DUE = (
    select(*lane_rows.TAKEN)
    .where(
        delivery_lanes.c.due <= bindparam("now"),
        delivery_lanes.c.place.not_in(bindparam("full", expanding=True)),
    )
    .order_by(delivery_lanes.c.due)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)


def _take(
    connection: Connection,
    most: int,
    moment: datetime,
    lease: timedelta,
    running: Counter[str],
    per_place: int,
) -> list[Lane]:
    """Those that are due first. A place that is full is left out of the next look: however many lanes of it are due,
    they do not stand before those of others.
    """
    taken: list[Lane] = []
    now, until = instant(moment), instant(moment + lease)
    while len(taken) < most:
        full = [place for place, count in running.items() if count >= per_place]
        found = connection.execute(_DUE, {"now": now, "full": full, "most": most - len(taken)}).all()
        some = []
        for row in found:
            if running[row.place] < per_place:
                running[row.place] += 1
                some.append(replace(Lane(*row), ticket=row.ticket + 1))
        lane_rows.write(connection, {lane.key: _busy(lane, now, until) for lane in some})
        taken += some
        if len(some) == len(found):  # none was left out
            break
    return taken


def _busy(lane: Lane, now: str, until: str) -> dict[str, int | str]:
    return {"busy": 1, "ticket": lane.ticket, "attempts": lane.attempts + 1, "due": until, "since": now}


_begun = given("to", "what", "who")
_NEWEST = select(
    _begun.c.to,
    _begun.c.what,
    select(func.max(feed_entries.c.number))
    .where(feed_entries.c.subscriber == _begun.c.who, feed_entries.c.subscription == _begun.c.what)
    .scalar_subquery(),
)


def _gather(connection: Connection, lanes: Sequence[Lane], most: int) -> list[Lane]:
    there = lane_rows.mine(connection, lanes)
    mine = [lane for lane in lanes if lane.key in there]
    given = as_given((*lane.key, lane.subscriber) for lane in mine)
    newest = {(to, what): number or 0 for to, what, number in connection.execute(_NEWEST, given)}
    begun = [_begun_at(lane, newest[lane.key], most) for lane in mine]
    lane_rows.write(connection, {lane.key: {"gathered": lane.gathered} for lane in begun})
    return begun


def _begun_at(lane: Lane, newest: int, most: int) -> Lane:
    return replace(lane, gathered=min(newest, lane.told + most)) if newest > lane.told else lane


def _write_mine(
    connection: Connection, lanes: Sequence[Lane], values: Mapping[lane_rows.Key, Mapping[str, object]]
) -> int:
    there = lane_rows.mine(connection, lanes)
    lane_rows.write(connection, {key: row for key, row in values.items() if key in there})
    return len(there)


def _release(connection: Connection, lanes: Sequence[Lane], now: str) -> int:
    """Who is about to pause or resume a destination waits until this transaction ends."""
    active = _active(connection, {lane.destination for lane in lanes})
    values = {
        lane.key: {"due": now if lane.destination in active else None, "busy": 0, "attempts": lane.attempts}
        for lane in lanes
    }
    return _write_mine(connection, lanes, values)


def _active(connection: Connection, ids: Collection[str]) -> set[str]:
    found = bulk.select_among(connection, _STATES, destinations.c.id, ids)
    return {row.id for row in found if row.state == ACTIVE}


_STATES = (
    select(destinations.c.id, destinations.c.state).order_by(destinations.c.id).with_for_update(read=True)
)
