"""Paused subscriptions, and suspension of those that exceed their budget."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tidings.errors import IdConflict, InputError, LimitExceeded
from tidings.model import SUSPENDED, Reason, Subscription
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.store import Store
from tidings.store.subscriptions.admission import AddedSubscription
from tidings.store.subscriptions.registry import SubscriptionChanges
from tidings.store.subscriptions.suspension import reason_of
from tidings.store.subscriptions.view import SubscriptionFilter


def subscription(
    id: str, text: str = "price < 5", subscriber: str = "ana", language: str = "predicates"
) -> Subscription:
    return Subscription(id, subscriber, language, text)


def test_change_increments_version_once(store: Store) -> None:
    store.subscriptions.add_many([subscription("s-1"), subscription("s-2")])
    changed = replace(subscription("s-1", "price > 5"), within=60)
    assert store.subscriptions.change(changed)
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [changed], ["s-1"])
    assert store.subscriptions.changes(0) == SubscriptionChanges(2, [subscription("s-2"), changed], [])
    assert store.subscriptions.change(changed), "a repeated change has no effect"
    assert store.subscriptions.version() == 2
    assert not store.subscriptions.change(subscription("s-9"))
    assert not store.subscriptions.change(subscription("s-1", subscriber="bo")), "it belongs to ana"


def test_changes_pause_is_removal_and_resume_is_addition(store: Store) -> None:
    store.subscriptions.add(subscription("s-1"))
    assert not store.paused.pause("s-1", "bo")
    assert store.paused.pause("s-1", "ana")
    assert not store.paused.pause("s-1", "ana")
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [], ["s-1"])
    assert (store.subscriptions.list(), store.paused.find("s-1")) == ([], subscription("s-1"))
    with pytest.raises(IdConflict, match="paused"):
        store.subscriptions.add(subscription("s-1"))
    assert store.paused.change(subscription("s-1", "price > 5"))
    assert store.paused.resume("s-1")
    assert not store.paused.resume("s-1")
    assert store.subscriptions.changes(2) == SubscriptionChanges(3, [subscription("s-1", "price > 5")], [])
    assert store.paused.all("ana") == []
    assert not store.paused.remove("s-1")


def test_offer_paused_subscriptions_get_outcomes_in_order(store: Store) -> None:
    """Followers see a subscription when it is resumed."""
    store.subscriptions.add(subscription("s-1"))
    rule = subscription("", "search A a register a", language="rules")
    offered = [
        subscription("s-2"),
        subscription("s-1"),
        subscription("s-2", "price > 5"),
        subscription("s-2"),
        subscription(""),
        rule,
        subscription("a\nb"),
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
    assert store.subscriptions.changes(1) == SubscriptionChanges(2, [subscription("s-2")], [])
    assert [type(each) for each in store.paused.offer([subscription("a"), subscription("b")], most=5)] == [
        AddedSubscription,
        LimitExceeded,
    ]


def test_page_lists_active_and_paused_subscriptions_in_one_order(store: Store) -> None:
    store.subscriptions.add_many([subscription(f"s-{i}") for i in range(5)])
    store.subscriptions.add_many([subscription("t-1", "//Oak", "bo", "xpath")])
    store.paused.pause("s-3", "ana")
    listed = [row.subscription.id for row in store.subscription_view.page(SubscriptionFilter(), 10)]
    assert listed == ["s-0", "s-1", "s-2", "s-3", "s-4", "t-1"]
    assert [row.state for row in store.subscription_view.page(SubscriptionFilter(after="s-1"), 3)] == [
        "active",
        "paused",
        "active",
    ]

    def ids(**filters: str) -> list[str]:
        return [
            row.subscription.id for row in store.subscription_view.page(SubscriptionFilter(**filters), 10)
        ]

    assert ids(subscriber="bo") == ids(language="xpath") == ids(word="oak") == ids(word="T-1") == ["t-1"]
    assert ids(state="paused") == ["s-3"] and ids(word="100%") == []
    row_of_paused = store.subscription_view.find("s-3")
    assert row_of_paused and row_of_paused.paused and store.subscription_view.find("s-9") is None
    assert (store.subscription_view.count("ana"), store.subscription_view.count("cy")) == (5, 0)


def test_add_at_limit_is_rejected(store: Store) -> None:
    store.subscriptions.add(subscription("s-1"), most=2)
    store.paused.pause("s-1", "ana")
    with ThreadPoolExecutor(4) as threads:
        outcomes = [threads.submit(store.subscriptions.add, subscription(f"t-{i}"), 2) for i in range(4)]
    errors = [future.exception() for future in outcomes if future.exception()]
    assert len(errors) == 3 and all(isinstance(future, LimitExceeded) for future in errors)
    assert store.subscription_view.count("ana") == 2
    assert store.subscriptions.add(subscription("u-1", subscriber="bo"), most=2) == "u-1"


def test_match_counts_returns_count_and_last_time_per_subscription(store: Store) -> None:
    store.subscriptions.add_many([subscription("s-1"), subscription("s-2")])
    reasons = (Reason("price < 5", 4, "/price"),)
    store.notifications.commit_batch(
        "stream", 1, [MatchRow(f"p-{i}", "s-1", "ana", reasons) for i in range(3)]
    )
    counts = store.numbered_notifications.match_counts("ana", ["s-1", "s-2"])
    assert (counts["s-1"][0], counts["s-2"]) == (3, (0, None))
    assert counts["s-1"][1] == store.notifications.read("ana")[-1].time
    assert store.numbered_notifications.match_counts("bo", ["s-1"]) == {"s-1": (0, None)}, (
        "bo sees no matches of ana"
    )


LIMIT = 3
WANTED = Subscription("s-1", "ana", "gql", "SELECT * WHERE (?a, ?p, ?b)")


def exceed(store: Store, *positions: int, batch: int = 1, subscription: str | None = "s-1") -> None:
    letters = [
        DeadLetter(f"p{at}", "too dear", {}, at, b"<x/>", subscription=subscription) for at in positions
    ]
    store.notifications.commit_batch("stream", batch, [], letters, source="journal")


def test_dead_letter_of_pair_has_its_subscription(store: Store) -> None:
    exceed(store, 1)
    exceed(store, 1, batch=2, subscription="s-2")
    exceed(store, 1, batch=3, subscription=None)
    exceed(store, 1, batch=4)
    letters = [(letter.publication, letter.subscription, letter.body) for letter in store.dead_letters.read()]
    assert letters == [("p1", "s-1", b"<x/>"), ("p1", "s-2", b"<x/>"), ("p1", None, b"<x/>")]
    assert store.dead_letters.find_at("journal", 1) == store.dead_letters.read()[2], (
        "of the publication as a whole"
    )


def test_overruns_of_repeated_batch_count_once(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2)
    exceed(store, 1, 2)
    exceed(store, 2, 3, batch=2)
    assert store.overruns.count("s-1") == 3


def test_suspend_subscription_at_threshold_pauses_it_and_notifies_owner(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2)
    assert store.overruns.suspend(LIMIT) == []
    exceed(store, 3, batch=2)
    assert store.overruns.suspend(LIMIT) == [WANTED]
    assert store.overruns.suspend(LIMIT) == []
    kept = store.subscription_view.find("s-1")
    assert kept is not None and (kept.state, kept.reason) == ("paused", reason_of(LIMIT))
    assert store.paused.reasons() == {"s-1": reason_of(LIMIT)} == store.paused.reasons("ana")
    (notification,) = store.notifications.read("ana")
    assert (notification.kind, notification.subscription, notification.sequence) == (SUSPENDED, "s-1", 1)
    assert [reason.predicate for reason in notification.because] == [reason_of(LIMIT)]


def test_resume_resets_overruns_and_allows_another_suspension(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2, 3)
    store.overruns.suspend(LIMIT)
    assert store.paused.resume("s-1")
    assert (store.overruns.count("s-1"), store.overruns.suspend(LIMIT)) == (0, [])
    exceed(store, 4, 5, 6, batch=2)
    assert store.overruns.suspend(LIMIT) == [WANTED]
    assert [notification.kind for notification in store.notifications.read("ana")] == [SUSPENDED, SUSPENDED]


def test_change_or_remove_resets_overruns(store: Store) -> None:
    store.subscriptions.add(WANTED)
    exceed(store, 1, 2)
    store.subscriptions.change(replace(WANTED, text="SELECT * WHERE (?a, <urn:p>, ?b)"))
    assert store.overruns.count("s-1") == 0
    exceed(store, 3, 4, batch=2)
    store.subscriptions.remove(["s-1"])
    assert store.overruns.count("s-1") == 0


def test_suspend_removed_subscription_has_no_effect(store: Store) -> None:
    exceed(store, 1, 2, 3)
    assert store.overruns.suspend(LIMIT) == []
