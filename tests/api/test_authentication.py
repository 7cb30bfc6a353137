"""Who asks over HTTP: by a token in the header or by the console's cookie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter

from tests.support.servers.http_server import served
from tidings.api.authentication import COOKIE, Authenticator, SubscribeCaller, require_owner
from tidings.api.routes import ProblemRoute
from tidings.service.authorization import Access
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
        httpx.Client(base_url=address, trust_env=False) as made,
    ):
        yield made


def things(subscriber: str, caller: SubscribeCaller) -> str:
    require_owner(caller, subscriber, "thing")
    return caller.token.name


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_who_may_and_who_may_not(client: httpx.Client, access: Access) -> None:
    ana = access.make("phone", ["subscribe"], "ana")
    shop = access.make("shop", ["publish"])
    assert client.get("/things/ana", headers=bearing(ana.secret)).json() == "phone"
    assert client.get("/things/bo", headers=bearing(ana.secret)).status_code == 404
    assert client.get("/things/ana", headers=bearing(shop.secret)).status_code == 403
    refused = client.get("/things/ana")
    assert (refused.status_code, refused.json()["error"]) == (401, "NotAllowed")
    assert refused.headers["www-authenticate"] == "Bearer"
    access.revoke(ana.token.id)
    gone = client.get("/things/ana", headers=bearing(ana.secret))
    assert (gone.status_code, gone.json()["what"]) == (401, "invalid token")
    assert refused.json()["what"] == "a token is needed"


def test_the_cookie_is_as_good(client: httpx.Client, access: Access) -> None:
    ana = access.make("phone", ["subscribe"], "ana")
    client.cookies.set(COOKIE, ana.secret)
    assert client.get("/things/ana").json() == "phone"
