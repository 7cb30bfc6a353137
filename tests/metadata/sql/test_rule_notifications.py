"""What enters the results of rules, changes inside them and leaves is told to their owners, each once."""

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
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)
        self.stands = False

    def __call__(self) -> datetime:
        if self.stands:
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
    made = Provider(store)
    made.load_schema(SCHEMA.body, SCHEMA.media_type)
    return made


def told(store: Store, who: str = "ana", after: int = 0) -> list[tuple[str, str, str]]:
    found = store.notifications.read(who, after)
    assert [each.sequence for each in found] == [after + i for i in range(1, len(found) + 1)]
    return [(each.subscription, each.publication, each.kind) for each in found]


def test_each_move_is_told_to_the_owner_of_the_rule(provider: Provider, store: Store) -> None:
    provider.add_rules({"large": LARGE}, "ana")
    provider.add_rules({"all": ALL, "infos": INFOS}, "bo")
    for name in ("host.rdf", "host-with-32MB.rdf", "host-with-32MB.rdf"):
        provider.register(DOC, body(name), RDF_XML)
    provider.remove(DOC)
    assert told(store) == [("large", HOST, "entered"), ("large", HOST, "left")]
    of_bo = [("all", HOST), ("infos", INFO)]
    assert told(store, "bo") == [(*each, kind) for kind in ("entered", "changed", "left") for each in of_bo]


def test_many_moves_are_told_in_parts(
    provider: Provider, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.metadata.sql.rule_notifications.NOTIFICATION_BATCH", 1)
    provider.add_rules({"all": ALL, "infos": INFOS, "large": LARGE}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    entered = [("all", HOST), ("large", HOST), ("infos", INFO)]
    after = [("all", HOST, "changed"), ("large", HOST, "left"), ("infos", INFO, "changed")]
    assert told(store) == [*((*each, "entered") for each in entered), *after]


def test_they_stand_in_the_one_sequence_of_a_subscriber(provider: Provider, store: Store) -> None:
    store.notifications.commit_batch("s", 0, [MatchRow("p-1", "s-1", "ana")])
    provider.add_rules({"all": ALL}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    store.notifications.commit_batch("s", 1, [MatchRow("p-2", "s-1", "ana")])
    assert [kind for _, _, kind in told(store)] == ["matched", "entered", "matched"]


def test_rules_tell_what_they_find_when_they_come(provider: Provider, store: Store) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    for _ in range(2):
        provider.add_rules({"all": ALL}, "ana")
        provider.remove_rules(["all"])
    assert told(store) == [("all", HOST, "entered")] * 2
    provider.set_rules({"large": LARGE, "all": ALL}, "ana", "a/")
    provider.set_rules({"large": LARGE.replace("64", "100")}, "ana", "a/")
    assert told(store, after=2) == [
        ("a/all", HOST, "entered"),
        ("a/large", HOST, "entered"),
        ("a/large", HOST, "left"),
    ]


def test_what_comes_and_goes_in_one_batch_is_not_told(provider: Provider, store: Store) -> None:
    provider.add_rules({"all": ALL}, "ana")
    provider.append([registered("host.rdf"), registered("host.rdf", OTHER), LogDraft(Operation.REMOVE, DOC)])
    provider.catch_up()
    assert told(store) == [("all", f"{OTHER}#host", "entered")]


def test_equal_batches_are_told_equally(
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


def test_rules_may_accept_a_delay(provider: Provider, store: Store, clock: Clock) -> None:
    provider.add_rules({"all": ALL}, "ana", within=60)
    provider.add_rules({"infos": INFOS}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert told(store) == [("infos", INFO, "entered")] and store.notifications.held("ana").count == 1
    clock.now += timedelta(seconds=60)
    assert told(store)[1:] == [("all", HOST, "entered")]


def test_what_fails_is_not_told_and_changes_nothing(provider: Provider, store: Store, clock: Clock) -> None:
    """All else is written when the clock fails: nothing of it is there, and it can be applied again."""
    provider.add_rules({"all": ALL}, "ana")
    provider.append([registered("host.rdf")])
    clock.stands = True
    with pytest.raises(TimeoutError):
        provider.catch_up()
    clock.stands = False
    assert (provider.position, provider.documents(), provider.results("all"), told(store)) == (1, (), (), [])
    provider.catch_up()
    assert provider.position == 2 and told(store) == [("all", HOST, "entered")]


def test_a_rule_that_is_resumed_tells_what_became_different(provider: Provider, store: Store) -> None:
    """And nothing if all is as it was, also after a change and back; its text may be another one by then."""
    rules, large = RuleSubscriptions(store), StoredRule("large", "ana", LARGE)
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.add_rules({"large": LARGE, "all": ALL}, "ana")
    at = store.notifications.last_sequence("ana")
    assert rules.pause("large") and rules.pause("all")
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert rules.resume(large) and rules.resume(replace(large, name="all", text=ALL))
    assert told(store, after=at) == []
    assert rules.pause("large") and rules.pause("all")
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    assert rules.resume(large) and rules.resume(replace(large, name="all", text=ALL))
    assert told(store, after=at) == [("large", HOST, "left"), ("all", HOST, "changed")]
    [left, changed] = store.notifications.read("ana", at)
    assert [(one.predicate, one.value, one.at) for one in changed.because] == [
        ("serverInformation.memory was 92", 32, INFO)
    ]
    assert left.because
    assert rules.pause("large") and rules.resume(replace(large, text=ALL))
    assert told(store, after=at + 2) == [("large", HOST, "entered")]


def test_what_a_paused_rule_had_found_is_forgotten_with_it(provider: Provider, store: Store) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.add_rules({"all": ALL}, "ana")
    rules = RuleSubscriptions(store)
    assert rules.pause("all") and store.paused.remove("all")
    provider.add_rules({"all": ALL}, "ana")
    assert [kind for *_, kind in told(store)] == ["entered", "entered"]
    assert rules.pause("all") and rules.resume(StoredRule("all", "ana", ALL))
    assert len(told(store)) == 2
