"""Lanes: how far each destination was told of each subscription, and who works on that.

A lane is worked on by one at a time, so its entries arrive in order, and a receiver that is slow delays no other. Who
takes it moves its due time ahead; if they vanish, another takes it then, and that was an attempt, too: what ends
whoever takes it must not be taken for ever. Who comes back after another took it finds that the ticket is not
theirs any more.

Waking lanes is by subscriber: those with destinations whose sequence went on since the last look. A look at each lane
would cost as much as there are lanes, each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.destination_tables import delivery_lanes, destinations
from tidings.store.destinations import ACTIVE
from tidings.store.encoding import Clock, instant, storable
from tidings.store.feed_tables import feed_entries
from tidings.store.rule_tables import metadata_rules
from tidings.store.tables import subscriptions
from tidings.store.undelivered import Letter, bury
from tidings.store.waking import AT_ONCE, BEHIND, wake

LOOKED_AT = 4
"""How many lanes are looked at for each that can be taken: some places may be busy already."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A destination and a subscription, as they were taken: entries after `told` are to be delivered.

    `attempts` were begun before for the first of them; `gathered` is the last entry of the digest that is under way,
    `gathers` whether what waits is to be one.
    """

    destination: str
    subscription: str
    subscriber: str
    place: str
    told: int
    ticket: int
    attempts: int
    gathered: int | None
    gathers: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What became of a run: the entries up to `told` are done, `delivered` of them were taken.

    `problem` is what the next one ran into. It is tried again after `wait` seconds, or it is given up: `letter`.
    """

    told: int
    delivered: int
    problem: str | None = None
    wait: float = 0.0
    letter: Letter | None = None


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
        with self._database.read() as connection:
            if not connection.execute(_ANY_DUE, {"now": instant(self.now())}).first():
                return []
        return self._database.transact(
            lambda c: _take(c, most, self.now(), lease, Counter(running or {}), per_place)
        )

    def within(self, ids: Collection[str]) -> set[str]:
        """Which of these subscriptions accept a delay: what is gathered for them is delivered together."""
        live = subscriptions.c.removed.is_(None), subscriptions.c.within.is_not(None)
        plain = select(subscriptions.c.id).where(subscriptions.c.id.in_(ids), *live)
        rules = metadata_rules.c.name.in_(ids), metadata_rules.c.within.is_not(None)
        with self._database.read() as connection:
            found = set(connection.execute(plain).scalars())
            return found | set(connection.execute(select(metadata_rules.c.name).where(*rules)).scalars())

    def last(self, lane: Lane, most: int) -> int:
        """The last of the next entries of a lane, `most` of them."""
        wanted = select(func.max(feed_entries.c.number)).where(*_entries_of(lane))
        with self._database.read() as connection:
            newest = connection.execute(wanted).scalar() or 0
        return int(min(newest, lane.told + most))

    def gather(self, lane: Lane, last: int) -> bool:
        """Begin a digest, which has the same entries however often it is tried; false if the lane is another's now."""
        return self._database.transact(lambda c: _set(c, lane, {"gathered": last}))

    def put_off(self, lane: Lane, until: datetime) -> bool:
        """Wait for the end of quiet hours; what comes meanwhile is delivered together then."""
        values = {"due": instant(until), "busy": 0, "attempts": lane.attempts, "gathers": 1}
        return self._database.transact(lambda c: _set(c, lane, values))

    def release(self, lane: Lane) -> bool:
        """Give back what was not worked on; a destination that is not active has nothing to do."""
        return self._database.transact(lambda c: _release(c, lane, instant(self.now())))

    def finish(self, runs: Sequence[tuple[Lane, Progress]]) -> list[bool]:
        """Note what became of runs, all in one transaction; false where the lane is another's now, and nothing was
        noted.
        """
        return self._database.transact(lambda c: [_finish(c, *run, self.now()) for run in runs])

    def rouse(self, subscriber: str) -> None:
        """Look at once again at what waits for the end of quiet hours: they have changed."""
        c = delivery_lanes.c
        waiting = c.subscriber == subscriber, c.gathers == 1, c.busy == 0, c.due.is_not(None)
        woken = update(delivery_lanes).where(*waiting).values(due=instant(self.now()))
        self._database.transact(lambda connection: connection.execute(woken))


_ANY_DUE = select(delivery_lanes.c.due).where(delivery_lanes.c.due <= bindparam("now")).limit(1)
_TAKEN = tuple(delivery_lanes.c[name] for name in Lane.__dataclass_fields__)


def _entries_of(lane: Lane) -> tuple[Any, ...]:
    return (
        feed_entries.c.subscriber == lane.subscriber,
        feed_entries.c.subscription == lane.subscription,
        feed_entries.c.number > lane.told,
    )


