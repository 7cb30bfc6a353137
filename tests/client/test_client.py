"""The client against a whole service: publishing, subscribing, checking and delivery."""

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
from tidings.errors import (
    DecodeProblem,
    IdConflict,
    InputError,
    NotAllowed,
    NotFound,
    SyntaxProblem,
    TidingsError,
)
from tidings.metadata.provider.provider import Provider
from tidings.model import Subscription
from tidings.store.encoding import MatchRow


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def client(service: Service, name: str) -> Iterator[Client]:
    with Client(service.address, service.token(name, "subscribe", "publish")) as opened:
        yield opened


def test_publish_returns_id_and_position_and_is_idempotent(client: Client, service: Service) -> None:
    published = client.publish({"price": 180})
    assert published.new and published.id.startswith("p-")
    stored = service.tidings.store.journal.find(published.id)
    assert stored is not None and (stored.body, stored.position) == (b'{"price":180}', published.position)
    again = client.publish({"price": 180}, id=published.id)
    assert again == PublishResult(published.id, published.position, new=False)
    with pytest.raises(IdConflict, match="already used"):
        client.publish({"price": 181}, id=published.id)
    with pytest.raises(DecodeProblem):
        client.publish(b"{")
    assert client.publish("<a/>", "application/xml", id="client-xml").id == "client-xml"
    graph = "<http://e.org/%d> { <http://e.org/a> <http://e.org/b> %d }"
    graphs = "\n".join(graph % (number, number) for number in (1, 2))
    several = client.publish(graphs, "application/trig", id="client-graphs")
    assert [one.id for one in several.parts] == ["client-graphs-1", "client-graphs-2"]
    assert (several.new, several.position) == (True, several.parts[-1].position)


@pytest.mark.parametrize("media_type", ["application/json", "application/cloudevents+json; charset=utf-8"])
def test_publish_cloud_event_keeps_its_id(client: Client, media_type: str) -> None:
    """The client generates no id for it."""
    event = {"specversion": "1.0", "id": f"ce {media_type}", "source": "/shop", "type": "sale"}
    bodies = [
        event,
        json.dumps(event, separators=(",", ":")),
        json.dumps(event, separators=(",", ":")).encode(),
    ]
    results = [client.publish(one, media_type) for one in bodies]
    assert [(one.id, one.new) for one in results] == [(event["id"], n == 0) for n in range(3)]
    assert client.publish(event, media_type, id=f"own {media_type}").new
    [again] = client.publish_many([event])
    assert again == PublishResult(event["id"], results[0].position, new=False)
    other = client.publish(event | {"source": "/other"}, media_type)
    assert other.new and other.id.startswith(f"{event['id']}~"), "another source may have the same id"
    with pytest.raises(DecodeProblem, match="needs the attribute id"):
        client.publish(event | {"id": ""}, media_type)
    graph = event | {"@id": "http://e.org/a", "http://e.org/b": 1}
    assert client.publish(graph, "application/ld+json").id.startswith("p-")


def test_publish_many_returns_one_outcome_per_event(client: Client, service: Service) -> None:
    events = [{"id": f"many-{number}", "price": number} for number in range(2_500)]
    outcomes = list(client.publish_many(events, id_field="id"))
    assert [one.id for one in outcomes if isinstance(one, PublishResult)] == [event["id"] for event in events]
    again = list(client.publish_many([*events[:2], b'{"id": "many-x",\n "price": 1}', b"[]"], id_field="id"))
    assert [isinstance(one, PublishResult) and one.new for one in again] == [False, False, True, False]
    assert isinstance(again[3], InputError)
    mixed = list(client.publish_many([{"price": 1}, b"{", {"price": 1}]))
    assert [isinstance(one, TidingsError) for one in mixed] == [False, True, False]
    first, _, third = mixed
    assert isinstance(first, PublishResult) and isinstance(third, PublishResult) and first.id != third.id


