"""Paused subscriptions, and suspension of those that exceed the budget of the stream.

A paused subscription keeps its id and text, and is not matched. For the stream, a pause is a removal and a resumption
an addition: each is a version, in one transaction with the row here.

A match of a publication and a subscription that exceeds its budget is a dead letter, and counts here in the same
transaction. A subscription that is removed, paused or changed starts from zero.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, insert, select, update

from tidings.errors import InputError
from tidings.metadata.sql import resource_rows
from tidings.model import SUSPENDED, Reason, Subscription, notification_id
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.encoding import Clock, MatchRow, format_instant
from tidings.store.notifications import sequences
from tidings.store.notifications.batch_commit import write_part
from tidings.store.subscriptions import registry
from tidings.store.subscriptions.admission import (
    AddedSubscription,
    add_subscriptions,
    admit_paused,
    check_text,
    find_live,
)
from tidings.store.subscriptions.view import RULES
from tidings.store.tables import overruns, paused

_COLUMNS = (paused.c.id, paused.c.subscriber, paused.c.language, paused.c.text, paused.c.within)


class PausedSubscriptions:
    """The paused subscriptions of all subscribers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def pause(self, id: str, subscriber: str) -> bool:
        """Pause an active subscription that is not a rule; return false if the subscriber has none of this id."""

        def work(connection: Connection) -> bool:
            counters.lock(connection, "subscriptions")
            subscriptions = [
                subscription
                for subscription in find_live(connection, [id])
                if subscription.subscriber == subscriber
            ]
            for subscription in subscriptions:
                registry.remove_subscriptions(connection, [id], subscriber)
                add_paused(connection, subscription, format_instant(self._clock()))
            return bool(subscriptions)

        return self._database.transact(work)

    def offer(
        self, offered: Sequence[Subscription], most: int | None = None
    ) -> list[AddedSubscription | InputError]:
        """Add new subscriptions and rules as paused, independently of each other, at most `most` per subscriber."""
        return self._database.transact(
            lambda connection: admit_paused(connection, offered, format_instant(self._clock()), most)
        )

    def resume(self, id: str) -> bool:
        """Resume a subscription that is not a rule; return false if it is not paused."""

        def work(connection: Connection) -> bool:
            counters.lock(connection, "subscriptions")
            subscription = take_paused(connection, id)
            if subscription is not None:
                add_subscriptions(connection, [subscription])
            return subscription is not None

        return self._database.transact(work)

    def find(self, id: str) -> Subscription | None:
        """Find a paused subscription by id, unless it is a rule."""
        query = select(*_COLUMNS).where(paused.c.id == id, paused.c.language != RULES)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return Subscription(*row) if row else None

    def all(self, subscriber: str | None = None) -> list[Subscription]:
        """List paused subscriptions and rules in the order of ids, of all subscribers or of one."""
        query = select(*_COLUMNS).order_by(paused.c.id)
        if subscriber is not None:
            query = query.where(paused.c.subscriber == subscriber)
        with self._database.read() as connection:
            return [Subscription(*row) for row in connection.execute(query)]

    def reasons(self, subscriber: str | None = None) -> dict[str, str]:
        """Return why the service suspended subscriptions, by id, without those that their owners paused."""
        query = select(paused.c.id, paused.c.reason).where(paused.c.reason.is_not(None))
        if subscriber is not None:
            query = query.where(paused.c.subscriber == subscriber)
        with self._database.read() as connection:
            return {row.id: row.reason for row in connection.execute(query)}

    def change(self, changed: Subscription) -> bool:
        """Change text or delay of a paused subscription; return false if it is not paused."""
        values = {"text": check_text(changed), "within": changed.within}
        statement = update(paused).where(paused.c.id == changed.id, paused.c.subscriber == changed.subscriber)
        return bool(self._database.transact(lambda c: c.execute(statement.values(**values)).rowcount))

    def remove(self, id: str) -> bool:
        """Remove a paused subscription; return false if it is not paused."""
        return self._database.transact(lambda connection: take_paused(connection, id)) is not None


def add_paused(
    connection: Connection, subscription: Subscription, time: str, reason: str | None = None
) -> None:
    """Add a paused subscription in the caller's transaction, with the reason if the service suspends it."""
    row = {
        "id": subscription.id,
        "subscriber": subscription.subscriber,
        "language": subscription.language,
        "text": subscription.text,
    }
    connection.execute(insert(paused), row | {"within": subscription.within, "time": time, "reason": reason})


def take_paused(connection: Connection, id: str) -> Subscription | None:
    """Remove and return a paused subscription, in the caller's transaction."""
    subscription = find_paused(connection, id)
    if subscription is not None:
        connection.execute(delete(paused).where(paused.c.id == id))
        if subscription.language == RULES:
            resource_rows.delete_paused_results(connection, id)
    return subscription


def find_paused(connection: Connection, id: str) -> Subscription | None:
    """Find and lock a paused subscription, in the caller's transaction."""
    row = connection.execute(select(*_COLUMNS).where(paused.c.id == id).with_for_update()).one_or_none()
    return Subscription(*row) if row else None


class BudgetOverruns:
    """The subscriptions of all subscribers that exceeded their budget."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def count(self, subscription: str) -> int:
        """Return how often a subscription has exceeded its budget since it was added, resumed or changed."""
        query = select(overruns.c.count).where(overruns.c.subscription == subscription)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar() or 0)

    def suspend(self, most: int) -> list[Subscription]:
        """Pause the subscriptions that exceeded their budget `most` times, and notify their owners of it.

        Pausing and notification are one transaction. Nothing happens if there is no such subscription.
        """
        query = select(overruns.c.subscription).where(overruns.c.count >= most)
        with self._database.read() as connection:
            ids = list(connection.execute(query).scalars())
        return self._database.transact(lambda c: self._suspend(c, ids, most)) if ids else []

    def _suspend(self, connection: Connection, ids: Collection[str], most: int) -> list[Subscription]:
        counters.lock(connection, "subscriptions")
        suspended = sorted(find_live(connection, ids), key=lambda subscription: subscription.id)
        moment = self._clock()
        time, reason = format_instant(moment), reason_of(most)
        for subscription in suspended:
            registry.remove_subscriptions(connection, [subscription.id], subscription.subscriber)
            add_paused(connection, subscription, time, reason)
        numbers = sequences.lock_sequences(
            connection, {subscription.subscriber for subscription in suspended}
        )
        before = dict(numbers)
        rows = {
            notification_id(f"{SUSPENDED} {time}", subscription.id): _suspension(subscription, reason)
            for subscription in suspended
        }
        write_part(connection, rows, numbers, {}, moment)
        sequences.advance_sequences(connection, numbers, before)
        return suspended


def reason_of(times: int) -> str:
    """Return the reason of a suspension, for the owner of the subscription."""
    return (
        f"suspended: it exceeded the time or memory budget {times:,} times; "
        "the dead letters name the publications. Simplify its text, or resume it unchanged"
    )


def _suspension(subscription: Subscription, reason: str) -> MatchRow:
    """Build the notification of a suspension, without the publications: the owner may not be allowed to see them."""
    return MatchRow(
        subscription.id, subscription.id, subscription.subscriber, [Reason(reason, None, "")], None, SUSPENDED
    )
