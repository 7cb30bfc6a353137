"""Subscriptions and their versions, against the plainest model of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stores.server_documents import ALL, SCHEMA
from tests.support.strategies.effort import share
from tidings.errors import IdTaken, InputError, OverLimit, StoreError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.model import Subscription
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store
from tidings.store.subscriptions.admission import AddedSubscription
from tidings.store.subscriptions.registry import SubscriptionChanges


def wants(id: str, text: str = "price < 200", subscriber: str = "ana") -> Subscription:
    return Subscription(id, subscriber, "predicates", text)


def test_adding_and_listing(store: Store) -> None:
    store.subscriptions.add(wants("s-2"))
    store.subscriptions.add(wants("s-1", "título = 'é ☃'", "bo"))
    assert store.subscriptions.list() == [wants("s-2"), wants("s-1", "título = 'é ☃'", "bo")]
    assert store.subscriptions.list("bo") == [wants("s-1", "título = 'é ☃'", "bo")]
    assert store.subscriptions.list(limit=1) == [wants("s-2")]
    assert store.subscriptions.find("s-2") == wants("s-2")
    assert (
        store.subscriptions.count(),
        store.subscriptions.count("ana"),
        store.subscriptions.count("cy"),
    ) == (2, 1, 0)


def test_an_id_is_made_when_none_is_given(store: Store) -> None:
    first, second = store.subscriptions.add(wants("")), store.subscriptions.add(wants(""))
    assert first != second
    assert first.startswith("s-") and len(first) == 10
    assert store.subscriptions.find(first) == wants(first)


def test_the_same_subscription_again_changes_nothing(store: Store) -> None:
    store.subscriptions.add(wants("s-1"))
    assert store.subscriptions.add_many([wants("s-1"), wants("s-1")]) == ["s-1", "s-1"]
    assert store.subscriptions.version() == 1
    with pytest.raises(IdTaken, match="the id 's-1' is already used for another subscription"):
        store.subscriptions.add_many([wants("s-2"), wants("s-1", "price > 5")])
    assert store.subscriptions.list() == [wants("s-1")]


@pytest.mark.parametrize(
    "bad",
    [wants("s\n"), wants("s-1", subscriber=""), wants("s-1", "a = '\x00'"), wants("s-1", "a = '\ud800'")],
)
def test_what_no_database_keeps_is_refused(store: Store, bad: Subscription) -> None:
    with pytest.raises(InputError):
        store.subscriptions.add_many([wants("s-0"), bad])
    assert store.subscriptions.list() == []


def test_each_of_many_for_itself(store: Store) -> None:
    store.subscriptions.add_many([wants("s-1"), wants("s-2")])
    store.paused.pause("s-2", "ana")
    version = store.subscriptions.version()
    again, paused, new, bad, other, made = store.subscriptions.offer(
        [wants("s-1"), wants("s-2"), wants("s-3"), wants("no\x00id"), wants("s-3", "price > 5"), wants("")]
    )
    assert (again, new) == (AddedSubscription("s-1", False), AddedSubscription("s-3", True))
    assert isinstance(paused, IdTaken) and "is paused" in paused.what
    assert isinstance(bad, InputError) and bad.pointer == "/id"
    assert isinstance(other, IdTaken) and other.pointer == "/id"
    assert isinstance(made, AddedSubscription) and made.new
    assert store.subscriptions.version() == version + 1
    assert [one.id for one in store.subscriptions.list()] == ["s-1", *sorted(["s-3", made.id])]


@share(5)
@given(st.randoms(use_true_random=False))
def test_nobody_has_more_than_the_limit(
    tmp_path_factory: pytest.TempPathFactory, choose: random.Random
) -> None:
    """Whatever is added, removed, changed, paused and resumed, by two processes in turn: taken are as many as there is
    room for, no more and no fewer.
    """
    url = sqlite_url(tmp_path_factory.mktemp("limit") / "store.db")
    with open_store(url) as one, open_store(url) as two:
        for step in range(30):
            store = choose.choice((one, two))
            who = choose.choice(("ana", "bo"))
            live = [each.id for each in store.subscriptions.list(who)]
            before = {name: store.subscription_view.count(name) for name in ("ana", "bo")}
            if choose.random() < 0.6 or not live:
                some = [
                    wants("", subscriber=choose.choice(("ana", "bo"))) for _ in range(choose.randint(1, 4))
                ]
                outcomes = store.subscriptions.offer(some, 5)
                for name in before:
                    mine = [n for n, each in enumerate(some) if each.subscriber == name]
                    taken = [isinstance(outcomes[n], AddedSubscription) for n in mine]
                    room = max(0, 5 - before[name])
                    assert taken == [n < room for n in range(len(mine))], f"step {step}"
            elif choose.random() < 0.5:
                store.subscriptions.remove(choose.sample(live, 1))
            elif choose.random() < 0.5:
                store.paused.pause(choose.choice(live), who)
            else:
                for each in store.paused.all(who)[:1]:
                    store.paused.resume(each.id)
            assert max(store.subscription_view.count(name) for name in before) <= 5


def test_removing_gives_what_was_there(store: Store) -> None:
    store.subscriptions.add_many([wants("s-1"), wants("s-2"), wants("s-3", subscriber="bo")])
    assert store.subscriptions.remove(["s-2", "s-9", "s-2", "no\x00id"]) == ["s-2"]
    assert store.subscriptions.remove(["s-2"]) == []
    assert store.subscriptions.remove(["s-3", "s-1"], subscriber="ana") == ["s-1"]
    assert store.subscriptions.list() == [wants("s-3", subscriber="bo")]
    assert store.subscriptions.version() == 3, "what removes nothing is no change"


def test_a_rule_has_an_id_of_its_own_and_counts(store: Store) -> None:
    """Whatever was known before its transaction: another one may have come meanwhile."""
    Provider(store).load_schema(SCHEMA.body, SCHEMA.media_type)
    rules = RuleSubscriptions(store)
    store.subscriptions.add_many([wants("lives"), wants("rests")])
    store.paused.pause("rests", "ana")
    rules.add("ana", ALL, "asleep", None)
    rules.pause("asleep")
    for id in ("lives", "rests", "asleep"):
        with pytest.raises(IdTaken) as taken:
            rules.add("ana", ALL, id, None)
        assert taken.value.pointer == "/id" and ("is paused" in taken.value.what) == (id != "lives")
        with pytest.raises(IdTaken, match=f"^the id '{id}' is taken; choose another one, or leave it out$"):
            rules.add("bo", ALL, id, None)
    with pytest.raises(OverLimit):
        rules.add_many({"r-1": ALL, "r-2": ALL}, "ana", None, most=4)
    rules.add_many({"r-1": ALL}, "ana", None, most=4)
    with pytest.raises(OverLimit):
        rules.add("ana", ALL, "r-2", None, most=4)
    assert rules.resume(StoredRule("asleep", "ana", ALL)) and store.subscription_view.count("ana") == 4


def test_a_subscriber_whom_no_database_can_name_has_none(store: Store) -> None:
    assert store.subscription_view.count("a\0") == store.subscription_view.count("\ud800") == 0
    with pytest.raises(InputError, match="only characters that can be shown") as refused:
        RuleSubscriptions(store).add("a\0", ALL, "r-1", None)
    assert refused.value.pointer == "/subscriber"


def test_changes_are_net(store: Store) -> None:
    store.subscriptions.add_many([wants("s-1"), wants("s-2")])
    seen = store.subscriptions.changes(0)
    assert seen == SubscriptionChanges(1, [wants("s-1"), wants("s-2")], [])
    store.subscriptions.add(wants("s-3"))
    store.subscriptions.remove(["s-3", "s-1"])
    store.subscriptions.add(wants("s-1", "price > 5"))
    assert store.subscriptions.changes(seen.version) == SubscriptionChanges(
        4, [wants("s-1", "price > 5")], ["s-1"]
    )
    assert store.subscriptions.changes(0) == SubscriptionChanges(
        4, [wants("s-2"), wants("s-1", "price > 5")], []
    )
    assert store.subscriptions.changes(4) == SubscriptionChanges(4, [], [])


def test_a_version_from_the_future_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="remove the segments folder"):
        store.subscriptions.changes(1)


def test_many_at_once(store: Store) -> None:
    many = [wants(f"s-{i:05}", f"price < {i}") for i in range(11_000)]
    store.subscriptions.add_many(many)
    assert store.subscriptions.changes(0) == SubscriptionChanges(1, many, [])
    gone = [one.id for one in many[::2]]
    assert store.subscriptions.remove(gone) == gone
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [], gone)


@share(5)
@given(st.randoms(use_true_random=False))
def test_a_follower_that_applies_changes_has_what_is_listed(
    tmp_path_factory: pytest.TempPathFactory, choose: random.Random
) -> None:
    """Whenever it looks, and however much happened in between."""
    ids = [f"s-{i}" for i in range(5)]
    with open_store(sqlite_url(tmp_path_factory.mktemp("follower") / "store.db")) as store:
        known: dict[str, Subscription] = {}
        version = 0
        for step in range(25):
            live = {one.id for one in store.subscriptions.list()}
            free = [id for id in ids if id not in live]
            if choose.random() < 0.5 and free:
                store.subscriptions.add_many(
                    wants(id, f"step = {step}") for id in choose.sample(free, choose.randint(1, len(free)))
                )
            else:
                store.subscriptions.remove(choose.sample(ids, choose.randint(1, 3)))
            if choose.random() < 0.3:
                changes = store.subscriptions.changes(version)
                for id in changes.removed:
                    del known[id]
                assert not known.keys() & {one.id for one in changes.added}
                known |= {one.id: one for one in changes.added}
                version = changes.version
                assert sorted(known) == sorted(one.id for one in store.subscriptions.list())
                assert set(known.values()) == set(store.subscriptions.list())
