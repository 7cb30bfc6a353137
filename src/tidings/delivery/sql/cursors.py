"""Delivery cursors: how far each subscription was delivered to each destination, and which worker holds the lease.

One worker at a time works on a cursor, so its entries arrive in order, and a slow receiver does not delay others. A
lease moves the due time ahead. If the worker is lost, another leases the cursor at that time, and the lost lease counts
as an attempt: a message that crashes each worker must not be retried forever. A worker that comes back after its lease
ended finds that its ticket is out of date.

Cursors are woken by subscriber: those with destinations whose sequence has advanced. Checking every cursor would cost
time in proportion to all cursors, on each poll. Queries and updates handle all leased cursors at once, because most
cursors have a single entry.
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
from tidings.delivery.sql.scheduler import BEHIND, MAX_WOKEN_SUBSCRIBERS, wake_cursors
from tidings.delivery.sql.tables import delivery_cursors, destinations
from tidings.store import bulk
from tidings.store.bulk import json_rows, json_rows_parameter
from tidings.store.database import Database
from tidings.store.encoding import Clock, escape_unstorable, format_instant
from tidings.store.tables import numbered_notifications


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run: the entries up to `position` are done, and `delivered` of them were accepted.

    `problem` is why the next message was not accepted. It is retried after `wait` seconds, or given up as a dead
    `letter`. With `gone` the destination is disabled, for that reason.
    """

    position: int
    delivered: int
    problem: str | None = None
    wait: float = 0.0
    letter: DeadDelivery | None = None
    gone: str | None = None


_reached = json_rows("to", "what", "who", numbers=("position",))
_newest = (
    select(func.max(numbered_notifications.c.number))
    .where(
        numbered_notifications.c.subscriber == _reached.c.who,
        numbered_notifications.c.subscription == _reached.c.what,
    )
    .scalar_subquery()
)
_MORE = select(_reached.c.to, _reached.c.what).where(_newest > _reached.c.position)


def commit_runs(
    connection: Connection, runs: Sequence[tuple[CursorLease, RunOutcome]], moment: datetime
) -> list[bool]:
    """Record the outcomes of runs in one transaction; false for each whose lease was lost, which changes nothing.

    A cursor is locked before the query for further entries: a process that wakes it at the same moment has inserted
    them by then, or finds it idle. The state of the destination does not matter here: the next worker checks it.
    """
    disabled = {lease.destination: outcome.gone for lease, outcome in runs if outcome.gone}
    destination_store.lock_destinations(connection, disabled)
    rows = leases.lock_leased(connection, [lease for lease, _ in runs])
    valid = [(lease, outcome) for lease, outcome in runs if lease.key in rows]
    reached = [(*lease.key, lease.subscriber, outcome.position) for lease, outcome in valid]
    unfinished: set[CursorKey] = {
        (destination, subscription)
        for destination, subscription in connection.execute(_MORE, json_rows_parameter(reached))
    }
    values = {
        lease.key: _progress_columns(rows[lease.key], lease, outcome, lease.key in unfinished, moment)
        for lease, outcome in valid
    }
    leases.update_cursors(connection, values)
    for _, outcome in valid:
        if outcome.letter is not None:
            add_dead_delivery(connection, outcome.letter)
    for id in disabled.keys() & {lease.destination for lease, _ in valid}:
        destination_store.stop_destination(connection, id, destination_store.DISABLED, disabled[id])
    return [lease.key in rows for lease, _ in runs]


def _progress_columns(
    row: Row[*tuple[Any, ...]], lease: CursorLease, outcome: RunOutcome, is_unfinished: bool, moment: datetime
) -> dict[str, Any]:
    due = format_instant(moment + timedelta(seconds=outcome.wait)) if is_unfinished else None
    values = {
        "position": outcome.position,
        "delivered": row.delivered + outcome.delivered,
        "due": due,
        "since": format_instant(moment),
        "leased": 0,
        "digest_end": row.digest_end if outcome.position == lease.position else None,
        "next_is_digest": row.next_is_digest if is_unfinished else 0,
    }
    return values | _health_columns(row, lease, outcome, format_instant(moment))


def _health_columns(
    row: Row[*tuple[Any, ...]], lease: CursorLease, outcome: RunOutcome, now: str
) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in ("failures", "last_success", "last_failure", "last_error")}
    values["attempts"] = 0
    if outcome.delivered:
        values |= {"last_success": now, "failures": 0}
    if outcome.problem is not None:
        advanced = outcome.position > lease.position
        values |= {"failures": values["failures"] + 1, "last_failure": now}
        values |= {"last_error": escape_unstorable(outcome.problem)}
        values["attempts"] = 0 if outcome.letter else 1 if advanced else lease.attempts + 1
    return values


