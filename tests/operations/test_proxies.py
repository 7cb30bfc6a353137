"""Behind nginx and Caddy, configured as in deploy/: streams, WebSockets, the console, and forged proxy headers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import httpx
import pytest
from websockets.sync.client import connect

from tests.support.processes.console_visitor import WORD
from tests.support.servers.application import Served, served
from tests.support.servers.notification_server import Place, bearing, events_of, numbers
from tests.support.servers.ports import free_port
from tests.support.servers.proxies import PROXIES, Proxy, program, proxied
from tidings.api.server import SEND_TIMEOUT_SECONDS
from tidings.console.tokens import FAILURES
from tidings.service.authorization import Access


@pytest.fixture(scope="module", params=PROXIES)
def behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, Proxy]]:
    """A service, and the proxy in front of it."""
    program(request.param)
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    with (
        served(folder / "home", public_url=f"https://localhost:{port}") as service,
        proxied(request.param, folder, service.url, port) as proxy,
    ):
        yield service, proxy


@pytest.fixture
def service(behind: tuple[Served, Proxy]) -> Served:
    return behind[0]


@pytest.fixture
def proxy(behind: tuple[Served, Proxy]) -> Proxy:
    return behind[1]


@pytest.fixture(scope="module")
def place(behind: tuple[Served, Proxy]) -> Place:
    store = behind[0].context.tidings.store
    return Place(store, Access(store))


def test_proxy_event_stream_is_not_buffered_and_resumes(service: Served, proxy: Proxy, place: Place) -> None:
    """One event at a time while the answer goes on: a buffering proxy would hold back the first."""
    secret, path = place.token("ana"), "/v1/notifications/stream"
    place.notify("ana")
    with proxy.client(secret) as client:
        with client.stream("GET", path) as response:
            events = events_of(response)
            assert numbers(events, 1) == [1]
            place.notify("ana")
            assert numbers(events, 1) == [2]
        place.notify("ana", 2)
        with client.stream("GET", path, headers={"Last-Event-ID": "2"}) as response:
            assert numbers(events_of(response), 2) == [3, 4]
    assert _all_clients_gone(service), "closed streams end before the timeout for stalled clients"


def _all_clients_gone(service: Served) -> bool:
    clients = service.context.metrics.clients.labels("sse")
    end, turn = monotonic() + SEND_TIMEOUT_SECONDS / 2, Event()
    while clients._value.get() and monotonic() < end:
        turn.wait(0.02)
    return bool(clients._value.get() == 0)


def test_proxy_websocket_opens(proxy: Proxy, place: Place) -> None:
    address = proxy.url.replace("https", "wss", 1) + "/v1/notifications/ws"
    place.notify("bo")
    headers = bearing(place.token("bo"))
    with connect(address, additional_headers=headers, ssl=proxy.trusting, proxy=None) as socket:
        assert json.loads(socket.recv())["data"]["sequence"] == 1
        place.notify("bo")
        assert json.loads(socket.recv())["data"]["sequence"] == 2


def test_proxy_console_login_over_tls(service: Served, proxy: Proxy) -> None:
    """With the Origin header, as browsers without `Sec-Fetch-Site` send it."""
    with proxy.client() as elsewhere:
        refused = elsewhere.post(
            "/console/login", data={"token": service.token}, headers={"Origin": "https://localhost"}
        )
        assert refused.status_code == 403, "another port is another origin"
    with proxy.client(Origin=proxy.url) as browser:
        entered = browser.post("/console/login", data={"token": service.token})
        assert entered.status_code == 303 and entered.headers["location"] == "/console"
        cookie = entered.headers["set-cookie"]
        assert "Secure" in cookie and "HttpOnly" in cookie and "SameSite=strict" in cookie
        word = WORD.search(browser.get("/console/browse").text)
        assert word
        assert browser.post("/console/logout", data={"word": word[1]}).status_code == 303
        assert browser.get("/console/browse").status_code == 303, "the cookie is deleted"


def test_proxy_forged_forwarded_header_does_not_evade_login_limit(proxy: Proxy) -> None:
    """Attempts count for one client, whatever addresses its headers claim."""
    with proxy.client(Origin=proxy.url) as guessing:
        statuses = [
            guessing.post(
                "/console/login", data={"token": "x"}, headers={"X-Forwarded-For": f"203.0.113.{number}"}
            ).status_code
            for number in range(FAILURES + 1)
        ]
    assert statuses == [403] * FAILURES + [429]


def test_forwarded_headers_of_unknown_proxy_are_ignored(tmp_path: Path) -> None:
    forwarded = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    for trusted, is_secure in (("127.0.0.1", True), ("192.0.2.1", False)):
        with served(tmp_path / trusted, trusted_proxies=trusted) as service:
            entered = httpx.post(
                f"{service.url}/console/login",
                data={"token": service.token},
                headers=forwarded | {"Origin": service.url},
            )
            assert ("Secure" in entered.headers["set-cookie"]) == is_secure


def test_proxy_oversized_body_is_rejected_by_service(service: Served, proxy: Proxy) -> None:
    """The answer of the service states the limit; that of a proxy would not."""
    with proxy.client(service.token) as client:
        refused = client.post("/v1/publications", content=bytes(17_000_000))
    assert refused.status_code == 413 and refused.headers["content-type"] == "application/problem+json"
    assert "16,000,000" in refused.text or "16000000" in refused.text


def test_proxy_feed_addresses_work_and_are_not_logged(service: Served, proxy: Proxy) -> None:
    """Feeds link to the public address, which is in no log."""
    service.context.tidings.subscribe("cy", "price < 200", id="s-1")
    [(_, secret)] = service.context.hub.feeds.list_with_tokens("cy")
    assert secret
    with proxy.client() as reader:
        feed = reader.get(f"/feeds/{secret}.atom")
        assert feed.status_code == 200 and f'"{proxy.url}/feeds/{secret}.atom"' in feed.text
        assert re.search(f'"{proxy.url}/hub"', feed.text)
    assert secret not in proxy.logs()


def test_proxy_replaces_request_id_of_client(service: Served, proxy: Proxy) -> None:
    with proxy.client(service.token) as client:
        answer = client.get("/v1/subscriptions", headers={"X-Request-ID": "made-up"})
    assert answer.status_code == 200
    assert re.fullmatch("[0-9a-f-]{32,36}", answer.headers["x-request-id"])


def test_proxy_without_service_answers_502_and_logs_no_secret(proxy_without_service: Proxy) -> None:
    with proxy_without_service.client() as reader:
        for path in ("feeds", "opml", "websub"):
            assert reader.get(f"/{path}/geheim").status_code == 502
    assert "geheim" not in proxy_without_service.logs()


@pytest.fixture(params=PROXIES)
def proxy_without_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy in front of an address without a listener."""
    with proxied(request.param, tmp_path, f"http://127.0.0.1:{free_port()}", free_port()) as proxy:
        yield proxy
