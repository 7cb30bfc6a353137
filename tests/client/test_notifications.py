"""The client reads, follows and acknowledges notifications; it is the same for both kinds of programs."""

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
from tidings.client import AsyncClient, Client, Content, NoAnswer, RetryPolicy
from tidings.errors import InputError, NotAllowed
from tidings.store.encoding import MatchRow

EAGER = RetryPolicy(attempts=50, initial_delay=0.01, max_delay=0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_at(tmp_path_factory.mktemp("home")) as made, made.serve():
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def client(place: Place, name: str) -> Iterator[Client]:
    with Client(place.address, place.token(name)) as made:
        yield made


def test_a_notification_with_everything_it_has(client: Client, place: Place, name: str) -> None:
    place.tell(name)
    place.tell(name, body="é".encode("latin-1"))
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


def test_pages_and_acknowledging(client: Client, place: Place, name: str) -> None:
    place.tell(name, 5)
    assert [one.sequence for one in client.notifications(limit=2).notifications] == [1, 2]
    assert [one.sequence for one in client.notifications(after=4, wait=1).notifications] == [5]
    standing = client.acknowledge(3)
    assert (standing.acknowledged, standing.last, standing.unread) == (3, 5, 2)
    assert client.position() == standing
    assert [one.sequence for one in client.notifications().notifications] == [4, 5]
    assert [one.sequence for one in islice(client.follow(), 2)] == [4, 5]
    assert client.notifications(subscription="s-none").notifications == ()


def test_an_administrator_names_the_subscriber(place: Place, name: str) -> None:
    place.tell(name, 2)
    with Client(place.address, place.token(None, "administer")) as administrator:
        assert administrator.acknowledge(1, name).acknowledged == 1
        assert [one.sequence for one in islice(administrator.follow(0, subscriber=name), 2)] == [1, 2]
        with pytest.raises(InputError, match="the subscriber is missing"):
            administrator.position()


def test_the_same_to_be_awaited(place: Place, name: str) -> None:
    place.tell(name, 3)

    async def use() -> list[int]:
        async with AsyncClient(place.address, place.token(name)) as client:
            page = await client.notifications(limit=1)
            await client.acknowledge(page.cursor)
            assert (await client.position()).unread == 2
            found: list[int] = []
            async for told in client.follow():
                found.append(told.sequence)
                if len(found) == 2:
                    place.tell(name)
                if len(found) == 3:
                    return found
        return []

    assert asyncio.run(use()) == [2, 3, 4]


def test_client_raises_the_error_of_the_service(client: Client, place: Place, name: str) -> None:
    with pytest.raises(InputError, match="there is no such cursor") as refused:
        client.notifications(after=7)
    assert (refused.value.received, refused.value.accepted) == ("7", "0 to 0")
    with pytest.raises(InputError, match="no such cursor"):
        next(client.follow(after=7))
    with (
        Client(place.address, "tdg_nonsense") as stranger,
        pytest.raises(NotAllowed, match="invalid token"),
    ):
        stranger.position()
    with Client(place.address, "tdg_nonsense") as stranger, pytest.raises(NotAllowed):
        next(stranger.follow(after=0))


def test_a_token_that_is_revoked_ends_following(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.api.v1.fanout.TOKEN_SECONDS", 0.02)
    lost = place.access.make("lost", ["subscribe"], name)
    place.tell(name)
    with Client(place.address, lost.secret, EAGER) as client:
        following = client.follow()
        assert next(following).sequence == 1
        place.access.revoke(lost.token.id)
        with pytest.raises(NotAllowed, match="invalid token"):
            next(following)


def test_client_without_a_server_raises_no_answer() -> None:
    policy = RetryPolicy(attempts=2, initial_delay=0.001)
    with (
        Client("http://127.0.0.1:9", "tdg_x", policy) as client,
        pytest.raises(NoAnswer, match="does not answer"),
    ):
        client.position()

    async def ask() -> None:
        async with AsyncClient("http://127.0.0.1:9", "tdg_x", policy) as client:
            await client.position()

    with pytest.raises(NoAnswer, match="tidings serve"):
        asyncio.run(ask())


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://x", "http://", "http://a:b@x", "http://x?y=1", "http://["]
)
def test_client_with_an_invalid_address_raises(url: str) -> None:
    with pytest.raises(InputError, match="not the address of a service"):
        Client(url, "tdg_x")


PARTS, EACH = 4, 40


def read(address: str, secret: str, found: list[int]) -> None:
    with Client(address, secret, EAGER) as client:
        for told in client.follow():
            found.append(told.sequence)
            if told.sequence == PARTS * EACH:
                return


def read_async(address: str, secret: str, found: list[int]) -> None:
    async def reading() -> None:
        async with AsyncClient(address, secret, EAGER) as client:
            async for told in client.follow():
                found.append(told.sequence)
                if told.sequence == PARTS * EACH:
                    return

    asyncio.run(reading())


@pytest.mark.parametrize("reader", [read, read_async])
def test_a_stream_that_is_followed_across_everything(
    tmp_path: Path, reader: Callable[[str, str, list[int]], None]
) -> None:
    """The server ends and begins again, three times, while notifications are written: each comes once, in order."""
    found: list[int] = []
    allowed = threading.Semaphore(0)
    with place_at(tmp_path) as place, ThreadPoolExecutor(2) as pool:

        def write() -> None:
            for _ in range(PARTS * EACH):
                allowed.acquire()
                place.tell("ana")

        pool.submit(write)
        with place.serve():
            port = place.port
            reading = pool.submit(reader, place.address, place.token("ana"), found)
        for part in range(PARTS):
            allowed.release(EACH)
            with place.serve(port):
                while len(found) < (part + 1) * EACH - EACH // 2 and not reading.done():
                    time.sleep(0.005)
                if part == PARTS - 1 or reading.done():
                    reading.result()
    assert found == list(range(1, PARTS * EACH + 1))
