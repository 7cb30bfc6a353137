"""Subscriptions that exceeded the budget of the stream: counted, and suspended when they did so too often.

A pair of publication and subscription that exceeds its budget is a dead letter, and counts here in the same
transaction. A subscription that is removed, paused or changed starts from zero.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from tidings.model import SUSPENDED, Reason, Subscription, notification_id
from tidings.store import counters
from tidings.store import counters as sequences
from tidings.store.database import Database
from tidings.store.encoding import Clock, MatchRow, format_instant
from tidings.store.notifications import write_part
from tidings.store.subscriptions import registry, suspension
from tidings.store.subscriptions.admission import find_live
from tidings.store.tables import overruns


class BudgetOverruns:
    """The subscriptions that exceeded their budget, of everybody."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def count(self, subscription: str) -> int:
        """How often a subscription has exceeded its budget since it was added, resumed or changed."""
        wanted = select(overruns.c.count).where(overruns.c.subscription == subscription)
        with self._database.read() as connection:
            return int(connection.execute(wanted).scalar() or 0)

    def suspend(self, most: int) -> list[Subscription]:
        """Pause the subscriptions that exceeded their budget `most` times, and notify their owners of it.

        Pausing and notification are one transaction. Nothing happens if there is no such subscription.
        """
        wanted = select(overruns.c.subscription).where(overruns.c.count >= most)
        with self._database.read() as connection:
            found = list(connection.execute(wanted).scalars())
        return self._database.transact(lambda c: self._suspend(c, found, most)) if found else []

    def _suspend(self, connection: Connection, ids: Collection[str], most: int) -> list[Subscription]:
        counters.lock(connection, "subscriptions")
        found = sorted(find_live(connection, ids), key=lambda one: one.id)
        moment = self._clock()
        time, reason = format_instant(moment), reason_of(most)
        for one in found:
            registry.remove_subscriptions(connection, [one.id], one.subscriber)
            suspension.add_paused(connection, one, time, reason)
        numbers = sequences.lock_sequences(connection, {one.subscriber for one in found})
        before = dict(numbers)
        told = {notification_id(f"{SUSPENDED} {time}", one.id): _told(one, reason) for one in found}
        write_part(connection, told, numbers, {}, moment)
        sequences.advance_sequences(connection, numbers, before)
        return found


def reason_of(times: int) -> str:
    """Why a subscription was suspended, as its owner reads it."""
    return (
        f"suspended: it exceeded the time or memory budget {times:,} times; "
        "the dead letters say with which publications. Simplify its text, or resume it as it is"
    )


def _told(one: Subscription, reason: str) -> MatchRow:
    """The notification of a suspension. It is about the subscription itself: the publications may be for others."""
    return MatchRow(one.id, one.id, one.subscriber, [Reason(reason, None, "")], None, SUSPENDED)
