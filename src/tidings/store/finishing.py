"""What became of runs is written down, of many at once: how far each lane came, and when it goes on.

A lane is locked before it is looked for more entries: whoever wakes it at the same moment has written them by then, or
finds it asleep. Whether its destination is still active does not matter here: who takes the lane next looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, select

from tidings.store import destinations, lane_rows
from tidings.store.encoding import instant, storable
from tidings.store.feed_tables import feed_entries
from tidings.store.given import as_given, given
from tidings.store.lane_rows import Key, Lane
from tidings.store.undelivered import Letter, bury


@dataclass(frozen=True, slots=True)
class Progress:
    """What became of a run: the entries up to `told` are done, `delivered` of them were taken.

    `problem` is what the next one ran into. It is tried again after `wait` seconds, or it is given up: `letter`. If the
    receiver wants no more at all, `gone` says so: its destination is disabled.
    """

    told: int
    delivered: int
    problem: str | None = None
    wait: float = 0.0
    letter: Letter | None = None
    gone: str | None = None


_reached = given("to", "what", "who", numbers=("told",))
_newest = (
    select(func.max(feed_entries.c.number))
    .where(feed_entries.c.subscriber == _reached.c.who, feed_entries.c.subscription == _reached.c.what)
    .scalar_subquery()
)
_MORE = select(_reached.c.to, _reached.c.what).where(_newest > _reached.c.told)


def finish(connection: Connection, runs: Sequence[tuple[Lane, Progress]], moment: datetime) -> list[bool]:
    """Note what became of runs; false where the lane is another's now, and nothing was noted."""
    gone = {lane.destination: progress.gone for lane, progress in runs if progress.gone}
    destinations.lock(connection, gone)
    before = lane_rows.mine(connection, [lane for lane, _ in runs])
    kept = [(lane, progress) for lane, progress in runs if lane.key in before]
    reached = [(*lane.key, lane.subscriber, progress.told) for lane, progress in kept]
    more: set[Key] = {(to, what) for to, what in connection.execute(_MORE, as_given(reached))}
    written = {
        lane.key: _noted(before[lane.key], lane, progress, lane.key in more, moment)
        for lane, progress in kept
    }
    lane_rows.write(connection, written)
    for _, progress in kept:
        if progress.letter is not None:
            bury(connection, progress.letter)
    for id in gone.keys() & {lane.destination for lane, _ in kept}:
        destinations.stop(connection, id, destinations.DISABLED, gone[id])
    return [lane.key in before for lane, _ in runs]


def _noted(
    before: Row[*tuple[Any, ...]], lane: Lane, progress: Progress, more: bool, moment: datetime
) -> dict[str, Any]:
    due = instant(moment + timedelta(seconds=progress.wait)) if more else None
    values = {
        "told": progress.told,
        "delivered": before.delivered + progress.delivered,
        "due": due,
        "since": instant(moment),
        "busy": 0,
        "gathered": before.gathered if progress.told == lane.told else None,
        "gathers": before.gathers if more else 0,
    }
    return values | _outcome(before, lane, progress, instant(moment))


def _outcome(before: Row[*tuple[Any, ...]], lane: Lane, progress: Progress, now: str) -> dict[str, Any]:
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
        values |= {"last_error": storable(progress.problem)}
        values["attempts"] = 0 if progress.letter else 1 if went_on else lane.attempts + 1
    return values
