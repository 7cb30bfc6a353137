"""Accepted delays: notifications are gathered, handed over together in time, once, and hold up nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from tidings.errors import IdTaken, InputError
from tidings.model import Notification, Reason, Subscription, notification_id
from tidings.store import delayed_notifications, notifications, tables
from tidings.store.dead_letters import DeadLetter
from tidings.store.delayed_notifications import DelayedSummary
from tidings.store.encoding import MatchRow, notification_row
from tidings.store.notifications import CommitResult
from tidings.store.store import Store, open_store

BECAUSE = (Reason("price < 200", 180, "/price"),)


class Clock:
    """Stands still until somebody moves it."""

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
    """One with three wishes of ana's, told at once, within ten minutes and within a day, and a calm one of bo's."""
    with open_store(url, clock) as opened:
        opened.subscriptions.add_many([wish("now", None), wish("calm", 600), wish("daily", 86_400)])
        opened.subscriptions.add(wish("bo-calm", 600, "bo"))
        yield opened


def wish(id: str, within: int | None, subscriber: str = "ana") -> Subscription:
    return Subscription(id, subscriber, "predicates", "price < 200", within)


def found(publication: str, subscription: str, subscriber: str = "ana") -> MatchRow:
    return MatchRow(publication, subscription, subscriber, BECAUSE)


def told(store: Store, subscriber: str = "ana") -> list[tuple[int, str, str]]:
    read = store.notifications.read(subscriber)
    return [(one.sequence, one.publication, one.subscription) for one in read]


def test_what_is_found_meanwhile_is_handed_over_together(store: Store, clock: Clock) -> None:
    first = store.notifications.commit_batch("main", 0, [found("p-2", "calm"), found("p-1", "calm")])
    assert first == CommitResult(0, 0, held=2)
    clock.move(590)
    assert store.notifications.commit_batch("main", 1, [found("p-0", "calm")]) == CommitResult(0, 0, held=1)
    clock.move(9)
    assert told(store) == []
    assert store.notifications.held("ana") == DelayedSummary(3, "2026-05-01T12:10:00.000000Z")
    assert store.notifications.count() == 0
    clock.move(1)
    assert told(store) == [(1, "p-2", "calm"), (2, "p-1", "calm"), (3, "p-0", "calm")]
    assert store.notifications.held("ana") == DelayedSummary(0, None)
    assert store.notifications.count() == store.notifications.last_sequence("ana") == 3


def test_others_are_told_at_once(store: Store, clock: Clock) -> None:
    done = store.notifications.commit_batch("main", 0, [found("p-1", id) for id in ("calm", "daily", "now")])
    assert done == CommitResult(1, 0, held=2)
    store.notifications.commit_batch("main", 1, [found("p-2", "now")])
    assert told(store) == [(1, "p-1", "now"), (2, "p-2", "now")]
    clock.move(600)
    store.notifications.commit_batch("main", 2, [found("p-3", "now")])
    assert told(store)[2:] == [(3, "p-3", "now"), (4, "p-1", "calm")]


def test_each_subscription_has_a_time_of_its_own(store: Store, clock: Clock) -> None:
    for hour in range(3):
        store.notifications.commit_batch("main", hour, [found(f"p-{hour}", id) for id in ("calm", "daily")])
        clock.move(3_600)
    assert told(store) == [(1 + hour, f"p-{hour}", "calm") for hour in range(3)]
    clock.move(21 * 3_600)
    assert told(store)[3:] == [(4 + hour, f"p-{hour}", "daily") for hour in range(3)]


def test_a_notification_comes_back_as_it_was_found(store: Store, clock: Clock) -> None:
    bindings = {"?page": "http://example.org/é", "odd": "a\x00\ud800"}
    store.notifications.commit_batch(
        "main", 0, [MatchRow("p-1", "calm", "ana", BECAUSE, bindings, "entered")]
    )
    clock.move(3_600)
    id, time = notification_id("p-1", "calm"), "2026-05-01T12:00:00.000000Z"
    expected = Notification(id, "ana", 1, "calm", "p-1", BECAUSE, time, "entered", bindings)
    assert store.notifications.read("ana") == [expected]


def test_what_is_repeated_is_neither_held_nor_told_again(store: Store, clock: Clock) -> None:
    pair = [found("p-1", "calm"), found("p-1", "now")]
    assert store.notifications.commit_batch("main", 0, pair) == CommitResult(1, 0, held=1)
    assert store.notifications.commit_batch("main", 0, pair) == CommitResult(0, 0, skipped=True)
    assert store.notifications.commit_batch("other", 0, [*pair, *pair]) == CommitResult(0, 4)
    clock.move(600)
    assert store.notifications.hand_over() == 1
    assert store.notifications.commit_batch("third", 0, pair) == CommitResult(0, 2)
    clock.move(600)
    assert store.notifications.hand_over() == 0
    assert told(store) == [(1, "p-1", "now"), (2, "p-1", "calm")]


def test_readers_hand_over_their_own_and_the_stream_everybodys(store: Store, clock: Clock) -> None:
    both = [found("p-1", "calm"), found("p-1", "bo-calm", "bo")]
    store.notifications.commit_batch("main", 0, both)
    clock.move(600)
    assert told(store) == [(1, "p-1", "calm")]
    assert store.notifications.held("bo").count == 1
    assert store.notifications.hand_over() == 1
    assert store.notifications.last_sequence("bo") == 1
    assert told(store, "bo") == [(1, "p-1", "bo-calm")]


def test_a_follower_gets_what_becomes_due(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm"), found("p-2", "now")])
    stop = threading.Event()
    following = store.notifications.follow("ana", stop=stop, poll=0.01)
    assert next(following).subscription == "now"
    clock.move(600)
    assert next(following).subscription == "calm"
    stop.set()
    assert list(following) == []


def test_a_store_that_is_opened_again_hands_over_what_was_due(store: Store, url: str, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm"), found("p-1", "daily")])
    store.close()
    clock.move(7_200)
    with open_store(url, clock) as again:
        assert again.notifications.hand_over() == 1
        assert told(again) == [(1, "p-1", "calm")]


def test_a_withdrawn_subscription_takes_nothing_away(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm")])
    store.subscriptions.remove(["calm"])
    clock.move(300)
    # Matched before it was withdrawn, and committed after: there is nothing to wait for any more.
    assert store.notifications.commit_batch("main", 1, [found("p-2", "calm")]) == CommitResult(1, 0)
    assert told(store) == [(1, "p-2", "calm")]
    clock.move(300)
    assert told(store) == [(1, "p-2", "calm"), (2, "p-1", "calm")]


def test_a_shorter_delay_brings_forward_what_is_held(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "daily")])
    store.subscriptions.remove(["daily"])
    store.subscriptions.add(wish("daily", 60))
    store.notifications.commit_batch("main", 1, [found("p-2", "daily")])
    clock.move(60)
    assert told(store) == [(1, "p-1", "daily"), (2, "p-2", "daily")]


def test_a_longer_delay_breaks_no_promise(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm")])
    store.subscriptions.remove(["calm"])
    store.subscriptions.add(wish("calm", 86_400))
    store.notifications.commit_batch("main", 1, [found("p-2", "calm")])
    clock.move(600)
    assert told(store) == [(1, "p-1", "calm"), (2, "p-2", "calm")]


def test_the_same_subscription_with_another_delay_is_another(store: Store) -> None:
    store.subscriptions.add(wish("calm", 600))
    assert store.subscriptions.version() == 2
    for within in (None, 60):
        with pytest.raises(IdTaken):
            store.subscriptions.add(wish("calm", within))
    assert store.subscriptions.find("calm") == wish("calm", 600)
    assert store.subscriptions.changes(0).added[0] == wish("calm", 600)


@pytest.mark.parametrize("within", [0, -1, 10**12])
def test_a_delay_nobody_can_keep_is_refused(store: Store, within: int) -> None:
    with pytest.raises(InputError, match="from 1 second to 365 days"):
        store.subscriptions.add(wish("odd", within))


def test_a_batch_that_fails_holds_nothing(store: Store) -> None:
    unserialisable = DeadLetter("p-9", "bad", {("a", "key"): 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        store.notifications.commit_batch("main", 0, [found("p-1", "calm")], [unserialisable])
    assert store.notifications.held("ana") == DelayedSummary(0, None)
    assert store.notifications.commit_batch("main", 0, [found("p-1", "calm")]).held == 1


def test_a_subscription_that_changed_hands_is_told_once(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm")])
    store.subscriptions.remove(["calm"])
    store.subscriptions.add(wish("calm", None, "bo"))
    assert store.notifications.commit_batch("other", 0, [found("p-1", "calm", "bo")]) == CommitResult(0, 1)
    clock.move(600)
    assert (told(store), told(store, "bo")) == ([(1, "p-1", "calm")], [])


def test_streams_that_do_not_see_each_other_tell_once(store: Store, clock: Clock) -> None:
    """The other stream told bo in the moment between our looking and our holding: ana's goes, and leaves no gap."""
    first = [found("p-0", "calm"), found("p-1", "calm"), found("p-2", "calm")]
    store.notifications.commit_batch("main", 0, first)
    row = notification_row(
        notification_id("p-1", "calm"), found("p-1", "calm", "bo"), 1, "2026-05-01T12:00:00.000000Z"
    )
    columns = dict(zip(tables.notifications.columns.keys(), row, strict=True))
    store.database.transact(lambda c: c.execute(insert(tables.notifications), columns))
    clock.move(600)
    assert store.notifications.hand_over() == 2
    assert told(store) == [(1, "p-0", "calm"), (2, "p-2", "calm")]
    assert store.notifications.last_sequence("ana") == 2


