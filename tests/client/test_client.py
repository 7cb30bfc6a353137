"""Everything else a client asks the whole service for: publishing, subscribing, checking, delivering."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

import tidings
from tests.client.conftest import Service
from tests.support.stores.server_documents import SCHEMA
from tidings.client import AsyncClient, Client, PublishResult, SubscribeResult
from tidings.client.client import AsyncDestinations, Destinations
from tidings.errors import Absent, DecodeProblem, IdTaken, InputError, NotAllowed, SyntaxProblem, TidingsError
from tidings.metadata.provider.provider import Provider
from tidings.model import Subscription
from tidings.store.encoding import MatchRow


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def client(service: Service, name: str) -> Iterator[Client]:
    with Client(service.address, service.token(name, "subscribe", "publish")) as made:
        yield made


def test_publishing(client: Client, service: Service) -> None:
    taken = client.publish({"price": 180})
    assert taken.new and taken.id.startswith("p-")
    stored = service.tidings.store.journal.find(taken.id)
    assert stored is not None and (stored.body, stored.position) == (b'{"price":180}', taken.position)
    again = client.publish({"price": 180}, id=taken.id)
    assert again == PublishResult(taken.id, taken.position, new=False)
    with pytest.raises(IdTaken, match="already used"):
        client.publish({"price": 181}, id=taken.id)
    with pytest.raises(DecodeProblem):
        client.publish(b"{")
    assert client.publish("<a/>", "application/xml", id="client-xml").id == "client-xml"
    graph = "<http://e.org/%d> { <http://e.org/a> <http://e.org/b> %d }"
    graphs = "\n".join(graph % (number, number) for number in (1, 2))
    several = client.publish(graphs, "application/trig", id="client-graphs")
    assert [one.id for one in several.parts] == ["client-graphs-1", "client-graphs-2"]
    assert (several.new, several.position) == (True, several.parts[-1].position)


@pytest.mark.parametrize("media_type", ["application/json", "application/cloudevents+json; charset=utf-8"])
def test_publishing_a_cloud_event(client: Client, media_type: str) -> None:
    """Its id is the publication's: the client makes none."""
    event = {"specversion": "1.0", "id": f"ce {media_type}", "source": "/shop", "type": "sale"}
    sent = [
        event,
        json.dumps(event, separators=(",", ":")),
        json.dumps(event, separators=(",", ":")).encode(),
    ]
    done = [client.publish(one, media_type) for one in sent]
    assert [(one.id, one.new) for one in done] == [(event["id"], n == 0) for n in range(3)]
    assert client.publish(event, media_type, id=f"own {media_type}").new
    [again] = client.publish_many([event])
    assert again == PublishResult(event["id"], done[0].position, new=False)
    other = client.publish(event | {"source": "/other"}, media_type)
    assert other.new and other.id.startswith(f"{event['id']}~"), "another source may have the same id"
    with pytest.raises(DecodeProblem, match="needs the attribute id"):
        client.publish(event | {"id": ""}, media_type)
    graph = event | {"@id": "http://e.org/a", "http://e.org/b": 1}
    assert client.publish(graph, "application/ld+json").id.startswith("p-")


def test_publishing_many(client: Client, service: Service) -> None:
    events = [{"id": f"many-{number}", "price": number} for number in range(2_500)]
    taken = list(client.publish_many(events, id_field="id"))
    assert [one.id for one in taken if isinstance(one, PublishResult)] == [event["id"] for event in events]
    again = list(client.publish_many([*events[:2], b'{"id": "many-x",\n "price": 1}', b"[]"], id_field="id"))
    assert [isinstance(one, PublishResult) and one.new for one in again] == [False, False, True, False]
    assert isinstance(again[3], InputError)
    outcomes = list(client.publish_many([{"price": 1}, b"{", {"price": 1}]))
    assert [isinstance(one, TidingsError) for one in outcomes] == [False, True, False]
    first, _, third = outcomes
    assert isinstance(first, PublishResult) and isinstance(third, PublishResult) and first.id != third.id


NO_JSON: list[tuple[Any, str]] = [
    ({"x": math.nan}, "not JSON compliant"),
    ({"when": datetime(2026, 1, 31, tzinfo=UTC)}, "Object of type datetime is not JSON serializable"),
    ({"a": {1, 2}}, "Object of type set is not JSON serializable"),
    ({("a", "b"): 1}, "keys must be str"),
    ('{"a": "\ud800"}', "surrogate"),
]


@pytest.mark.parametrize(("value", "why"), NO_JSON)
def test_a_value_that_is_no_json_is_refused_like_bytes_that_are_none(
    client: Client, value: Any, why: str
) -> None:
    with pytest.raises(DecodeProblem, match=why):
        client.publish(value)