class DeliveryCursors:
    """The cursors of all destinations."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def now(self) -> datetime:
        return self._clock()

    def wake(self, most: int) -> int:
        """Make cursors with new entries due, of at most this many subscribers; return how many subscribers."""
        with self._database.read() as connection:
            behind = connection.execute(BEHIND, {"most": most}).scalars().all()
        for names in bulk.iter_chunks(behind, MAX_WOKEN_SUBSCRIBERS):
            self._database.transact(partial(wake_cursors, names=names, now=format_instant(self.now())))
        return len(behind)

    def take(
        self, most: int, lease: timedelta, running: Mapping[str, int] | None = None, per_host: int = 1_000
    ) -> list[CursorLease]:
        """Lease cursors that are due, at most `per_host` for each host, `running` ones included."""
        if self._database.is_sqlite and not self._any_due():
            return []
        return self._database.transact(
            lambda c: _take(c, most, self.now(), lease, Counter(running or {}), per_host)
        )

    def _any_due(self) -> bool:
        """Return whether a cursor is due, without SQLite's only write lock."""
        with self._database.read() as connection:
            return connection.execute(_ANY_DUE, {"now": format_instant(self.now())}).first() is not None

    def gather(self, held: Sequence[CursorLease], most: int) -> list[CursorLease]:
        """Start digests of at most `most` entries, which stay the same for every attempt.

        Returns the leases with their digests, without lost ones.
        """
        return self._database.transact(lambda c: _gather(c, held, most))

    def put_off(self, deferred: Sequence[tuple[CursorLease, datetime]]) -> int:
        """Defer cursors to the end of quiet hours, with a digest then; return how many leases were still valid."""
        now = format_instant(self.now())
        values = {
            lease.key: {
                "due": format_instant(until),
                "leased": 0,
                "attempts": lease.attempts,
                "next_is_digest": 1,
                "since": now,
            }
            for lease, until in deferred
        }
        return self._database.transact(lambda c: _update_leased(c, [lease for lease, _ in deferred], values))

    def release(self, held: Sequence[CursorLease]) -> int:
        """Release leases of cursors that were not worked on; return how many were still valid.

        A cursor of an inactive destination is not due any more.
        """
        return self._database.transact(lambda c: _release(c, held, format_instant(self.now())))

    def finish(self, runs: Sequence[tuple[CursorLease, RunOutcome]]) -> list[bool]:
        """Record the outcomes of runs in one transaction; false for each whose lease was lost."""
        return self._database.transact(lambda c: commit_runs(c, runs, self.now()))

    def wake_subscriber(self, subscriber: str) -> None:
        """Make cursors due that wait for the end of quiet hours, because these have changed."""
        c = delivery_cursors.c
        waiting = c.subscriber == subscriber, c.next_is_digest == 1, c.leased == 0, c.due.is_not(None)
        woken = update(delivery_cursors).where(*waiting).values(due=format_instant(self.now()))
        self._database.transact(lambda connection: connection.execute(woken))


_ANY_DUE = select(delivery_cursors.c.due).where(delivery_cursors.c.due <= bindparam("now")).limit(1)
_DUE = (
    select(*leases.LEASE_COLUMNS)
    .where(
        delivery_cursors.c.due <= bindparam("now"),
        delivery_cursors.c.host.not_in(bindparam("full", expanding=True)),
    )
    .order_by(delivery_cursors.c.due)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)


def _take(
    connection: Connection,
    most: int,
    moment: datetime,
    lease: timedelta,
    running: Counter[str],
    per_host: int,
) -> list[CursorLease]:
    """Lease the cursors that have been due longest.

    Hosts at their limit are excluded from the next query: however many of their cursors are due, others are found.
    """
    leased: list[CursorLease] = []
    now, until = format_instant(moment), format_instant(moment + lease)
    while len(leased) < most:
        full = [host for host, count in running.items() if count >= per_host]
        due = connection.execute(_DUE, {"now": now, "full": full, "most": most - len(leased)}).all()
        new = []
        for row in due:
            if running[row.host] < per_host:
                running[row.host] += 1
                new.append(replace(CursorLease(*row), ticket=row.ticket + 1))
        leases.update_cursors(connection, {lease.key: _lease_columns(lease, now, until) for lease in new})
        leased += new
        if len(new) == len(due):  # no host reached its limit
            break
    return leased


def _lease_columns(lease: CursorLease, now: str, until: str) -> dict[str, int | str]:
    return {"leased": 1, "ticket": lease.ticket, "attempts": lease.attempts + 1, "due": until, "since": now}


_started = json_rows("to", "what", "who")
_NEWEST = select(
    _started.c.to,
    _started.c.what,
    select(func.max(numbered_notifications.c.number))
    .where(
        numbered_notifications.c.subscriber == _started.c.who,
        numbered_notifications.c.subscription == _started.c.what,
    )
    .scalar_subquery(),
)


def _gather(connection: Connection, held: Sequence[CursorLease], most: int) -> list[CursorLease]:
    rows = leases.lock_leased(connection, held)
    valid = [lease for lease in held if lease.key in rows]
    keys = json_rows_parameter((*lease.key, lease.subscriber) for lease in valid)
    newest = {
        (destination, subscription): number or 0
        for destination, subscription, number in connection.execute(_NEWEST, keys)
    }
    started = [_start_digest(lease, newest[lease.key], most) for lease in valid]
    leases.update_cursors(connection, {lease.key: {"digest_end": lease.digest_end} for lease in started})
    return started


def _start_digest(lease: CursorLease, newest: int, most: int) -> CursorLease:
    return replace(lease, digest_end=min(newest, lease.position + most)) if newest > lease.position else lease


def _update_leased(
    connection: Connection,
    held: Sequence[CursorLease],
    values: Mapping[CursorKey, Mapping[str, object]],
) -> int:
    valid = leases.lock_leased(connection, held)
    leases.update_cursors(connection, {key: row for key, row in values.items() if key in valid})
    return len(valid)


def _release(connection: Connection, held: Sequence[CursorLease], now: str) -> int:
    """A process that pauses or resumes a destination waits until this transaction ends."""
    active = _lock_active(connection, {lease.destination for lease in held})
    values = {
        lease.key: {
            "due": now if lease.destination in active else None,
            "leased": 0,
            "attempts": lease.attempts,
        }
        for lease in held
    }
    return _update_leased(connection, held, values)


def _lock_active(connection: Connection, ids: Collection[str]) -> set[str]:
    rows = bulk.select_among(connection, _STATES, destinations.c.id, ids)
    return {row.id for row in rows if row.state == ACTIVE}


_STATES = (
    select(destinations.c.id, destinations.c.state).order_by(destinations.c.id).with_for_update(read=True)
)
