"""Nobody gets at what is somebody else's by any route: ana asks for all that is bo's, by every id and every parameter,
and must not find a trace.
"""

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


def test_resources_of_other_subscribers_answer_404(place: Place) -> None:
    """By any id, any parameter and any body: not to read it, and not to change it."""
    before = state(place)
    with ThreadPoolExecutor(8) as several:
        pairs = product(place.guarded, (place.ana, place.shop))
        list(several.map(lambda pair: try_all(*pair, place.ids), pairs))
    assert state(place) == before


def try_all(route: Route, client: httpx.Client, ids: Sequence[str]) -> None:
    if ask(client, route, route.at("1")).status_code in REFUSED:
        return
    for path, more in attempts(route, ids):
        answer = ask(client, route, path, **more)
        assert answer.status_code < 500, (route, path, more)
        if answer.is_stream_consumed:
            assert SECRET not in answer.text, (route, path, more)


def attempts(route: Route, ids: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All ways to ask for what is bo's by a route."""
    paths = {route.at(id, ids[2]) for id in ids}
    if route.method in ("GET", "HEAD", "DELETE"):
        yield from product(paths, ({},))
        yield from product([f"{route.at('s-of-bo')}?{route.query(each)}" for each in QUERIES], ({},))
    else:
        yield from product(paths, BODIES[:1])
        yield from product({route.at(id, "1") for id in ids[:2]}, BODIES)


def state(place: Place) -> dict[str, Any]:
    """All that is bo's."""
    store = place.served.context.tidings.store
    return {
        "subscriptions": store.subscriptions.list("bo"),
        "told": store.notifications.read("bo"),
        "read": store.acknowledgements.cursor("bo"),
        "destinations": store.destinations.list("bo"),
        "letters": [store.dead_deliveries.list(one.id) for one in store.destinations.list("bo")],
        "grants": store.audiences.list("bo"),
        "tokens": [one for one in store.tokens.list() if one.subscriber == "bo"],
        "quiet": store.preferences.quiet("bo"),
        "feeds": store.feed_addresses.addresses("bo"),
    }


def test_bulk_lines_for_other_subscribers_are_refused(place: Place) -> None:
    """Each line is looked at: one's own, somebody else's, and an id that is somebody else's."""
    lines = b'{"text": "z = 1", "id": "a-1"}\n{"text": "z = 1", "subscriber": "bo"}\n{"text": "z = 1", "id": "s-of-bo"}'
    told = place.ana.post(
        "/v1/subscriptions", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert [one.get("problem", {}).get("status") for one in told.json()["outcomes"]] == [None, 403, 409]
    assert SECRET not in told.text
    assert place.ana.delete("/v1/subscriptions/a-1").status_code == 204


RULE = "search CycleProvider c register c where c.serverPort > 80"


def test_conflict_does_not_disclose_the_owner(place: Place) -> None:
    """Ids share one name space, so that one is taken cannot be hidden; all else can: a subscription that lives, one
    that is paused and a rule are answered in the same words.
    """
    Provider(place.served.context.tidings.store).load_schema(SCHEMA.body, SCHEMA.media_type)
    ids = ("s-1-of-b", "s-2-of-b", "s-3-of-b")
    for id, wanted in zip(ids, WANTED, strict=True):
        assert place.bo.post("/v1/subscriptions", json=wanted | {"id": id}).status_code == 201
    for id, wanted in product(ids, WANTED):
        answer = place.ana.post("/v1/subscriptions", json=wanted | {"id": id})
        told = answer.json()
        assert (answer.status_code, told["what"]) == (409, f"the id '{id}' is taken"), (id, wanted)
        assert (told["hint"], told["pointer"]) == ("choose another one, or leave it out", "/id")
        assert '"bo"' not in answer.text
    for id in ids:
        assert place.bo.delete(f"/v1/subscriptions/{id}").status_code == 204


WANTED = ({"text": "a = 1"}, {"text": "a = 1", "state": "paused"}, {"text": RULE, "language": "rules"})


def test_an_id_of_a_labelled_publication_says_no_position(place: Place) -> None:
    """Only those who were granted the label see it, the position, too."""
    answer = place.shop.post("/v1/publications", params={"id": "p-of-bo"}, json={"a": 1})
    assert (answer.status_code, answer.json().get("where")) == (409, None)


def test_resources_are_visible_to_their_owner(place: Place) -> None:
    """Otherwise the tests above would find nothing because there is nothing."""
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


def test_ids_of_other_subscribers_look_like_unknown_ids(place: Place) -> None:
    """The same status and the same words, but for the id itself."""
    routes = [route for route in place.guarded if "{" in route.path]
    for route in routes:
        for id in place.ids[:2]:
            own, none = (ask(place.ana, route, route.at(one, "1")) for one in (id, "x" * len(id)))
            assert own.status_code == none.status_code, (route, id)
            assert own.text.replace(id, "") == none.text.replace("x" * len(id), ""), (route, id)
