"""Cursors of subscribers: acknowledgements, and the newest notifications of many subscribers."""

from __future__ import annotations

import threading

import pytest

from tidings.errors import InputError
from tidings.store.acknowledgements import SubscriberCursor
from tidings.store.encoding import MatchRow
from tidings.store.store import Store


def tell(store: Store, count: int, subscriber: str = "ana", batch: int = 0) -> None:
    found = [MatchRow(f"p-{batch}-{number}", f"s-{subscriber}", subscriber) for number in range(count)]
    store.notifications.commit_batch(subscriber, batch, found)


def test_it_only_grows(store: Store) -> None:
    tell(store, 5)
    assert store.acknowledgements.cursor("ana") == SubscriberCursor(5, 0, None)
    after = store.acknowledgements.acknowledge("ana", 3)
    assert (after.last, after.acknowledged, after.unread) == (5, 3, 2)
    assert after.time is not None and after.time.endswith("Z")
    assert store.acknowledgements.acknowledge("ana", 2) == after
    assert store.acknowledgements.acknowledge("ana", 0) == after
    tell(store, 2, batch=1)
    assert store.acknowledgements.acknowledge("ana", 7).unread == 0
    assert store.acknowledgements.cursor("ana").acknowledged == 7


def test_each_has_their_own(store: Store) -> None:
    tell(store, 2)
    tell(store, 3, "bo")
    store.acknowledgements.acknowledge("bo", 3)
    assert store.acknowledgements.cursor("ana") == SubscriberCursor(2)
    assert store.acknowledgements.cursor("nobody") == SubscriberCursor(0)


@pytest.mark.parametrize(("subscriber", "upto", "accepted"), [("ana", 3, "0 to 2"), ("nobody", 1, "0 to 0")])
def test_what_is_not_there_is_not_acknowledged(
    store: Store, subscriber: str, upto: int, accepted: str
) -> None:
    tell(store, 2)
    with pytest.raises(InputError, match=f"no such sequence number.*{accepted}"):
        store.acknowledgements.acknowledge(subscriber, upto)
    assert store.acknowledgements.cursor(subscriber).acknowledged == 0


def test_several_at_once_leave_the_highest(store: Store) -> None:
    tell(store, 20)
    numbers = [7, 20, 3, 19, 11, 20]
    threads = [
        threading.Thread(target=store.acknowledgements.acknowledge, args=("ana", one)) for one in numbers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.acknowledgements.cursor("ana").acknowledged == 20


def test_where_everybody_stands(store: Store) -> None:
    found = [MatchRow(f"p-{i}", f"s-{name}", name) for name in ("ana", "bo", 'é"l') for i in range(len(name))]
    store.notifications.commit_batch("main", 0, found)
    assert store.heads.last(["ana", 'é"l', "nobody"]) == {"ana": 3, 'é"l': 3}
    assert store.heads.last([]) == {}


def test_what_some_were_told(store: Store) -> None:
    many = [f"user-{number}" for number in range(3_000)]
    found = [MatchRow(f"p-{i}", f"s-{name}", name) for i in range(3) for name in many]
    store.notifications.commit_batch("main", 0, found)
    told = store.heads.read((name, number) for name in many for number in (3, 2, 9))
    assert [(one.subscriber, one.sequence) for one in told] == sorted(
        (name, number) for name in many for number in (2, 3)
    )
    assert told[0] == store.notifications.read(told[0].subscriber, 1)[0]
    assert store.heads.read([]) == []
