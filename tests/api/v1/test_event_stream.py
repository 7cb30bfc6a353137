"""Server-sent events: resumed by cursor, for many clients at once, until the server shuts down or the token is
revoked.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine

from tests.support.servers.notification_server import (
    Event,
    Place,
    bearing,
    client_of,
    events_of,
    numbers,
    place_at,
)
from tests.support.servers.postgres import Server
from tidings.api.v1.notification_fanout import LINES, PAGE_BYTES, NotificationFanout
from tidings.errors import StoreError
from tidings.service.authorization import Access
from tidings.store.store import open_store

LONG = 60.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_at(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture(scope="module")
def place(home: Place) -> Iterator[Place]:
    with home.serve():
        yield home


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def client(place: Place, name: str) -> Iterator[httpx.Client]:
    with client_of(place, place.token(name)) as opened:
        yield opened


def test_stream_sends_stored_and_new_notifications(client: httpx.Client, place: Place, name: str) -> None:
    place.notify(name, 120)
    with client.stream("GET", "/v1/notifications/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        events = events_of(response)
        assert next(events) == Event(retry=2000)
        assert numbers(events, 120) == list(range(1, 121))
        for number in range(121, 125):
            place.notify(name)
            assert numbers(events, 1) == [number]


def test_stream_resumes_after_last_event_cursor_or_acknowledgement(
    client: httpx.Client, place: Place, name: str
) -> None:
    place.notify(name, 5)
    path = "/v1/notifications/stream"
    with client.stream("GET", path, headers={"Last-Event-ID": "3"}, params={"after": 1}) as response:
        assert numbers(events_of(response), 2) == [4, 5]
    with client.stream("GET", path, params={"after": 1}) as response:
        assert numbers(events_of(response), 4) == [2, 3, 4, 5]
    client.put("/v1/notifications/ack", json={"upto": 2})
    with client.stream("GET", path) as response:
        assert numbers(events_of(response), 3) == [3, 4, 5]


def test_stream_of_one_subscription_moves_cursor_past_others(
    client: httpx.Client, place: Place, name: str
) -> None:
    place.notify(name, 1, "s-1")
    place.notify(name, 3, "s-2")
    with client.stream("GET", "/v1/notifications/stream", params={"subscription": f"s-1-{name}"}) as response:
        events = events_of(response)
        assert [next(events), next(events).id, next(events)] == [Event(retry=2000), 1, Event(id=4)]
        place.notify(name, 1, "s-2")
        assert next(events) == Event(id=5)
        place.notify(name, 1, "s-1")
        assert numbers(events, 1) == [6]


def test_idle_stream_sends_heartbeats(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.api.v1.notifications.HEARTBEAT_SECONDS", 0.02)
    with client.stream("GET", "/v1/notifications/stream") as response:
        events = events_of(response)
        assert [next(events), next(events)] == [Event(retry=2000), Event(comment="still here")]


def test_stream_ends_when_token_is_revoked(place: Place, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.api.v1.notification_fanout.TOKEN_SECONDS", 0.02)
    revoked, valid = place.access.make("lost", ["subscribe"], name), place.token(name)
    with client_of(place, revoked.secret) as first, client_of(place, valid) as second:
        with (
            first.stream("GET", "/v1/notifications/stream") as ends,
            second.stream("GET", "/v1/notifications/stream") as stays,
        ):
            events, others = events_of(ends), events_of(stays)
            place.notify(name)
            assert numbers(events, 1) == numbers(others, 1) == [1]
            place.access.revoke(revoked.token.id)
            assert [event.comment for event in events] == ["the token is no longer valid"]
            place.notify(name)
            assert numbers(others, 1) == [2]
        assert first.get("/v1/notifications/stream").status_code == 401


def test_stream_hundreds_of_clients_share_one_poller(place: Place) -> None:
    """A hundred subscribers with a stream each and one with two hundred: each client gets each notification once,
    and one poller reads the store for all of them.
    """
    names = [f"many-{number}" for number in range(100)]
    readers = [*names, *["shared"] * 200]
    tokens = {name: place.token(name) for name in {*readers}}
    fanout = place.look_out
    assert fanout is not None

    async def read_all() -> list[list[int]]:
        ready = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(read_raw(place.port, tokens[name], 3, ready)) for name in readers]
        for _ in readers:
            await ready.acquire()
        while set(tokens) - set(fanout.last):  # each subscriber was polled once
            await asyncio.sleep(0.01)
        reads_before = fanout.pages.reads
        for _ in range(3):
            await asyncio.to_thread(place.notify_all, [*names, "shared"])
        received = await asyncio.gather(*tasks)
        assert fanout.pages.reads - reads_before < len(names)
        return received

    assert asyncio.run(read_all()) == [[1, 2, 3]] * 300
    while fanout.count:
        time.sleep(0.01)


async def read_raw(port: int, secret: str, count: int, ready: asyncio.Semaphore) -> list[int]:
    """Read this many ids of a stream, with a reader that costs little."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head_of(secret))
    ids: list[int] = []
    while len(ids) < count:
        line = await reader.readline()
        if line.startswith(b"retry"):
            ready.release()
        if line.startswith(b"id: "):
            ids.append(int(line[4:]))
    writer.close()
    return ids


def head_of(secret: str) -> bytes:
    lines = ("GET /v1/notifications/stream HTTP/1.1", "Host: x", f"Authorization: Bearer {secret}", "", "")
    return "\r\n".join(lines).encode()