@pytest.mark.parametrize("id_field", ["id", None])
def test_publish_many_with_invalid_bodies_yields_errors_in_order(
    client: Client, service: Service, name: str, id_field: str | None
) -> None:
    good = [{"id": f"{name} {number}"} for number in range(3)]
    broken = [value for value, _ in NO_JSON]
    bodies = [broken[0], good[0], *broken, good[1], "", b" \n ", '{"a": 1,\n "a": 2}', '{"a": "\n"}', good[2]]
    outcomes = list(client.publish_many(bodies, id_field=id_field))
    assert [type(one) for one in outcomes] == [
        PublishResult if body in good else DecodeProblem for body in bodies
    ]
    if id_field:
        assert [one.id for one in outcomes if isinstance(one, PublishResult)] == [each["id"] for each in good]

    async def the_same_to_be_awaited() -> list[PublishResult | TidingsError]:
        async with AsyncClient(service.address, service.token(name, "publish")) as other:
            return [one async for one in other.publish_many(bodies, id_field=id_field)]

    assert [type(one) for one in asyncio.run(the_same_to_be_awaited())] == [type(one) for one in outcomes]


def test_a_subscription_that_is_no_json_is_an_outcome(client: Client) -> None:
    first, second, third = client.subscribe_many(["a = 1", {"text": math.nan}, "a = 2"])
    assert isinstance(first, SubscribeResult) and isinstance(third, SubscribeResult)
    assert isinstance(second, DecodeProblem)


def test_subscribing_to_many(client: Client, service: Service, name: str) -> None:
    texts = [f"price < {number}" for number in range(1_500)]
    made = list(client.subscribe_many(texts))
    ids = [one.id for one in made if isinstance(one, SubscribeResult) and one.new]
    assert len(set(ids)) == len(texts)
    kept = {one.id: one.text for one in service.tidings.store.subscriptions.list(name)}
    assert [kept[id] for id in ids] == texts, "in the order given"
    again, other, bad, delayed = client.subscribe_many(
        [
            {"text": texts[0], "id": ids[0]},
            {"text": "a = 1", "subscriber": "bo"},
            {"text": "price < 200 and", "language": "predicates"},
            {"text": "//a", "language": "xpath", "within": "1 hour", "id": None},
        ]
    )
    assert again == SubscribeResult(ids[0], new=False)
    assert isinstance(other, NotAllowed)
    assert isinstance(bad, SyntaxProblem) and str(bad).endswith("price < 200 and\n                 ^")
    assert isinstance(delayed, SubscribeResult)
    assert client.subscription(delayed.id).within == "1 hour"
    with Client(service.address, service.token(None, "administer")) as root:
        [for_bo] = root.subscribe_many(["b = 1"], subscriber="bo")
        assert isinstance(for_bo, SubscribeResult) and root.subscription(for_bo.id).subscriber == "bo"


def test_subscribe_many_gives_the_warnings_about_texts(client: Client) -> None:
    impossible, possible = client.subscribe_many(
        [{"text": "/a and /b", "language": "xpath"}, {"text": "//a", "language": "xpath"}]
    )
    assert isinstance(impossible, SubscribeResult) and isinstance(possible, SubscribeResult)
    [warning] = impossible.warnings
    assert warning.message().startswith("no document can match") and warning.message().endswith(
        "/a and /b\n         ^^"
    )
    assert possible.warnings == ()


def test_a_label(client: Client, service: Service) -> None:
    taken = client.publish({"price": 1}, audience="staff")
    stored = service.tidings.store.journal.find(taken.id)
    assert stored is not None and stored.audience == "staff"


def test_a_life_of_a_subscription(client: Client, name: str) -> None:
    made = client.subscribe("price < 200", within="10 minutes")
    assert (made.subscriber, made.language, made.state, made.within) == (
        name,
        "predicates",
        "active",
        "10 minutes",
    )
    assert (made.predicates, made.health.matched, made.health.last_error) == (1, 0, None)
    assert client.subscribe("price < 200", within="10 minutes", id=made.id).id == made.id
    assert client.change(made.id, text="price < 300").within == "10 minutes"
    assert client.change(made.id, within=None).within is None
    assert client.pause(made.id).state == "paused"
    assert [one.id for one in client.subscriptions(state="paused")] == [made.id]
    assert client.resume(made.id).state == "active"
    assert client.subscription(made.id).text == "price < 300"
    other = client.subscribe('//stock[symbol = "YHOO"]', "xpath", id="my own/é")
    assert [one.id for one in client.subscriptions(containing="YHOO")] == [other.id]
    assert {one.id for one in client.subscriptions()} == {made.id, other.id}
    client.unsubscribe(other.id)
    with pytest.raises(Absent):
        client.unsubscribe(other.id)
    with pytest.raises(Absent):
        client.subscription(other.id)


