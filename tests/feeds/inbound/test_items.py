"""Items as publications, for random histories of a feed: each edit is published exactly once."""

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
"""The titles by id at each poll of a feed. Sometimes the feed is removed and added again."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path_factory.mktemp("store") / "store.db")) as opened:
        yield opened


NUMBERS = count()


def items(titles: dict[str, str]) -> list[Item]:
    ids = list(titles)
    body = rss(*titles.values())
    for number, id in enumerate(ids):
        body = body.replace(f"item-{number}<".encode(), f"{id}<".encode())
        body = body.replace(f"/item/{number}<".encode(), f"/{id}<".encode())
    return list(items_of(body, "")[1])


def take_items(store: Store, feed: PolledFeed, titles: dict[str, str]) -> ItemCounts:
    items_by_key = index_items(items(titles))
    hashes = {key: item.hash for key, item in items_by_key.items()}
    outcome = store.polled_feeds.take(
        feed, NOON, hashes, lambda seen: plan_items(feed, items_by_key, seen), {}
    )
    assert outcome is not None
    return outcome[1]


@given(HISTORIES, st.booleans())
@example([{"a": "one"}, {"a": "two"}, {"a": "one"}, "added anew", {"a": "two"}, {"a": "one"}], False)
def test_take_random_history_publishes_new_and_edited_items(
    store: Store, history: list[dict[str, str] | str], twice: bool
) -> None:
    """An item is new if its id is unknown and it was never published with its title.

    It is edited if its title differs from the last one.
    """
    url = f"http://example.org/{next(NUMBERS)}"
    feed = store.polled_feeds.add(url, NOON, in_private_network=False)
    first, last, published_ever = store.journal.head(), dict[str, str](), set[tuple[str, str]]()
    published = 0
    for titles in history:
        if isinstance(titles, str):
            store.polled_feeds.remove(url)
            feed, last = store.polled_feeds.add(url, NOON, in_private_network=False), {}
            continue
        new_items = {pair for pair in titles.items() if pair[0] not in last and pair not in published_ever}
        edited_ids = {id for id, title in titles.items() if id in last and last[id] != title}
        assert take_items(store, feed, titles) == ItemCounts(len(titles), len(new_items), len(edited_ids), 0)
        if twice:
            assert take_items(store, feed, titles) == ItemCounts(len(titles), 0, 0, 0)
        published += len(new_items) + len(edited_ids)
        last, published_ever = last | titles, published_ever | set(titles.items())
    assert store.journal.head() - first == published


def test_take_edited_item_names_replaced_publication(store: Store) -> None:
    feed = store.polled_feeds.add(f"http://example.org/{next(NUMBERS)}", NOON, in_private_network=False)
    first = store.journal.head()
    for title in ("one", "two", "one", "two", "two"):
        take_items(store, feed, {"a": title})
    publications = list(store.journal.read(first))
    graphs = [decode(one.body, one.media_type) for one in publications]
    replaced = [[e.object.text for e in graph.edges if e.property.text == REPLACES] for graph in graphs]
    assert replaced == [[], *([PUBLICATION + one.id] for one in publications[:3])]
    assert len({one.id for one in publications}) == 4


def test_publication_id_differs_between_feeds() -> None:
    [item] = items({"a": "one"})
    assert publication_id("http://example.org/1", item) != publication_id("http://example.org/2", item)
    assert publication_id("http://example.org/1", item) == publication_id("http://example.org/1", item)


def test_take_forgotten_item_is_published_only_if_changed(store: Store) -> None:
    feed = store.polled_feeds.add(f"http://example.org/{next(NUMBERS)}", NOON, in_private_network=False)
    take_items(store, feed, {"a": "one"})
    store.polled_feeds.take(feed, NOON + timedelta(days=100), {}, lambda seen: [], {})
    assert take_items(store, feed, {"a": "one"}) == ItemCounts(1, 0, 0, 0)
    store.polled_feeds.take(feed, NOON + timedelta(days=100), {}, lambda seen: [], {})
    assert take_items(store, feed, {"a": "two"}) == ItemCounts(1, 1, 0, 0), (
        "it counts as new, because the earlier title is unknown"
    )
