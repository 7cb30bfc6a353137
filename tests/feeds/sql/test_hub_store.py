"""The tables of the hub: leases are exclusive, and a lost worker loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, text

from tidings.delivery.sql.cursors import RunOutcome
from tidings.delivery.sql.leases import CursorLease
from tidings.feeds.sql.hub_store import LEASE, HubRequest
from tidings.model import Subscription
from tidings.store.encoding import MatchRow
from tidings.store.migrations import MIGRATIONS, migrate
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


def subscribe(store: Store, callback: str = "http://x.example/") -> None:
    store.hub.ask(intent(callback), 10)
    [intents] = store.hub.take_intents(10)
    store.hub.confirm(intents)


def add_notifications(store: Store, count: int) -> None:
    last = store.notifications.last_sequence("ana")
    matches = [MatchRow(f"p-{last + n}", "s-1", "ana") for n in range(count)]
    store.notifications.commit_batch("main", last, matches)


def lease_cursors(store: Store) -> list[CursorLease]:
    """Lease the cursors of callbacks with new entries, with the entries that they get next."""
    store.delivery_cursors.wake(10)
    leases = store.delivery_cursors.take(10, LEASE)
    return store.delivery_cursors.gather(leases, 100) if leases else []


def test_take_intents_is_exclusive_until_lease_ends(store: Store, clock: Clock) -> None:
    for n in range(20):
        store.hub.ask(intent(f"http://x.example/{n}"), 100)
    with ThreadPoolExecutor(4) as pool:
        taken = [
            one.callback for some in pool.map(lambda _: store.hub.take_intents(5), range(8)) for one in some
        ]
    assert len(taken) == len(set(taken)) == 20
    assert store.hub.take_intents(100) == []
    clock.go(LEASE)
    assert len(store.hub.take_intents(100)) == 20


def test_ask_newer_request_replaces_older_one(store: Store) -> None:
    store.hub.ask(intent(challenge="old"), 10)
    [old] = store.hub.take_intents(10)
    store.hub.ask(intent(mode="unsubscribe", challenge="new"), 10)
    store.hub.confirm(old)
    store.hub.drop(old)
    store.hub.postpone(old, 5)
    assert store.hub.subscriptions() == []
    assert [one.challenge for one in store.hub.take_intents(10)] == ["new"]


def test_confirm_subscription_gets_later_entries(store: Store) -> None:
    add_notifications(store, 2)
    subscribe(store)
    assert lease_cursors(store) == []
    add_notifications(store, 3)
    [lease] = lease_cursors(store)
    assert (lease.position, lease.digest_end) == (2, 5)
    assert store.delivery_cursors.finish([(lease, RunOutcome(5, 3))]) == [True]
    assert lease_cursors(store) == []


def test_confirm_renewal_keeps_cursor(store: Store) -> None:
    subscribe(store)
    add_notifications(store, 1)
    subscribe(store)
    [lease] = lease_cursors(store)
    assert (lease.position, lease.digest_end, len(store.hub.subscriptions())) == (0, 1, 1)


def test_sweep_removes_ended_subscriptions_with_their_destinations(store: Store, clock: Clock) -> None:
    subscribe(store)
    add_notifications(store, 1)
    [lease] = lease_cursors(store)
    assert store.hub.sweep() == 0
    clock.go(timedelta(hours=1))
    assert store.hub.subscriptions() == [] and store.hub.sweep() == 1
    assert store.destinations.find_many([lease.destination]) == {} and lease_cursors(store) == []


def test_sweep_removes_subscriptions_of_gone_callbacks(store: Store) -> None:
    subscribe(store)
    add_notifications(store, 1)
    [lease] = lease_cursors(store)
    store.delivery_cursors.finish([(lease, RunOutcome(0, 0, "status 410", gone="gone"))])
    assert store.hub.subscriptions() == [] and store.hub.find(lease.destination) is None
    assert store.hub.sweep() == 1 and store.destinations.find_many([lease.destination]) == {}


OLD_TABLES = """
CREATE TABLE hub_subscriptions (address TEXT, format TEXT, callback TEXT, secret TEXT, lease_end TEXT, told INTEGER,
  PRIMARY KEY (address, format, callback));
CREATE TABLE hub_deliveries (address TEXT, format TEXT, callback TEXT, first INTEGER, last INTEGER, state TEXT,
  attempts INTEGER, due TEXT, problem TEXT, since TEXT, PRIMARY KEY (address, format, callback, first));