def test_a_clock_that_is_set_back_loses_nothing(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm")])
    clock.move(-30)  # as much as clocks of several machines may differ
    assert told(store) == []
    clock.move(-3_600)  # nobody knows how long it has waited
    store.notifications.commit_batch("main", 1, [found("p-2", "calm")])
    assert told(store) == [(1, "p-1", "calm"), (2, "p-2", "calm")]
    store.notifications.commit_batch("main", 2, [found("p-3", "calm")])
    assert len(told(store)) == 2
    clock.move(600)
    assert told(store)[2:] == [(3, "p-3", "calm")]


def test_what_becomes_due_before_the_next_look_goes_now(store: Store, clock: Clock) -> None:
    store.notifications.commit_batch("main", 0, [found("p-1", "calm")])
    clock.move(600 - delayed_notifications.SOON.total_seconds() - 0.001)
    assert store.notifications.hand_over() == 0
    clock.move(0.001)
    assert store.notifications.hand_over() == 1


def test_many_at_once(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "SUBSCRIBERS", 7)
    people = [f"user-{i:02d}" for i in range(50)]
    store.subscriptions.add_many(wish(f"s-{who}", 60 if who < "user-40" else None, who) for who in people)
    matches = [found(f"p-{i:03d}", f"s-{who}", who) for i in range(130) for who in people]
    assert store.notifications.commit_batch("main", 0, matches) == CommitResult(1_300, 0, held=5_200)
    assert store.notifications.commit_batch("main", 1, matches) == CommitResult(0, 6_500)
    clock.move(60)
    assert store.notifications.hand_over() == 5_200
    assert store.notifications.count() == 6_500
    for who in people:
        assert told(store, who) == [(1 + i, f"p-{i:03d}", f"s-{who}") for i in range(130)]
