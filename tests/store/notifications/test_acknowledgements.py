"""Subscriber cursors: acknowledgements, and the newest notifications of many subscribers."""

from __future__ import annotations

import threading

import pytest

from tidings.errors import InputError
from tidings.store.encoding import MatchRow
from tidings.store.notifications.acknowledgements import SubscriberCursor
from tidings.store.store import Store


def add_notifications(store: Store, count: int, subscriber: str = "ana", batch: int = 0) -> None:
    matches = [MatchRow(f"p-{batch}-{index}", f"s-{subscriber}", subscriber) for index in range(count)]
    store.notifications.commit_batch(subscriber, batch, matches)


def test_acknowledge_lower_sequence_keeps_cursor(store: Store) -> None:
    add_notifications(store, 5)
    assert store.acknowledgements.cursor("ana") == SubscriberCursor(5, 0, None)
    after = store.acknowledgements.acknowledge("ana", 3)
    assert (after.last, after.acknowledged, after.unread) == (5, 3, 2)
    assert after.time is not None and after.time.endswith("Z")
    assert store.acknowledgements.acknowledge("ana", 2) == after
    assert store.acknowledgements.acknowledge("ana", 0) == after
    add_notifications(store, 2, batch=1)
    assert store.acknowledgements.acknowledge("ana", 7).unread == 0
    assert store.acknowledgements.cursor("ana").acknowledged == 7


def test_acknowledge_moves_only_cursor_of_its_subscriber(store: Store) -> None:
    add_notifications(store, 2)
    add_notifications(store, 3, "bo")
    store.acknowledgements.acknowledge("bo", 3)
    assert store.acknowledgements.cursor("ana") == SubscriberCursor(2)
    assert store.acknowledgements.cursor("nobody") == SubscriberCursor(0)


@pytest.mark.parametrize(("subscriber", "upto", "accepted"), [("ana", 3, "0 to 2"), ("nobody", 1, "0 to 0")])
def test_acknowledge_unknown_sequence_is_rejected(
    store: Store, subscriber: str, upto: int, accepted: str
) -> None:
    add_notifications(store, 2)
    with pytest.raises(InputError, match=f"no such sequence number.*{accepted}"):
        store.acknowledgements.acknowledge(subscriber, upto)
    assert store.acknowledgements.cursor(subscriber).acknowledged == 0


def test_acknowledge_concurrent_calls_keep_highest_sequence(store: Store) -> None:
    add_notifications(store, 20)
    numbers = [7, 20, 3, 19, 11, 20]
    threads = [
        threading.Thread(target=store.acknowledgements.acknowledge, args=("ana", number))
        for number in numbers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.acknowledgements.cursor("ana").acknowledged == 20


def test_heads_last_returns_last_sequence_of_each_subscriber(store: Store) -> None:
    matches = [
        MatchRow(f"p-{i}", f"s-{name}", name) for name in ("ana", "bo", 'é"l') for i in range(len(name))
    ]
    store.notifications.commit_batch("main", 0, matches)
    assert store.heads.last(["ana", 'é"l', "nobody"]) == {"ana": 3, 'é"l': 3}
    assert store.heads.last([]) == {}


def test_heads_read_returns_notifications_at_given_sequences(store: Store) -> None:
    many = [f"user-{number}" for number in range(3_000)]
    matches = [MatchRow(f"p-{i}", f"s-{name}", name) for i in range(3) for name in many]
    store.notifications.commit_batch("main", 0, matches)
    notifications = store.heads.read((name, number) for name in many for number in (3, 2, 9))
    assert [(notification.subscriber, notification.sequence) for notification in notifications] == sorted(
        (name, number) for name in many for number in (2, 3)
    )
    assert notifications[0] == store.notifications.read(notifications[0].subscriber, 1)[0]
    assert store.heads.read([]) == []
