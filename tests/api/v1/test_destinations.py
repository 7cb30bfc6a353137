"""`/v1/destinations` and `/v1/preferences` on a real server, and deliveries to those destinations."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from standardwebhooks.webhooks import Webhook

from tests.delivery.delivery_setup import RULES, DeliverySetup, open_delivery
from tests.support.servers.http_server import served
from tests.support.servers.notification_server import bearing
from tests.support.servers.site import Request, Response, Site, a_site
from tidings.api.authentication import Authenticator
from tidings.api.v1 import destinations, subscribers
from tidings.api.write_limiter import WRITE_THREADS
from tidings.service.authorization import Access
from tidings.store.database import sqlite_url


@dataclass
class Place:
    """A server, and a client for each caller."""

    at: DeliverySetup
    ana: httpx.Client
    bo: httpx.Client
    administrator: httpx.Client


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with a_site() as opened:
        yield opened


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with open_delivery(sqlite_url(tmp_path_factory.mktemp("home") / "store.db"), RULES) as at:
        at.subscribe("ana", "s-1")
        at.subscribe("bo", "s-2")
        access = Access(at.store)
        router = APIRouter()
        router.include_router(destinations.router_for(at.destinations))
        router.include_router(subscribers.preferences_router_for(at.store))
        with served(router, asking=Authenticator(access)) as address:

            def client(subscriber: str | None, scope: str) -> httpx.Client:
                secret = access.make("test", [scope], subscriber).secret
                return httpx.Client(base_url=address, headers=bearing(secret), trust_env=False, timeout=60)

            with (
                client("ana", "subscribe") as ana,
                client("bo", "subscribe") as bo,
                client(None, "administer") as administrator,
            ):
                yield Place(at, ana, bo, administrator)


@pytest.fixture
def hook(place: Place, site: Site) -> Iterator[dict[str, Any]]:
    """A webhook of ana."""
    site.requests.clear()
    site.pages["/"] = Response(204)
    created = place.ana.post("/v1/destinations", json={"kind": "webhook", "target": site.url("/?key=k")})
    assert created.status_code == 201, created.text
    yield created.json()
    place.ana.delete(f"/v1/destinations/{created.json()['id']}")


def test_destination_create_read_change_and_delete(place: Place, site: Site, hook: dict[str, Any]) -> None:
    assert hook["secret"].startswith("whsec_") and hook["target"] == site.url("/?...")
    path = f"/v1/destinations/{hook['id']}"
    read = place.ana.get(path).json()
    assert "secret" not in read and read["state"] == "active" and read["dead_letters"] == 0
    assert read["health"] == {
        "delivered": 0,
        "last_success": None,
        "consecutive_failures": 0,
        "last_failure": None,
        "last_error": None,
    }
    changed = place.ana.patch(path, json={"name": "phone", "target": site.url("/other")}).json()
    assert (changed["name"], changed["target"]) == ("phone", site.url("/other"))
    assert place.ana.post(f"{path}/pause").json()["state"] == "paused"
    assert place.ana.post(f"{path}/resume").json()["state"] == "active"
    assert place.ana.delete(path).status_code == 204
    assert place.ana.get(path).status_code == 404


def test_destinations_list_is_paginated(place: Place, site: Site, hook: dict[str, Any]) -> None:
    body = {"kind": "webhook", "target": site.url("/"), "subscription": "s-1"}
    other = place.ana.post("/v1/destinations", json=body).json()
    first = place.ana.get("/v1/destinations", params={"limit": 1}).json()
    second = place.ana.get("/v1/destinations", params={"limit": 1, "after": first["after"]}).json()
    ids = [page["destinations"][0]["id"] for page in (first, second)]
    assert ids == sorted([hook["id"], other["id"]])
    assert place.ana.get("/v1/destinations").json()["after"] is None
    place.ana.delete(f"/v1/destinations/{other['id']}")


def test_destination_test_is_signed_with_both_secrets_after_rotation(
    place: Place, site: Site, hook: dict[str, Any]
) -> None:
    path = f"/v1/destinations/{hook['id']}"
    tested = place.ana.post(f"{path}/test").json()
    assert (tested["taken"], tested["status"], tested["problem"]) == (True, 204, None)
    rotated = place.ana.post(f"{path}/rotate").json()
    assert rotated["secret"] != hook["secret"] and rotated["old_secret_until"]
    place.ana.post(f"{path}/test")
    for secret in (hook["secret"], rotated["secret"]):
        last = site.requests[-1]
        assert Webhook(secret).verify(last.body, dict(last.headers))["type"] == "tidings.test"
    assert place.ana.post(f"{path}/drop-old-secret").json()["old_secret_until"] is None
    site.pages["/"] = Response(500)
    assert place.ana.post(f"{path}/test").json()["problem"] == "status 500"


def test_destination_test_with_slow_receivers_does_not_delay_reads(
    place: Place, site: Site, hook: dict[str, Any]
) -> None:
    """More test deliveries than threads, each waiting for its receiver."""
    released = Event()

    def hangs(_: Request) -> Response:
        released.wait()
        return Response(204)

    site.pages["/"] = hangs
    with ThreadPoolExecutor(60) as several:
        samples = [several.submit(place.ana.post, f"/v1/destinations/{hook['id']}/test") for _ in range(60)]
        site.wait_for(WRITE_THREADS)
        assert place.bo.get("/v1/destinations").status_code == 200
        assert not any(sample.done() for sample in samples)
        released.set()
        assert {sample.result().status_code for sample in samples} == {200}


def test_destination_failed_deliveries_become_dead_letters_and_are_replayed(
    place: Place, site: Site, hook: dict[str, Any]
) -> None:
    path = f"/v1/destinations/{hook['id']}"
    place.at.notify("ana", "s-1", "p-1")
    place.at.steps()
    site.pages["/"] = Response(500)
    place.at.notify("ana", "s-1", "p-2", "p-3")
    for _ in range(18):
        place.at.steps()
        place.at.clock.go(72_001)
    read = place.ana.get(path).json()
    assert read["dead_letters"] == 2 and read["health"]["delivered"] == 1
    assert read["health"]["last_error"] == "status 500" and read["health"]["consecutive_failures"] == 18
    page = place.ana.get(f"{path}/letters", params={"limit": 1}).json()
    [letter] = page["letters"]
    assert (letter["subscription"], letter["attempts"], letter["problem"]) == ("s-1", 9, "status 500")
    assert len(place.ana.get(f"{path}/letters", params={"after": page["after"]}).json()["letters"]) == 1
    site.pages["/"] = Response(204)
    number = letter["number"]
    assert place.ana.post(f"{path}/letters/{number}/replay").json() == {"replayed": 1}
    place.at.steps()
    assert place.ana.post(f"{path}/letters/{number}/replay").status_code == 404
    assert place.ana.post(f"{path}/letters/replay").json() == {"replayed": 1}
    place.at.steps()
    assert place.ana.get(path).json()["dead_letters"] == 0


def test_destination_of_other_subscriber_answers_404(place: Place, hook: dict[str, Any]) -> None:
    path = f"/v1/destinations/{hook['id']}"
    posts = ["pause", "resume", "rotate", "drop-old-secret", "test", "letters/replay", "letters/1/replay"]
    requests = [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/letters")]
    for method, rest in [*requests, *(("POST", f"/{each}") for each in posts)]:
        body = {"json": {}} if method == "PATCH" else {}
        theirs = place.bo.request(method, path + rest, **body)
        absent = place.bo.request(method, "/v1/destinations/d-none" + rest, **body)
        assert theirs.status_code == absent.status_code == 404, (method, rest)
        assert theirs.json()["what"] == absent.json()["what"]
        assert httpx.request(method, str(place.ana.base_url) + path + rest, **body).status_code == 401
    assert place.bo.get("/v1/destinations").json()["destinations"] == []
    assert place.bo.get("/v1/destinations", params={"subscriber": "ana"}).status_code == 403
    other = {"kind": "webhook", "target": "http://127.0.0.1/", "subscription": "s-1"}
    assert place.bo.post("/v1/destinations", json=other).status_code == 404
    listed = place.administrator.get("/v1/destinations", params={"subscriber": "ana"}).json()
    assert [one["id"] for one in listed["destinations"]] == [hook["id"]]
    assert place.administrator.get(path).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"kind": "pigeon", "target": "x"}, "/kind"),
        ({"kind": "webhook"}, "/target"),
        ({"kind": "webhook", "target": "ftp://example.org"}, "/target"),
        ({"kind": "webhook", "target": "http://example.org/", "more": 1}, "/more"),
        ({"kind": "webhook", "target": "http://example.org/", "subscription": "\x00"}, "/subscription"),
        ({"kind": "webhook", "target": "http://example.org/", "name": "\x00"}, "/name"),
        ({"kind": "apprise", "target": "syslog://"}, "/target"),
        ({"kind": "apprise", "target": "json://example.org/?attach=/etc/passwd"}, "/target"),
        ({"kind": "kafka", "target": "kafka://h/t?ssl.key.location=/etc/passwd"}, "/target"),
    ],
)
def test_destination_invalid_body_is_rejected_with_pointer(
    place: Place, body: dict[str, Any], pointer: str
) -> None:
    answer = place.ana.post("/v1/destinations", json=body)
    assert (answer.status_code, answer.json()["pointer"]) == (422, pointer)


def test_destination_changed_target_is_validated(place: Place, hook: dict[str, Any]) -> None:
    nothing = place.ana.patch(f"/v1/destinations/{hook['id']}", json={})
    assert (nothing.status_code, nothing.json()["target"]) == (200, hook["target"])
    for body, pointer in (({"name": "\x00"}, "/name"), ({"target": "ftp://example.org"}, "/target")):
        answer = place.ana.patch(f"/v1/destinations/{hook['id']}", json=body)
        assert (answer.status_code, answer.json()["pointer"]) == (422, pointer)


def test_destinations_unstorable_cursor_or_id_is_rejected(place: Place) -> None:
    assert place.ana.get("/v1/destinations", params={"after": "\x00"}).status_code == 400
    assert place.ana.get("/v1/destinations/%00").status_code == 400


def test_preferences_set_read_and_validate_quiet_hours(place: Place) -> None:
    assert place.ana.get("/v1/preferences").json() == {"quiet_hours": None}
    hours = {"quiet_hours": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}}
    assert place.ana.put("/v1/preferences", json=hours).json() == hours
    assert place.ana.get("/v1/preferences").json() == hours
    assert place.bo.get("/v1/preferences").json() == {"quiet_hours": None}
    assert place.administrator.get("/v1/preferences", params={"subscriber": "ana"}).json() == hours
    for name, wrong in (("zone", "Mars/Olympus"), ("from", "24:00"), ("to", "22:00")):
        answer = place.ana.put("/v1/preferences", json={"quiet_hours": hours["quiet_hours"] | {name: wrong}})
        assert (answer.status_code, answer.json()["pointer"]) == (422, f"/quiet_hours/{name}")
    assert place.ana.put("/v1/preferences", json={"quiet_hours": None}).json() == {"quiet_hours": None}
