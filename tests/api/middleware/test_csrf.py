"""A cookie counts for what a page of this service sent, on every route that asks who asks; a token counts always."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter, WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.support.servers.http_server import served
from tidings.api.authentication import COOKIE, Authenticator, SubscribeCaller, get_authenticator
from tidings.api.http_error import HttpError
from tidings.api.routes import ProblemRoute
from tidings.service.authorization import Access, Scope
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

FOREIGN = (
    {},
    {"Origin": "https://elsewhere.example"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "null"},
    {"Origin": "http://["},
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service with one route of each kind, and a token."""
    router = APIRouter(route_class=ProblemRoute)

    @router.api_route("/v1/things", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    def things(caller: SubscribeCaller) -> str | None:
        return caller.subscriber

    @router.websocket("/v1/socket")
    async def socket(socket: WebSocket) -> None:
        try:
            caller = await get_authenticator(socket).allowed(socket, Scope.SUBSCRIBE)
        except HttpError:
            await socket.close()
            return
        await socket.accept()
        await socket.send_text(str(caller.subscriber))

    folder: Path = tmp_path_factory.mktemp("store")
    with open_store(sqlite_url(folder / "s.db")) as store:
        access = Access(store)
        secret = access.make("phone", [Scope.SUBSCRIBE], "ana").secret
        with served(router, asking=Authenticator(access)) as address:
            yield address, secret


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_cookie_changes_what_its_own_pages_ask_for(place: tuple[str, str], method: str) -> None:
    address, secret = place
    with httpx.Client(base_url=address, cookies={COOKIE: secret}) as client:
        for foreign in FOREIGN:
            answer = client.request(method, "/v1/things", headers=foreign)
            assert (answer.status_code, answer.json()["error"]) == (403, "NotAllowed")
            with_token = foreign | {"Authorization": f"Bearer {secret}"}
            assert client.request(method, "/v1/things", headers=with_token).json() == "ana"
            assert client.get("/v1/things", headers=foreign).json() == "ana"
        for own in ({"Origin": address}, {"Sec-Fetch-Site": "same-origin"}):
            assert client.request(method, "/v1/things", headers=own).json() == "ana"


def test_a_socket_is_heard_by_whoever_opens_it(place: tuple[str, str]) -> None:
    address, secret = place
    url = address.replace("http", "ws") + "/v1/socket"
    cookie = {"Cookie": f"{COOKIE}={secret}"}
    for foreign in FOREIGN:
        with (
            pytest.raises((InvalidStatus, ConnectionClosed)),
            connect(url, additional_headers=cookie | foreign) as one,
        ):
            one.recv()
    with connect(url, additional_headers=cookie | {"Origin": address}) as own:
        assert own.recv() == "ana"
