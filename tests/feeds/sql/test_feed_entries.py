"""Entries of feeds: numbered once and without gaps, also by concurrent readers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.model import Publication, Subscription
from tidings.store.encoding import MatchRow
from tidings.store.notifications import subscription_entries
from tidings.store.store import Store, open_store


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


def add_notifications(store: Store, batch: int, *pairs: tuple[str, str], to: str = "ana") -> None:
    matches = [MatchRow(publication, subscription, to) for publication, subscription in pairs]
    store.notifications.commit_batch("main", batch, matches)


def entries(store: Store, subscription: str, first: int = 1, last: int = 1_000_000) -> list[tuple[int, str]]:
    numbered = store.numbered_notifications.read("ana", subscription, first, last)
    return [(one.number, one.notification.publication) for one in numbered]


def test_read_entries_are_numbered_newest_first(store: Store) -> None:
    add_notifications(store, 0, ("p-1", "s-1"), ("p-1", "s-2"), ("p-2", "s-2"), ("p-3", "s-1"))
    add_notifications(store, 1, ("p-4", "s-1"), to="bo")
    assert store.numbered_notifications.last("ana", "s-1")[0] == 2
    assert entries(store, "s-1") == [(2, "p-3"), (1, "p-1")]
    assert entries(store, "s-2") == [(2, "p-2"), (1, "p-1")]
    add_notifications(store, 2, ("p-5", "s-1"), ("p-6", "s-1"))
    assert store.numbered_notifications.last("ana", "s-1")[0] == 4
    assert entries(store, "s-1", 2, 3) == [(3, "p-5"), (2, "p-3")]
    assert store.numbered_notifications.last("nobody", "s-1") == (0, None)


def test_last_numbers_many_notifications_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_entries, "MAX_BATCH", 7)
    monkeypatch.setattr(subscription_entries, "MIN_PER_SUBSCRIBER", 7)
    add_notifications(store, 0, *((f"p-{n:03}", f"s-{n % 3}") for n in range(100)))
    assert store.numbered_notifications.last("ana", "s-0")[0] == 34
    assert [number for number, _ in entries(store, "s-1")] == list(range(33, 0, -1))


def test_last_skips_numbers_of_forgotten_notifications(store: Store) -> None:
    """Numbers without a notification are skipped."""
    name = repository_scope("north") + "r-1"
    add_notifications(store, 0, ("p-1", name), ("p-2", name), to="north")
    assert store.repositories.forget("north") == 2
    assert store.numbered_notifications.last("north", name) == (0, None)
    add_notifications(store, 1, ("p-3", name), to="north")
    assert store.numbered_notifications.last("north", name)[0] == 1


def test_last_concurrent_readers_number_each_entry_once(store: Store, url: str) -> None:
    for batch in range(10):
        add_notifications(store, batch, *((f"p-{batch}-{n}", "s-1") for n in range(20)))
        with ThreadPoolExecutor(4) as pool:
            lasts = list(pool.map(lambda _: store.numbered_notifications.last("ana", "s-1")[0], range(4)))
        assert lasts == [20 * (batch + 1)] * 4
    numbers = [number for number, _ in entries(store, "s-1")]
    assert numbers == list(range(200, 0, -1))
    assert len({publication for _, publication in entries(store, "s-1")}) == 200


def test_last_time_never_decreases(url: str) -> None:
    clock = Clock()
    with open_store(url, clock) as store:
        add_notifications(store, 0, ("p-1", "s-1"))
        before = store.numbered_notifications.last("ana", "s-1")[1]
        clock.time -= timedelta(hours=1)
        add_notifications(store, 1, ("p-2", "s-1"))
        assert store.numbered_notifications.last("ana", "s-1") == (2, before)


def test_last_delayed_notification_is_entry_when_due(url: str) -> None:
    clock = Clock()
    with open_store(url, clock) as store:
        store.subscriptions.add(Subscription("s-1", "ana", "predicates", "price < 9", within=60))
        add_notifications(store, 0, ("p-1", "s-1"))
        assert store.numbered_notifications.last("ana", "s-1")[0] == 0
        clock.time += timedelta(seconds=61)
        assert store.numbered_notifications.last("ana", "s-1") == (1, "2026-05-01T12:01:01.000000Z")


def test_feed_addresses_add_keeps_first_until_revoked(store: Store) -> None:
    feeds = store.feed_addresses
    first = feeds.add("ana", {"s-1": ("n1", "h1")})["s-1"]
    assert feeds.address("ana", "s-1") == first
    assert feeds.add("ana", {"s-1": ("n2", "h2"), "s-0": ("n0", "h0")})["s-1"] == first
    assert feeds.addresses("ana").keys() == {"s-0", "s-1"} and feeds.addresses("bo") == {}
    assert feeds.find("h2") is None and feeds.address("ana", "s-2") is None
    assert feeds.revoke("ana", "s-1") and not feeds.revoke("ana", "s-1")
    old = feeds.find("h1")
    assert old and old.revoked and feeds.address("ana", "s-1") is None
    assert feeds.add("ana", {"s-1": ("n2", "h2")})["s-1"].hash == "h2"


def test_feed_addresses_concurrent_adds_return_same_address(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(lambda n: store.feed_addresses.add("ana", {"s-1": (f"n{n}", f"h{n}")}), range(8))
        )
    assert len({one["s-1"].hash for one in results}) == 1


def test_find_all_omits_publications_above_size(store: Store) -> None:
    offered = [Publication("small", "text/plain", b"x" * 10), Publication("large", "text/plain", b"x" * 11)]
    store.journal.append(offered)
    publications = store.journal.find_all({"small", "large", "none"}, 10)
    assert {id: one.body for id, one in publications.items()} == {"small": b"x" * 10}
