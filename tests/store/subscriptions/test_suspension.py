"""Paused subscriptions, and suspension of those that exceed their budget."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tidings.errors import IdTaken, InputError, OverLimit
from tidings.model import SUSPENDED, Reason, Subscription
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.store import Store
from tidings.store.subscriptions.admission import AddedSubscription
from tidings.store.subscriptions.registry import SubscriptionChanges
from tidings.store.subscriptions.suspension import reason_of
from tidings.store.subscriptions.view import SubscriptionFilter


def wants(
    id: str, text: str = "price < 5", subscriber: str = "ana", language: str = "predicates"
) -> Subscription:
    return Subscription(id, subscriber, language, text)


def test_a_change_is_one_version(store: Store) -> None:
    store.subscriptions.add_many([wants("s-1"), wants("s-2")])
    changed = replace(wants("s-1", "price > 5"), within=60)
    assert store.subscriptions.change(changed)
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [changed], ["s-1"])
    assert store.subscriptions.changes(0) == SubscriptionChanges(2, [wants("s-2"), changed], [])
    assert store.subscriptions.change(changed), "the same again is there already"
    assert store.subscriptions.version() == 2
    assert not store.subscriptions.change(wants("s-9"))
    assert not store.subscriptions.change(wants("s-1", subscriber="bo")), "it is ana's"


def test_to_a_follower_pausing_is_removing_and_resuming_is_adding(store: Store) -> None:
    store.subscriptions.add(wants("s-1"))
    assert not store.paused.pause("s-1", "bo")
    assert store.paused.pause("s-1", "ana")
    assert not store.paused.pause("s-1", "ana")
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [], ["s-1"])
    assert (store.subscriptions.list(), store.paused.find("s-1")) == ([], wants("s-1"))
    with pytest.raises(IdTaken, match="paused"):
        store.subscriptions.add(wants("s-1"))
    assert store.paused.change(wants("s-1", "price > 5"))
    assert store.paused.resume("s-1")
    assert not store.paused.resume("s-1")
    assert store.subscriptions.changes(2) == SubscriptionChanges(3, [wants("s-1", "price > 5")], [])
    assert store.paused.all("ana") == []
    assert not store.paused.remove("s-1")


def test_what_is_paused_from_the_beginning(store: Store) -> None:
    """An outcome for each, in order; followers hear of it when it is resumed."""
    store.subscriptions.add(wants("s-1"))
    rule = wants("", "search A a register a", language="rules")
    offered = [
        wants("s-2"),
        wants("s-1"),
        wants("s-2", "price > 5"),
        wants("s-2"),
        wants(""),
        rule,
        wants("a\nb"),
    ]
    outcomes = store.paused.offer(offered)
    assert outcomes[0] == AddedSubscription("s-2", True)
    assert outcomes[3] == AddedSubscription("s-2", False)
    assert [getattr(each, "id", "")[:2] for each in outcomes[4:6]] == ["s-", "r-"]
    problems = [str(each) for each in outcomes if isinstance(each, InputError)]
    assert [each.partition(";")[0] for each in problems] == [
        "the id 's-1' is used for a subscription that is active",
        "the id 's-2' is already used for another subscription",
        "a subscription's id has only characters that can be shown",
    ]
    assert (store.subscriptions.version(), len(store.paused.all("ana"))) == (1, 3)
    assert store.paused.resume("s-2")
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [wants("s-2")], [])
    assert [type(each) for each in store.paused.offer([wants("a"), wants("b")], most=5)] == [
        AddedSubscription,
        OverLimit,
    ]


def test_all_kinds_are_listed_in_one_order(store: Store) -> None:
    store.subscriptions.add_many([wants(f"s-{i}") for i in range(5)])
    store.subscriptions.add_many([wants("t-1", "//Oak", "bo", "xpath")])
    store.paused.pause("s-3", "ana")
    listed = [one.subscription.id for one in store.subscription_view.page(SubscriptionFilter(), 10)]
    assert listed == ["s-0", "s-1", "s-2", "s-3", "s-4", "t-1"]
    assert [one.state for one in store.subscription_view.page(SubscriptionFilter(after="s-1"), 3)] == [
        "active",
        "paused",
        "active",
    ]

    def ids(**asked: str) -> list[str]:
        return [one.subscription.id for one in store.subscription_view.page(SubscriptionFilter(**asked), 10)]

    assert ids(subscriber="bo") == ids(language="xpath") == ids(word="oak") == ids(word="T-1") == ["t-1"]
    assert ids(state="paused") == ["s-3"] and ids(word="100%") == []
    found = store.subscription_view.find("s-3")
    assert found and found.paused and store.subscription_view.find("s-9") is None
    assert (store.subscription_view.count("ana"), store.subscription_view.count("cy")) == (5, 0)


def test_who_has_as_many_as_there_may_be(store: Store) -> None:
    store.subscriptions.add(wants("s-1"), most=2)
    store.paused.pause("s-1", "ana")
    with ThreadPoolExecutor(4) as threads:
        outcomes = [threads.submit(store.subscriptions.add, wants(f"t-{i}"), 2) for i in range(4)]
    refused = [one.exception() for one in outcomes if one.exception()]
    assert len(refused) == 3 and all(isinstance(one, OverLimit) for one in refused)
    assert store.subscription_view.count("ana") == 2
    assert store.subscriptions.add(wants("u-1", subscriber="bo"), most=2) == "u-1"


def test_what_matched_is_counted(store: Store) -> None:
    store.subscriptions.add_many([wants("s-1"), wants("s-2")])
    why = (Reason("price < 5", 4, "/price"),)
    store.notifications.commit_batch("stream", 1, [MatchRow(f"p-{i}", "s-1", "ana", why) for i in range(3)])
    found = store.numbered_notifications.match_counts("ana", ["s-1", "s-2"])
    assert (found["s-1"][0], found["s-2"]) == (3, (0, None))
    assert found["s-1"][1] == store.notifications.read("ana")[-1].time
    assert store.numbered_notifications.match_counts("bo", ["s-1"]) == {"s-1": (0, None)}, (
        "what is ana's is not bo's"
    )


MOST = 3
WANTED = Subscription("s-1", "ana", "gql", "SELECT * WHERE (?a, ?p, ?b)")


def exceed(store: Store, *positions: int, batch: int = 1, subscription: str | None = "s-1") -> None:
    letters = [
        DeadLetter(f"p{at}", "too dear", {}, at, b"<x/>", subscription=subscription) for at in positions
    ]
    store.notifications.commit_batch("stream", batch, [], letters, source="journal")


def test_dead_letter_of_a_pair_names_its_subscription(store: Store) -> None:
    exceed(store, 1)
    exceed(store, 1, batch=2, subscription="s-2")
    exceed(store, 1, batch=3, subscription=None)
    exceed(store, 1, batch=4)
    found = [(letter.publication, letter.subscription, letter.body) for letter in store.dead_letters.read()]
    assert found == [("p1", "s-1", b"<x/>"), ("p1", "s-2", b"<x/>"), ("p1", None, b"<x/>")]
    assert store.dead_letters.at("journal", 1) == store.dead_letters.read()[2], (
        "of the publication as a whole"
    )


def test_overruns_of_a_repeated_batch_count_once(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2)
    exceed(store, 1, 2)
    exceed(store, 2, 3, batch=2)
    assert store.overruns.count("s-1") == 3


def test_subscription_with_enough_overruns_is_suspended_and_its_owner_notified(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2)
    assert store.overruns.suspend(MOST) == []
    exceed(store, 3, batch=2)
    assert store.overruns.suspend(MOST) == [WANTED]
    assert store.overruns.suspend(MOST) == []
    kept = store.subscription_view.find("s-1")
    assert kept is not None and (kept.state, kept.reason) == ("paused", reason_of(MOST))
    assert store.paused.reasons() == {"s-1": reason_of(MOST)} == store.paused.reasons("ana")
    (told,) = store.notifications.read("ana")
    assert (told.kind, told.subscription, told.sequence) == (SUSPENDED, "s-1", 1)
    assert [reason.predicate for reason in told.because] == [reason_of(MOST)]


def test_resumed_subscription_counts_from_zero_and_can_be_suspended_again(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2, 3)
    store.overruns.suspend(MOST)
    assert store.paused.resume("s-1")
    assert (store.overruns.count("s-1"), store.overruns.suspend(MOST)) == (0, [])
    exceed(store, 4, 5, 6, batch=2)
    assert store.overruns.suspend(MOST) == [WANTED]
    assert [told.kind for told in store.notifications.read("ana")] == [SUSPENDED, SUSPENDED]


def test_changed_or_removed_subscription_counts_from_zero(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2)
    store.subscriptions.change(replace(WANTED, text="SELECT * WHERE (?a, <urn:p>, ?b)"))
    assert store.overruns.count("s-1") == 0
    exceed(store, 3, 4, batch=2)
    store.subscriptions.remove(["s-1"])
    assert store.overruns.count("s-1") == 0


def test_overruns_of_a_subscription_that_is_gone_suspend_nothing(store: Store) -> None:
    exceed(store, 1, 2, 3)
    assert store.overruns.suspend(MOST) == []
