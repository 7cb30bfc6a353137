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

from sqlalchemy import Connection, func, select, update

from tidings.store import bulk
from tidings.store.database import Database
from tidings.store.destination_tables import delivery_lanes, delivery_owners, destinations
from tidings.store.destinations import ACTIVE
from tidings.store.encoding import Clock, instant, storable
from tidings.store.feed_tables import feed_cursors, feed_entries
from tidings.store.personal_feeds import list_more
from tidings.store.rule_tables import metadata_rules
from tidings.store.tables import notifications, subscribers, subscriptions
from tidings.store.undelivered import Letter, bury

AT_ONCE = 100
"""How many subscribers have their lanes woken in one transaction: others may want to write, too."""
PART = 5_000
"""How many notifications of a subscriber are looked at in one transaction."""
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
        c = delivery_owners.c
        behind = (
            select(c.subscriber)
            .join_from(delivery_owners, subscribers, subscribers.c.subscriber == c.subscriber)
            .where(subscribers.c.last_sequence > c.seen)
            .order_by(c.subscriber)
            .limit(most)
        )
        with self._database.read() as connection:
            found = connection.execute(behind).scalars().all()
        for some in bulk.pieces(found, AT_ONCE):
            self._database.transact(partial(_wake, subscribed=some, now=instant(self.now())))
        return len(found)

    def take(
        self, most: int, lease: timedelta, running: Mapping[str, int] | None = None, per_place: int = 1_000
    ) -> list[Lane]:
        """Lanes to work on now, for as long as the lease; a place has no more than `per_place` of them, with those that
        are running already.
        """
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


_TAKEN = tuple(delivery_lanes.c[name] for name in Lane.__dataclass_fields__)


def _entries_of(lane: Lane) -> tuple[Any, ...]:
    return (
        feed_entries.c.subscriber == lane.subscriber,
        feed_entries.c.subscription == lane.subscription,
        feed_entries.c.number > lane.told,
    )


def _wake(connection: Connection, subscribed: Sequence[str], now: str) -> None:
    """Make entries of what is new for these subscribers, some thousands for each, and wake their lanes."""
    for subscriber in subscribed:
        list_more(connection, subscriber, now)
        _spread(connection, subscriber, now)


def _spread(connection: Connection, subscriber: str, now: str) -> None:
    """Wake the lanes of a subscriber's new entries, and make those that are missing.

    Lanes are locked before they are looked at: whoever ends a run at the same moment has looked for entries before
    these were there, or wakes up here.
    """
    seen, last = _range(connection, subscriber)
    if last <= seen:
        return
    theirs = select(destinations).where(destinations.c.subscriber == subscriber)
    found = connection.execute(theirs.with_for_update(read=True)).all()
    told = select(notifications.c.subscription).where(
        notifications.c.subscriber == subscriber, notifications.c.sequence.between(seen + 1, last)
    )
    for name in sorted(connection.execute(told.distinct()).scalars()):
        _rouse(connection, [one for one in found if one.subscription in (None, name)], name, now)
    moved = update(delivery_owners).where(delivery_owners.c.subscriber == subscriber)
    connection.execute(moved.values(seen=last))


def _range(connection: Connection, subscriber: str) -> tuple[int, int]:
    """What was seen before, locked, and up to where entries are to be looked at now."""
    mine = delivery_owners.c.subscriber == subscriber
    seen = connection.execute(select(delivery_owners.c.seen).where(mine).with_for_update()).scalar_one()
    listed = select(feed_cursors.c.sequence).where(feed_cursors.c.subscriber == subscriber)
    return seen, min(connection.execute(listed).scalar() or 0, seen + PART)


def _rouse(connection: Connection, wanted: Sequence[Any], subscription: str, now: str) -> None:
    if not wanted:
        return
    for one in wanted:
        _make(connection, one, subscription)
    c = delivery_lanes.c
    active = [one.id for one in wanted if one.state == ACTIVE]
    mine = c.destination.in_(active), c.subscription == subscription
    locked = select(c.destination, c.due).where(*mine).order_by(c.destination).with_for_update()
    asleep = [row.destination for row in connection.execute(locked) if row.due is None]
    woken = update(delivery_lanes).where(c.destination.in_(asleep), c.subscription == subscription)
    connection.execute(woken.values(due=now))


def _make(connection: Connection, to: Any, subscription: str) -> None:
    """A lane begins behind the last entry that was there before its destination."""
    known = delivery_lanes.c.destination == to.id, delivery_lanes.c.subscription == subscription
    if connection.execute(select(delivery_lanes.c.told).where(*known)).first():
        return
    c = feed_entries.c
    before = c.subscriber == to.subscriber, c.subscription == subscription, c.sequence <= to.since
    newest = select(c.number).where(*before).order_by(c.number.desc()).limit(1)
    new = {"destination": to.id, "subscription": subscription, "subscriber": to.subscriber}
    new |= {"place": to.place, "told": connection.execute(newest).scalar() or 0}
    new |= dict.fromkeys(("busy", "ticket", "attempts", "gathers", "delivered", "failures"), 0)
    bulk.insert_missing(connection, delivery_lanes, [new])


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
    for one in taken:
        values = {"busy": 1, "ticket": one.ticket, "attempts": one.attempts + 1}
        connection.execute(
            update(delivery_lanes).where(*_key(one)).values(values | {"due": instant(moment + lease)})
        )
    return taken


def _key(lane: Lane) -> tuple[Any, ...]:
    c = delivery_lanes.c
    return c.destination == lane.destination, c.subscription == lane.subscription


def _set(connection: Connection, lane: Lane, values: dict[str, Any]) -> bool:
    mine = update(delivery_lanes).where(*_key(lane), delivery_lanes.c.ticket == lane.ticket)
    return bool(connection.execute(mine.values(values)).rowcount)


def _is_active(connection: Connection, lane: Lane) -> bool:
    """Whether the lane's destination is; who is about to pause it waits until this transaction ends."""
    wanted = select(destinations.c.state).where(destinations.c.id == lane.destination)
    return connection.execute(wanted.with_for_update(read=True)).scalar() == ACTIVE


def _release(connection: Connection, lane: Lane, now: str) -> bool:
    due = now if _is_active(connection, lane) else None
    return _set(connection, lane, {"due": due, "busy": 0, "attempts": lane.attempts})


def _finish(connection: Connection, lane: Lane, progress: Progress, moment: datetime) -> bool:
    active = _is_active(connection, lane)
    c = delivery_lanes.c
    locked = select(c.delivered, c.failures).where(*_key(lane), c.ticket == lane.ticket).with_for_update()
    before = connection.execute(locked).one_or_none()
    if before is None:
        return False
    values = {"busy": 0, "told": progress.told, "delivered": before.delivered + progress.delivered}
    values |= _outcome(lane, progress, before.failures, moment)
    more = _has_more(connection, lane, progress.told)
    if progress.told > lane.told:
        values |= {"gathered": None, "gathers": lane.gathers if more else 0}
    due = instant(moment + timedelta(seconds=progress.wait))
    values["due"] = due if active and more else None
    if progress.letter is not None:
        bury(connection, progress.letter)
    return _set(connection, lane, values)


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


def _has_more(connection: Connection, lane: Lane, told: int) -> bool:
    c = feed_entries.c
    beyond = c.subscriber == lane.subscriber, c.subscription == lane.subscription, c.number > told
    return connection.execute(select(c.number).where(*beyond).limit(1)).first() is not None
