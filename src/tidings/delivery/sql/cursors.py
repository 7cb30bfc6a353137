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
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from tidings.delivery.sql import destination_store, leases
from tidings.delivery.sql.dead_deliveries import DeadDelivery, add_dead_delivery
from tidings.delivery.sql.destination_store import ACTIVE
from tidings.delivery.sql.leases import CursorKey, CursorLease
from tidings.delivery.sql.scheduler import AT_ONCE, BEHIND, wake_cursors
from tidings.delivery.sql.tables import delivery_lanes, destinations
from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.database import Database
from tidings.store.encoding import Clock, escape_unstorable, format_instant
from tidings.store.tables import subscription_entries

# What became of runs is written down, of many at once: how far each lane came, and when it goes on.
#
# A lane is locked before it is looked for more entries: whoever wakes it at the same moment has written them by then,
# or finds it asleep. Whether its destination is still active does not matter here: who takes the lane next looks.


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of a run: the entries up to `told` are done, `delivered` of them were taken.

    `problem` is what the next one ran into. It is tried again after `wait` seconds, or it is given up: `letter`. If the
    receiver wants no more at all, `gone` says so: its destination is disabled.
    """

    told: int
    delivered: int
    problem: str | None = None
    wait: float = 0.0
    letter: DeadDelivery | None = None
    gone: str | None = None


_reached = json_rows("to", "what", "who", numbers=("told",))
_newest = (
    select(func.max(subscription_entries.c.number))
    .where(
        subscription_entries.c.subscriber == _reached.c.who,
        subscription_entries.c.subscription == _reached.c.what,
    )
    .scalar_subquery()
)
_MORE = select(_reached.c.to, _reached.c.what).where(_newest > _reached.c.told)


def commit_runs(
    connection: Connection, runs: Sequence[tuple[CursorLease, RunOutcome]], moment: datetime
) -> list[bool]:
    """Note what became of runs; false where the lane is another's now, and nothing was noted."""
    gone = {lane.destination: progress.gone for lane, progress in runs if progress.gone}
    destination_store.lock_destinations(connection, gone)
    before = leases.lock_leased(connection, [lane for lane, _ in runs])
    kept = [(lane, progress) for lane, progress in runs if lane.key in before]
    reached = [(*lane.key, lane.subscriber, progress.told) for lane, progress in kept]
    more: set[CursorKey] = {
        (to, what) for to, what in connection.execute(_MORE, json_rows_parameter(reached))
    }
    written = {
        lane.key: _noted(before[lane.key], lane, progress, lane.key in more, moment)
        for lane, progress in kept
    }
    leases.update_cursors(connection, written)
    for _, progress in kept:
        if progress.letter is not None:
            add_dead_delivery(connection, progress.letter)
    for id in gone.keys() & {lane.destination for lane, _ in kept}:
        destination_store.stop_destination(connection, id, destination_store.DISABLED, gone[id])
    return [lane.key in before for lane, _ in runs]


def _noted(
    before: Row[*tuple[Any, ...]], lane: CursorLease, progress: RunOutcome, more: bool, moment: datetime
) -> dict[str, Any]:
    due = format_instant(moment + timedelta(seconds=progress.wait)) if more else None
    values = {
        "told": progress.told,
        "delivered": before.delivered + progress.delivered,
        "due": due,
        "since": format_instant(moment),
        "busy": 0,
        "gathered": before.gathered if progress.told == lane.told else None,
        "gathers": before.gathers if more else 0,
    }
    return values | _outcome(before, lane, progress, format_instant(moment))


def _outcome(
    before: Row[*tuple[Any, ...]], lane: CursorLease, progress: RunOutcome, now: str
) -> dict[str, Any]:
    """What is known of its health."""
    values = {
        name: getattr(before, name) for name in ("failures", "last_success", "last_failure", "last_error")
    }
    values["attempts"] = 0
    if progress.delivered:
        values |= {"last_success": now, "failures": 0}
    if progress.problem is not None:
        went_on = progress.told > lane.told
        values |= {"failures": values["failures"] + 1, "last_failure": now}
        values |= {"last_error": escape_unstorable(progress.problem)}
        values["attempts"] = 0 if progress.letter else 1 if went_on else lane.attempts + 1
    return values


