"""Many subscriptions come to the same as the same ones, one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.support.stores.server_documents import DOC, RDF_XML, SCHEMA, body
from tidings.errors import CheckProblem, IdTaken, InputError, OverLimit, SetupError
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
    """Two that are alike; and chunks so short that there are several."""
    monkeypatch.setattr(bulk_subscribe, "SUBSCRIBE_CHUNK", 40)
    monkeypatch.setattr(bulk_subscribe, "RULE_CHUNK", 4)
    with Tidings(tmp_path / "one") as one, Tidings(tmp_path / "many") as many:
        yield filled(one), filled(many)


def filled(tidings: Tidings) -> SubscriptionService:
    Provider(tidings.store).load_schema(SCHEMA.body, SCHEMA.media_type)
    tidings.subscribe("ana", TEXTS["rules"][0], "rules", "base")
    tidings.subscribe("ana", "a = 1", id="asleep")
    tidings.subscribing().pause("asleep")
    return tidings.subscribing(SubscriptionLimits(clauses=8))


def drawn(choose: random.Random) -> BulkItem:
    """Few ids, so that they meet; mostly the texts that columns are for."""
    is_good = choose.random() < 0.8
    language = choose.choice(["predicates"] * 6 + ["xpath", "gql", "rules", "rules"] if is_good else [*TEXTS])
    id = choose.choice([""] * 6 + ["x", "y", "z"] if is_good else ["base", "asleep", "two\nlines", "x"])
    who = choose.choice(["ana", "bo"] if is_good or choose.random() < 0.9 else ["\x00"])
    text = choose.choice(TEXTS[language][: 2 if is_good else None])
    within = choose.choice([None, 60] if is_good else [None, 60, 0])
    return BulkItem(Subscription(id, who, language, text, within), is_paused=choose.random() < 0.2)


def alone(subscribing: SubscriptionService, one: BulkItem) -> tuple[object, ...]:
    known = subscribing.store.subscription_view.find(one.id) if one.id else None
    try:
        return told(
            one, AddedSubscription(subscribing.subscribe(one.subscription, one.is_paused).id, known is None)
        )
    except InputError as problem:
        return told(one, problem)


def told(one: BulkItem, outcome: object) -> tuple[object, ...]:
    if isinstance(outcome, AddedSubscription):
        return (outcome.id if one.id else outcome.id[:2], outcome.new)
    assert isinstance(outcome, InputError)
    return type(outcome), outcome.what, outcome.pointer, outcome.hint


@pytest.mark.parametrize("seed", range(2))
def test_many_are_taken_as_each_alone(
    service: tuple[SubscriptionService, SubscriptionService], seed: int
) -> None:
    choose = random.Random(seed)
    wanted = [drawn(choose) for _ in range(100)]
    one, many = service
    outcomes = list(BulkSubscriber(many).subscribe(wanted))
    for number, (each, outcome) in enumerate(zip(wanted, outcomes, strict=True)):
        assert told(each, outcome) == alone(one, each), (number, each)
    assert sum(isinstance(outcome, AddedSubscription) for outcome in outcomes) > 30
    for state, subscriber in product(("active", "paused"), ("ana", "bo")):
        counted = [
            len(
                each.store.subscription_view.page(SubscriptionFilter(state=state, subscriber=subscriber), 100)
            )
            for each in service
        ]
        assert counted[0] == counted[1] > 0, (state, subscriber)


def test_what_could_not_be_read_is_its_own_outcome(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    problem = InputError("no JSON")
    wanted = [problem, BulkItem(Subscription("s", "ana", "predicates", "a = 1")), problem]
    assert list(BulkSubscriber(service[0]).subscribe(wanted)) == [
        problem,
        AddedSubscription("s", True),
        problem,
    ]
    assert list(BulkSubscriber(service[0]).subscribe([])) == []


def test_rules_that_come_while_others_are_added_are_no_more_than_may_be(
    service: tuple[SubscriptionService, SubscriptionService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many there were before is known too late to count: two of them had come meanwhile."""
    one = SubscriptionService(
        service[0].store, service[0].schema, service[0].taxonomy, SubscriptionLimits(each=5)
    )
    monkeypatch.setattr(one.store.subscription_view, "count", lambda _: 0)
    wanted = [BulkItem(Subscription(f"r-{n}", "ana", "rules", TEXTS["rules"][0])) for n in range(6)]
    outcomes = list(BulkSubscriber(one).subscribe(wanted))
    assert outcomes[:3] == [AddedSubscription(f"r-{n}", True) for n in range(3)]
    assert {type(outcome) for outcome in outcomes[3:]} == {OverLimit}
    assert len(one.store.metadata.rules_named([each.id for each in wanted])) == 3


