"""Delayed notifications: handed over together, in time and once, without delaying others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from tidings.errors import IdConflict, InputError
from tidings.model import Notification, Reason, Subscription, notification_id
from tidings.store import tables
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow, notification_row
from tidings.store.notifications import deferred_notifications, notification_store
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.notifications.deferred_notifications import DeferredSummary
from tidings.store.store import Store, open_store

BECAUSE = (Reason("price < 200", 180, "/price"),)


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    """A store with three subscriptions of ana and one of bo.

    Those of ana are immediate or delayed by ten minutes or a day, that of bo by ten minutes.
    """
    with open_store(url, clock) as opened:
        opened.subscriptions.add_many(
            [subscription("now", None), subscription("calm", 600), subscription("daily", 86_400)]
        )
        opened.subscriptions.add(subscription("bo-calm", 600, "bo"))
        yield opened


def subscription(id: str, within: int | None, subscriber: str = "ana") -> Subscription:
    return Subscription(id, subscriber, "predicates", "price < 200", within)


def match_row(publication: str, subscription: str, subscriber: str = "ana") -> MatchRow:
    return MatchRow(publication, subscription, subscriber, BECAUSE)


def read_sequence(store: Store, subscriber: str = "ana") -> list[tuple[int, str, str]]:
    read = store.notifications.read(subscriber)
    return [(one.sequence, one.publication, one.subscription) for one in read]


def test_hand_over_delayed_matches_of_several_batches_go_together(store: Store, clock: Clock) -> None:
    first = store.notifications.commit_batch("main", 0, [match_row("p-2", "calm"), match_row("p-1", "calm")])
    assert first == CommitResult(0, 0, deferred=2)
    clock.move(590)
    assert store.notifications.commit_batch("main", 1, [match_row("p-0", "calm")]) == CommitResult(
        0, 0, deferred=1
    )
    clock.move(9)
    assert read_sequence(store) == []
    assert store.notifications.deferred("ana") == DeferredSummary(3, "2026-05-01T12:10:00.000000Z")
    assert store.notifications.count() == 0
    clock.move(1)
    assert read_sequence(store) == [(1, "p-2", "calm"), (2, "p-1", "calm"), (3, "p-0", "calm")]
    assert store.notifications.deferred("ana") == DeferredSummary(0, None)
    assert store.notifications.count() == store.notifications.last_sequence("ana") == 3


def test_commit_batch_subscription_without_delay_is_notified_immediately(store: Store, clock: Clock) -> None:
    result = store.notifications.commit_batch(
        "main", 0, [match_row("p-1", id) for id in ("calm", "daily", "now")]
    )
    assert result == CommitResult(1, 0, deferred=2)
    store.notifications.commit_batch("main", 1, [match_row("p-2", "now")])
    assert read_sequence(store) == [(1, "p-1", "now"), (2, "p-2", "now")]
    clock.move(600)
    store.notifications.commit_batch("main", 2, [match_row("p-3", "now")])
    assert read_sequence(store)[2:] == [(3, "p-3", "now"), (4, "p-1", "calm")]


def test_hand_over_each_subscription_has_its_own_due_time(store: Store, clock: Clock) -> None:
    for hour in range(3):
        store.notifications.commit_batch(
            "main", hour, [match_row(f"p-{hour}", id) for id in ("calm", "daily")]
        )
        clock.move(3_600)
    assert read_sequence(store) == [(1 + hour, f"p-{hour}", "calm") for hour in range(3)]
    clock.move(21 * 3_600)
    assert read_sequence(store)[3:] == [(4 + hour, f"p-{hour}", "daily") for hour in range(3)]


def test_read_delayed_notification_keeps_all_fields(store: Store, clock: Clock) -> None:
    bindings = {"?page": "http://example.org/é", "odd": "a\x00\ud800"}
    store.notifications.commit_batch(
        "main", 0, [MatchRow("p-1", "calm", "ana", BECAUSE, bindings, "entered")]
    )
    clock.move(3_600)
    id, time = notification_id("p-1", "calm"), "2026-05-01T12:00:00.000000Z"
    expected = Notification(id, "ana", 1, "calm", "p-1", BECAUSE, time, "entered", bindings)
    assert store.notifications.read("ana") == [expected]


def test_commit_batch_repeated_match_is_neither_held_nor_delivered_again(store: Store, clock: Clock) -> None:
    pair = [match_row("p-1", "calm"), match_row("p-1", "now")]
    assert store.notifications.commit_batch("main", 0, pair) == CommitResult(1, 0, deferred=1)
    assert store.notifications.commit_batch("main", 0, pair) == CommitResult(0, 0, skipped=True)
    assert store.notifications.commit_batch("other", 0, [*pair, *pair]) == CommitResult(0, 4)
    clock.move(600)
    assert store.notifications.hand_over() == 1
    assert store.notifications.commit_batch("third", 0, pair) == CommitResult(0, 2)
    clock.move(600)
    assert store.notifications.hand_over() == 0
    assert read_sequence(store) == [(1, "p-1", "now"), (2, "p-1", "calm")]


def test_read_hands_over_own_notifications_and_stream_hands_over_all(store: Store, clock: Clock) -> None:
    both = [match_row("p-1", "calm"), match_row("p-1", "bo-calm", "bo")]
    store.notifications.commit_batch("main", 0, both)
    clock.move(600)
    assert read_sequence(store) == [(1, "p-1", "calm")]
    assert store.notifications.deferred("bo").count == 1
    assert store.notifications.hand_over() == 1
    assert store.notifications.last_sequence("bo") == 1
    assert read_sequence(store, "bo") == [(1, "p-1", "bo-calm")]


def test_follow_yields_notifications_that_become_due(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm"), match_row("p-2", "now")])
    stop = threading.Event()
    notifications_of_ana = store.notifications.follow("ana", stop=stop, poll=0.01)
    assert next(notifications_of_ana).subscription == "now"
    clock.move(600)
    assert next(notifications_of_ana).subscription == "calm"
    stop.set()
    assert list(notifications_of_ana) == []


def test_open_store_again_hands_over_due_notifications(store: Store, url: str, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm"), match_row("p-1", "daily")])
    store.close()
    clock.move(7_200)
    with open_store(url, clock) as again:
        assert again.notifications.hand_over() == 1
        assert read_sequence(again) == [(1, "p-1", "calm")]


def test_remove_subscription_keeps_its_held_notifications(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")])
    store.subscriptions.remove(["calm"])
    clock.move(300)
    # Matched before the removal and committed after it: the delay no longer applies.
    assert store.notifications.commit_batch("main", 1, [match_row("p-2", "calm")]) == CommitResult(1, 0)
    assert read_sequence(store) == [(1, "p-2", "calm")]
    clock.move(300)
    assert read_sequence(store) == [(1, "p-2", "calm"), (2, "p-1", "calm")]


def test_shorter_delay_hands_over_held_notifications_earlier(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "daily")])
    store.subscriptions.remove(["daily"])
    store.subscriptions.add(subscription("daily", 60))
    store.notifications.commit_batch("main", 1, [match_row("p-2", "daily")])
    clock.move(60)
    assert read_sequence(store) == [(1, "p-1", "daily"), (2, "p-2", "daily")]


def test_longer_delay_keeps_earlier_due_time(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")])
    store.subscriptions.remove(["calm"])
    store.subscriptions.add(subscription("calm", 86_400))
    store.notifications.commit_batch("main", 1, [match_row("p-2", "calm")])
    clock.move(600)
    assert read_sequence(store) == [(1, "p-1", "calm"), (2, "p-2", "calm")]


def test_add_subscription_same_id_with_other_delay_is_rejected(store: Store) -> None:
    store.subscriptions.add(subscription("calm", 600))
    assert store.subscriptions.version() == 2
    for within in (None, 60):
        with pytest.raises(IdConflict):
            store.subscriptions.add(subscription("calm", within))
    assert store.subscriptions.find("calm") == subscription("calm", 600)
    assert store.subscriptions.changes(0).added[0] == subscription("calm", 600)


@pytest.mark.parametrize("within", [0, -1, 10**12])
def test_add_subscription_delay_out_of_range_is_rejected(store: Store, within: int) -> None:
    with pytest.raises(InputError, match="from 1 second to 365 days"):
        store.subscriptions.add(subscription("odd", within))


def test_commit_batch_failure_holds_nothing(store: Store) -> None:
    unserialisable = DeadLetter("p-9", "bad", {("a", "key"): 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")], [unserialisable])
    assert store.notifications.deferred("ana") == DeferredSummary(0, None)
    assert store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")]).deferred == 1


def test_commit_batch_subscription_with_new_owner_notifies_once(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")])
    store.subscriptions.remove(["calm"])
    store.subscriptions.add(subscription("calm", None, "bo"))
    assert store.notifications.commit_batch("other", 0, [match_row("p-1", "calm", "bo")]) == CommitResult(
        0, 1
    )
    clock.move(600)
    assert (read_sequence(store), read_sequence(store, "bo")) == ([(1, "p-1", "calm")], [])


def test_hand_over_notification_committed_by_other_stream_is_dropped(store: Store, clock: Clock) -> None:
    """The other stream notified bo between our check and our insert.

    The notification of ana is dropped and leaves no gap.
    """
    first = [match_row("p-0", "calm"), match_row("p-1", "calm"), match_row("p-2", "calm")]
    store.notifications.commit_batch("main", 0, first)
    row = notification_row(
        notification_id("p-1", "calm"), match_row("p-1", "calm", "bo"), 1, "2026-05-01T12:00:00.000000Z"
    )
    columns = dict(zip(tables.notifications.columns.keys(), row, strict=True))
    store.database.transact(lambda c: c.execute(insert(tables.notifications), columns))
    clock.move(600)
    assert store.notifications.hand_over() == 2
    assert read_sequence(store) == [(1, "p-0", "calm"), (2, "p-2", "calm")]
    assert store.notifications.last_sequence("ana") == 2


def test_hand_over_clock_set_back_loses_nothing(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")])
    clock.move(-30)  # as much as clocks of several machines may differ
    assert read_sequence(store) == []
    clock.move(-3_600)  # how long it has waited is unknown
    store.notifications.commit_batch("main", 1, [match_row("p-2", "calm")])
    assert read_sequence(store) == [(1, "p-1", "calm"), (2, "p-2", "calm")]
    store.notifications.commit_batch("main", 2, [match_row("p-3", "calm")])
    assert len(read_sequence(store)) == 2
    clock.move(600)
    assert read_sequence(store)[2:] == [(3, "p-3", "calm")]


def test_hand_over_includes_notifications_due_before_next_check(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "calm")])
    clock.move(600 - deferred_notifications.SOON.total_seconds() - 0.001)
    assert store.notifications.hand_over() == 0
    clock.move(0.001)
    assert store.notifications.hand_over() == 1


def test_hand_over_thousands_of_notifications_keeps_order(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_store, "SUBSCRIBERS", 7)
    people = [f"user-{i:02d}" for i in range(50)]
    store.subscriptions.add_many(
        subscription(f"s-{subscriber}", 60 if subscriber < "user-40" else None, subscriber)
        for subscriber in people
    )
    matches = [
        match_row(f"p-{i:03d}", f"s-{subscriber}", subscriber) for i in range(130) for subscriber in people
    ]
    assert store.notifications.commit_batch("main", 0, matches) == CommitResult(1_300, 0, deferred=5_200)
    assert store.notifications.commit_batch("main", 1, matches) == CommitResult(0, 6_500)
    clock.move(60)
    assert store.notifications.hand_over() == 5_200
    assert store.notifications.count() == 6_500
    for subscriber in people:
        assert read_sequence(store, subscriber) == [
            (1 + i, f"p-{i:03d}", f"s-{subscriber}") for i in range(130)
        ]
