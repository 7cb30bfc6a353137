"""The hub's tables: what is taken is taken by one, and one that vanished loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidings.feeds.sql.hub_store import DEAD_KEPT, TAKEN, HubDelivery, HubRequest
from tidings.model import Subscription
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def go(self, by: timedelta) -> None:
        self.time += by


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with open_store(url, clock) as opened:
        opened.feed_addresses.add("ana", {"s-1": ("n", "h")})
        yield opened


def intent(callback: str = "http://x.example/", mode: str = "subscribe", challenge: str = "c") -> HubRequest:
    return HubRequest("h", "atom", callback, mode, None, 3_600, challenge)


def subscribe(store: Store, callback: str = "http://x.example/", told: int = 0) -> None:
    store.hub.ask(intent(callback), 10)
    [taken] = store.hub.take_intents(10)
    store.hub.confirm(taken, told)


def tell(store: Store, count: int) -> None:
    last = store.notifications.last_sequence("ana")
    found = [MatchRow(f"p-{last + n}", "s-1", "ana") for n in range(count)]
    store.notifications.commit_batch("main", last, found)


def deliver(store: Store) -> HubDelivery:
    """Begin a delivery of all that is there, and take it."""
    last, _ = store.entries.last("ana", "s-1")
    for one in store.hub.behind(10):
        store.hub.begin(one, last)
    [(taken, _)] = store.hub.take_deliveries(10)
    return taken


def test_what_one_has_taken_nobody_else_takes_until_its_time_is_over(store: Store, clock: Clock) -> None:
    for n in range(20):
        store.hub.ask(intent(f"http://x.example/{n}"), 100)
    with ThreadPoolExecutor(4) as pool:
        taken = [
            one.callback for some in pool.map(lambda _: store.hub.take_intents(5), range(8)) for one in some
        ]
    assert len(taken) == len(set(taken)) == 20
    assert store.hub.take_intents(100) == []
    clock.go(TAKEN)
    assert len(store.hub.take_intents(100)) == 20


def test_a_newer_wish_takes_the_place_of_an_older_one(store: Store) -> None:
    store.hub.ask(intent(challenge="old"), 10)
    [old] = store.hub.take_intents(10)
    store.hub.ask(intent(mode="unsubscribe", challenge="new"), 10)
    store.hub.confirm(old, 0)
    store.hub.drop(old)
    store.hub.postpone(old, 5)
    assert store.hub.subscriptions() == []
    assert [one.challenge for one in store.hub.take_intents(10)] == ["new"]


def test_a_subscription_is_told_from_where_it_begins(store: Store) -> None:
    tell(store, 2)
    store.entries.last("ana", "s-1")
    subscribe(store, told=2)
    assert store.hub.behind(10) == []
    tell(store, 3)
    assert len(store.hub.behind(10)) == 1
    taken = deliver(store)
    assert (taken.first, taken.last) == (3, 5)
    assert store.hub.behind(10) == [], "one is under way"
    store.hub.delivered(taken)
    assert store.hub.behind(10) == [] and store.hub.deliveries("h") == []
    assert [one.told for one in store.hub.subscriptions("h")] == [5]


def test_who_renews_goes_on_where_they_were(store: Store) -> None:
    subscribe(store)
    tell(store, 1)
    subscribe(store, told=1)
    assert (deliver(store).first, len(store.hub.subscriptions())) == (1, 1)


def test_a_delivery_of_one_that_vanished_is_taken_again(store: Store, clock: Clock) -> None:
    subscribe(store)
    tell(store, 1)
    first = deliver(store)
    assert store.hub.take_deliveries(10) == []
    clock.go(TAKEN)
    [(again, _)] = store.hub.take_deliveries(10)
    assert again == replace(first, attempts=1), "to vanish counts as an attempt"
    store.hub.delivered(again)
    store.hub.delivered(first)
    store.hub.failed(first, "too late to matter", None)
    assert store.hub.deliveries("h") == []


def test_the_newest_that_were_given_up_are_kept(store: Store) -> None:
    subscribe(store)
    for _ in range(DEAD_KEPT + 3):
        tell(store, 1)
        store.hub.failed(deliver(store), "no", None)
    assert [one.first for one in store.hub.deliveries("h")] == list(range(4, DEAD_KEPT + 4))


def test_sweeping_forgets_what_has_ended(store: Store, clock: Clock) -> None:
    subscribe(store)
    tell(store, 1)
    deliver(store)
    assert store.hub.sweep() == 0
    clock.go(timedelta(hours=1))
    assert store.hub.subscriptions() == [] and store.hub.sweep() == 1
    assert store.hub.deliveries("h") == []


def test_revoking_while_a_callback_is_asked(store: Store) -> None:
    store.hub.ask(intent(), 10)
    [taken] = store.hub.take_intents(10)
    store.feed_addresses.revoke("ana", "s-1")
    store.hub.confirm(taken, 0)
    store.hub.ask(intent(), 10)  # by somebody who was looked up before
    [late] = store.hub.take_intents(10)
    store.hub.confirm(late, 0)
    assert store.hub.subscriptions() == []
    [denied] = store.hub.take_intents(10)
    assert (denied.mode, denied.callback) == ("denied", late.callback), "it had agreed"


def test_those_whose_feed_has_ended(store: Store, clock: Clock) -> None:
    """Whoever asks anew before the hub has denied what was before is asked, and not denied."""
    store.subscriptions.add(Subscription("s-1", "ana", "predicates", "a = 1"))
    subscribe(store)
    subscribe(store, "http://y.example/")
    assert store.hub.ended(10) == []
    store.subscriptions.remove(["s-1"])
    ended = store.hub.ended(10)
    assert {one.callback for one in ended} == {"http://x.example/", "http://y.example/"}
    assert len(store.hub.ended(1)) == 1
    store.subscriptions.add(Subscription("s-1", "bo", "predicates", "a = 1"))
    assert store.hub.ended(10) == ended, "the id is somebody else's now"
    store.hub.ask(intent(challenge="new"), 10)
    for one in ended:
        store.hub.deny(one)
    assert store.hub.subscriptions() == [] and store.hub.ended(10) == []
    taken = {one.callback: one.mode for one in store.hub.take_intents(10)}
    assert taken == {"http://x.example/": "subscribe", "http://y.example/": "denied"}


def test_an_intent_that_was_replaced_is_not_denied(store: Store) -> None:
    store.hub.ask(intent(), 10)
    [old] = store.hub.take_intents(10)
    store.hub.ask(intent(challenge="new"), 10)
    store.hub.deny(old)
    assert [one.challenge for one in store.hub.take_intents(10)] == ["new"]
