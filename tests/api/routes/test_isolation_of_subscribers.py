"""Isolation of subscribers: ana requests the data of bo by every route, id and parameter, and must not find a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import httpx

from tests.api.routes.place import SECRET, Place
from tests.api.routes.route_walk import REFUSED, Route, ask
from tests.support.stores.server_documents import SCHEMA
from tidings.metadata.provider.provider import Provider

QUERIES: tuple[dict[str, str], ...] = (
    {"subscriber": "bo"},
    {"as": "bo"},
    {"subscription": "s-of-bo", "after": "0", "limit": "1000", "q": "bo", "search": "bo", "word": "bo"},
    {"language": "", "after": "0"},
)


BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"json": {"subscriber": "bo", "text": "price < 200", "language": "predicates"}},
    {"json": {"text": "exists a", "language": "predicates", "subscription": "s-of-bo"}},
    {"json": {"upto": 1, "subscriber": "bo"}},
    {"json": {"kind": "webhook", "target": "https://example.org/", "subscription": "s-of-bo"}},
    {
        "data": {
            "subscriber": "bo",
            "upto": "1",
            "text": "price < 200",
            "language": "predicates",
            "act": "save",
        }
    },
)


def test_routes_neither_disclose_nor_change_data_of_other_subscribers(place: Place) -> None:
    """By any id, parameter and body."""
    before = state(place)
    with ThreadPoolExecutor(8) as several:
        pairs = product(place.guarded, (place.ana, place.shop))
        list(several.map(lambda pair: check_route(*pair, place.ids), pairs))
    assert state(place) == before


def check_route(route: Route, client: httpx.Client, ids: Sequence[str]) -> None:
    if ask(client, route, route.at("1")).status_code in REFUSED:
        return
    for path, more in requests_for(route, ids):
        answer = ask(client, route, path, **more)
        assert answer.status_code < 500, (route, path, more)
        if answer.is_stream_consumed:
            assert SECRET not in answer.text, (route, path, more)


def requests_for(route: Route, ids: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all requests by which a route could give access to data of bo."""
    paths = {route.at(id, ids[2]) for id in ids}
    if route.method in ("GET", "HEAD", "DELETE"):
        yield from product(paths, ({},))
        yield from product([f"{route.at('s-of-bo')}?{route.query(each)}" for each in QUERIES], ({},))
    else:
        yield from product(paths, BODIES[:1])
        yield from product({route.at(id, "1") for id in ids[:2]}, BODIES)


def state(place: Place) -> dict[str, Any]:
    """Return all stored data of bo."""
    store = place.served.context.tidings.store
    return {
        "subscriptions": store.subscriptions.list("bo"),
        "told": store.notifications.read("bo"),
        "read": store.acknowledgements.cursor("bo"),
        "destinations": store.destinations.list("bo"),
        "letters": [store.dead_deliveries.list(one.id) for one in store.destinations.list("bo")],
        "grants": store.audiences.list("bo"),
        "tokens": [one for one in store.tokens.list() if one.subscriber == "bo"],
        "quiet": store.preferences.read_quiet_hours("bo"),
        "feeds": store.feed_addresses.addresses("bo"),
    }


def test_subscribe_lines_for_other_subscribers_are_rejected(place: Place) -> None:
    """Each line is checked: one of the caller, one of another subscriber, and one with an id of another subscriber."""
    lines = b'{"text": "z = 1", "id": "a-1"}\n{"text": "z = 1", "subscriber": "bo"}\n{"text": "z = 1", "id": "s-of-bo"}'
    answer = place.ana.post(
        "/v1/subscriptions", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert [one.get("problem", {}).get("status") for one in answer.json()["outcomes"]] == [None, 403, 409]
    assert SECRET not in answer.text
    assert place.ana.delete("/v1/subscriptions/a-1").status_code == 204


RULE = "search CycleProvider c register c where c.serverPort > 80"


def test_subscribe_id_conflict_does_not_disclose_owner(place: Place) -> None:
    """Subscribers share one namespace of ids, so a conflict cannot be hidden. An active subscription, a paused one
    and a rule give the same answer.
    """
    Provider(place.served.context.tidings.store).load_schema(SCHEMA.body, SCHEMA.media_type)
    ids = ("s-1-of-b", "s-2-of-b", "s-3-of-b")
    for id, request in zip(ids, WANTED, strict=True):
        assert place.bo.post("/v1/subscriptions", json=request | {"id": id}).status_code == 201
    for id, request in product(ids, WANTED):
        answer = place.ana.post("/v1/subscriptions", json=request | {"id": id})
        problem = answer.json()
        assert (answer.status_code, problem["what"]) == (409, f"the id '{id}' is taken"), (id, request)
        assert (problem["hint"], problem["pointer"]) == ("choose another one, or leave it out", "/id")
        assert '"bo"' not in answer.text
    for id in ids:
        assert place.bo.delete(f"/v1/subscriptions/{id}").status_code == 204


WANTED = ({"text": "a = 1"}, {"text": "a = 1", "state": "paused"}, {"text": RULE, "language": "rules"})


def test_publish_id_of_labelled_publication_discloses_no_position(place: Place) -> None:
    """Only subscribers with the label see the publication, and its position."""
    answer = place.shop.post("/v1/publications", params={"id": "p-of-bo"}, json={"a": 1})
    assert (answer.status_code, answer.json().get("where")) == (409, None)


def test_routes_give_owner_access_to_own_data(place: Place) -> None:
    """Shows that the tests above do not pass for lack of data."""
    assert SECRET in place.bo.get("/v1/subscriptions/s-of-bo").text
    assert SECRET in place.bo.get("/v1/notifications?after=0").text
    assert SECRET in place.bo.get("/v1/destinations").text
    hook = place.ids[1]
    assert SECRET in place.bo.get(f"/v1/destinations/{hook}/letters").text
    assert SECRET in place.root.get("/v1/publications/p-of-bo").text
    assert SECRET in place.root.get("/console/dead-letters").text
    assert place.ana.get("/v1/subscriptions/s-of-bo").status_code == 404
    assert place.ana.get(f"/v1/destinations/{hook}").status_code == 404
    assert place.ana.get("/v1/subscriptions/s-of-nobody").status_code == 404


def test_route_id_of_other_subscriber_answers_like_unknown_id(place: Place) -> None:
    """The same status and the same body, but for the id itself."""
    routes = [route for route in place.guarded if "{" in route.path]
    for route in routes:
        for id in place.ids[:2]:
            own, none = (ask(place.ana, route, route.at(one, "1")) for one in (id, "x" * len(id)))
            assert own.status_code == none.status_code, (route, id)
            assert own.text.replace(id, "") == none.text.replace("x" * len(id), ""), (route, id)