NO_JSON: list[tuple[Any, str]] = [
    ({"x": math.nan}, "not JSON compliant"),
    ({"when": datetime(2026, 1, 31, tzinfo=UTC)}, "Object of type datetime is not JSON serializable"),
    ({"a": {1, 2}}, "Object of type set is not JSON serializable"),
    ({("a", "b"): 1}, "keys must be str"),
    ('{"a": "\ud800"}', "surrogate"),
]


@pytest.mark.parametrize(("value", "why"), NO_JSON)
def test_publish_non_json_value_raises_decode_problem(client: Client, value: Any, why: str) -> None:
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

    async def publish_async() -> list[PublishResult | TidingsError]:
        async with AsyncClient(service.address, service.token(name, "publish")) as other:
            return [one async for one in other.publish_many(bodies, id_field=id_field)]

    assert [type(one) for one in asyncio.run(publish_async())] == [type(one) for one in outcomes]


def test_subscribe_many_non_json_value_is_outcome(client: Client) -> None:
    first, second, third = client.subscribe_many(["a = 1", {"text": math.nan}, "a = 2"])
    assert isinstance(first, SubscribeResult) and isinstance(third, SubscribeResult)
    assert isinstance(second, DecodeProblem)


def test_subscribe_many_returns_outcomes_in_order(client: Client, service: Service, name: str) -> None:
    texts = [f"price < {number}" for number in range(1_500)]
    created = list(client.subscribe_many(texts))
    ids = [one.id for one in created if isinstance(one, SubscribeResult) and one.new]
    assert len(set(ids)) == len(texts)
    stored = {one.id: one.text for one in service.tidings.store.subscriptions.list(name)}
    assert [stored[id] for id in ids] == texts, "in the order given"
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


def test_subscribe_many_outcomes_have_warnings(client: Client) -> None:
    impossible, possible = client.subscribe_many(
        [{"text": "/a and /b", "language": "xpath"}, {"text": "//a", "language": "xpath"}]
    )
    assert isinstance(impossible, SubscribeResult) and isinstance(possible, SubscribeResult)
    [warning] = impossible.warnings
    assert warning.message().startswith("no document can match") and warning.message().endswith(
        "/a and /b\n         ^^"
    )
    assert possible.warnings == ()


def test_publish_with_audience_stores_label(client: Client, service: Service) -> None:
    published = client.publish({"price": 1}, audience="staff")
    stored = service.tidings.store.journal.find(published.id)
    assert stored is not None and stored.audience == "staff"


def test_subscription_lifecycle_create_change_pause_resume_and_delete(client: Client, name: str) -> None:
    created = client.subscribe("price < 200", within="10 minutes")
    assert (created.subscriber, created.language, created.state, created.within) == (
        name,
        "predicates",
        "active",
        "10 minutes",
    )
    assert (created.predicates, created.health.matched, created.health.last_error) == (1, 0, None)
    assert client.subscribe("price < 200", within="10 minutes", id=created.id).id == created.id
    assert client.change(created.id, text="price < 300").within == "10 minutes"
    assert client.change(created.id, within=None).within is None
    assert client.pause(created.id).state == "paused"
    assert [one.id for one in client.subscriptions(state="paused")] == [created.id]
    assert client.resume(created.id).state == "active"
    assert client.subscription(created.id).text == "price < 300"
    other = client.subscribe('//stock[symbol = "YHOO"]', "xpath", id="my own/é")
    assert [one.id for one in client.subscriptions(containing="YHOO")] == [other.id]
    assert {one.id for one in client.subscriptions()} == {created.id, other.id}
    client.unsubscribe(other.id)
    with pytest.raises(NotFound):
        client.unsubscribe(other.id)
    with pytest.raises(NotFound):
        client.subscription(other.id)


def test_subscribe_same_rule_twice_is_idempotent(client: Client, service: Service, name: str) -> None:
    provider = Provider(service.tidings.store)
    provider.load_schema(SCHEMA.body, SCHEMA.media_type)
    rule = "search CycleProvider c register c where c.serverPort > 80"
    created = client.subscribe(rule, "rules", id=f"rule of {name}")
    assert client.subscribe(rule, "rules", id=created.id).id == created.id
    assert [one.id for one in client.subscriptions(language="rules")] == [created.id]


