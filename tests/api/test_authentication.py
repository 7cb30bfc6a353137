"""Authentication and CSRF protection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter, WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.support.servers.http_server import served
from tidings.api.authentication import (
    COOKIE,
    Authenticator,
    SubscribeCaller,
    get_authenticator,
    require_owner,
)
from tidings.api.problem_details import HttpError
from tidings.api.routes import ProblemRoute
from tidings.service.authorization import Access, Scope
from tidings.store.database import sqlite_url
from tidings.store.store import open_store


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    with open_store(sqlite_url(tmp_path / "store.db")) as store:
        yield Access(store)


@pytest.fixture
def client(access: Access) -> Iterator[httpx.Client]:
    router = APIRouter(route_class=ProblemRoute)
    router.add_api_route("/things/{subscriber}", things)
    with (
        served(router, asking=Authenticator(access)) as address,
        httpx.Client(base_url=address, trust_env=False) as opened,
    ):
        yield opened


def things(subscriber: str, caller: SubscribeCaller) -> str:
    require_owner(caller, subscriber, "thing")
    return caller.token.name


def bearer_header(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_authentication_checks_token_scope_and_owner(client: httpx.Client, access: Access) -> None:
    ana = access.make("phone", ["subscribe"], "ana")
    shop = access.make("shop", ["publish"])
    assert client.get("/things/ana", headers=bearer_header(ana.secret)).json() == "phone"
    assert client.get("/things/bo", headers=bearer_header(ana.secret)).status_code == 404
    assert client.get("/things/ana", headers=bearer_header(shop.secret)).status_code == 403
    refused = client.get("/things/ana")
    assert (refused.status_code, refused.json()["error"]) == (401, "NotAllowed")
    assert refused.headers["www-authenticate"] == "Bearer"
    access.revoke(ana.token.id)
    revoked = client.get("/things/ana", headers=bearer_header(ana.secret))
    assert (revoked.status_code, revoked.json()["what"]) == (401, "invalid token")
    assert refused.json()["what"] == "a token is needed"


def test_authentication_accepts_session_cookie(client: httpx.Client, access: Access) -> None:
    ana = access.make("phone", ["subscribe"], "ana")
    client.cookies.set(COOKIE, ana.secret)
    assert client.get("/things/ana").json() == "phone"


FOREIGN = (
    {},
    {"Origin": "https://elsewhere.example"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "null"},
    {"Origin": "http://["},
)


@pytest.fixture(scope="module")
def address_and_secret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
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
def test_cookie_changes_state_from_same_origin_only(address_and_secret: tuple[str, str], method: str) -> None:
    address, secret = address_and_secret
    with httpx.Client(base_url=address, cookies={COOKIE: secret}) as client:
        for foreign in FOREIGN:
            answer = client.request(method, "/v1/things", headers=foreign)
            assert (answer.status_code, answer.json()["error"]) == (403, "NotAllowed")
            with_token = foreign | {"Authorization": f"Bearer {secret}"}
            assert client.request(method, "/v1/things", headers=with_token).json() == "ana"
            assert client.get("/v1/things", headers=foreign).json() == "ana"
        for own in ({"Origin": address}, {"Sec-Fetch-Site": "same-origin"}):
            assert client.request(method, "/v1/things", headers=own).json() == "ana"


def test_websocket_with_cookie_requires_same_origin(address_and_secret: tuple[str, str]) -> None:
    address, secret = address_and_secret
    url = address.replace("http", "ws") + "/v1/socket"
    cookie = {"Cookie": f"{COOKIE}={secret}"}
    for foreign in FOREIGN:
        with (
            pytest.raises((InvalidStatus, ConnectionClosed)),
            connect(url, additional_headers=cookie | foreign) as foreign_socket,
        ):
            foreign_socket.recv()
    with connect(url, additional_headers=cookie | {"Origin": address}) as own_socket:
        assert own_socket.recv() == "ana"