def test_a_rule_that_is_sent_twice_is_one(client: Client, service: Service, name: str) -> None:
    provider = Provider(service.tidings.store)
    provider.load_schema(SCHEMA.body, SCHEMA.media_type)
    rule = "search CycleProvider c register c where c.serverPort > 80"
    made = client.subscribe(rule, "rules", id=f"rule of {name}")
    assert client.subscribe(rule, "rules", id=made.id).id == made.id
    assert [one.id for one in client.subscriptions(language="rules")] == [made.id]


def test_more_subscriptions_than_a_page_has(client: Client, service: Service, name: str) -> None:
    made = [Subscription(f"s-page-{number:03}", name, "predicates", "price < 1") for number in range(105)]
    service.tidings.store.subscriptions.add_many(made)
    assert [one.id for one in client.subscriptions(containing="s-page-")] == [one.id for one in made]


def test_subscribe_error_has_the_place(client: Client) -> None:
    for ask in (client.check, client.subscribe, client.preview):
        with pytest.raises(SyntaxProblem, match="expected a predicate") as wrong:
            ask("price < 200 and")
        assert wrong.value.place is not None
        assert str(wrong.value).endswith("price < 200 and\n                 ^")
        assert wrong.value.pointer == "/text"
    with pytest.raises(InputError, match="language"):
        client.check("price < 200", "klingon")
    assert client.check("price < 200 and sold = true").predicates == 2


def test_warnings_have_their_place_in_the_text(client: Client) -> None:
    text = "price > 6 and price < 4"
    for found in (client.check(text), client.subscribe(text), client.preview(text)):
        [warning] = found.warnings or ()
        assert warning.message().splitlines()[1:] == [
            f"  {text}",
            "  ^^^^^^^^^^^^^^^^^^^^^^^   join them with 'or' if either is enough",
        ]


def test_a_preview(client: Client) -> None:
    cheap = client.publish({"preview": "mine", "price": 5})
    client.publish({"preview": "mine", "price": 500})
    found = client.preview("preview = 'mine' and price < 200", last=10)
    assert found.matches[0].words == ("preview 'mine' = 'mine'", "price 5 < 200")
    assert [(one.content.id, one.content.body) for one in found.matches] == [
        (cheap.id, {"preview": "mine", "price": 5})
    ]
    assert found.matches[0].because[0].predicate.startswith("pr")
    assert found.looked_at > 0


def test_clients_see_their_own_subscriptions(client: Client, service: Service, name: str) -> None:
    mine = client.subscribe("price < 1")
    with Client(service.address, service.token(f"not {name}", "subscribe")) as other:
        for ask in (other.subscription, other.pause, other.resume, other.unsubscribe):
            with pytest.raises(Absent):
                ask(mine.id)
        assert list(other.subscriptions()) == []
        with pytest.raises(NotAllowed):
            other.publish({"price": 1})
    with Client(service.address, service.token(None, "administer")) as administrator:
        made = administrator.subscribe("price < 1", subscriber=name)
        assert made.subscriber == name
        assert {one.id for one in administrator.subscriptions(subscriber=name)} == {mine.id, made.id}


def test_destinations(client: Client, service: Service, name: str) -> None:
    made = client.destinations.add("webhook", "http://127.0.0.1:9/hook", name="mine")
    assert (made.subscriber, made.kind, made.state, made.dead_letters) == (name, "webhook", "active", 0)
    assert made.secret is not None and made.secret.startswith("whsec_")
    assert [one.id for one in client.destinations.list()] == [made.id]
    assert client.destinations.find(made.id).secret is None
    assert client.destinations.change(made.id, name="ours").name == "ours"
    assert client.destinations.pause(made.id).state == "paused"
    assert client.destinations.resume(made.id).state == "active"
    assert client.destinations.rotate(made.id).secret not in (None, made.secret)
    tested = client.destinations.test(made.id)
    assert not tested.taken and tested.problem
    assert list(client.destinations.dead_letters(made.id)) == []
    assert client.destinations.replay(made.id) == 0
    client.destinations.remove(made.id)
    with pytest.raises(Absent):
        client.destinations.find(made.id)