def test_subscriptions_reads_all_pages(client: Client, service: Service, name: str) -> None:
    created = [Subscription(f"s-page-{number:03}", name, "predicates", "price < 1") for number in range(105)]
    service.tidings.store.subscriptions.add_many(created)
    assert [one.id for one in client.subscriptions(containing="s-page-")] == [one.id for one in created]


def test_subscribe_error_has_place_and_pointer(client: Client) -> None:
    for ask in (client.check, client.subscribe, client.preview):
        with pytest.raises(SyntaxProblem, match="expected a predicate") as error:
            ask("price < 200 and")
        assert error.value.place is not None
        assert str(error.value).endswith("price < 200 and\n                 ^")
        assert error.value.pointer == "/text"
    with pytest.raises(InputError, match="language"):
        client.check("price < 200", "klingon")
    assert client.check("price < 200 and sold = true").predicates == 2


def test_warnings_underline_their_place_in_text(client: Client) -> None:
    text = "price > 6 and price < 4"
    for checked in (client.check(text), client.subscribe(text), client.preview(text)):
        [warning] = checked.warnings or ()
        assert warning.message().splitlines()[1:] == [
            f"  {text}",
            "  ^^^^^^^^^^^^^^^^^^^^^^^   join them with 'or' if either is enough",
        ]


def test_preview_returns_matches_with_reasons(client: Client) -> None:
    cheap = client.publish({"preview": "mine", "price": 5})
    client.publish({"preview": "mine", "price": 500})
    previewed = client.preview("preview = 'mine' and price < 200", last=10)
    assert previewed.matches[0].words == ("preview 'mine' = 'mine'", "price 5 < 200")
    assert [(one.content.id, one.content.body) for one in previewed.matches] == [
        (cheap.id, {"preview": "mine", "price": 5})
    ]
    assert previewed.matches[0].because[0].predicate.startswith("pr")
    assert previewed.looked_at > 0


def test_subscriptions_of_other_subscriber_are_absent(client: Client, service: Service, name: str) -> None:
    own = client.subscribe("price < 1")
    with Client(service.address, service.token(f"not {name}", "subscribe")) as other:
        for ask in (other.subscription, other.pause, other.resume, other.unsubscribe):
            with pytest.raises(NotFound):
                ask(own.id)
        assert list(other.subscriptions()) == []
        with pytest.raises(NotAllowed):
            other.publish({"price": 1})
    with Client(service.address, service.token(None, "administer")) as administrator:
        created = administrator.subscribe("price < 1", subscriber=name)
        assert created.subscriber == name
        assert {one.id for one in administrator.subscriptions(subscriber=name)} == {own.id, created.id}


def test_destinations_lifecycle_add_change_test_and_remove(
    client: Client, service: Service, name: str
) -> None:
    created = client.destinations.add("webhook", "http://127.0.0.1:9/hook", name="mine")
    assert (created.subscriber, created.kind, created.state, created.dead_letters) == (
        name,
        "webhook",
        "active",
        0,
    )
    assert created.secret is not None and created.secret.startswith("whsec_")
    assert [one.id for one in client.destinations.list()] == [created.id]
    assert client.destinations.find(created.id).secret is None
    assert client.destinations.change(created.id, name="ours").name == "ours"
    assert client.destinations.pause(created.id).state == "paused"
    assert client.destinations.resume(created.id).state == "active"
    assert client.destinations.rotate(created.id).secret not in (None, created.secret)
    tested = client.destinations.test(created.id)
    assert not tested.taken and tested.problem
    assert list(client.destinations.dead_letters(created.id)) == []
    assert client.destinations.replay(created.id) == 0
    client.destinations.remove(created.id)
    with pytest.raises(NotFound):
        client.destinations.find(created.id)


