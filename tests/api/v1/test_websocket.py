"""The WebSocket: cursor, messages, acknowledgements and close codes."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.servers.notification_server import Place, bearing, client_of, place_at
from tidings.api.authentication import COOKIE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_at(tmp_path_factory.mktemp("home")) as running, running.serve():
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@contextmanager
def open_socket(
    place: Place, secret: str | None, query: str = "", headers: dict[str, str] | None = None, **more: Any
) -> Iterator[ClientConnection]:
    address = place.address.replace("http", "ws", 1) + "/v1/notifications/ws" + query
    all_headers = (bearing(secret) if secret else {}) | (headers or {})
    with connect(address, additional_headers=all_headers, proxy=None, **more) as socket:
        yield socket


def numbers(socket: ClientConnection, count: int) -> list[int]:
    return [json.loads(socket.recv())["data"]["sequence"] for _ in range(count)]


def close_code(socket: ClientConnection) -> int | None:
    """Return the close code; messages before it are discarded."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            socket.recv(timeout=60)
    return closed.value.rcvd.code if closed.value.rcvd else None


def test_websocket_sends_stored_and_new_notifications(place: Place, name: str) -> None:
    place.notify(name, 60)
    secret = place.token(name)
    with open_socket(place, secret) as socket, client_of(place, secret) as client:
        page = client.get("/v1/notifications", params={"limit": 1}).json()
        assert json.loads(socket.recv()) == page["notifications"][0]
        assert numbers(socket, 59) == list(range(2, 61))
        place.notify(name, 2)
        assert numbers(socket, 2) == [61, 62]
        assert socket.ping().wait(60)
    with open_socket(place, secret, "?after=60") as socket:
        assert numbers(socket, 2) == [61, 62]


def test_websocket_acknowledgement_moves_cursor_forward_only(place: Place, name: str) -> None:
    place.notify(name, 5)
    secret = place.token(name)
    with open_socket(place, secret) as socket:
        assert numbers(socket, 5) == [1, 2, 3, 4, 5]
        socket.send('{"ack": 4}')
        socket.send('{"ack": 2}')
        while place.store.acknowledgements.cursor(name).acknowledged < 4:
            time.sleep(0.01)
    with open_socket(place, secret) as socket:
        assert numbers(socket, 1) == [5]
        socket.send('{"ack": 6}')
        assert close_code(socket) == 4400
    assert place.store.acknowledgements.cursor(name).acknowledged == 4


def test_websocket_of_one_subscription_sends_its_notifications(place: Place, name: str) -> None:
    for subscription in ("s-1", "s-2", "s-1"):
        place.notify(name, 1, subscription)
    with open_socket(place, place.token(name), f"?subscription=s-1-{name}") as socket:
        assert numbers(socket, 2) == [1, 3]


def test_websocket_accepts_token_in_first_message(place: Place, name: str) -> None:
    place.notify(name)
    with open_socket(place, None, headers={"Origin": "https://elsewhere.example"}) as socket:
        socket.send(json.dumps({"token": place.token(name)}))
        assert numbers(socket, 1) == [1]


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        ("http://{host}", True),
        ("https://elsewhere.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_websocket_accepts_cookie_from_same_origin_only(
    place: Place, name: str, origin: str, is_own: bool
) -> None:
    place.notify(name)
    cookie = {"Cookie": f"{COOKIE}={place.token(name)}"}
    if origin:
        cookie["Origin"] = origin.format(host=place.address.removeprefix("http://"))
    with open_socket(place, None, headers=cookie) as socket:
        if is_own:
            assert numbers(socket, 1) == [1]
        else:
            assert close_code(socket) == 4403


def test_websocket_invalid_token_or_parameter_closes_it(place: Place, name: str) -> None:
    own, shop = place.token(name), place.token(None, "publish")
    place.notify(f"not {name}")
    for secret, query, code in (
        ("tdg_nonsense", "", 4401),
        (shop, "", 4403),
        (own, f"?subscriber=not%20{name}", 4403),
        (own, "?subscriber=nobody", 4403),
        (own, "?after=1", 4400),
        (own, "?after=-1", 4400),
        (own, "?after=x", 4400),
        (own, "?aftr=1", 4400),
        (own, "?after=0&after=0", 4400),
        (own, "?subscriber=%ff", 4400),
    ):
        with open_socket(place, secret, query) as socket:
            assert close_code(socket) == code, (secret, query)
    with open_socket(place, place.token(None, "administer"), f"?subscriber=not%20{name}") as socket:
        assert numbers(socket, 1) == [1]


