"""Polled feeds in the store: claims, pings, and items that are published once, on both databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.feeds.sql.polled_items import MOST, REMEMBERED, ItemCounts, ItemOutcome, SeenItem
from tidings.model import Publication
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import format_instant
from tidings.store.store import Store, open_store

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
URL = "http://example.org/feed"
MINUTE = timedelta(minutes=1)


def add_feed(store: Store, url: str = URL) -> PolledFeed:
    return store.polled_feeds.add(url, NOON, in_private_network=False)


def find_feed(store: Store, url: str = URL) -> PolledFeed:
    feed = store.polled_feeds.find(url)
    assert feed is not None
    return feed


def changed_items(seen: Mapping[str, SeenItem], items: Mapping[str, str]) -> list[ItemOutcome]:
    """Return the items that differ from those seen, with ids made of item and hash."""
    new = {item: hash for item, hash in items.items() if item not in seen or seen[item].hash != hash}
    return [
        ItemOutcome(
            item,
            hash,
            Publication(f"{item}-{hash}", "text/plain", hash.encode()),
            Publication(f"{item}-{hash}-again", "text/plain", b"") if item in seen else None,
        )
        for item, hash in new.items()
    ]


def take_items(store: Store, items: Mapping[str, str], moment: datetime = NOON) -> ItemCounts:
    outcome = store.polled_feeds.take(
        find_feed(store),
        moment,
        items,
        lambda seen: changed_items(seen, items),
        {"polled": format_instant(moment)},
    )
    assert outcome is not None
    return outcome[1]


def journal_ids(store: Store) -> Sequence[str]:
    return [one.id for one in store.journal.read(0)]


def test_add_feed_is_visible_to_other_connections_and_due(store: Store, url: str) -> None:
    feed = add_feed(store)
    with open_store(url) as other:
        assert other.polled_feeds.load() == (feed,) == other.polled_feeds.due(NOON)
        assert other.polled_feeds.due(NOON - MINUTE) == ()
        assert other.polled_feeds.next_due() == feed.next_poll == "2026-05-01T12:00:00.000000Z"


def test_add_feed_again_makes_it_due(store: Store) -> None:
    feed = add_feed(store)
    store.polled_feeds.record(feed, {"next_poll": None, "title": "News", "problem": "gone"})
    again = store.polled_feeds.add(URL, NOON + MINUTE, in_private_network=True)
    assert (again.number, again.title, again.in_private_network) == (feed.number, "News", True)
    assert again.next_poll == format_instant(NOON + MINUTE)


def test_remove_feed_deletes_seen_items(store: Store) -> None:
    add_feed(store)
    take_items(store, {"a": "1"})
    assert store.polled_feeds.remove(URL)
    assert not store.polled_feeds.remove(URL)
    assert store.polled_feeds.load() == ()
    add_feed(store)
    assert take_items(store, {"a": "1"}) == ItemCounts(1, 0, 0, 0), "the journal still has it"
    assert journal_ids(store) == ["a-1"]


def test_claim_is_exclusive_until_its_end(store: Store) -> None:
    feed = add_feed(store)
    assert store.polled_feeds.claim(feed, NOON, NOON + 5 * MINUTE)
    assert not store.polled_feeds.claim(feed, NOON, NOON + 5 * MINUTE)
    assert store.polled_feeds.due(NOON) == ()
    assert [one.number for one in store.polled_feeds.due(NOON + 5 * MINUTE)] == [feed.number], (
        "the claim has expired"
    )


def test_hasten_makes_feed_due_at_minimum_distance(store: Store) -> None:
    feed = add_feed(store)
    store.polled_feeds.record(
        feed, {"polled": format_instant(NOON - MINUTE / 2), "next_poll": format_instant(NOON + 60 * MINUTE)}
    )
    store.polled_feeds.make_due([find_feed(store)], NOON, apart=MINUTE)
    assert find_feed(store).next_poll == format_instant(NOON + MINUTE / 2)
    store.polled_feeds.make_due([find_feed(store)], NOON + 10 * MINUTE, apart=MINUTE)
    assert find_feed(store).next_poll == format_instant(NOON + MINUTE / 2), "never later than before"


def test_hasten_during_poll_is_kept(store: Store) -> None:
    feed = add_feed(store)
    store.polled_feeds.claim(feed, NOON, NOON + 5 * MINUTE)
    claimed = find_feed(store)
    store.polled_feeds.make_due([claimed], NOON + MINUTE / 2, apart=MINUTE)
    store.polled_feeds.record(claimed, {"next_poll": format_instant(NOON + 60 * MINUTE)})
    assert find_feed(store).next_poll == format_instant(NOON + MINUTE)
    store.polled_feeds.record(find_feed(store), {"next_poll": format_instant(NOON + 60 * MINUTE)})
    assert find_feed(store).next_poll == format_instant(NOON + 60 * MINUTE), "the next poll consumed the ping"


def test_due_clock_set_back_by_day_includes_polled_feeds(store: Store) -> None:
    store.polled_feeds.record(
        add_feed(store),
        {"polled": format_instant(NOON), "next_poll": format_instant(NOON + 60 * MINUTE), "lease": "2026-06"},
    )
    assert store.polled_feeds.due(NOON - MINUTE) == (), "clocks of several machines differ a little"
    yesterday = NOON - timedelta(days=1)
    [due] = store.polled_feeds.due(yesterday)
    assert due == find_feed(store)
    claimed = store.polled_feeds.claim(due, yesterday, yesterday + 5 * MINUTE)
    assert claimed and claimed.lease is None and find_feed(store).lease is None, "its end is unknown"
    assert store.polled_feeds.due(yesterday) == ()


def test_due_clock_set_back_includes_feeds_never_polled(store: Store) -> None:
    store.polled_feeds.add(URL, NOON, in_private_network=False, until=NOON + 5 * MINUTE)
    assert [one.url for one in store.polled_feeds.due(NOON - timedelta(days=1))] == [URL]


def test_due_clock_set_back_excludes_gone_feeds(store: Store) -> None:
    store.polled_feeds.record(add_feed(store), {"polled": format_instant(NOON), "next_poll": None})
    assert store.polled_feeds.due(NOON - timedelta(days=1)) == ()


def test_hasten_clock_set_back_makes_feed_due_immediately(store: Store) -> None:
    store.polled_feeds.record(
        add_feed(store), {"polled": format_instant(NOON), "next_poll": format_instant(NOON + 60 * MINUTE)}
    )
    yesterday = NOON - timedelta(days=1)
    store.polled_feeds.make_due([find_feed(store)], yesterday, apart=MINUTE)
    assert find_feed(store).next_poll == format_instant(yesterday)


def test_hasten_gone_feed_stays_stopped(store: Store) -> None:
    store.polled_feeds.record(add_feed(store), {"next_poll": None})
    store.polled_feeds.make_due([find_feed(store)], NOON, apart=MINUTE)
    assert store.polled_feeds.next_due() is None


def test_named_finds_feeds_by_url_site_and_callback(store: Store) -> None:
    feed = add_feed(store)
    store.polled_feeds.record(feed, {"site": "http://example.org/", "callback": "word"})
    add_feed(store, "http://example.net/feed")
    assert [one.url for one in store.polled_feeds.named(["http://example.org/"])] == [URL]
    assert [one.url for one in store.polled_feeds.named([URL, "http://nowhere"])] == [URL]
    assert store.polled_feeds.called_back("word") == find_feed(store)
    assert store.polled_feeds.called_back("other") is None


def test_take_item_is_published_once_and_again_if_edited(store: Store) -> None:
    add_feed(store)
    assert take_items(store, {"a": "1", "b": "1"}) == ItemCounts(items=2, new=2, edited=0, refused=0)
    assert take_items(store, {"a": "1", "b": "1"}) == ItemCounts(items=2, new=0, edited=0, refused=0)
    assert take_items(store, {"b": "2", "c": "1"}) == ItemCounts(items=2, new=1, edited=1, refused=0)
    assert journal_ids(store) == ["a-1", "b-1", "b-2", "c-1"]


def test_take_item_reverted_to_earlier_hash_is_edit(store: Store) -> None:
    add_feed(store)
    for hash in "121":
        take_items(store, {"a": hash})
    assert journal_ids(store) == ["a-1", "a-2", "a-1-again"]


def test_take_item_with_existing_id_and_other_body_is_not_new(store: Store) -> None:
    """Dates and comment counts are part of the body, but not of the hash."""
    add_feed(store)
    store.journal.append([Publication("a-1", "text/plain", b"with another date")])
    assert take_items(store, {"a": "1"}) == ItemCounts(items=1, new=0, edited=0, refused=0)


def test_take_rejected_item_is_dead_letter_once(store: Store) -> None:
    feed = add_feed(store)

    def reject(seen: Mapping[str, SeenItem]) -> list[ItemOutcome]:
        return [ItemOutcome("a", "1", None, letter=DeadLetter("f-1", "too long", {}))]

    for _ in range(2):
        outcome = store.polled_feeds.take(feed, NOON, {"a": "1"}, reject, {})
        assert outcome is not None and outcome[1] == ItemCounts(items=1, new=0, edited=0, refused=1)
    assert [(one.source, one.reason) for one in store.dead_letters.read(0, 10)] == [(URL, "too long")]
    assert take_items(store, {"a": "2"}) == ItemCounts(1, 1, 0, 0), (
        "once valid it is new, because it was never published"
    )


def test_take_forgets_items_absent_for_retention_period(store: Store) -> None:
    add_feed(store)
    take_items(store, {"left": "1", "stays": "1"})
    take_items(store, {"stays": "1"}, NOON + timedelta(days=30))
    assert remembered_items(store, NOON + REMEMBERED) == {"left", "stays"}
    take_items(store, {"stays": "1"}, NOON + REMEMBERED + MINUTE)
    assert remembered_items(store, NOON + REMEMBERED + MINUTE) == {"stays"}


def test_take_remembers_limited_number_of_items(store: Store) -> None:
    """The items seen least recently are forgotten. Nothing is published here, to be fast."""
    add_feed(store)
    take_items(store, {"left": "1", "stays": "1"})
    many = {f"item {number}": "1" for number in range(MOST - 1)} | {"stays": "1"}

    def see(seen: Mapping[str, SeenItem]) -> list[ItemOutcome]:
        return [ItemOutcome(item, hash, None) for item, hash in many.items() if item not in seen]

    store.polled_feeds.take(find_feed(store), NOON + timedelta(days=2), many, see, {})
    assert remembered_items(store, NOON + timedelta(days=2)) == {"stays"}


def remembered_items(store: Store, moment: datetime) -> set[str]:
    """Return which of the two items the store knows, without changing anything."""
    known: set[str] = set()

    def look(seen: Mapping[str, SeenItem]) -> list[ItemOutcome]:
        known.update(seen)
        raise LookupError

    with pytest.raises(LookupError):
        store.polled_feeds.take(find_feed(store), moment, {"left": "1", "stays": "1"}, look, {})
    return known


def test_record_move_to_url_of_other_feed_removes_feed(store: Store) -> None:
    old, new = add_feed(store), add_feed(store, "http://example.net/feed")
    assert store.polled_feeds.record(old, {"url": new.url}) is None
    assert [one.url for one in store.polled_feeds.load()] == [new.url]
    assert store.polled_feeds.record(old, {"title": "x"}) is None


def test_take_removed_feed_publishes_nothing(store: Store) -> None:
    feed = add_feed(store)
    store.polled_feeds.remove(URL)
    assert (
        store.polled_feeds.take(feed, NOON, {"a": "1"}, lambda seen: changed_items(seen, {"a": "1"}), {})
        is None
    )
    assert journal_ids(store) == []
