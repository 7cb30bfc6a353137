"""Subscriptions that exceed their budget: counted with their dead letters, suspended, and notified of it."""

from __future__ import annotations

from dataclasses import replace

from tidings.model import SUSPENDED, Subscription
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store
from tidings.store.subscriptions.overruns import reason_of

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
