"""Subscriptions and their versions, compared with a plain model."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stores.server_documents import ALL, SCHEMA
from tests.support.strategies.effort import share
from tidings.errors import IdConflict, InputError, LimitExceeded, StoreError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.model import Subscription
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store
from tidings.store.subscriptions.admission import AddedSubscription
from tidings.store.subscriptions.registry import SubscriptionChanges


def subscription(id: str, text: str = "price < 200", subscriber: str = "ana") -> Subscription:
    return Subscription(id, subscriber, "predicates", text)


def test_add_list_find_and_count_subscriptions(store: Store) -> None:
    store.subscriptions.add(subscription("s-2"))
    store.subscriptions.add(subscription("s-1", "título = 'é ☃'", "bo"))
    assert store.subscriptions.list() == [subscription("s-2"), subscription("s-1", "título = 'é ☃'", "bo")]
    assert store.subscriptions.list("bo") == [subscription("s-1", "título = 'é ☃'", "bo")]
    assert store.subscriptions.list(limit=1) == [subscription("s-2")]
    assert store.subscriptions.find("s-2") == subscription("s-2")
    assert (
        store.subscriptions.count(),
        store.subscriptions.count("ana"),
        store.subscriptions.count("cy"),
    ) == (2, 1, 0)


def test_add_without_id_generates_one(store: Store) -> None:
    first, second = store.subscriptions.add(subscription("")), store.subscriptions.add(subscription(""))
    assert first != second
    assert first.startswith("s-") and len(first) == 10
    assert store.subscriptions.find(first) == subscription(first)


def test_add_repeated_subscription_changes_nothing(store: Store) -> None:
    store.subscriptions.add(subscription("s-1"))
    assert store.subscriptions.add_many([subscription("s-1"), subscription("s-1")]) == ["s-1", "s-1"]
    assert store.subscriptions.version() == 1
    with pytest.raises(IdConflict, match="the id 's-1' is already used for another subscription"):
        store.subscriptions.add_many([subscription("s-2"), subscription("s-1", "price > 5")])
    assert store.subscriptions.list() == [subscription("s-1")]


@pytest.mark.parametrize(
    "bad",
    [
        subscription("s\n"),
        subscription("s-1", subscriber=""),
        subscription("s-1", "a = '\x00'"),
        subscription("s-1", "a = '\ud800'"),
    ],
)
def test_add_unstorable_text_is_rejected(store: Store, bad: Subscription) -> None:
    with pytest.raises(InputError):
        store.subscriptions.add_many([subscription("s-0"), bad])
    assert store.subscriptions.list() == []


def test_offer_each_subscription_gets_its_own_outcome(store: Store) -> None:
    store.subscriptions.add_many([subscription("s-1"), subscription("s-2")])
    store.paused.pause("s-2", "ana")
    version = store.subscriptions.version()
    again, paused, new, bad, other, made = store.subscriptions.offer(
        [
            subscription("s-1"),
            subscription("s-2"),
            subscription("s-3"),
            subscription("no\x00id"),
            subscription("s-3", "price > 5"),
            subscription(""),
        ]
    )
    assert (again, new) == (AddedSubscription("s-1", False), AddedSubscription("s-3", True))
    assert isinstance(paused, IdConflict) and "is paused" in paused.what
    assert isinstance(bad, InputError) and bad.pointer == "/id"
    assert isinstance(other, IdConflict) and other.pointer == "/id"
    assert isinstance(made, AddedSubscription) and made.new
    assert store.subscriptions.version() == version + 1
    assert [listed.id for listed in store.subscriptions.list()] == ["s-1", *sorted(["s-3", made.id])]


@share(5)
@given(st.randoms(use_true_random=False))
def test_offer_accepts_exactly_as_many_as_limit_allows(
    tmp_path_factory: pytest.TempPathFactory, choose: random.Random
) -> None:
    """Subscriptions are added, removed, changed, paused and resumed by two processes in turn.

    Each offer is accepted as far as there is room, no more and no less.
    """
    url = sqlite_url(tmp_path_factory.mktemp("limit") / "store.db")
    with open_store(url) as first, open_store(url) as second:
        for step in range(30):
            store = choose.choice((first, second))
            subscriber = choose.choice(("ana", "bo"))
            live = [each.id for each in store.subscriptions.list(subscriber)]
            before = {name: store.subscription_view.count(name) for name in ("ana", "bo")}
            if choose.random() < 0.6 or not live:
                offered = [
                    subscription("", subscriber=choose.choice(("ana", "bo")))
                    for _ in range(choose.randint(1, 4))
                ]
                outcomes = store.subscriptions.offer(offered, 5)
                for name in before:
                    mine = [n for n, each in enumerate(offered) if each.subscriber == name]
                    accepted = [isinstance(outcomes[n], AddedSubscription) for n in mine]
                    room = max(0, 5 - before[name])
                    assert accepted == [n < room for n in range(len(mine))], f"step {step}"
            elif choose.random() < 0.5:
                store.subscriptions.remove(choose.sample(live, 1))
            elif choose.random() < 0.5:
                store.paused.pause(choose.choice(live), subscriber)
            else:
                for each in store.paused.all(subscriber)[:1]:
                    store.paused.resume(each.id)
            assert max(store.subscription_view.count(name) for name in before) <= 5


def test_remove_returns_ids_of_existing_subscriptions(store: Store) -> None:
    store.subscriptions.add_many(
        [subscription("s-1"), subscription("s-2"), subscription("s-3", subscriber="bo")]
    )
    assert store.subscriptions.remove(["s-2", "s-9", "s-2", "no\x00id"]) == ["s-2"]
    assert store.subscriptions.remove(["s-2"]) == []
    assert store.subscriptions.remove(["s-3", "s-1"], subscriber="ana") == ["s-1"]
    assert store.subscriptions.list() == [subscription("s-3", subscriber="bo")]
    assert store.subscriptions.version() == 3, "a removal without effect is no change"


def test_add_rule_id_is_unique_and_counts_toward_limit(store: Store) -> None:
    """Checked inside its transaction: another process may have added one in the meantime."""
    Provider(store).load_schema(SCHEMA.body, SCHEMA.media_type)
    rules = RuleSubscriptions(store)
    store.subscriptions.add_many([subscription("lives"), subscription("rests")])
    store.paused.pause("rests", "ana")
    rules.add("ana", ALL, "asleep", None)
    rules.pause("asleep")
    for id in ("lives", "rests", "asleep"):
        with pytest.raises(IdConflict) as error:
            rules.add("ana", ALL, id, None)
        assert error.value.pointer == "/id" and ("is paused" in error.value.what) == (id != "lives")
        with pytest.raises(
            IdConflict, match=f"^the id '{id}' is taken; choose another one, or leave it out$"
        ):
            rules.add("bo", ALL, id, None)
    with pytest.raises(LimitExceeded):
        rules.add_many({"r-1": ALL, "r-2": ALL}, "ana", None, most=4)
    rules.add_many({"r-1": ALL}, "ana", None, most=4)
    with pytest.raises(LimitExceeded):
        rules.add("ana", ALL, "r-2", None, most=4)
    assert rules.resume(StoredRule("asleep", "ana", ALL)) and store.subscription_view.count("ana") == 4


def test_count_unstorable_subscriber_is_zero(store: Store) -> None:
    assert store.subscription_view.count("a\0") == store.subscription_view.count("\ud800") == 0
    with pytest.raises(InputError, match="only characters that can be shown") as error:
        RuleSubscriptions(store).add("a\0", ALL, "r-1", None)
    assert error.value.pointer == "/subscriber"


def test_changes_returns_net_difference(store: Store) -> None:
    store.subscriptions.add_many([subscription("s-1"), subscription("s-2")])
    seen = store.subscriptions.changes(0)
    assert seen == SubscriptionChanges(1, [subscription("s-1"), subscription("s-2")], [])
    store.subscriptions.add(subscription("s-3"))
    store.subscriptions.remove(["s-3", "s-1"])
    store.subscriptions.add(subscription("s-1", "price > 5"))
    assert store.subscriptions.changes(seen.version) == SubscriptionChanges(
        4, [subscription("s-1", "price > 5")], ["s-1"]
    )
    assert store.subscriptions.changes(0) == SubscriptionChanges(
        4, [subscription("s-2"), subscription("s-1", "price > 5")], []
    )
    assert store.subscriptions.changes(4) == SubscriptionChanges(4, [], [])


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_read_added_pages_have_the_additions_of_changes(store: Store, size: int) -> None:
    """Several are added in one version; later changes and other languages are not listed."""
    store.subscriptions.add(subscription("s-0"))
    store.subscriptions.add_many([subscription(f"s-{n}") for n in (3, 1, 2)])
    store.subscriptions.add(Subscription("x", "ana", "xpath", "//a"))
    store.subscriptions.remove(["s-0", "s-2"])
    seen = store.subscriptions.version()
    store.subscriptions.remove(["s-1"])
    store.subscriptions.add(subscription("s-9"))
    pages = [*store.subscriptions.read_added(1, seen, "predicates", size)]
    assert all(0 < len(page) <= size for page in pages)
    assert [one.id for page in pages for one in page] == ["s-1", "s-3"]
    assert store.subscriptions.find_removed(seen) == (seen + 2, ["s-1"])


def test_find_removed_future_version_is_rejected(store: Store) -> None:
    with pytest.raises(StoreError):
        store.subscriptions.find_removed(1)


def test_changes_future_version_is_rejected(store: Store) -> None:
    with pytest.raises(StoreError, match="remove the segments folder"):
        store.subscriptions.changes(1)


def test_add_and_remove_eleven_thousand_subscriptions(store: Store) -> None:
    many = [subscription(f"s-{i:05}", f"price < {i}") for i in range(11_000)]
    store.subscriptions.add_many(many)
    assert store.subscriptions.changes(0) == SubscriptionChanges(1, many, [])
    removed = [listed.id for listed in many[::2]]
    assert store.subscriptions.remove(removed) == removed
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [], removed)


@share(5)
@given(st.randoms(use_true_random=False))
def test_changes_follower_always_equals_listed_subscriptions(
    tmp_path_factory: pytest.TempPathFactory, choose: random.Random
) -> None:
    """At any time, and however many changes happened since its last read."""
    ids = [f"s-{i}" for i in range(5)]
    with open_store(sqlite_url(tmp_path_factory.mktemp("follower") / "store.db")) as store:
        known: dict[str, Subscription] = {}
        version = 0
        for step in range(25):
            live = {listed.id for listed in store.subscriptions.list()}
            free = [id for id in ids if id not in live]
            if choose.random() < 0.5 and free:
                store.subscriptions.add_many(
                    subscription(id, f"step = {step}")
                    for id in choose.sample(free, choose.randint(1, len(free)))
                )
            else:
                store.subscriptions.remove(choose.sample(ids, choose.randint(1, 3)))
            if choose.random() < 0.3:
                changes = store.subscriptions.changes(version)
                for id in changes.removed:
                    del known[id]
                assert not known.keys() & {listed.id for listed in changes.added}
                known |= {listed.id: listed for listed in changes.added}
                version = changes.version
                assert sorted(known) == sorted(listed.id for listed in store.subscriptions.list())
                assert set(known.values()) == set(store.subscriptions.list())
