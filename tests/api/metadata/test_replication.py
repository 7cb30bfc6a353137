"""Endpoints that repositories read from a provider, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.servers.provider_server import DOC, HOST, LARGE, SMALL, provided, register, with_schema
from tidings.metadata.change_sets import changes_from_json, state_from_json
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql.repository_feeds import MAX_APPLIED_NOTIFICATIONS
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

MINE = "/metadata/repositories/passau"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def client(store: Store) -> Iterator[httpx.Client]:
    with provided(store) as client:
        yield with_schema(client)


def put_rules(client: httpx.Client, **texts: str) -> httpx.Response:
    return client.put(f"{MINE}/rules", json=texts)


def test_changes_include_affected_resources(client: httpx.Client, store: Store) -> None:
    initial = put_rules(client, large=LARGE).json()
    assert initial == {"provider": Provider(store).id, "position": 1, "schema": 1, "sequence": 0}
    register(client)
    changes = changes_from_json(client.get(f"{MINE}/changes").json())
    assert (changes.provider, changes.position, changes.sequence, changes.more) == (
        initial["provider"],
        2,
        1,
        False,
    )
    assert [(m.sequence, m.rule, m.uri, m.kind) for m in changes.moves] == [
        (1, "large", f"{DOC}#host", "entered")
    ]
    assert [resource.uri for resource in changes.resources] == [f"{DOC}#host", f"{DOC}#info"]
    register(client, file=SMALL)
    changes = changes_from_json(client.get(f"{MINE}/changes", params={"after": 1}).json())
    assert [(m.kind, m.uri) for m in changes.moves] == [("left", f"{DOC}#host")] and changes.resources == ()


def test_changes_applied_by_repository_are_deleted(client: httpx.Client, store: Store) -> None:
    put_rules(client, all="search ServerInformation s register s")
    many = " ".join(
        f"<#{n}> a <http://example.org/servers#ServerInformation> ."
        for n in range(MAX_APPLIED_NOTIFICATIONS + 1)
    )
    client.put(
        "/metadata/documents", params={"uri": DOC}, content=many, headers={"Content-Type": "text/turtle"}
    )
    assert len(client.get(f"{MINE}/changes").json()["moves"]) == MAX_APPLIED_NOTIFICATIONS + 1
    for after, stored in (
        (0, MAX_APPLIED_NOTIFICATIONS + 1),
        (MAX_APPLIED_NOTIFICATIONS, MAX_APPLIED_NOTIFICATIONS + 1),
        (MAX_APPLIED_NOTIFICATIONS + 1, 0),
    ):
        assert client.get(f"{MINE}/changes", params={"after": after}).status_code == 200
        assert len(store.notifications.read("passau")) == stored
    assert client.get(f"{MINE}/changes", params={"after": MAX_APPLIED_NOTIFICATIONS}).status_code == 410
    register(client)
    changes = client.get(f"{MINE}/changes", params={"after": MAX_APPLIED_NOTIFICATIONS + 1}).json()
    assert changes["moves"][0]["sequence"] == MAX_APPLIED_NOTIFICATIONS + 2


def test_state_lists_members_and_resources_of_all_rules(client: httpx.Client) -> None:
    register(client)
    put_rules(client, large=LARGE, none="search ServerInformation s register s where s.memory > 1000")
    state = state_from_json(client.get(f"{MINE}/state").json())
    assert state.members == {"large": (f"{DOC}#host",), "none": ()}
    assert [resource.uri for resource in state.resources] == [f"{DOC}#host", f"{DOC}#info"]
    assert (state.position, state.sequence) == (2, 1)
    assert changes_from_json(client.get(f"{MINE}/changes", params={"after": 1}).json()).moves == ()


def test_changes_of_one_registration_stay_in_one_page(client: httpx.Client) -> None:
    put_rules(client, one="search CycleProvider c register c", two="search ServerInformation s register s")
    register(client)
    register(client, uri="http://example.org/other.rdf")
    changes = client.get(f"{MINE}/changes", params={"limit": 3}).json()
    assert (len(changes["moves"]), changes["sequence"], changes["more"]) == (2, 2, True)
    changes = client.get(f"{MINE}/changes", params={"limit": 3, "after": 2}).json()
    assert (len(changes["moves"]), changes["sequence"], changes["more"]) == (2, 4, False)
    alone = client.get(f"{MINE}/changes", params={"limit": 1}).json()
    assert (len(alone["moves"]), alone["more"]) == (1, True)


def test_changes_wait_returns_moves_of_another_process(client: httpx.Client, store: Store) -> None:
    """Also for changes that another process writes to the store."""
    put_rules(client, large=LARGE)
    with ThreadPoolExecutor() as pool:
        responses = [pool.submit(client.get, f"{MINE}/changes", params={"wait": 30}) for _ in range(3)]
        with open_store(store.database.engine.url.render_as_string(hide_password=False)) as another:
            Provider(another).register(DOC, HOST.read_bytes(), "application/rdf+xml")
        assert [len(each.result().json()["moves"]) for each in responses] == [1, 1, 1]


def test_changes_wait_returns_moves_of_new_rule(client: httpx.Client, store: Store) -> None:
    register(client)
    put_rules(client, none="search ServerInformation s register s where s.memory > 1000")
    with ThreadPoolExecutor() as pool:
        response = pool.submit(client.get, f"{MINE}/changes", params={"wait": 30})
        with open_store(store.database.engine.url.render_as_string(hide_password=False)) as another:
            Provider(another).set_rules({"large": LARGE}, "passau", "passau/")
        assert [move["rule"] for move in response.result().json()["moves"]] == ["large"]


def test_long_poll_is_answered_on_shutdown(store: Store) -> None:
    with ThreadPoolExecutor() as pool:
        with provided(store) as client:
            with_schema(client)
            put_rules(client, large=LARGE)
            response = pool.submit(
                httpx.get, f"{client.base_url}{MINE}/changes", params={"wait": 30}, timeout=60
            )
            with pytest.raises(TimeoutError):
                response.result(timeout=0.5)
        assert response.result().json()["moves"] == []


def test_delete_repository_removes_rules_and_notifications(client: httpx.Client) -> None:
    put_rules(client, large=LARGE)
    register(client)
    assert client.delete(MINE).json() == {"rules": 1, "notifications": 1}
    assert client.delete(MINE).status_code == 404
    assert client.get("/metadata/status").json()["rules"] == 0
    answer = client.get(f"{MINE}/changes")
    assert answer.status_code == 410 and answer.json()["hint"] == "ask for the state"
    assert put_rules(client, large=LARGE).json()["sequence"] == 2
    assert [move["sequence"] for move in client.get(f"{MINE}/changes?after=1").json()["moves"]] == [2]