def _take(
    connection: Connection,
    most: int,
    moment: datetime,
    lease: timedelta,
    running: Counter[str],
    per_place: int,
) -> list[Lane]:
    full = [place for place, count in running.items() if count >= per_place]
    c = delivery_lanes.c
    wanted = select(*_TAKEN).where(c.due <= instant(moment), c.place.not_in(full)).order_by(c.due)
    found = connection.execute(wanted.limit(most * LOOKED_AT).with_for_update(skip_locked=True))
    taken: list[Lane] = []
    for row in found.all():
        if len(taken) < most and running[row.place] < per_place:
            running[row.place] += 1
            taken.append(replace(Lane(*row), ticket=row.ticket + 1))
    if taken:
        until = instant(moment + lease)
        connection.execute(_TAKE, [_mine(one) | {"until": until} for one in taken])
    return taken


def _key(lane: Lane) -> tuple[Any, ...]:
    c = delivery_lanes.c
    return c.destination == lane.destination, c.subscription == lane.subscription


def _set(connection: Connection, lane: Lane, values: dict[str, Any]) -> bool:
    mine = update(delivery_lanes).where(*_key(lane), delivery_lanes.c.ticket == lane.ticket)
    return bool(connection.execute(mine.values(values)).rowcount)


def _mine(lane: Lane) -> dict[str, Any]:
    return {"to": lane.destination, "what": lane.subscription, "mine": lane.ticket}


# Asked for each run, so they are made once.
_HERE = (
    delivery_lanes.c.destination == bindparam("to"),
    delivery_lanes.c.subscription == bindparam("what"),
)
_TAKE = (
    update(delivery_lanes)
    .where(*_HERE)
    .values(busy=1, ticket=bindparam("mine"), attempts=delivery_lanes.c.attempts + 1, due=bindparam("until"))
)
_STATE = select(destinations.c.state).where(destinations.c.id == bindparam("to")).with_for_update(read=True)
_NOTED = ("delivered", "failures", "last_success", "last_failure", "last_error", "gathered")
_BEFORE = (
    select(*(delivery_lanes.c[name] for name in _NOTED))
    .where(*_HERE, delivery_lanes.c.ticket == bindparam("mine"))
    .with_for_update()
)
_MORE = (
    select(feed_entries.c.number)
    .where(
        feed_entries.c.subscriber == bindparam("who"),
        feed_entries.c.subscription == bindparam("what"),
        feed_entries.c.number > bindparam("told"),
    )
    .limit(1)
)
_WRITTEN = (*_NOTED, "told", "attempts", "gathers", "due")
_FINISH = (
    update(delivery_lanes)
    .where(*_HERE)
    .values({"busy": 0} | {name: bindparam(f"new_{name}") for name in _WRITTEN})
)


def _is_active(connection: Connection, lane: Lane) -> bool:
    """Whether the lane's destination is; who is about to pause it waits until this transaction ends."""
    return connection.execute(_STATE, {"to": lane.destination}).scalar() == ACTIVE


def _release(connection: Connection, lane: Lane, now: str) -> bool:
    due = now if _is_active(connection, lane) else None
    return _set(connection, lane, {"due": due, "busy": 0, "attempts": lane.attempts})


def _finish(connection: Connection, lane: Lane, progress: Progress, moment: datetime) -> bool:
    active = _is_active(connection, lane)
    before = connection.execute(_BEFORE, _mine(lane)).one_or_none()
    if before is None:
        return False
    here = {"who": lane.subscriber, "what": lane.subscription, "told": progress.told}
    more = connection.execute(_MORE, here).first() is not None
    values = before._asdict() | _outcome(lane, progress, before.failures, moment)
    values |= {"told": progress.told, "delivered": before.delivered + progress.delivered}
    values["gathers"] = lane.gathers
    if progress.told > lane.told:
        values |= {"gathered": None, "gathers": lane.gathers if more else 0}
    due = instant(moment + timedelta(seconds=progress.wait))
    values["due"] = due if active and more else None
    if progress.letter is not None:
        bury(connection, progress.letter)
    connection.execute(_FINISH, _mine(lane) | {f"new_{name}": values[name] for name in _WRITTEN})
    return True


def _outcome(lane: Lane, progress: Progress, failures: int, moment: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {"attempts": 0}
    if progress.delivered:
        values |= {"last_success": instant(moment), "failures": 0}
        failures = 0
    if progress.problem is not None:
        went_on = progress.told > lane.told
        values |= {"failures": failures + 1, "last_failure": instant(moment)}
        values |= {"last_error": storable(progress.problem)}
        values["attempts"] = 0 if progress.letter else 1 if went_on else lane.attempts + 1
    return values