def test_stream_slow_client_is_bounded_and_delays_no_other(place: Place, name: str) -> None:
    """It reads nothing of twelve megabytes: the server holds one page of it in memory, and others go on."""
    place.notify(name, 25, body=LARGE)
    secret = place.token(name)
    fanout = place.look_out
    assert fanout is not None
    with slow_reader(place, secret):
        while not (followers := fanout._followers.get(name)):
            time.sleep(0.01)
        [follower] = followers
        with client_of(place, secret) as other, other.stream("GET", "/v1/notifications/stream") as response:
            assert numbers(events_of(response), 25) == list(range(1, 26))
        assert follower.cursor < 20
    while fanout.count:
        time.sleep(0.01)


LARGE = b'"' + b"x" * 490_000 + b'"'


@contextmanager
def slow_reader(place: Place, secret: str) -> Iterator[None]:
    """Open the stream and read nothing."""
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", place.port))
        slow.sendall(head_of(secret))
        yield


@pytest.mark.parametrize(("count", "length"), [(LINES + 100, 10), (30, 50_000)])
def test_fanout_reads_at_most_one_page_per_subscriber(
    home: Place, name: str, count: int, length: int
) -> None:
    """A slow client holds this page while it is being sent, like a page that it requests."""
    home.notify(name, count, body=b'{"text": "%s"}' % (b"x" * length))
    page = NotificationFanout(home.store)._read_new({name: 0}, {name: count})[name]
    assert len(page.lines) <= LINES and page.size <= PAGE_BYTES
    assert [line.sequence for line in page.lines] == [*range(1, page.cursor + 1)]


def test_stream_stalled_client_is_disconnected(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.api.v1.notifications.STALL_SECONDS", 0.1)
    place.notify(name, 25, body=LARGE)
    fanout = place.look_out
    assert fanout is not None
    with slow_reader(place, place.token(name)):
        while name not in fanout.last:
            time.sleep(0.01)
        while fanout.count:
            time.sleep(0.01)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such option")
def test_stream_stalled_connection_is_closed_by_operating_system(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TCP closes it long before the stream is given up: closing a stream waits until written data is acknowledged."""
    monkeypatch.setattr("tidings.api.server.SEND_TIMEOUT_SECONDS", 0.3)
    with place_at(tmp_path) as place, place.serve():
        place.notify(name, 25, body=LARGE)
        with slow_reader(place, place.token(name)):
            assert place.look_out is not None
            while place.look_out.count == 0:
                time.sleep(0.01)
            while place.look_out.count:
                time.sleep(0.01)


def test_stream_over_limit_answers_503(tmp_path: Path) -> None:
    with (
        place_at(tmp_path) as place,
        place.serve(most=1),
        client_of(place, place.token("ana")) as client,
        client.stream("GET", "/v1/notifications/stream") as first,
    ):
        events = events_of(first)  # keep a reference: the stream is closed when it is collected
        next(events)
        refused = client.get("/v1/notifications/stream")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert refused.json()["accepted"] == "1 at once"
        assert client.get("/v1/notifications").status_code == 200


def test_stream_resumes_without_loss_after_server_restarts(tmp_path: Path) -> None:
    """Notifications are written all the time; the client resumes with its last id, and gets each once."""
    parts, each = 4, 50
    with place_at(tmp_path) as place:
        secret, received, endings = place.token("ana"), list[int](), list[str]()
        allowed = threading.Semaphore(0)

        def write() -> None:
            for _ in range(parts * each):
                allowed.acquire()
                place.notify("ana")

        def read() -> None:
            headers = bearing(secret, **({"Last-Event-ID": str(received[-1])} if received else {}))
            address = f"{place.address}/v1/notifications/stream"
            with httpx.stream("GET", address, headers=headers, timeout=LONG, trust_env=False) as response:
                for event in events_of(response):
                    if event.id is not None:
                        received.append(event.id)
                    if event.comment:
                        endings.append(event.comment)

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
    assert endings == ["the server shuts down"] * parts


def test_stream_store_failure_of_one_client_ends_its_stream(
    client: httpx.Client, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.notify(name)

    def broken(*_: object, **__: object) -> None:
        raise StoreError("the database reports: it is gone")

    monkeypatch.setattr("tidings.api.v1.notification_fanout.read_page", broken)
    with client.stream("GET", "/v1/notifications/stream") as response:
        assert [event.comment for event in events_of(response)] == [None, "the store cannot be read now"]


def test_stream_survives_temporary_store_failure(
    client: httpx.Client,
    place: Place,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with client.stream("GET", "/v1/notifications/stream") as response:
        events = events_of(response)
        next(events)
        assert place.look_out is not None
        while name not in place.look_out.last:
            time.sleep(0.01)
        with monkeypatch.context() as broken:
            elsewhere = create_engine("sqlite:////nowhere/store.db")
            broken.setattr(place.store.database, "engine", elsewhere)
            while "retry in" not in caplog.text:
                time.sleep(0.01)
        place.notify(name)
        assert numbers(events, 1) == [1]


def test_stream_and_acknowledge_on_postgresql(postgres_server: Server) -> None:
    """The fan-out has other SQL statements there."""
    with open_store(postgres_server.empty()) as store:
        place = Place(store, Access(store))
        with place.serve(), client_of(place, place.token("ana")) as client:
            place.notify("ana", 3)
            with client.stream("GET", "/v1/notifications/stream") as response:
                events = events_of(response)
                assert numbers(events, 3) == [1, 2, 3]
                place.notify("ana")
                place.notify_all(["ana", "bo"])
                assert numbers(events, 2) == [4, 5]
            assert client.put("/v1/notifications/ack", json={"upto": 4}).json()["acknowledged"] == 4
            page = client.get("/v1/notifications").json()
            assert [event["data"]["sequence"] for event in page["notifications"]] == [5]
