"""Feeds in the store: claims, pings between them, and items that are published once, on SQLite and PostgreSQL."""

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


def added(store: Store, url: str = URL) -> PolledFeed:
    return store.polled_feeds.add(url, NOON, inside=False)


def found(store: Store, url: str = URL) -> PolledFeed:
    feed = store.polled_feeds.find(url)
    assert feed is not None
    return feed


def offered(seen: Mapping[str, SeenItem], items: Mapping[str, str]) -> list[ItemOutcome]:
    """What differs from what was seen, as publications with ids of item and hash."""
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


def take(store: Store, items: Mapping[str, str], moment: datetime = NOON) -> ItemCounts:
    outcome = store.polled_feeds.take(
        found(store), moment, items, lambda seen: offered(seen, items), {"polled": format_instant(moment)}
    )
    assert outcome is not None
    return outcome[1]


def journal(store: Store) -> Sequence[str]:
    return [one.id for one in store.journal.read(0)]


def test_a_feed_is_there_for_everybody_and_due_at_once(store: Store, url: str) -> None:
    made = added(store)
    with open_store(url) as other:
        assert other.polled_feeds.load() == (made,) == other.polled_feeds.due(NOON)
        assert other.polled_feeds.due(NOON - MINUTE) == ()
        assert other.polled_feeds.next_due() == made.next_poll == "2026-05-01T12:00:00.000000Z"


def test_adding_a_feed_again_makes_it_due(store: Store) -> None:
    feed = added(store)
    store.polled_feeds.record(feed, {"next_poll": None, "title": "News", "problem": "gone"})
    again = store.polled_feeds.add(URL, NOON + MINUTE, inside=True)
    assert (again.number, again.title, again.inside) == (feed.number, "News", True)
    assert again.next_poll == format_instant(NOON + MINUTE)


def test_removing_forgets_what_was_seen(store: Store) -> None:
    added(store)
    take(store, {"a": "1"})
    assert store.polled_feeds.remove(URL)
    assert not store.polled_feeds.remove(URL)
    assert store.polled_feeds.load() == ()
    added(store)
    assert take(store, {"a": "1"}) == ItemCounts(1, 0, 0, 0), "the journal still knows it"
    assert journal(store) == ["a-1"]


def test_of_two_who_want_to_poll_a_feed_one_does(store: Store) -> None:
    feed = added(store)
    assert store.polled_feeds.claim(feed, NOON, NOON + 5 * MINUTE)
    assert not store.polled_feeds.claim(feed, NOON, NOON + 5 * MINUTE)
    assert store.polled_feeds.due(NOON) == ()
    assert [one.number for one in store.polled_feeds.due(NOON + 5 * MINUTE)] == [feed.number], (
        "the claim has ended"
    )


def test_a_ping_makes_a_feed_due_but_not_too_often(store: Store) -> None:
    feed = added(store)
    store.polled_feeds.record(
        feed, {"polled": format_instant(NOON - MINUTE / 2), "next_poll": format_instant(NOON + 60 * MINUTE)}
    )
    store.polled_feeds.hasten([found(store)], NOON, apart=MINUTE)
    assert found(store).next_poll == format_instant(NOON + MINUTE / 2)
    store.polled_feeds.hasten([found(store)], NOON + 10 * MINUTE, apart=MINUTE)
    assert found(store).next_poll == format_instant(NOON + MINUTE / 2), "never later than it was"


def test_a_ping_during_a_poll_is_not_lost(store: Store) -> None:
    feed = added(store)
    store.polled_feeds.claim(feed, NOON, NOON + 5 * MINUTE)
    claimed = found(store)
    store.polled_feeds.hasten([claimed], NOON + MINUTE / 2, apart=MINUTE)
    store.polled_feeds.record(claimed, {"next_poll": format_instant(NOON + 60 * MINUTE)})
    assert found(store).next_poll == format_instant(NOON + MINUTE)
    store.polled_feeds.record(found(store), {"next_poll": format_instant(NOON + 60 * MINUTE)})
    assert found(store).next_poll == format_instant(NOON + 60 * MINUTE), "it was heard by the poll after it"


def test_due_after_the_clock_was_set_back_by_a_day_has_feeds_that_were_polled_before(store: Store) -> None:
    store.polled_feeds.record(
        added(store),
        {"polled": format_instant(NOON), "next_poll": format_instant(NOON + 60 * MINUTE), "lease": "2026-06"},
    )
    assert store.polled_feeds.due(NOON - MINUTE) == (), "clocks of several machines differ a little"
    yesterday = NOON - timedelta(days=1)
    [due] = store.polled_feeds.due(yesterday)
    assert due == found(store)
    claimed = store.polled_feeds.claim(due, yesterday, yesterday + 5 * MINUTE)
    assert claimed and claimed.lease is None and found(store).lease is None, "when it ends is unknown"
    assert store.polled_feeds.due(yesterday) == ()


def test_due_after_the_clock_was_set_back_has_feeds_that_were_added_and_not_polled(store: Store) -> None:
    store.polled_feeds.add(URL, NOON, inside=False, until=NOON + 5 * MINUTE)
    assert [one.url for one in store.polled_feeds.due(NOON - timedelta(days=1))] == [URL]


def test_due_after_the_clock_was_set_back_leaves_out_feeds_that_are_gone(store: Store) -> None:
    store.polled_feeds.record(added(store), {"polled": format_instant(NOON), "next_poll": None})
    assert store.polled_feeds.due(NOON - timedelta(days=1)) == ()


