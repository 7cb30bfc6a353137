"""Notifications over HTTP: pages by cursor, and acknowledgement by cursor."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.support.servers.notification_server import Place, bearing, client_of, place_at
from tidings.model import Subscription
from tidings.store.encoding import MatchRow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_at(tmp_path_factory.mktemp("home")) as opened, opened.serve():
        yield opened


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A subscriber that no other test uses."""
    return request.node.name


@pytest.fixture
def client(place: Place, name: str) -> Iterator[httpx.Client]:
    with client_of(place, place.token(name)) as opened:
        yield opened


def sequences(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [event["data"]["sequence"] for event in answer.json()["notifications"]]


def test_notifications_are_paginated_by_cursor(client: httpx.Client, place: Place, name: str) -> None:
    place.notify(name, 5)
    first = client.get("/v1/notifications", params={"limit": 2})
    assert sequences(first) == [1, 2]
    assert {key: first.json()[key] for key in ("cursor", "last", "acknowledged")} == {
        "cursor": 2,
        "last": 5,
        "acknowledged": 0,
    }
    assert sequences(client.get("/v1/notifications", params={"after": 2, "limit": 1000})) == [3, 4, 5]
    end = client.get("/v1/notifications", params={"after": 5})
    assert (sequences(end), end.json()["cursor"]) == ([], 5)
    event = first.json()["notifications"][0]
    assert event["type"] == "tidings.notification"
    assert event["data"]["publication"]["body"] == {"price": 180}


def test_notifications_of_one_subscription_move_cursor_past_others(
    client: httpx.Client, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.notify(name, 3, "s-1")
    place.notify(name, 30, "s-2")
    place.notify(name, 1, "s-1")
    params = {"subscription": f"s-1-{name}"}
    all_pages = client.get("/v1/notifications", params=params)
    assert (sequences(all_pages), all_pages.json()["cursor"]) == ([1, 2, 3, 34], 34)
    assert sequences(client.get("/v1/notifications", params=params | {"limit": 2, "after": 1})) == [2, 3]
    monkeypatch.setattr("tidings.service.event_pages.SCAN", 10)
    between = client.get("/v1/notifications", params=params | {"after": 5})
    assert (sequences(between), between.json()["cursor"]) == ([], 15)


def test_notifications_page_is_bounded_by_bytes(client: httpx.Client, place: Place, name: str) -> None:
    body = b'"' + b"x" * 400_000 + b'"'
    place.notify(name, 25, body=body)
    page = client.get("/v1/notifications", params={"limit": 1000})
    assert sequences(page) == list(range(1, 10))
    assert page.json()["cursor"] == 9
    assert sequences(client.get("/v1/notifications", params={"after": 9})) == list(range(10, 19))


def test_notifications_wait_returns_first_matching_notification(
    client: httpx.Client, place: Place, name: str
) -> None:
    assert sequences(client.get("/v1/notifications", params={"wait": 0.05})) == []
    place.notify(name, 2, "s-2")
    later = threading.Timer(0.1, place.notify, (name, 1, "s-1"))
    later.start()
    params = {"wait": 60, "subscription": f"s-1-{name}"}
    assert sequences(client.get("/v1/notifications", params=params)) == [3]
    later.join()


def test_due_deferred_notifications_are_released_on_read(
    client: httpx.Client, place: Place, name: str
) -> None:
    """No stream runs here: reading or waiting releases them."""
    id = place.store.subscriptions.add(Subscription("", name, "predicates", "price < 2", 1))
    place.store.notifications.commit_batch("held", 0, [MatchRow("p-held", id, name)])
    assert place.store.notifications.deferred(name).count == 1
    assert sequences(client.get("/v1/notifications", params={"wait": 60})) == [1]


def test_acknowledge_moves_cursor_forward_only(client: httpx.Client, place: Place, name: str) -> None:
    place.notify(name, 5)
    assert client.get("/v1/notifications/ack").json() == {"acknowledged": 0, "last": 5, "time": None}
    acknowledged = client.put("/v1/notifications/ack", json={"upto": 3}).json()
    assert (acknowledged["acknowledged"], acknowledged["last"]) == (3, 5)
    assert sequences(client.get("/v1/notifications")) == [4, 5]
    assert sequences(client.get("/v1/notifications", params={"after": 0})) == [1, 2, 3, 4, 5]
    assert client.post("/v1/notifications/ack", json={"upto": 2}).json() == acknowledged
    assert client.get("/v1/notifications/ack").json() == acknowledged
    assert client.get("/v1/notifications").json()["acknowledged"] == 3


@pytest.mark.parametrize(
    "body",
    [
        {"upto": 1},
        {"upto": -1},
        {"upto": "all"},
        {"upto": "0"},
        {"upto": False},
        {},
        {"upto": 0, "more": 1},
        [1],
    ],
)
def test_acknowledge_invalid_body_is_rejected(client: httpx.Client, body: object) -> None:
    refused = client.put("/v1/notifications/ack", json=body)
    assert refused.status_code in (400, 422)
    assert refused.json()["error"] == "InputError"
    assert client.get("/v1/notifications/ack").json()["acknowledged"] == 0


@pytest.mark.parametrize(
    "params", [{"after": 1}, {"after": -1}, {"after": "x"}, {"limit": 0}, {"limit": 1001}, {"wait": 61}]
)
def test_notifications_invalid_parameters_are_rejected(
    client: httpx.Client, params: dict[str, object]
) -> None:
    refused = client.get("/v1/notifications", params=params)
    assert refused.status_code in (400, 422)
    assert refused.json()["error"] == "InputError"


def test_notifications_cursor_beyond_last_is_rejected_with_range(
    client: httpx.Client, place: Place, name: str
) -> None:
    place.notify(name, 2)
    for path in ("/v1/notifications", "/v1/notifications/stream"):
        refused = client.get(path, params={"after": 3})
        assert (refused.status_code, refused.json()["accepted"]) == (422, "0 to 2")
    again = client.get("/v1/notifications/stream", headers={"Last-Event-ID": "17"})
    assert again.status_code == 422
    for cursor in ("n-17", "9" * 5_000):
        strange = client.get("/v1/notifications/stream", headers={"Last-Event-ID": cursor})
        assert strange.status_code == 422 and strange.json()["where"] == "Last-Event-ID"


PATHS = ("/v1/notifications", "/v1/notifications/stream", "/v1/notifications/ack")


@pytest.mark.parametrize("path", PATHS)
def test_notifications_of_other_subscriber_are_forbidden(
    client: httpx.Client, place: Place, name: str, path: str
) -> None:
    other = f"not {name}"
    place.notify(other, 3)
    known = client.get(path, params={"subscriber": other})
    unknown = client.get(path, params={"subscriber": "nobody at all"})
    assert known.status_code == unknown.status_code == 403
    assert known.json() == unknown.json()
    assert (
        client.put("/v1/notifications/ack", params={"subscriber": other}, json={"upto": 1}).status_code == 403
    )
    assert place.store.acknowledgements.cursor(other).acknowledged == 0
    assert sequences(client.get("/v1/notifications")) == []
    assert sequences(client.get("/v1/notifications", params={"subscriber": name})) == []


@pytest.mark.parametrize("path", PATHS)
def test_notifications_without_subscribe_scope_are_rejected(place: Place, path: str) -> None:
    with httpx.Client(base_url=place.address, trust_env=False) as stranger:
        assert stranger.get(path).status_code == 401
        assert stranger.get(path, headers=bearing("tdg_nonsense")).status_code == 401
        shop = place.token(None, "publish")
        assert stranger.get(path, headers=bearing(shop)).status_code == 403


def test_notifications_administrator_must_name_subscriber(place: Place, name: str) -> None:
    place.notify(name, 2)
    with client_of(place, place.token(None, "administer")) as administrator:
        assert sequences(administrator.get("/v1/notifications", params={"subscriber": name})) == [1, 2]
        acknowledged = administrator.put(
            "/v1/notifications/ack", params={"subscriber": name}, json={"upto": 2}
        )
        assert acknowledged.json()["acknowledged"] == 2
        unnamed = administrator.get("/v1/notifications")
        assert (unnamed.status_code, unnamed.json()["where"]) == (422, "subscriber")
        assert administrator.get("/v1/notifications", params={"subscriber": "a\x00b"}).status_code == 400
