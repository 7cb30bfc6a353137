"""Watches over HTTP, on a real server: subscribers watch objects of registered databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.objects.sources import university_in
from tests.objects.university import PUML
from tests.support.servers.http_server import served
from tidings.api import objects
from tidings.api.authentication import TrustPolicy
from tidings.objects.sql.object_store import ObjectSource
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

WATCHES = "/objects/university/watches"
MINE = {"as": "Student:3", "watches": "Course:DataStructures"}
SHOWN = {
    "subscriber": "Student:3",
    "subscriber_label": "S3",
    "class": "Course",
    "object": "Course:2",
    "label": "DataStructures",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        opened.object_sources.add(university_in(tmp_path))
        yield opened


@pytest.fixture
def client(store: Store) -> Iterator[httpx.Client]:
    with (
        served(objects.router_for(store, TrustPolicy(None))) as address,
        httpx.Client(base_url=address, trust_env=False) as opened,
    ):
        yield opened


def test_watch_and_unwatch_change_list(client: httpx.Client) -> None:
    assert client.get("/objects").json() == ["university"]
    created = client.post(WATCHES, json=MINE)
    assert (created.status_code, created.json()) == (201, SHOWN)
    assert client.post(WATCHES, json=MINE).status_code == 200
    assert client.get(WATCHES, params={"as": "Student:3"}).json() == [SHOWN]
    assert len(client.get(WATCHES).json()) == 3
    removed = client.delete(WATCHES, params={"as": "Student:3", "watches": "Course:2"})
    assert (removed.status_code, removed.json()) == (200, SHOWN)
    repeated = client.delete(WATCHES, params={"as": "Student:3", "watches": "Course:2"})
    assert (repeated.status_code, repeated.json()["error"]) == (404, "NotFound")
    whole = client.post(WATCHES, json={"as": "Student:3", "watches": "Lecturer"})
    assert whole.json()["object"] is None


REFUSED: list[tuple[str, object, int, str]] = [
    ("/objects/none/watches", MINE, 404, "no such source"),
    (WATCHES, {"as": "Student:3", "watches": "Curse:1"}, 422, "the model has no such class"),
    (WATCHES, {"as": "Student:3", "watches": "Course:Trees"}, 422, "there is no such Course"),
    (WATCHES, {"as": "Course:1", "watches": "Course"}, 422, "objects of this class cannot be notified"),
    (WATCHES, {"as": "Student:3"}, 400, "not a watch"),
    (WATCHES, {"as": "Student:3", "watches": 2}, 400, "not a watch"),
    (WATCHES, ["Student:3"], 400, "not a watch"),
    (WATCHES, {**MINE, "key": "1"}, 400, "not a watch"),
]


def test_watch_invalid_request_is_rejected(client: httpx.Client) -> None:
    for path, body, status, what in REFUSED:
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["what"]) == (status, what), body


def test_watch_malformed_or_oversized_body_is_rejected(client: httpx.Client) -> None:
    plain = client.post(WATCHES, content=b'{"as": "Student:3", "watches": "Course"}')
    assert (plain.status_code, plain.json()["where"]) == (415, "Content-Type")
    json = {"content-type": "application/json"}
    assert client.post(WATCHES, content=b"{", headers=json).status_code == 400
    assert client.post(WATCHES, content=b" " * 20_000, headers=json).status_code == 413
    assert client.delete(WATCHES, params={"as": "Student:3"}).status_code == 400


def test_unreachable_source_database_answers_503(store: Store, client: httpx.Client) -> None:
    store.object_sources.add(ObjectSource("away", PUML, "sqlite:////nowhere/none.db"))
    answer = client.get("/objects/away/watches")
    assert answer.status_code == 503 and answer.headers["Retry-After"]


def test_watches_without_token_answer_401(store: Store) -> None:
    with served(objects.router_for(store, TrustPolicy("secret", is_public=True))) as address:
        anonymous = httpx.get(f"{address}{WATCHES}", trust_env=False)
        assert (anonymous.status_code, anonymous.json()["what"]) == (
            401,
            "watching needs the token of the service",
        )
        authenticated = httpx.get(
            f"{address}/objects", headers={"Authorization": "Bearer secret"}, trust_env=False
        )
        assert authenticated.json() == ["university"]