def test_hasten_after_the_clock_was_set_back_makes_a_feed_due_at_once(store: Store) -> None:
    store.polled_feeds.record(
        added(store), {"polled": format_instant(NOON), "next_poll": format_instant(NOON + 60 * MINUTE)}
    )
    yesterday = NOON - timedelta(days=1)
    store.polled_feeds.hasten([found(store)], yesterday, apart=MINUTE)
    assert found(store).next_poll == format_instant(yesterday)


def test_a_feed_that_is_gone_is_not_woken_by_pings(store: Store) -> None:
    store.polled_feeds.record(added(store), {"next_poll": None})
    store.polled_feeds.hasten([found(store)], NOON, apart=MINUTE)
    assert store.polled_feeds.next_due() is None


def test_feeds_are_found_by_their_address_their_site_and_their_callback(store: Store) -> None:
    feed = added(store)
    store.polled_feeds.record(feed, {"site": "http://example.org/", "callback": "word"})
    added(store, "http://example.net/feed")
    assert [one.url for one in store.polled_feeds.named(["http://example.org/"])] == [URL]
    assert [one.url for one in store.polled_feeds.named([URL, "http://nowhere"])] == [URL]
    assert store.polled_feeds.called_back("word") == found(store)
    assert store.polled_feeds.called_back("other") is None


def test_an_item_is_published_once_and_again_if_it_was_edited(store: Store) -> None:
    added(store)
    assert take(store, {"a": "1", "b": "1"}) == ItemCounts(items=2, new=2, edited=0, refused=0)
    assert take(store, {"a": "1", "b": "1"}) == ItemCounts(items=2, new=0, edited=0, refused=0)
    assert take(store, {"b": "2", "c": "1"}) == ItemCounts(items=2, new=1, edited=1, refused=0)
    assert journal(store) == ["a-1", "b-1", "b-2", "c-1"]


def test_an_item_that_says_again_what_it_said_once_is_an_edit_too(store: Store) -> None:
    added(store)
    for hash in "121":
        take(store, {"a": hash})
    assert journal(store) == ["a-1", "a-2", "a-1-again"]


def test_another_body_under_a_taken_id_was_published_before(store: Store) -> None:
    """Dates and counts of comments are not part of the hash, but of the body."""
    added(store)
    store.journal.append([Publication("a-1", "text/plain", b"with another date")])
    assert take(store, {"a": "1"}) == ItemCounts(items=1, new=0, edited=0, refused=0)


def test_a_refused_item_is_a_dead_letter_once(store: Store) -> None:
    feed = added(store)

    def refuse(seen: Mapping[str, SeenItem]) -> list[ItemOutcome]:
        return [ItemOutcome("a", "1", None, letter=DeadLetter("f-1", "too long", {}))]

    for _ in range(2):
        outcome = store.polled_feeds.take(feed, NOON, {"a": "1"}, refuse, {})
        assert outcome is not None and outcome[1] == ItemCounts(items=1, new=0, edited=0, refused=1)
    assert [(one.source, one.reason) for one in store.dead_letters.read(0, 10)] == [(URL, "too long")]
    assert take(store, {"a": "2"}) == ItemCounts(1, 1, 0, 0), "mended, it is new: nobody has seen it before"


def test_items_that_left_long_ago_are_forgotten_and_those_that_stay_are_not(store: Store) -> None:
    added(store)
    take(store, {"left": "1", "stays": "1"})
    take(store, {"stays": "1"}, NOON + timedelta(days=30))
    assert remembered(store, NOON + REMEMBERED) == {"left", "stays"}
    take(store, {"stays": "1"}, NOON + REMEMBERED + MINUTE)
    assert remembered(store, NOON + REMEMBERED + MINUTE) == {"stays"}


def test_not_more_than_so_many_items_of_a_feed_are_remembered(store: Store) -> None:
    """Those that were seen longest ago are forgotten; nothing is published here, to be quick."""
    added(store)
    take(store, {"left": "1", "stays": "1"})
    many = {f"item {number}": "1" for number in range(MOST - 1)} | {"stays": "1"}

    def see(seen: Mapping[str, SeenItem]) -> list[ItemOutcome]:
        return [ItemOutcome(item, hash, None) for item, hash in many.items() if item not in seen]

    store.polled_feeds.take(found(store), NOON + timedelta(days=2), many, see, {})
    assert remembered(store, NOON + timedelta(days=2)) == {"stays"}


def remembered(store: Store, moment: datetime) -> set[str]:
    """Which of the two items the store knows; looking changes nothing."""
    known: set[str] = set()

    def look(seen: Mapping[str, SeenItem]) -> list[ItemOutcome]:
        known.update(seen)
        raise LookupError

    with pytest.raises(LookupError):
        store.polled_feeds.take(found(store), moment, {"left": "1", "stays": "1"}, look, {})
    return known


def test_a_feed_that_moves_to_where_another_is_ends(store: Store) -> None:
    old, new = added(store), added(store, "http://example.net/feed")
    assert store.polled_feeds.record(old, {"url": new.url}) is None
    assert [one.url for one in store.polled_feeds.load()] == [new.url]
    assert store.polled_feeds.record(old, {"title": "x"}) is None


def test_nothing_is_published_for_a_feed_that_was_removed(store: Store) -> None:
    feed = added(store)
    store.polled_feeds.remove(URL)
    assert store.polled_feeds.take(feed, NOON, {"a": "1"}, lambda seen: offered(seen, {"a": "1"}), {}) is None
    assert journal(store) == []
