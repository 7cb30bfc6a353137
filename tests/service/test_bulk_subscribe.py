"""Bulk subscriptions give the same results as single ones."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.support.stores.server_documents import DOC, RDF_XML, SCHEMA, body
from tidings.errors import CheckProblem, IdConflict, InputError, LimitExceeded, SetupError
from tidings.metadata.provider.provider import Provider
from tidings.model import Subscription
from tidings.service import bulk_subscribe
from tidings.service.bulk_subscribe import BulkItem, BulkSubscriber
from tidings.service.subscriptions import SubscriptionLimits, SubscriptionService
from tidings.service.tidings import Tidings
from tidings.store.database import Database
from tidings.store.subscriptions.admission import AddedSubscription
from tidings.store.subscriptions.view import SubscriptionFilter

TEXTS = {
    "predicates": [
        "a = 1",
        "a = 2",
        "price < 5 and b = 'x'",
        "a = '2004-01-01'",
        "a =",
        "a = '\0'",
        "\ud800",
        "",
    ],
    "xpath": ["//a", "//a[b = 1]", "//a[", "//a[position() = 1]"],
    "gql": [
        "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t contains 'cats'",
        "SELECT",
        "SELECT ?x WHERE (?y, a:b, ?z)",
    ],
    "rules": [
        "search CycleProvider c register c where c.serverPort > 5",
        "search base b register b where b.serverPort > 7",
        "search Nothing n register n",
        "search",
    ],
    "prose": ["tell me"],
}


@pytest.fixture
def service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SubscriptionService, SubscriptionService]]:
    """Two equal services, with chunks so short that there are several."""
    monkeypatch.setattr(bulk_subscribe, "SUBSCRIBE_CHUNK", 40)
    monkeypatch.setattr(bulk_subscribe, "RULE_CHUNK", 4)
    with Tidings(tmp_path / "one") as one, Tidings(tmp_path / "many") as many:
        yield fill(one), fill(many)


def fill(tidings: Tidings) -> SubscriptionService:
    Provider(tidings.store).load_schema(SCHEMA.body, SCHEMA.media_type)
    tidings.subscribe("ana", TEXTS["rules"][0], "rules", "base")
    tidings.subscribe("ana", "a = 1", id="asleep")
    tidings.subscribing().pause("asleep")
    return tidings.subscribing(SubscriptionLimits(clauses=8))


def random_item(choose: random.Random) -> BulkItem:
    """Return a random item with one of a few ids, so that ids collide, mostly with a valid text."""
    is_good = choose.random() < 0.8
    language = choose.choice(["predicates"] * 6 + ["xpath", "gql", "rules", "rules"] if is_good else [*TEXTS])
    id = choose.choice([""] * 6 + ["x", "y", "z"] if is_good else ["base", "asleep", "two\nlines", "x"])
    subscriber = choose.choice(["ana", "bo"] if is_good or choose.random() < 0.9 else ["\x00"])
    text = choose.choice(TEXTS[language][: 2 if is_good else None])
    within = choose.choice([None, 60] if is_good else [None, 60, 0])
    return BulkItem(Subscription(id, subscriber, language, text, within), is_paused=choose.random() < 0.2)


def subscribe_alone(subscribing: SubscriptionService, item: BulkItem) -> tuple[object, ...]:
    existing = subscribing.store.subscription_view.find(item.id) if item.id else None
    try:
        return summary_of(
            item,
            AddedSubscription(subscribing.subscribe(item.subscription, item.is_paused).id, existing is None),
        )
    except InputError as problem:
        return summary_of(item, problem)


def summary_of(item: BulkItem, outcome: object) -> tuple[object, ...]:
    if isinstance(outcome, AddedSubscription):
        return (outcome.id if item.id else outcome.id[:2], outcome.new)
    assert isinstance(outcome, InputError)
    return type(outcome), outcome.what, outcome.pointer, outcome.hint


@pytest.mark.parametrize("seed", range(2))
def test_bulk_subscribe_gives_outcomes_of_single_subscriptions(
    service: tuple[SubscriptionService, SubscriptionService], seed: int
) -> None:
    choose = random.Random(seed)
    items = [random_item(choose) for _ in range(100)]
    single, many = service
    outcomes = list(BulkSubscriber(many).subscribe(items))
    for number, (each, outcome) in enumerate(zip(items, outcomes, strict=True)):
        assert summary_of(each, outcome) == subscribe_alone(single, each), (number, each)
    assert sum(isinstance(outcome, AddedSubscription) for outcome in outcomes) > 30
    for state, subscriber in product(("active", "paused"), ("ana", "bo")):
        counted = [
            len(
                each.store.subscription_view.page(SubscriptionFilter(state=state, subscriber=subscriber), 100)
            )
            for each in service
        ]
        assert counted[0] == counted[1] > 0, (state, subscriber)


def test_bulk_subscribe_error_item_is_its_own_outcome(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    problem = InputError("no JSON")
    items = [problem, BulkItem(Subscription("s", "ana", "predicates", "a = 1")), problem]
    assert list(BulkSubscriber(service[0]).subscribe(items)) == [
        problem,
        AddedSubscription("s", True),
        problem,
    ]
    assert list(BulkSubscriber(service[0]).subscribe([])) == []


def test_bulk_subscribe_rules_added_concurrently_respect_limit(
    service: tuple[SubscriptionService, SubscriptionService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count before is known too late: two rules arrive in between."""
    limited = SubscriptionService(
        service[0].store, service[0].schema, service[0].taxonomy, SubscriptionLimits(per_subscriber=5)
    )
    monkeypatch.setattr(limited.store.subscription_view, "count", lambda _: 0)
    items = [BulkItem(Subscription(f"r-{n}", "ana", "rules", TEXTS["rules"][0])) for n in range(6)]
    outcomes = list(BulkSubscriber(limited).subscribe(items))
    assert outcomes[:3] == [AddedSubscription(f"r-{n}", True) for n in range(3)]
    assert {type(outcome) for outcome in outcomes[3:]} == {LimitExceeded}
    assert len(limited.store.metadata.rules_named([each.id for each in items])) == 3