@pytest.mark.parametrize(
    "message",
    [
        "no JSON",
        "[]",
        '{"ack": -1}',
        '{"ack": true}',
        '{"ack": "0"}',
        '{"ack": 0, "ack": 0}',
        '{"ack": 0, "x": 1}',
        "x" * 5000,
        b"\x00",
        "[" * 3000,
    ],
)
def test_websocket_invalid_message_closes_it(place: Place, message: str | bytes) -> None:
    with open_socket(place, place.token("ana")) as socket:
        socket.send(message)
        assert close_code(socket) == 4400


def test_websocket_oversized_message_closes_it(place: Place) -> None:
    with open_socket(place, place.token("ana")) as socket:
        socket.send("x" * 100_000)
        assert close_code(socket) == 1009


def test_websocket_without_valid_token_is_closed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as soon:
        soon.setattr("tidings.api.v1.websocket.FIRST_SECONDS", 0.05)
        with open_socket(place, None) as socket:
            assert close_code(socket) == 4401
    for first, code in (('{"token": "tdg_x"}', 4401), ('{"ack": 1}', 4400)):
        with open_socket(place, None) as socket:
            socket.send(first)
            assert close_code(socket) == code


def test_websocket_is_closed_when_token_is_revoked(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.api.v1.notification_fanout.TOKEN_SECONDS", 0.02)
    revoked = place.access.make("lost", ["subscribe"], name)
    with open_socket(place, revoked.secret) as socket:
        place.notify(name)
        assert numbers(socket, 1) == [1]
        place.access.revoke(revoked.token.id)
        assert close_code(socket) == 4401


def test_websocket_over_limit_is_closed(tmp_path: Path) -> None:
    with place_at(tmp_path) as place, place.serve(most=1):
        secret = place.token("ana")
        place.notify("ana")
        with open_socket(place, secret) as first:
            assert numbers(first, 1) == [1]
            with open_socket(place, secret) as second:
                assert close_code(second) == 1013


def test_websocket_slow_client_delays_no_other(place: Place, name: str) -> None:
    place.notify(name, 25, body=b'"' + b"x" * 490_000 + b'"')
    secret = place.token(name)
    with open_socket(place, secret, max_queue=1) as slow, open_socket(place, secret) as other:
        assert numbers(other, 25) == list(range(1, 26))
        assert numbers(slow, 25) == list(range(1, 26))


def test_websocket_reset_by_client_logs_nothing(
    place: Place, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client resets the connection in the middle of a page: the rest of the page is not sent."""
    place.notify(name, 50, body=b'"' + b"x" * 10_000 + b'"')
    secret = place.token(name)
    for _ in range(5):
        with open_socket(place, secret, max_queue=1) as socket:
            socket.recv()
            socket.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            socket.socket.close()
    assert place.look_out is not None
    while place.look_out.count:
        time.sleep(0.01)
    assert [one for one in caplog.records if one.name == "asyncio"] == []


def test_websocket_resumes_without_loss_after_server_restarts(tmp_path: Path) -> None:
    parts, each = 3, 40
    with place_at(tmp_path) as place:
        secret, received = place.token("ana"), list[int]()
        codes: list[int | None] = []
        allowed = threading.Semaphore(0)

        def write() -> None:
            for _ in range(parts * each):
                allowed.acquire()
                place.notify("ana")

        def read() -> None:
            with open_socket(place, secret, f"?after={received[-1] if received else 0}") as socket:
                try:
                    while True:
                        received.extend(numbers(socket, 1))
                except ConnectionClosed as closed:
                    codes.append(closed.rcvd.code if closed.rcvd else None)

        writing = threading.Thread(target=write)
        writing.start()
        port = 0
        for part in range(parts):
            with place.serve(port):
                port = place.port
                reading = threading.Thread(target=read)
                reading.start()
                allowed.release(each)
                while len(received) < (part + 1) * each - (each // 2 if part < parts - 1 else 0):
                    time.sleep(0.005)
            reading.join()
        writing.join()
    assert received == list(range(1, parts * each + 1))
    assert set(codes) <= {1001, 1012}