def test_feeds_addresses_work_and_are_renewed(client: Client, service: Service, name: str) -> None:
    """The address of each subscription and of the list works, and a renewed one answers 410."""
    created = [client.subscribe("price < 200", id=f"{name}/{number}").id for number in range(3)]
    feeds = list(client.feeds())
    assert [one.subscription for one in feeds] == created and client.feed(created[0]) == feeds[0]
    listed = client.feed()
    assert listed.subscription is None and listed.address and listed.address.startswith(service.address)
    opml = httpx.get(listed.address).text
    assert all(f"{one.address}.atom" in opml for one in feeds)
    assert [httpx.get(str(one.address)).status_code for one in feeds] == [200] * 3
    for old, new in ((feeds[0], client.renew_feed(created[0])), (listed, client.renew_feed())):
        assert new.subscription == old.subscription
        assert [httpx.get(str(one.address)).status_code for one in (old, new)] == [410, 200]
    assert list(client.feeds())[1:] == feeds[1:]
    with pytest.raises(NotFound):
        client.feed("nothing")
    with Client(service.address, service.token(None, "administer")) as administrator:
        assert administrator.feed(created[1], subscriber=name) == feeds[1]
        with pytest.raises(InputError, match="the subscriber is missing"):
            administrator.feed(created[1])


def test_feeds_endpoint_is_paginated(service: Service, name: str) -> None:
    for number in range(3):
        service.tidings.subscribe(name, "price < 5", id=f"{name}-{number}")
    with httpx.Client(
        base_url=service.address, headers={"Authorization": f"Bearer {service.token(name, 'subscribe')}"}
    ) as http:
        answer = http.get("/v1/feeds", params={"limit": 2})
        first = answer.json()
        assert answer.headers["cache-control"] == "no-store" and first["next"] == f"{name}-1"
        last = http.get("/v1/feeds", params={"limit": 2, "after": first["next"]}).json()
        assert [one["subscription"] for one in last["feeds"]] == [f"{name}-2"] and last["next"] is None
        assert last["all"] == first["all"]
        assert http.get("/v1/feeds?after=%00").status_code == 400
        assert http.get("/v1/feeds/%00").status_code == 400


def test_async_client_has_same_operations(service: Service, name: str) -> None:
    async def use() -> None:
        async with AsyncClient(service.address, service.token(name, "subscribe", "publish")) as client:
            created = await client.subscribe("price < 200")
            published = await client.publish({"price": 180})
            service.tidings.store.notifications.commit_batch(
                name, 0, [MatchRow(published.id, created.id, name)]
            )
            assert [one.id async for one in client.subscriptions()] == [created.id]
            assert (await client.change(created.id, text="price < 2")).text == "price < 2"
            assert (await client.pause(created.id)).state == "paused"
            assert (await client.resume(created.id)).state == "active"
            assert (await client.subscription(created.id)).id == created.id
            assert (await client.check("price < 200")).predicates == 1
            assert (await client.preview("price < 200", last=5)).complete
            events = [{"id": f"{name}-{number}"} for number in range(3)]
            assert len([one async for one in client.publish_many(events, id_field="id")]) == 3
            assert len([one async for one in client.publish_many([{"a": 1}, b"{"])]) == 2
            many = [one async for one in client.subscribe_many(["price < 1", "price <"])]
            assert [type(one) for one in many] == [SubscribeResult, SyntaxProblem]
            assert created.id in [one.subscription async for one in client.feeds()]
            assert (await client.feed(created.id)) != (await client.renew_feed(created.id))
            async for notification in client.follow():
                assert notification.content is not None and notification.content.body == {"price": 180}
                assert (await client.acknowledge(notification.sequence)).unread == 0
                break
            await client.unsubscribe(created.id)
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
def test_sync_and_async_client_have_same_documented_methods(sync: type, asynchronous: type) -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        names = [name for name in dir(kind) if name[0] != "_" and name not in ("close", "aclose")]
        functions = {name: getattr(kind, name) for name in names}
        assert all(function.__doc__ for function in functions.values())
        parameters = {name: list(inspect.signature(each).parameters) for name, each in functions.items()}
        return {
            name: [each for each in arguments if each != "self"] for name, arguments in parameters.items()
        }

    assert len(methods(sync)) > 10
    assert methods(sync) == methods(asynchronous)


def test_package_exports_both_clients() -> None:
    assert (tidings.Client, tidings.AsyncClient) == (Client, AsyncClient)
