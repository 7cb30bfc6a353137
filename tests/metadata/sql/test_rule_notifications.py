"""Owners of rules are notified once of results that are entered, changed and left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.stores.server_documents import (
    ALL,
    DOC,
    HOST,
    INFO,
    INFOS,
    LARGE,
    OTHER,
    RDF_XML,
    SCHEMA,
    body,
    registered,
)
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store


class Clock:
    """A clock that a test moves, and that can fail."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)
        self.is_broken = False

    def __call__(self) -> datetime:
        if self.is_broken:
            raise TimeoutError
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with open_store(url, clock) as opened:
        yield opened


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    return opened


def read_moves(store: Store, subscriber: str = "ana", after: int = 0) -> list[tuple[str, str, str]]:
    notifications = store.notifications.read(subscriber, after)
    assert [each.sequence for each in notifications] == [after + i for i in range(1, len(notifications) + 1)]
    return [(each.subscription, each.publication, each.kind) for each in notifications]


def test_register_notifies_owner_of_rule(provider: Provider, store: Store) -> None:
    provider.add_rules({"large": LARGE}, "ana")
    provider.add_rules({"all": ALL, "infos": INFOS}, "bo")
    for name in ("host.rdf", "host-with-32MB.rdf", "host-with-32MB.rdf"):
        provider.register(DOC, body(name), RDF_XML)
    provider.remove(DOC)
    assert read_moves(store) == [("large", HOST, "entered"), ("large", HOST, "left")]
    of_bo = [("all", HOST), ("infos", INFO)]
    assert read_moves(store, "bo") == [
        (*each, kind) for kind in ("entered", "changed", "left") for each in of_bo
    ]


def test_register_many_moves_are_notified_in_parts(
    provider: Provider, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.metadata.sql.rule_notifications.NOTIFICATION_BATCH", 1)
    provider.add_rules({"all": ALL, "infos": INFOS, "large": LARGE}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    entered = [("all", HOST), ("large", HOST), ("infos", INFO)]
    after = [("all", HOST, "changed"), ("large", HOST, "left"), ("infos", INFO, "changed")]
    assert read_moves(store) == [*((*each, "entered") for each in entered), *after]


def test_register_notifications_share_sequence_of_subscriber(provider: Provider, store: Store) -> None:
    store.notifications.commit_batch("s", 0, [MatchRow("p-1", "s-1", "ana")])
    provider.add_rules({"all": ALL}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    store.notifications.commit_batch("s", 1, [MatchRow("p-2", "s-1", "ana")])
    assert [kind for _, _, kind in read_moves(store)] == ["matched", "entered", "matched"]


def test_add_rules_notifies_initial_results(provider: Provider, store: Store) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    for _ in range(2):
        provider.add_rules({"all": ALL}, "ana")
        provider.remove_rules(["all"])
    assert read_moves(store) == [("all", HOST, "entered")] * 2
    provider.set_rules({"large": LARGE, "all": ALL}, "ana", "a/")
    provider.set_rules({"large": LARGE.replace("64", "100")}, "ana", "a/")
    assert read_moves(store, after=2) == [
        ("a/all", HOST, "entered"),
        ("a/large", HOST, "entered"),
        ("a/large", HOST, "left"),
    ]


def test_apply_resource_added_and_removed_in_one_batch_is_silent(provider: Provider, store: Store) -> None:
    provider.add_rules({"all": ALL}, "ana")
    provider.append([registered("host.rdf"), registered("host.rdf", OTHER), LogDraft(Operation.REMOVE, DOC)])
    provider.catch_up()
    assert read_moves(store) == [("all", f"{OTHER}#host", "entered")]


def test_apply_equal_batches_gives_equal_notifications(
    provider: Provider, store: Store, new_url: Callable[[], str], clock: Clock
) -> None:
    provider.add_rules({"all": ALL, "large": LARGE}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    with open_store(new_url(), clock) as second:
        follower = Provider(second)
        follower.apply(provider.log.read(0, 1))
        follower.add_rules({"all": ALL, "large": LARGE}, "ana")
        for entry in provider.log.read(1):
            follower.apply([entry])
            follower.apply([entry])
        assert second.notifications.read("ana") == store.notifications.read("ana")


def test_add_rules_with_delay_holds_notifications(provider: Provider, store: Store, clock: Clock) -> None:
    provider.add_rules({"all": ALL}, "ana", within=60)
    provider.add_rules({"infos": INFOS}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert (
        read_moves(store) == [("infos", INFO, "entered")] and store.notifications.deferred("ana").count == 1
    )
    clock.now += timedelta(seconds=60)
    assert read_moves(store)[1:] == [("all", HOST, "entered")]


def test_apply_failure_is_rolled_back(provider: Provider, store: Store, clock: Clock) -> None:
    """The clock fails after all other writes: they are rolled back and can be applied again."""
    provider.add_rules({"all": ALL}, "ana")
    provider.append([registered("host.rdf")])
    clock.is_broken = True
    with pytest.raises(TimeoutError):
        provider.catch_up()
    clock.is_broken = False
    assert (provider.position, provider.documents(), provider.results("all"), read_moves(store)) == (
        1,
        (),
        (),
        [],
    )
    provider.catch_up()
    assert provider.position == 2 and read_moves(store) == [("all", HOST, "entered")]


def test_resume_rule_notifies_differences(provider: Provider, store: Store) -> None:
    """Without a difference there are none, also after a change and its reversal.

    The text of the rule may have changed.
    """
    rules, large = RuleSubscriptions(store), StoredRule("large", "ana", LARGE)
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.add_rules({"large": LARGE, "all": ALL}, "ana")
    last = store.notifications.last_sequence("ana")
    assert rules.pause("large") and rules.pause("all")
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert rules.resume(large) and rules.resume(replace(large, name="all", text=ALL))
    assert read_moves(store, after=last) == []
    assert rules.pause("large") and rules.pause("all")
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    assert rules.resume(large) and rules.resume(replace(large, name="all", text=ALL))
    assert read_moves(store, after=last) == [("large", HOST, "left"), ("all", HOST, "changed")]
    [left, changed] = store.notifications.read("ana", last)
    assert [(one.predicate, one.value, one.at) for one in changed.because] == [
        ("serverInformation.memory was 92", 32, INFO)
    ]
    assert left.because
    assert rules.pause("large") and rules.resume(replace(large, text=ALL))
    assert read_moves(store, after=last + 2) == [("large", HOST, "entered")]


def test_remove_paused_rule_deletes_its_results(provider: Provider, store: Store) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.add_rules({"all": ALL}, "ana")
    rules = RuleSubscriptions(store)
    assert rules.pause("all") and store.paused.remove("all")
    provider.add_rules({"all": ALL}, "ana")
    assert [kind for *_, kind in read_moves(store)] == ["entered", "entered"]
    assert rules.pause("all") and rules.resume(StoredRule("all", "ana", ALL))
    assert len(read_moves(store)) == 2