class DeliveryCursors:
    """The lanes of all destinations."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def now(self) -> datetime:
        return self._clock()

    def wake(self, most: int) -> int:
        """Make lanes due that have new entries, of so many subscribers at most; how many subscribers those were."""
        with self._database.read() as connection:
            found = connection.execute(BEHIND, {"most": most}).scalars().all()
        for some in bulk.iter_chunks(found, AT_ONCE):
            self._database.transact(partial(wake_cursors, subscribed=some, now=format_instant(self.now())))
        return len(found)

    def take(
        self, most: int, lease: timedelta, running: Mapping[str, int] | None = None, per_place: int = 1_000
    ) -> list[CursorLease]:
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
            return connection.execute(_ANY_DUE, {"now": format_instant(self.now())}).first() is not None

    def gather(self, lanes: Sequence[CursorLease], most: int) -> list[CursorLease]:
        """Begin digests of what there is, `most` entries at most: each has the same entries however often it is tried.
        The lanes as they are then, without those that are another's now.
        """
        return self._database.transact(lambda c: _gather(c, lanes, most))

    def put_off(self, lanes: Sequence[tuple[CursorLease, datetime]]) -> int:
        """Wait for the end of quiet hours; what comes meanwhile is delivered together then. How many do: some may be
        another's now.
        """
        now = format_instant(self.now())
        values = {
            lane.key: {
                "due": format_instant(until),
                "busy": 0,
                "attempts": lane.attempts,
                "gathers": 1,
                "since": now,
            }
            for lane, until in lanes
        }
        return self._database.transact(lambda c: _write_mine(c, [lane for lane, _ in lanes], values))

    def release(self, lanes: Sequence[CursorLease]) -> int:
        """Give back what was not worked on; a destination that is not active has nothing to do. How many were given
        back: some may be another's now.
        """
        return self._database.transact(lambda c: _release(c, lanes, format_instant(self.now())))

    def finish(self, runs: Sequence[tuple[CursorLease, RunOutcome]]) -> list[bool]:
        """Note what became of runs, all in one transaction; false where the lane is another's now, and nothing was
        noted.
        """
        return self._database.transact(lambda c: commit_runs(c, runs, self.now()))

    def rouse(self, subscriber: str) -> None:
        """Look at once again at what waits for the end of quiet hours: they have changed."""
        c = delivery_lanes.c
        waiting = c.subscriber == subscriber, c.gathers == 1, c.busy == 0, c.due.is_not(None)
        woken = update(delivery_lanes).where(*waiting).values(due=format_instant(self.now()))
        self._database.transact(lambda connection: connection.execute(woken))


_ANY_DUE = select(delivery_lanes.c.due).where(delivery_lanes.c.due <= bindparam("now")).limit(1)
_DUE = (
    select(*leases.TAKEN)
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
) -> list[CursorLease]:
    """Those that are due first. A place that is full is left out of the next look: however many lanes of it are due,
    they do not stand before those of others.
    """
    taken: list[CursorLease] = []
    now, until = format_instant(moment), format_instant(moment + lease)
    while len(taken) < most:
        full = [place for place, count in running.items() if count >= per_place]
        found = connection.execute(_DUE, {"now": now, "full": full, "most": most - len(taken)}).all()
        some = []
        for row in found:
            if running[row.place] < per_place:
                running[row.place] += 1
                some.append(replace(CursorLease(*row), ticket=row.ticket + 1))
        leases.update_cursors(connection, {lane.key: _busy(lane, now, until) for lane in some})
        taken += some
        if len(some) == len(found):  # none was left out
            break
    return taken


def _busy(lane: CursorLease, now: str, until: str) -> dict[str, int | str]:
    return {"busy": 1, "ticket": lane.ticket, "attempts": lane.attempts + 1, "due": until, "since": now}


_begun = json_rows("to", "what", "who")
_NEWEST = select(
    _begun.c.to,
    _begun.c.what,
    select(func.max(subscription_entries.c.number))
    .where(
        subscription_entries.c.subscriber == _begun.c.who,
        subscription_entries.c.subscription == _begun.c.what,
    )
    .scalar_subquery(),
)


def _gather(connection: Connection, lanes: Sequence[CursorLease], most: int) -> list[CursorLease]:
    there = leases.lock_leased(connection, lanes)
    mine = [lane for lane in lanes if lane.key in there]
    given = json_rows_parameter((*lane.key, lane.subscriber) for lane in mine)
    newest = {(to, what): number or 0 for to, what, number in connection.execute(_NEWEST, given)}
    begun = [_begun_at(lane, newest[lane.key], most) for lane in mine]
    leases.update_cursors(connection, {lane.key: {"gathered": lane.gathered} for lane in begun})
    return begun


def _begun_at(lane: CursorLease, newest: int, most: int) -> CursorLease:
    return replace(lane, gathered=min(newest, lane.told + most)) if newest > lane.told else lane


def _write_mine(
    connection: Connection,
    lanes: Sequence[CursorLease],
    values: Mapping[leases.CursorKey, Mapping[str, object]],
) -> int:
    there = leases.lock_leased(connection, lanes)
    leases.update_cursors(connection, {key: row for key, row in values.items() if key in there})
    return len(there)


def _release(connection: Connection, lanes: Sequence[CursorLease], now: str) -> int:
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
