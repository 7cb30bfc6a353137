"""A provider over HTTP, on a real server: documents, the schema, rules and the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi import Request

from tests.support.servers.provider_server import (
    DOC,
    HOST,
    LARGE,
    RDF_XML,
    SCHEMA,
    SMALL,
    TURTLE,
    provided,
    register,
    with_schema,
)
from tidings.api.metadata import provider_routes
from tidings.api.problem_details import HttpError
from tidings.api.request_body import read_body
from tidings.metadata.log import Operation, page_from_json
from tidings.metadata.provider.provider import Provider
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

MINE = "/metadata/repositories/passau"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def empty(store: Store) -> Iterator[httpx.Client]:
    with provided(store) as client:
        yield client


@pytest.fixture
def client(empty: httpx.Client) -> httpx.Client:
    return with_schema(empty)


def put_rules(client: httpx.Client, **texts: str) -> httpx.Response:
    return client.put(f"{MINE}/rules", json=texts)


def test_document_register_change_and_delete_report_changes_and_moves(client: httpx.Client) -> None:
    put_rules(client, large=LARGE)
    move = {"rule": "passau/large", "uri": f"{DOC}#host"}
    counts = {"new": 0, "changed": 0, "deleted": 0, "unchanged": 0}
    assert register(client).json() == {
        "uri": DOC,
        "position": 2,
        "changes": counts | {"new": 2},
        "moves": [move | {"kind": "entered"}],
    }
    assert register(client, file=SMALL).json() == {
        "uri": DOC,
        "position": 3,
        "changes": counts | {"changed": 1, "unchanged": 1},
        "moves": [move | {"kind": "left"}],
    }
    assert client.get("/metadata/documents").json() == [{"uri": DOC, "resources": 2}]
    removal = client.delete("/metadata/documents", params={"uri": DOC}).json()
    assert removal == {"uri": DOC, "position": 4, "changes": counts | {"deleted": 2}, "moves": []}
    repeated = client.delete("/metadata/documents", params={"uri": DOC})
    assert (repeated.status_code, repeated.json()["error"]) == (404, "NotFound")
    assert client.get("/metadata/status").json()["head"] == 4
    assert client.get("/metadata/documents").json() == []


def test_metadata_schema_is_returned_as_loaded(client: httpx.Client) -> None:
    answer = client.get("/metadata/schema")
    assert answer.content == SCHEMA.read_bytes()
    assert answer.headers["content-type"].startswith("text/turtle")


def test_metadata_status_counts_documents_resources_and_rules(client: httpx.Client, store: Store) -> None:
    register(client)
    put_rules(client, large=LARGE)
    status = client.get("/metadata/status").json()
    assert status == {
        "provider": Provider(store).id,
        "position": 2,
        "head": 2,
        "first": 1,
        "leader": None,
        "lag": 0,
        "problem": None,
        "documents": 1,
        "resources": 2,
        "rules": 1,
    }


def test_rules_of_two_repositories_may_share_names(client: httpx.Client) -> None:
    other = "/metadata/repositories/munich"
    put_rules(client, mine=LARGE)
    client.put(f"{other}/rules", json={"mine": "search ServerInformation s register s"})
    register(client)
    assert client.get(f"{MINE}/state").json()["members"] == {"mine": [f"{DOC}#host"]}
    assert client.get(f"{other}/state").json()["members"] == {"mine": [f"{DOC}#info"]}
    assert client.get(f"{other}/rules").json() == {"mine": "search ServerInformation s register s"}


def test_put_rules_removes_missing_rules(client: httpx.Client) -> None:
    register(client)
    put_rules(client, large=LARGE, all="search CycleProvider c register c")
    put_rules(client, all="search CycleProvider c register c")
    assert client.get(f"{MINE}/state").json()["members"] == {"all": [f"{DOC}#host"]}


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "message"),
    [
        ("GET", f"{MINE}/changes?after=-1", {}, 400, "after"),
        ("GET", f"{MINE}/changes?after=x", {}, 400, "after"),
        ("GET", f"{MINE}/changes?after={2**63}", {}, 400, "after"),
        ("GET", f"{MINE}/changes?limit=0", {}, 400, "limit"),
        ("GET", f"{MINE}/changes?limit=10001", {}, 400, "limit"),
        ("GET", f"{MINE}/changes?wait=31", {}, 400, "wait"),
        ("GET", f"{MINE}/changes?wait=nan", {}, 400, "wait"),
        ("GET", f"{MINE}/changes?after=7", {}, 410, "no such sequence number yet"),
        ("GET", "/metadata/repositories/a b/state", {}, 422, "not a name of a repository"),
        ("DELETE", "/metadata/repositories/nobody", {}, 404, "no such repository"),
        ("PUT", f"{MINE}/rules", {"content": b"{"}, 400, "not JSON"),
        ("PUT", f"{MINE}/rules", {"content": b"\xff"}, 400, "not JSON"),
        ("PUT", f"{MINE}/rules", {"content": b"[" * 100_000}, 400, "not JSON"),
        ("PUT", f"{MINE}/rules", {"json": ["search"]}, 400, "not rules"),
        ("PUT", f"{MINE}/rules", {"json": {"a": 1}}, 400, "not rules"),
        ("PUT", f"{MINE}/rules", {"json": {"a": "search Nothing n register n"}}, 422, "Nothing"),
        ("PUT", f"{MINE}/rules", {"json": {"CycleProvider": LARGE}}, 422, "class"),
        ("PUT", "/metadata/documents", {"content": b"", "headers": RDF_XML}, 400, "uri"),
        ("PUT", "/metadata/documents?uri=", {"content": b"", "headers": RDF_XML}, 400, "uri"),
        ("PUT", "/metadata/documents?uri=doc.rdf", {"content": b"", "headers": RDF_XML}, 422, "absolute"),
        ("PUT", f"/metadata/documents?uri={DOC}", {"content": b"<", "headers": RDF_XML}, 422, "well-formed"),
        ("PUT", f"/metadata/documents?uri={DOC}", {"content": b"hello"}, 415, "text/turtle"),
        ("DELETE", "/metadata/documents", {}, 400, "uri"),
        ("DELETE", "/metadata/documents?uri=doc.rdf", {}, 422, "absolute"),
        ("PUT", "/metadata/schema", {"content": b"<a> <b> <c> .", "headers": TURTLE}, 422, "relative"),
        ("PUT", "/metadata/schema", {"json": {}}, 415, "text/turtle"),
    ],
)
def test_metadata_errors_are_problem_details(
    client: httpx.Client, method: str, path: str, more: dict, status: int, message: str
) -> None:
    answer = client.request(method, path, **more)
    assert answer.status_code == status, answer.text
    assert message in answer.json()["message"] and answer.json()["error"]
    assert client.get("/metadata/status").json()["position"] == 1


def test_metadata_body_over_limit_is_rejected(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_routes, "MAX_DOCUMENT_BYTES", 100)
    assert register(client).status_code == 413


def test_read_body_incomplete_is_rejected() -> None:
    """A client error, not a server failure, which would be logged with a traceback."""
    parts = iter(({"type": "http.request", "body": b"@pre", "more_body": True}, {"type": "http.disconnect"}))

    async def receive() -> dict:
        return next(parts)

    with pytest.raises(HttpError, match="the body is incomplete") as refused:
        asyncio.run(read_body(Request({"type": "http", "headers": []}, receive), 100))
    assert refused.value.status == 400


def test_metadata_without_schema_rejects_documents_and_rules(empty: httpx.Client) -> None:
    assert empty.get("/metadata/schema").status_code == 404
    assert register(empty).status_code == 409
    assert put_rules(empty, large=LARGE).status_code == 409
    assert empty.get(f"{MINE}/state").json()["members"] == {}


def test_metadata_without_token_answers_401(store: Store) -> None:
    with provided(store, token="secret") as client:
        assert client.get("/metadata/status").status_code == 401
        assert client.get("/metadata/status", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_metadata_foreign_host_header_answers_401(client: httpx.Client) -> None:
    """DNS rebinding: a browser sends requests to this machine under the name of another site."""
    assert client.get("/metadata/status", headers={"Host": "evil.example"}).status_code == 401


def test_metadata_log_is_paginated(client: httpx.Client, store: Store) -> None:
    register(client)
    client.delete("/metadata/documents", params={"uri": DOC})
    page = page_from_json(client.get("/metadata/log", params={"limit": 2}).json())
    assert (page.provider, page.first, page.head) == (Provider(store).id, 1, 3)
    assert list(page.entries) == store.metadata.log.read(0, 2)
    rest = page_from_json(client.get("/metadata/log", params={"after": 2}).json())
    assert [(each.position, each.what, each.uri, each.body) for each in rest.entries] == [
        (3, Operation.REMOVE, DOC, b"")
    ]
    assert client.get("/metadata/log?after=3").json()["entries"] == []


def test_replication_page_is_bounded_by_bytes(client: httpx.Client, store: Store) -> None:
    for _ in range(3):
        register(client)
    size = len(HOST.read_bytes())
    assert [each.position for each in store.replication.page(1, 10, 2 * size).entries] == [2, 3]
    assert [each.position for each in store.replication.page(1, 10, 1).entries] == [2]


def test_metadata_log_trimmed_cursor_answers_410(client: httpx.Client, store: Store) -> None:
    register(client)
    store.metadata.log.trim(1)
    answer = client.get("/metadata/log")
    assert answer.status_code == 410 and answer.json()["hint"] == "start with a snapshot"
    assert client.get("/metadata/log?after=1").json()["first"] == 2


def test_metadata_log_wait_returns_new_entry(client: httpx.Client) -> None:
    with ThreadPoolExecutor() as pool:
        response = pool.submit(client.get, "/metadata/log", params={"after": 1, "wait": 30})
        register(client)
        assert [each["position"] for each in response.result().json()["entries"]] == [2]


@pytest.mark.parametrize("query", ["after=-1", "limit=0", "limit=1001", "wait=31", "wait=inf"])
def test_metadata_log_with_invalid_parameters_answers_400(client: httpx.Client, query: str) -> None:
    assert client.get(f"/metadata/log?{query}").status_code == 400