INSERT INTO hub_subscriptions VALUES ('h', 'atom', 'http://x.example/', 'secret', '2999-01-01T00:00:00.000000Z', 2);
INSERT INTO hub_subscriptions VALUES ('h', 'rss', 'http://y.example:81/', NULL, '2999-01-01T00:00:00.000000Z', 3);
INSERT INTO hub_deliveries VALUES ('h', 'atom', 'http://x.example/', 1, 1, 'dead', 7, '2026', 'no', NULL);
INSERT INTO hub_deliveries VALUES ('h', 'atom', 'http://x.example/', 3, 3, 'waiting', 4, '2026', 'no', NULL);
"""


def test_migration_creates_destinations_of_hub_subscriptions(store: Store, clock: Clock) -> None:
    """In version 29 the hub had its own deliveries: a waiting one continues, a dead one is dropped."""
    add_notifications(store, 4)

    def restore_version_29(connection: Connection) -> None:
        connection.execute(text("DELETE FROM tidings_migrations WHERE version > 29"))
        connection.execute(text("DROP TABLE hub_subscriptions"))
        for statement in OLD_TABLES.strip().removesuffix(";").split(";\n"):
            connection.execute(text(statement))

    store.database.transact(restore_version_29)
    assert migrate(store.database) == MIGRATIONS[-1].version
    subscriptions = {one.format: one for one in store.hub.subscriptions("h")}
    assert {name: one.callback for name, one in subscriptions.items()} == {
        "atom": "http://x.example/",
        "rss": "http://y.example:81/",
    }
    destinations = store.destinations.find_many([one.destination for one in subscriptions.values()])
    destination = destinations[subscriptions["atom"].destination]
    assert (destination.secret, destination.subscriber, destination.subscription) == ("secret", "ana", "s-1")
    assert {one.host for one in destinations.values()} == {"x.example:80", "y.example:81"}
    clock.time = datetime.now(UTC)
    store.delivery_cursors.wake(10)
    leases = {lease.destination: lease for lease in store.delivery_cursors.take(10, LEASE)}
    atom, rss = (leases[subscriptions[name].destination] for name in ("atom", "rss"))
    assert (atom.position, atom.digest_end, atom.attempts, atom.is_digest) == (2, 3, 4, True)
    assert (rss.position, rss.digest_end, rss.attempts, rss.is_digest) == (3, None, 0, True)


def test_confirm_after_revocation_denies_callback(store: Store) -> None:
    store.hub.ask(intent(), 10)
    [intent_before] = store.hub.take_intents(10)
    store.feed_addresses.revoke("ana", "s-1")
    store.hub.confirm(intent_before)
    store.hub.ask(intent(), 10)  # a request that was checked before the revocation
    [late] = store.hub.take_intents(10)
    store.hub.confirm(late)
    assert store.hub.subscriptions() == []
    [denied] = store.hub.take_intents(10)
    assert (denied.mode, denied.callback) == ("denied", late.callback), "it had agreed"


def test_ended_lists_callbacks_of_removed_feed_until_denied(store: Store, clock: Clock) -> None:
    """A new request before the denial is verified and not denied."""
    store.subscriptions.add(Subscription("s-1", "ana", "predicates", "a = 1"))
    subscribe(store)
    subscribe(store, "http://y.example/")
    assert store.hub.list_removed(10) == []
    store.subscriptions.remove(["s-1"])
    ended = store.hub.list_removed(10)
    assert {one.callback for one in ended} == {"http://x.example/", "http://y.example/"}
    assert len(store.hub.list_removed(1)) == 1
    store.subscriptions.add(Subscription("s-1", "bo", "predicates", "a = 1"))
    assert store.hub.list_removed(10) == ended, "the id belongs to another subscriber now"
    store.hub.ask(intent(challenge="new"), 10)
    for one in ended:
        store.hub.deny(one)
    assert store.hub.subscriptions() == [] and store.hub.list_removed(10) == []
    modes = {one.callback: one.mode for one in store.hub.take_intents(10)}
    assert modes == {"http://x.example/": "subscribe", "http://y.example/": "denied"}


def test_deny_replaced_intent_has_no_effect(store: Store) -> None:
    store.hub.ask(intent(), 10)
    [old] = store.hub.take_intents(10)
    store.hub.ask(intent(challenge="new"), 10)
    store.hub.deny(old)
    assert [one.challenge for one in store.hub.take_intents(10)] == ["new"]