@pytest.mark.parametrize("rules", [1, 3])
def test_bulk_subscribe_rules_without_schema_fail_alone(tmp_path: Path, rules: int) -> None:
    with Tidings(tmp_path) as tidings:
        items = [BulkItem(Subscription("", "ana", "rules", TEXTS["rules"][0]))] * rules
        items += [BulkItem(Subscription("s", "ana", "predicates", "a = 1"))]
        items += [BulkItem(Subscription("s", "ana", "rules", TEXTS["rules"][0]))]
        outcomes = list(BulkSubscriber(tidings.subscribing()).subscribe(items))
    assert [type(outcome) for outcome in outcomes] == [SetupError] * rules + [AddedSubscription, IdConflict]
    assert "no schema" in str(outcomes[0])


def test_bulk_subscribe_paused_items_count_towards_limit(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    limited = SubscriptionService(
        service[0].store, service[0].schema, service[0].taxonomy, SubscriptionLimits(per_subscriber=4)
    )  # ana has two
    paused = [BulkItem(Subscription("", "ana", "predicates", "a = 1"), is_paused=True) for _ in range(3)]
    outcomes = list(BulkSubscriber(limited).subscribe(paused))
    assert [type(outcome) for outcome in outcomes] == [AddedSubscription, AddedSubscription, LimitExceeded]
    assert limited.store.subscriptions.version() == 2, "the stream sees no change"


def test_bulk_subscribe_paused_rule_notifies_on_resume(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    subscribing, rule = service[0], Subscription("late", "bo", "rules", TEXTS["rules"][0])
    Provider(subscribing.store).register(DOC, body("host.rdf"), RDF_XML)
    assert list(BulkSubscriber(subscribing).subscribe([BulkItem(rule, is_paused=True)])) == [
        AddedSubscription("late", True)
    ]
    assert (subscribing.find("late").state, subscribing.store.notifications.read("bo")) == ("paused", [])
    assert subscribing.resume("late").state == "active"
    assert [each.kind for each in subscribing.store.notifications.read("bo")] == ["entered"]


def test_bulk_subscribe_invalid_rule_does_not_affect_dependent_rules(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    """A rule may search another rule of the same request."""
    texts = {
        "wrong": "search Nothing n register n",
        "first": TEXTS["rules"][0],
        "second": "search first f register f where f.serverPort > 6",
        "third": "search second s register s where s.serverPort > 7",
    }
    items = [BulkItem(Subscription(id, "ana", "rules", text)) for id, text in texts.items()]
    wrong, *others = BulkSubscriber(service[0]).subscribe(items)
    assert isinstance(wrong, InputError) and wrong.pointer == "/text"
    assert others == [AddedSubscription(id, True) for id in ("first", "second", "third")]


def test_bulk_subscribe_invalid_rules_are_checked_with_constant_reads(
    service: tuple[SubscriptionService, SubscriptionService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of store reads is independent of the number of invalid rules.

    Only reads of this thread count: workers that other tests started may read their stores.
    """
    read_counts, read, own = list[int](), Database.read, threading.get_ident()
    for count in (10, 40):
        monkeypatch.setattr(bulk_subscribe, "RULE_CHUNK", count)
        items = [
            BulkItem(Subscription("", "ana", "rules", f"search Nothng n register n where n.a > {n}"))
            for n in range(count)
        ]
        with monkeypatch.context() as patch:
            readers = list[int]()
            patch.setattr(
                Database,
                "read",
                lambda self, readers=readers: readers.append(threading.get_ident()) or read(self),
            )
            assert {type(each) for each in BulkSubscriber(service[0]).subscribe(items)} == {CheckProblem}
        read_counts.append(readers.count(own))
    assert read_counts[0] == read_counts[1] > 0
