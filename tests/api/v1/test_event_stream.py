"""Server-sent events: resumed by cursor, for many at once, until the server ends or the token does."""

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
from tidings.api.v1.fanout import LINES, PAGE_BYTES, NotificationFanout
from tidings.errors import StoreError
from tidings.service.authorization import Access
from tidings.store.store import open_store

LONG = 60.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_at(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def place(home: Place) -> Iterator[Place]:
    with home.serve():
        yield home


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def client(place: Place, name: str) -> Iterator[httpx.Client]:
    with client_of(place, place.token(name)) as made:
        yield made


def test_stream_sends_stored_and_new_notifications(client: httpx.Client, place: Place, name: str) -> None:
    place.tell(name, 120)
    with client.stream("GET", "/v1/notifications/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        events = events_of(response)
        assert next(events) == Event(retry=2000)
        assert numbers(events, 120) == list(range(1, 121))
        for number in range(121, 125):
            place.tell(name)
            assert numbers(events, 1) == [number]


def test_stream_resumes_after_last_event_cursor_or_acknowledgement(
    client: httpx.Client, place: Place, name: str
) -> None:
    place.tell(name, 5)
    path = "/v1/notifications/stream"
    with client.stream("GET", path, headers={"Last-Event-ID": "3"}, params={"after": 1}) as response:
        assert numbers(events_of(response), 2) == [4, 5]
    with client.stream("GET", path, params={"after": 1}) as response:
        assert numbers(events_of(response), 4) == [2, 3, 4, 5]
    client.put("/v1/notifications/ack", json={"upto": 2})
    with client.stream("GET", path) as response:
        assert numbers(events_of(response), 3) == [3, 4, 5]


def test_of_one_subscription_the_cursor_moves_all_the_same(
    client: httpx.Client, place: Place, name: str
) -> None:
    place.tell(name, 1, "s-1")
    place.tell(name, 3, "s-2")
    with client.stream("GET", "/v1/notifications/stream", params={"subscription": f"s-1-{name}"}) as response:
        events = events_of(response)
        assert [next(events), next(events).id, next(events)] == [Event(retry=2000), 1, Event(id=4)]
        place.tell(name, 1, "s-2")
        assert next(events) == Event(id=5)
        place.tell(name, 1, "s-1")
        assert numbers(events, 1) == [6]


def test_idle_stream_sends_heartbeats(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.api.v1.notifications.HEARTBEAT_SECONDS", 0.02)
    with client.stream("GET", "/v1/notifications/stream") as response:
        events = events_of(response)
        assert [next(events), next(events)] == [Event(retry=2000), Event(comment="still here")]


def test_a_token_that_is_revoked_ends_the_stream(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.api.v1.fanout.TOKEN_SECONDS", 0.02)
    lost, kept = place.access.make("lost", ["subscribe"], name), place.token(name)
    with client_of(place, lost.secret) as first, client_of(place, kept) as second:
        with (
            first.stream("GET", "/v1/notifications/stream") as ends,
            second.stream("GET", "/v1/notifications/stream") as stays,
        ):
            events, others = events_of(ends), events_of(stays)
            place.tell(name)
            assert numbers(events, 1) == numbers(others, 1) == [1]
            place.access.revoke(lost.token.id)
            assert [event.comment for event in events] == ["the token is no longer valid"]
            place.tell(name)
            assert numbers(others, 1) == [2]
        assert first.get("/v1/notifications/stream").status_code == 401


def test_hundreds_at_once_and_one_look_for_all(place: Place) -> None:
    """A hundred subscribers with a stream each and one with two hundred: everybody gets everything once, and the store
    is asked for what is new by one look, not by each of them.
    """
    names = [f"many-{number}" for number in range(100)]
    readers = [*names, *["shared"] * 200]
    tokens = {name: place.token(name) for name in {*readers}}
    look_out = place.look_out
    assert look_out is not None

    async def everybody() -> list[list[int]]:
        ready = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(read_raw(place.port, tokens[name], 3, ready)) for name in readers]
        for _ in readers:
            await ready.acquire()
        while set(tokens) - set(look_out.last):  # everybody was looked at once
            await asyncio.sleep(0.01)
        asked = look_out.pages.reads
        for _ in range(3):
            await asyncio.to_thread(place.tell_all, [*names, "shared"])
        found = await asyncio.gather(*tasks)
        assert look_out.pages.reads - asked < len(names)
        return found

    assert asyncio.run(everybody()) == [[1, 2, 3]] * 300
    while look_out.count:
        time.sleep(0.01)


async def read_raw(port: int, secret: str, count: int, ready: asyncio.Semaphore) -> list[int]:
    """So many ids of a stream, by a reader that costs little."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head_of(secret))
    found: list[int] = []
    while len(found) < count:
        line = await reader.readline()
        if line.startswith(b"retry"):
            ready.release()
        if line.startswith(b"id: "):
            found.append(int(line[4:]))
    writer.close()
    return found


def head_of(secret: str) -> bytes:
    lines = ("GET /v1/notifications/stream HTTP/1.1", "Host: x", f"Authorization: Bearer {secret}", "", "")
    return "\r\n".join(lines).encode()


def test_slow_reader_is_bounded_and_delays_no_other(place: Place, name: str) -> None:
    """It reads nothing of twelve megabytes: the server has a page of that in memory, and the others go on."""
    place.tell(name, 25, body=LARGE)
    secret = place.token(name)
    look_out = place.look_out
    assert look_out is not None
    with slow_reader(place, secret):
        while not (followers := look_out._followers.get(name)):
            time.sleep(0.01)
        [follower] = followers
        with client_of(place, secret) as other, other.stream("GET", "/v1/notifications/stream") as response:
            assert numbers(events_of(response), 25) == list(range(1, 26))
        assert follower.cursor < 20
    while look_out.count:
        time.sleep(0.01)


LARGE = b'"' + b"x" * 490_000 + b'"'


@contextmanager
def slow_reader(place: Place, secret: str) -> Iterator[None]:
    """Somebody who asks for the stream and reads nothing."""
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", place.port))
        slow.sendall(head_of(secret))
        yield


@pytest.mark.parametrize(("count", "length"), [(LINES + 100, 10), (30, 50_000)])
def test_fanout_reads_at_most_a_page_per_subscriber(home: Place, name: str, count: int, length: int) -> None:
    """A slow reader holds it while it is being sent, as it holds one that it asks for."""
    home.tell(name, count, body=b'{"text": "%s"}' % (b"x" * length))
    page = NotificationFanout(home.store)._read_new({name: 0}, {name: count})[name]
    assert len(page.lines) <= LINES and page.size <= PAGE_BYTES
    assert [line.sequence for line in page.lines] == [*range(1, page.cursor + 1)]


def test_a_reader_that_takes_nothing_is_let_go(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.api.v1.notifications.STALL_SECONDS", 0.1)
    place.tell(name, 25, body=LARGE)
    look_out = place.look_out
    assert look_out is not None
    with slow_reader(place, place.token(name)):
        while name not in look_out.last:
            time.sleep(0.01)
        while look_out.count:
            time.sleep(0.01)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such option")
def test_the_connection_of_a_reader_that_takes_nothing_ends(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system ends it, long before the stream would be let go: to close it waits until what was written is taken."""
    monkeypatch.setattr("tidings.api.server.SEND_TIMEOUT_SECONDS", 0.3)
    with place_at(tmp_path) as place, place.serve():
        place.tell(name, 25, body=LARGE)
        with slow_reader(place, place.token(name)):
            assert place.look_out is not None
            while place.look_out.count == 0:
                time.sleep(0.01)
            while place.look_out.count:
                time.sleep(0.01)


def test_too_many_are_refused(tmp_path: Path) -> None:
    with (
        place_at(tmp_path) as place,
        place.serve(most=1),
        client_of(place, place.token("ana")) as client,
        client.stream("GET", "/v1/notifications/stream") as first,
    ):
        events = events_of(first)  # held: whoever lets go of it closes the stream
        next(events)
        refused = client.get("/v1/notifications/stream")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert refused.json()["accepted"] == "1 at once"
        assert client.get("/v1/notifications").status_code == 200


def test_a_server_that_ends_and_begins_again_in_the_middle(tmp_path: Path) -> None:
    """Notifications are written all the time: the reader comes back with the last id it saw, and has each once."""
    parts, each = 4, 50
    with place_at(tmp_path) as place:
        secret, found, endings = place.token("ana"), list[int](), list[str]()
        allowed = threading.Semaphore(0)

        def write() -> None:
            for _ in range(parts * each):
                allowed.acquire()
                place.tell("ana")

        def read() -> None:
            headers = bearing(secret, **({"Last-Event-ID": str(found[-1])} if found else {}))
            address = f"{place.address}/v1/notifications/stream"
            with httpx.stream("GET", address, headers=headers, timeout=LONG, trust_env=False) as response:
                for event in events_of(response):
                    if event.id is not None:
                        found.append(event.id)
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
                while len(found) < (part + 1) * each - (each // 2 if part < parts - 1 else 0):
                    time.sleep(0.005)
            reading.join()
        writing.join()
    assert found == list(range(1, parts * each + 1))
    assert endings == ["the server shuts down"] * parts


def test_store_failure_of_a_follower_ends_its_stream(
    client: httpx.Client, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.tell(name)

    def broken(*_: object, **__: object) -> None:
        raise StoreError("the database reports: it is gone")

    monkeypatch.setattr("tidings.api.v1.fanout.read_page", broken)
    with client.stream("GET", "/v1/notifications/stream") as response:
        assert [event.comment for event in events_of(response)] == [None, "the store cannot be read now"]


def test_a_store_that_cannot_be_read_for_a_moment_ends_no_stream(
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
        place.tell(name)
        assert numbers(events, 1) == [1]


def test_on_postgresql(postgres_server: Server) -> None:
    """The statements of the look-out are others there."""
    with open_store(postgres_server.empty()) as store:
        place = Place(store, Access(store))
        with place.serve(), client_of(place, place.token("ana")) as client:
            place.tell("ana", 3)
            with client.stream("GET", "/v1/notifications/stream") as response:
                events = events_of(response)
                assert numbers(events, 3) == [1, 2, 3]
                place.tell("ana")
                place.tell_all(["ana", "bo"])
                assert numbers(events, 2) == [4, 5]
            assert client.put("/v1/notifications/ack", json={"upto": 4}).json()["acknowledged"] == 4
            page = client.get("/v1/notifications").json()
            assert [event["data"]["sequence"] for event in page["notifications"]] == [5]
