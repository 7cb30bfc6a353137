"""The AsyncAPI document: whole, and true of what really comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.oracles.json_schema import problems
from tests.support.servers.notification_server import Place, client_of, events_of, place_at
from tidings.api.v1.schemas import CloudEvent
from tidings.store.encoding import MatchRow


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_at(tmp_path) as made, made.serve():
        yield made


@pytest.fixture
def document(place: Place) -> dict[str, Any]:
    answer = httpx.get(f"{place.address}/v1/asyncapi.json", trust_env=False)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def resolved(document: dict[str, Any], reference: dict[str, Any]) -> Any:
    found: Any = document
    for part in reference["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return resolved(document, found) if "$ref" in found else found


def references(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part
        for each in part.values():
            yield from references(each)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)


def test_its_parts(document: dict[str, Any], place: Place) -> None:
    assert document["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(document["info"])
    assert document["servers"]["events"]["host"] == place.address.removeprefix("http://")
    assert [server["protocol"] for server in document["servers"].values()] == ["http", "ws"]
    addresses = [channel["address"] for channel in document["channels"].values()]
    assert addresses == ["/v1/notifications/stream", "/v1/notifications/ws"]
    for reference in references(document):
        assert resolved(document, reference) is not None
    for operation in document["operations"].values():
        assert operation["action"] in ("send", "receive")
        channel = resolved(document, operation["channel"])
        for message in operation["messages"]:
            assert resolved(document, message) in [
                resolved(document, one) for one in channel["messages"].values()
            ]
            assert "payload" in resolved(document, message)


def test_what_comes_is_as_it_says(document: dict[str, Any], place: Place) -> None:
    place.tell("ana", 1)
    place.tell("ana", 1, body="no JSON é".encode("latin-1"))
    place.store.notifications.commit_batch(
        "objects", 0, [MatchRow("Script2", "school", "ana", kind="updated", bindings={"object": "Script:2"})]
    )
    [operation] = [one for name, one in document["operations"].items() if name == "streamNotifications"]
    schema = resolved(document, resolved(document, operation["messages"][0])["payload"])
    with (
        client_of(place, place.token("ana")) as client,
        client.stream("GET", "/v1/notifications/stream") as answer,
    ):
        events = events_of(answer)
        messages = [next(events).data for _ in range(4)][1:]
    for message in messages:
        assert problems(message, schema, document) == []
        CloudEvent.model_validate_json(json.dumps(message))
    assert problems(messages[0] | {"more": 1}, schema, document)
    assert problems({**messages[0], "specversion": "2.0"}, schema, document)
    without = {name: value for name, value in messages[0].items() if name != "data"}
    assert problems(without, schema, document)
    wrong = messages[0] | {"data": messages[0]["data"] | {"sequence": 0}}
    assert problems(wrong, schema, document)