def test_where_feeds_are(client: Client, service: Service, name: str) -> None:
    """Of each subscription, and of all: what is told is there, and what was renewed has ended."""
    made = [client.subscribe("price < 200", id=f"{name}/{number}").id for number in range(3)]
    found = list(client.feeds())
    assert [one.subscription for one in found] == made and client.feed(made[0]) == found[0]
    listed = client.feed()
    assert listed.subscription is None and listed.address and listed.address.startswith(service.address)
    opml = httpx.get(listed.address).text
    assert all(f"{one.address}.atom" in opml for one in found)
    assert [httpx.get(str(one.address)).status_code for one in found] == [200] * 3
    for old, new in ((found[0], client.renew_feed(made[0])), (listed, client.renew_feed())):
        assert new.subscription == old.subscription
        assert [httpx.get(str(one.address)).status_code for one in (old, new)] == [410, 200]
    assert list(client.feeds())[1:] == found[1:]
    with pytest.raises(Absent):
        client.feed("nothing")
    with Client(service.address, service.token(None, "administer")) as administrator:
        assert administrator.feed(made[1], subscriber=name) == found[1]
        with pytest.raises(InputError, match="the subscriber is missing"):
            administrator.feed(made[1])


def test_client_feeds_reads_all_pages(service: Service, name: str) -> None:
    for number in range(3):
        service.tidings.subscribe(name, "price < 5", id=f"{name}-{number}")
    with httpx.Client(
        base_url=service.address, headers={"Authorization": f"Bearer {service.token(name, 'subscribe')}"}
    ) as asking:
        answer = asking.get("/v1/feeds", params={"limit": 2})
        first = answer.json()
        assert answer.headers["cache-control"] == "no-store" and first["next"] == f"{name}-1"
        last = asking.get("/v1/feeds", params={"limit": 2, "after": first["next"]}).json()
        assert [one["subscription"] for one in last["feeds"]] == [f"{name}-2"] and last["next"] is None
        assert last["all"] == first["all"]
        assert asking.get("/v1/feeds?after=%00").status_code == 400
        assert asking.get("/v1/feeds/%00").status_code == 400


def test_the_same_to_be_awaited(service: Service, name: str) -> None:
    async def use() -> None:
        async with AsyncClient(service.address, service.token(name, "subscribe", "publish")) as client:
            made = await client.subscribe("price < 200")
            taken = await client.publish({"price": 180})
            service.tidings.store.notifications.commit_batch(name, 0, [MatchRow(taken.id, made.id, name)])
            assert [one.id async for one in client.subscriptions()] == [made.id]
            assert (await client.change(made.id, text="price < 2")).text == "price < 2"
            assert (await client.pause(made.id)).state == "paused"
            assert (await client.resume(made.id)).state == "active"
            assert (await client.subscription(made.id)).id == made.id
            assert (await client.check("price < 200")).predicates == 1
            assert (await client.preview("price < 200", last=5)).complete
            events = [{"id": f"{name}-{number}"} for number in range(3)]
            assert len([one async for one in client.publish_many(events, id_field="id")]) == 3
            assert len([one async for one in client.publish_many([{"a": 1}, b"{"])]) == 2
            many = [one async for one in client.subscribe_many(["price < 1", "price <"])]
            assert [type(one) for one in many] == [SubscribeResult, SyntaxProblem]
            assert made.id in [one.subscription async for one in client.feeds()]
            assert (await client.feed(made.id)) != (await client.renew_feed(made.id))
            async for told in client.follow():
                assert told.content is not None and told.content.body == {"price": 180}
                assert (await client.acknowledge(told.sequence)).unread == 0
                break
            await client.unsubscribe(made.id)
            with pytest.raises(SyntaxProblem):
                await client.subscribe("price <")
            destination = await client.destinations.add("webhook", "http://127.0.0.1:9/hook")
            assert [one.id async for one in client.destinations.list()] == [destination.id]
            for work in (client.destinations.pause, client.destinations.resume, client.destinations.rotate):
                await work(destination.id)
            await client.destinations.change(destination.id, name="x")
            assert (await client.destinations.find(destination.id)).name == "x"
            assert not (await client.destinations.test(destination.id)).taken
            assert [one async for one in client.destinations.dead_letters(destination.id)] == []
            assert await client.destinations.replay(destination.id) == 0
            await client.destinations.remove(destination.id)

    asyncio.run(use())


@pytest.mark.parametrize(("sync", "asynchronous"), [(Client, AsyncClient), (Destinations, AsyncDestinations)])
def test_both_clients_have_the_same_methods_with_documentation(sync: type, asynchronous: type) -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        names = [name for name in dir(kind) if name[0] != "_" and name not in ("close", "aclose")]
        functions = {name: getattr(kind, name) for name in names}
        assert all(function.__doc__ for function in functions.values())
        parameters = {name: list(inspect.signature(each).parameters) for name, each in functions.items()}
        return {name: [each for each in named if each != "self"] for name, named in parameters.items()}

    assert len(methods(sync)) > 10
    assert methods(sync) == methods(asynchronous)


def test_the_public_names() -> None:
    assert (tidings.Client, tidings.AsyncClient) == (Client, AsyncClient)