@pytest.mark.parametrize("rules", [1, 3])
def test_rules_without_a_schema_are_no_matter_of_the_others(tmp_path: Path, rules: int) -> None:
    with Tidings(tmp_path) as tidings:
        wanted = [BulkItem(Subscription("", "ana", "rules", TEXTS["rules"][0]))] * rules
        wanted += [BulkItem(Subscription("s", "ana", "predicates", "a = 1"))]
        wanted += [BulkItem(Subscription("s", "ana", "rules", TEXTS["rules"][0]))]
        outcomes = list(BulkSubscriber(tidings.subscribing()).subscribe(wanted))
    assert [type(outcome) for outcome in outcomes] == [SetupError] * rules + [AddedSubscription, IdTaken]
    assert "no schema" in str(outcomes[0])


def test_there_may_be_as_many_as_may_be_paused_or_not(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    one = SubscriptionService(
        service[0].store, service[0].schema, service[0].taxonomy, SubscriptionLimits(each=4)
    )  # ana has two
    paused = [BulkItem(Subscription("", "ana", "predicates", "a = 1"), is_paused=True) for _ in range(3)]
    outcomes = list(BulkSubscriber(one).subscribe(paused))
    assert [type(outcome) for outcome in outcomes] == [AddedSubscription, AddedSubscription, OverLimit]
    assert one.store.subscriptions.version() == 2, "to the stream nothing has happened"


def test_a_rule_that_comes_paused_tells_what_it_finds_when_it_is_resumed(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    one, rule = service[0], Subscription("late", "bo", "rules", TEXTS["rules"][0])
    Provider(one.store).register(DOC, body("host.rdf"), RDF_XML)
    assert list(BulkSubscriber(one).subscribe([BulkItem(rule, is_paused=True)])) == [
        AddedSubscription("late", True)
    ]
    assert (one.find("late").state, one.store.notifications.read("bo")) == ("paused", [])
    assert one.resume("late").state == "active"
    assert [each.kind for each in one.store.notifications.read("bo")] == ["entered"]


def test_a_rule_that_is_wrong_is_no_matter_of_those_that_search_each_other(
    service: tuple[SubscriptionService, SubscriptionService],
) -> None:
    """What searches a rule that comes with it is right as soon as that one is there."""
    texts = {
        "wrong": "search Nothing n register n",
        "first": TEXTS["rules"][0],
        "second": "search first f register f where f.serverPort > 6",
        "third": "search second s register s where s.serverPort > 7",
    }
    wanted = [BulkItem(Subscription(id, "ana", "rules", text)) for id, text in texts.items()]
    wrong, *others = BulkSubscriber(service[0]).subscribe(wanted)
    assert isinstance(wrong, InputError) and wrong.pointer == "/text"
    assert others == [AddedSubscription(id, True) for id in ("first", "second", "third")]


def test_rules_that_are_wrong_are_looked_at_together(
    service: tuple[SubscriptionService, SubscriptionService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are, as many questions go to the store: each had some of its own, and took thirty times as long
    as one that is taken.
    """
    asked, read = list[int](), Database.read
    for count in (10, 40):
        monkeypatch.setattr(bulk_subscribe, "RULE_CHUNK", count)
        wanted = [
            BulkItem(Subscription("", "ana", "rules", f"search Nothng n register n where n.a > {n}"))
            for n in range(count)
        ]
        with monkeypatch.context() as patch:
            reads = list[Database]()
            patch.setattr(Database, "read", lambda self, reads=reads: reads.append(self) or read(self))
            assert {type(each) for each in BulkSubscriber(service[0]).subscribe(wanted)} == {CheckProblem}
        asked.append(len(reads))
    assert asked[0] == asked[1] > 0
