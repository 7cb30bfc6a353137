"""Items as publications, for generated histories of a feed: each edit is told once, whoever looks and however often."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.servers.site import rss
from tidings.feeds.inbound.items import PUBLICATION, REPLACES, index_items, plan_items, publication_id
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.feeds.sql.polled_items import ItemCounts
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.syndication.feed_parser import Item, items_of
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HISTORIES = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from(["one", "two"])) | st.just("added anew"),
    max_size=8,
)
"""What a feed says at each poll: titles by ids. Sometimes it is removed and added again."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path_factory.mktemp("store") / "store.db")) as opened:
        yield opened


NUMBERS = count()


def items(said: dict[str, str]) -> list[Item]:
    listed = list(said)
    body = rss(*said.values())
    for number, id in enumerate(listed):
        body = body.replace(f"item-{number}<".encode(), f"{id}<".encode())
        body = body.replace(f"/item/{number}<".encode(), f"/{id}<".encode())
    return list(items_of(body, "")[1])


def take(store: Store, feed: PolledFeed, said: dict[str, str]) -> ItemCounts:
    there = index_items(items(said))
    hashes = {key: item.hash for key, item in there.items()}
    outcome = store.polled_feeds.take(feed, NOON, hashes, lambda seen: plan_items(feed, there, seen), {})
    assert outcome is not None
    return outcome[1]


@given(HISTORIES, st.booleans())
@example([{"a": "one"}, {"a": "two"}, {"a": "one"}, "added anew", {"a": "two"}, {"a": "one"}], False)
def test_histories(store: Store, history: list[dict[str, str] | str], twice: bool) -> None:
    """An item is new if neither it nor what it says was published; it is edited if it said something else last time."""
    url = f"http://example.org/{next(NUMBERS)}"
    feed = store.polled_feeds.add(url, NOON, inside=False)
    first, last, ever = store.journal.head(), dict[str, str](), set[tuple[str, str]]()
    told = 0
    for said in history:
        if isinstance(said, str):
            store.polled_feeds.remove(url)
            feed, last = store.polled_feeds.add(url, NOON, inside=False), {}
            continue
        new = {pair for pair in said.items() if pair[0] not in last and pair not in ever}
        edited = {id for id, title in said.items() if id in last and last[id] != title}
        assert take(store, feed, said) == ItemCounts(len(said), len(new), len(edited), 0)
        if twice:
            assert take(store, feed, said) == ItemCounts(len(said), 0, 0, 0)
        told += len(new) + len(edited)
        last, ever = last | said, ever | set(said.items())
    assert store.journal.head() - first == told


def test_each_edit_names_what_it_replaces(store: Store) -> None:
    feed = store.polled_feeds.add(f"http://example.org/{next(NUMBERS)}", NOON, inside=False)
    first = store.journal.head()
    for title in ("one", "two", "one", "two", "two"):
        take(store, feed, {"a": title})
    told = list(store.journal.read(first))
    graphs = [decode(one.body, one.media_type) for one in told]
    replaced = [[e.object.text for e in graph.edges if e.property.text == REPLACES] for graph in graphs]
    assert replaced == [[], *([PUBLICATION + one.id] for one in told[:3])]
    assert len({one.id for one in told}) == 4


def test_the_same_item_of_another_feed_is_another_publication() -> None:
    [item] = items({"a": "one"})
    assert publication_id("http://example.org/1", item) != publication_id("http://example.org/2", item)
    assert publication_id("http://example.org/1", item) == publication_id("http://example.org/1", item)


def test_an_item_that_was_forgotten_and_comes_back_is_known(store: Store) -> None:
    feed = store.polled_feeds.add(f"http://example.org/{next(NUMBERS)}", NOON, inside=False)
    take(store, feed, {"a": "one"})
    store.polled_feeds.take(feed, NOON + timedelta(days=100), {}, lambda seen: [], {})
    assert take(store, feed, {"a": "one"}) == ItemCounts(1, 0, 0, 0)
    store.polled_feeds.take(feed, NOON + timedelta(days=100), {}, lambda seen: [], {})
    assert take(store, feed, {"a": "two"}) == ItemCounts(1, 1, 0, 0), "but not that it was edited"
