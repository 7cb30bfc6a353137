"""Random histories of delayed notifications: none is lost, repeated, late or blocked.

Subscriptions are added, removed, and change owner and delay; batches are committed and repeated; the clock moves
forward and back; streams and readers hand over; the store is closed and opened. The store is compared with the
plainest model of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from tests.support.strategies.effort import share
from tidings.model import Subscription, notification_id
from tidings.store import tables
from tidings.store.clock_recovery import SET_BACK
from tidings.store.encoding import MatchRow
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.notifications.deferred_notifications import SOON
from tidings.store.store import open_store

IDS, PEOPLE = st.sampled_from(["s-0", "s-1", "s-2", "s-3"]), st.sampled_from(["ana", "bo"])
PAIRS = st.lists(st.tuples(st.sampled_from([f"p-{i}" for i in range(12)]), IDS), max_size=6)
Group = tuple[str, str]


@dataclass(frozen=True)
class Waiting:
    """A delayed notification, and when it is due."""

    group: Group
    publication: str
    found_at: datetime
    due: datetime


class History(RuleBasedStateMachine):
    """A store, and next to it a model of its contents."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.now = url, datetime(2026, 5, 1, tzinfo=UTC)
        self.open()
        self.subscriptions_by_id: dict[str, Subscription] = {}
        self.owners: dict[str, str] = {}
        self.batches: list[list[MatchRow]] = []
        self.known: set[str] = set()
        self.delivered: dict[str, list[Group]] = {"ana": [], "bo": []}
        self.waiting: list[Waiting] = []

    def open(self) -> None:
        self.store = open_store(self.url, lambda: self.now)

    def teardown(self) -> None:
        self.store.close()

    @rule()
    def crash(self) -> None:
        self.store.close()
        self.open()

    @rule(id=IDS, subscriber=PEOPLE, within=st.sampled_from([None, 1, 60, 3_600]))
    def subscribe(self, id: str, subscriber: str, within: int | None) -> None:
        self.store.subscriptions.remove([id])
        self.subscriptions_by_id[id] = Subscription(id, subscriber, "predicates", "a = 1", within)
        self.owners[id] = subscriber
        self.store.subscriptions.add(self.subscriptions_by_id[id])

    @rule(id=IDS)
    def unsubscribe(self, id: str) -> None:
        self.store.subscriptions.remove([id])
        self.subscriptions_by_id.pop(id, None)

    @rule(seconds=st.sampled_from([0.2, 1, 30, 61, 3_600, -0.5, -20, -600]))
    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(pairs=PAIRS)
    def commit(self, pairs: list[tuple[str, str]]) -> None:
        batch = [MatchRow(p, s, self.owners[s]) for p, s in pairs if s in self.owners]
        immediate, delayed = self.apply_batch(batch)
        result = self.store.notifications.commit_batch("main", len(self.batches), batch)
        assert result == CommitResult(immediate, len(batch) - immediate - delayed, deferred=delayed)
        self.batches.append(batch)

    def apply_batch(self, batch: list[MatchRow]) -> tuple[int, int]:
        """Apply a batch to the model; return the numbers of immediate and delayed notifications."""
        immediate, delayed, order = 0, 0, [match.publication for match in batch]
        for match in sorted(batch, key=lambda match: (order.index(match.publication), match.subscription)):
            id, subscription = (
                notification_id(match.publication, match.subscription),
                self.subscriptions_by_id.get(match.subscription),
            )
            if id in self.known:
                continue
            self.known.add(id)
            if subscription and subscription.subscriber == match.subscriber and subscription.within:
                due = self.now + timedelta(seconds=subscription.within)
                group = (match.subscriber, match.subscription)
                self.waiting.append(Waiting(group, match.publication, self.now, due))
                delayed += 1
            else:
                self.delivered[match.subscriber].append((match.publication, match.subscription))
                immediate += 1
        return immediate, delayed

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), marked=st.booleans())
    def repeat(self, data: st.DataObject, marked: bool) -> None:
        """Commit a batch again, under its number or, with the marks lost, under another one."""
        number = data.draw(st.integers(0, len(self.batches) - 1))
        batch = self.batches[number]
        if marked:
            result = self.store.notifications.commit_batch("main", number, batch)
            assert result == CommitResult(0, 0, skipped=True)
        else:
            self.batches.append(batch)
            result = self.store.notifications.commit_batch("main", len(self.batches) - 1, batch)
            assert result == CommitResult(0, len(batch))

    @rule()
    def stream_hands_over(self) -> None:
        handed_over = self.hand_over("ana") + self.hand_over("bo")
        assert self.store.notifications.hand_over() == handed_over
        self.assert_nothing_is_late("ana", "bo")

    @rule(subscriber=PEOPLE)
    def reader_reads(self, subscriber: str) -> None:
        self.hand_over(subscriber)
        read = self.store.notifications.read(subscriber)
        expected = [(i, *pair) for i, pair in enumerate(self.delivered[subscriber], start=1)]
        assert [
            (notification.sequence, notification.publication, notification.subscription)
            for notification in read
        ] == expected
        self.assert_nothing_is_late(subscriber)

    def hand_over(self, subscriber: str) -> int:
        """Apply a hand-over to the model.

        All that waits for a subscription goes with the first notification that is due.
        """
        groups = {
            waiting.group
            for waiting in self.waiting
            if waiting.group[0] == subscriber and self.is_due(waiting.group)
        }
        released = [waiting for waiting in self.waiting if waiting.group in groups]
        self.waiting = [waiting for waiting in self.waiting if waiting.group not in groups]
        self.delivered[subscriber] += [(waiting.publication, waiting.group[1]) for waiting in released]
        return len(released)

    def is_due(self, group: Group) -> bool:
        group_members = [waiting for waiting in self.waiting if waiting.group == group]
        due = min(waiting.due for waiting in group_members) <= self.now + SOON
        return due or group_members[0].found_at > self.now + SET_BACK

    def assert_nothing_is_late(self, *subscribers: str) -> None:
        """Independent of the hand-over rules: no due notification is left after a hand-over."""
        remaining = [waiting for waiting in self.waiting if waiting.group[0] in subscribers]
        assert all(waiting.due > self.now for waiting in remaining)
        assert len(remaining) == sum(
            self.store.notifications.deferred(subscriber).count for subscriber in subscribers
        )

    @invariant()
    def store_agrees_with_model(self) -> None:
        """Read the tables themselves, because reading through the store would hand over."""
        with self.store.database.read() as connection:
            notified = connection.execute(select(tables.notifications)).all()
            held = connection.execute(
                select(tables.deferred_notifications).order_by(tables.deferred_notifications.c.position)
            ).all()
            last = dict(row._tuple() for row in connection.execute(select(tables.subscribers)))
            promised = {row[:2] for row in connection.execute(select(tables.deferral_deadlines))}
        for subscriber, pairs in self.delivered.items():
            rows = sorted(
                (row.sequence, row.publication, row.subscription)
                for row in notified
                if row.subscriber == subscriber
            )
            assert rows == [(i, *pair) for i, pair in enumerate(pairs, start=1)]
            assert last.get(subscriber, 0) == len(pairs)
        expected_held = [(*waiting.group, waiting.publication) for waiting in self.waiting]
        assert [(row.subscriber, row.subscription, row.publication) for row in held] == expected_held
        assert promised == {waiting.group for waiting in self.waiting}
        assert {row.id for row in notified} | {row.id for row in held} == self.known


def test_deferred_notifications_random_history_matches_model(new_url: Callable[[], str]) -> None:
    run_state_machine_as_test(lambda: History(new_url()), settings=share(5, stateful_step_count=40))
