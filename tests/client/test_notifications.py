"""Reading, following and acknowledging notifications with both clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from tests.support.servers.notification_server import BECAUSE, Place, place_at
from tidings.client import AsyncClient, Client, Content, NoResponse, RetryPolicy
from tidings.errors import InputError, NotAllowed
from tidings.store.encoding import MatchRow

EAGER = RetryPolicy(attempts=50, initial_delay=0.01, max_delay=0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_at(tmp_path_factory.mktemp("home")) as opened, opened.serve():
        yield opened


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def client(place: Place, name: str) -> Iterator[Client]:
    with Client(place.address, place.token(name)) as opened:
        yield opened


def test_notifications_have_all_attributes(client: Client, place: Place, name: str) -> None:
    place.notify(name)
    place.notify(name, body="é".encode("latin-1"))
    bindings = {"object": "Script:2"}
    place.store.notifications.commit_batch(
        name, 0, [MatchRow("Script2", "my école", name, kind="updated", bindings=bindings)]
    )
    page = client.notifications()
    first, second, third = page.notifications
    assert (page.cursor, page.last, page.acknowledged) == (3, 3, 0)
    assert (first.sequence, first.kind, first.because) == (1, "matched", BECAUSE)
    assert first.content == Content(first.publication, "application/json", {"price": 180})
    assert second.content is not None and second.content.body == b"\xe9"
    assert (third.subscription, third.kind, third.bindings, third.content) == (
        "my école",
        "updated",
        bindings,
        None,
    )
    assert [one.id for one in place.store.notifications.read(name)] == [one.id for one in page.notifications]


def test_notifications_are_paginated_and_acknowledged(client: Client, place: Place, name: str) -> None:
    place.notify(name, 5)
    assert [one.sequence for one in client.notifications(limit=2).notifications] == [1, 2]
    assert [one.sequence for one in client.notifications(after=4, wait=1).notifications] == [5]
    position = client.acknowledge(3)
    assert (position.acknowledged, position.last, position.unread) == (3, 5, 2)
    assert client.position() == position
    assert [one.sequence for one in client.notifications().notifications] == [4, 5]
    assert [one.sequence for one in islice(client.follow(), 2)] == [4, 5]
    assert client.notifications(subscription="s-none").notifications == ()


def test_notifications_administrator_must_name_subscriber(place: Place, name: str) -> None:
    place.notify(name, 2)
    with Client(place.address, place.token(None, "administer")) as administrator:
        assert administrator.acknowledge(1, name).acknowledged == 1
        assert [one.sequence for one in islice(administrator.follow(0, subscriber=name), 2)] == [1, 2]
        with pytest.raises(InputError, match="the subscriber is missing"):
            administrator.position()


def test_async_client_reads_follows_and_acknowledges(place: Place, name: str) -> None:
    place.notify(name, 3)

    async def use() -> list[int]:
        async with AsyncClient(place.address, place.token(name)) as client:
            page = await client.notifications(limit=1)
            await client.acknowledge(page.cursor)
            assert (await client.position()).unread == 2
            received: list[int] = []
            async for notification in client.follow():
                received.append(notification.sequence)
                if len(received) == 2:
                    place.notify(name)
                if len(received) == 3:
                    return received
        return []

    assert asyncio.run(use()) == [2, 3, 4]


def test_notifications_errors_of_service_are_raised(client: Client, place: Place, name: str) -> None:
    with pytest.raises(InputError, match="there is no such cursor") as refused:
        client.notifications(after=7)
    assert (refused.value.received, refused.value.accepted) == ("7", "0 to 0")
    with pytest.raises(InputError, match="no such cursor"):
        next(client.follow(after=7))
    with (
        Client(place.address, "tdg_nonsense") as unauthorized,
        pytest.raises(NotAllowed, match="invalid token"),
    ):
        unauthorized.position()
    with Client(place.address, "tdg_nonsense") as unauthorized, pytest.raises(NotAllowed):
        next(unauthorized.follow(after=0))


def test_follow_with_revoked_token_raises_not_allowed(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.api.v1.notification_fanout.TOKEN_SECONDS", 0.02)
    revoked = place.access.make("lost", ["subscribe"], name)
    place.notify(name)
    with Client(place.address, revoked.secret, EAGER) as client:
        notifications = client.follow()
        assert next(notifications).sequence == 1
        place.access.revoke(revoked.token.id)
        with pytest.raises(NotAllowed, match="invalid token"):
            next(notifications)


def test_client_without_server_raises_no_answer() -> None:
    policy = RetryPolicy(attempts=2, initial_delay=0.001)
    with (
        Client("http://127.0.0.1:9", "tdg_x", policy) as client,
        pytest.raises(NoResponse, match="does not answer"),
    ):
        client.position()

    async def ask() -> None:
        async with AsyncClient("http://127.0.0.1:9", "tdg_x", policy) as client:
            await client.position()

    with pytest.raises(NoResponse, match="tidings serve"):
        asyncio.run(ask())


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://x", "http://", "http://a:b@x", "http://x?y=1", "http://["]
)
def test_client_with_invalid_address_raises_input_error(url: str) -> None:
    with pytest.raises(InputError, match="not the address of a service"):
        Client(url, "tdg_x")


PARTS, EACH = 4, 40


def read(address: str, secret: str, received: list[int]) -> None:
    with Client(address, secret, EAGER) as client:
        for notification in client.follow():
            received.append(notification.sequence)
            if notification.sequence == PARTS * EACH:
                return


def read_async(address: str, secret: str, received: list[int]) -> None:
    async def follow() -> None:
        async with AsyncClient(address, secret, EAGER) as client:
            async for notification in client.follow():
                received.append(notification.sequence)
                if notification.sequence == PARTS * EACH:
                    return

    asyncio.run(follow())


@pytest.mark.parametrize("reader", [read, read_async])
def test_follow_across_server_restarts_receives_each_notification_once(
    tmp_path: Path, reader: Callable[[str, str, list[int]], None]
) -> None:
    """The server restarts three times while notifications are written; each is received once, in order."""
    received: list[int] = []
    allowed = threading.Semaphore(0)
    with place_at(tmp_path) as place, ThreadPoolExecutor(2) as pool:

        def write() -> None:
            for _ in range(PARTS * EACH):
                allowed.acquire()
                place.notify("ana")

        pool.submit(write)
        with place.serve():
            port = place.port
            reading = pool.submit(reader, place.address, place.token("ana"), received)
        for part in range(PARTS):
            allowed.release(EACH)
            with place.serve(port):
                while len(received) < (part + 1) * EACH - EACH // 2 and not reading.done():
                    time.sleep(0.005)
                if part == PARTS - 1 or reading.done():
                    reading.result()
    assert received == list(range(1, PARTS * EACH + 1))
