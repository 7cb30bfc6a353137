"""The OpenAPI and AsyncAPI documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.openapi.models import OpenAPI

from tests.support.oracles.json_schema import problems
from tests.support.servers.api_server import Service, served_api
from tests.support.servers.notification_server import Place, client_of, events_of, place_at
from tidings.api.v1.schemas import CloudEvent
from tidings.ingest.submission import accepted_media_types
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow

PATHS = {
    "/v1/publications": {"get", "post"},
    "/v1/publications/{id}": {"get"},
    "/v1/subscriptions": {"get", "post"},
    "/v1/subscriptions/{id}": {"get", "put", "patch", "delete"},
    "/v1/subscriptions/{id}/pause": {"post"},
    "/v1/subscriptions/{id}/resume": {"post"},
    "/v1/check": {"post"},
    "/v1/preview": {"post"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings) as opened:
        yield opened


@pytest.fixture(scope="module")
def document(service: Service) -> dict[str, Any]:
    body: dict[str, Any] = httpx.get(f"{service.address}/v1/openapi.json", trust_env=False).json()
    return body


def test_openapi_lists_all_paths(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    OpenAPI.model_validate(document)
    assert {path: set(operations) for path, operations in document["paths"].items()} == PATHS
    [(name, scheme)] = document["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["security"] == [{name: []}]
            assert operation["summary"] and operation["description"] and operation["operationId"]
            refusals = {status: one for status, one in operation["responses"].items() if int(status) >= 400}
            assert {"400", "401", "403", "429", "503"} <= refusals.keys()
            assert all(list(one["content"]) == ["application/problem+json"] for one in refusals.values())


def test_openapi_references_resolve_and_schemas_are_used(document: dict[str, Any]) -> None:
    used = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert used == document["components"]["schemas"].keys()


def contradictions(document: dict[str, Any], response: httpx.Response, path: str) -> list[str]:
    """Return how an answer contradicts the document."""
    operation = document["paths"][path][response.request.method.lower()]
    described = operation["responses"][str(response.status_code)]
    if "content" not in described:
        return [] if not response.content else ["the document has no content"]
    kind = response.headers["content-type"].partition(";")[0]
    return problems(response.json(), described["content"][kind]["schema"], document)


def test_responses_conform_to_openapi_document(service: Service, document: dict[str, Any]) -> None:
    ana, shop, subscription = service.caller("ana"), service.shop, "/v1/subscriptions/{id}"
    event, lines = {"Content-Type": "application/json"}, {"Content-Type": "application/jsonl"}
    publish = "/v1/publications"
    for response, path in (
        (shop.post(publish, content=b'{"price": 5}', headers=event, params={"id": "p"}), publish),
        (shop.post(publish, content=b'{"price": 5}', headers=event, params={"id": "p"}), publish),
        (shop.post(publish, content=b'{"price": 6}', headers=event, params={"id": "p"}), publish),
        (shop.post(publish, content=b'{"a": 1}\n{', headers=lines), publish),
        (shop.post(publish, content=b"{", headers=event), publish),
        (shop.post(publish, content=b"{", headers={"Content-Type": "text/css"}), publish),
        (shop.get(publish), publish),
        (shop.get(publish, params={"limt": 5}), publish),
        (shop.get(f"{publish}/p"), f"{publish}/{{id}}"),
        (shop.get(f"{publish}/q"), f"{publish}/{{id}}"),
        (ana.post("/v1/subscriptions", json={"text": "price < 9", "id": "s"}), "/v1/subscriptions"),
        (ana.post("/v1/subscriptions", json={"text": "price < 9", "id": "s"}), "/v1/subscriptions"),
        (ana.post("/v1/subscriptions", content=b'{"text": "price < 9"}', headers=lines), "/v1/subscriptions"),
        (
            ana.post("/v1/subscriptions", content=b'{"text": "price <"}\n{', headers=lines),
            "/v1/subscriptions",
        ),
        (ana.post("/v1/subscriptions", content=b"", headers=lines), "/v1/subscriptions"),
        (ana.get("/v1/subscriptions?q=%00"), "/v1/subscriptions"),
        (ana.post("/v1/subscriptions", json={"text": "price <"}), "/v1/subscriptions"),
        (ana.post("/v1/subscriptions", json={}), "/v1/subscriptions"),
        (ana.get("/v1/subscriptions"), "/v1/subscriptions"),
        (ana.get("/v1/subscriptions/s"), subscription),
        (ana.get("/v1/subscriptions/t"), subscription),
        (ana.put("/v1/subscriptions/s", json={"text": "price < 8"}), subscription),
        (ana.patch("/v1/subscriptions/s", json={"within": "1 hour"}), subscription),
        (ana.post("/v1/subscriptions/s/pause"), f"{subscription}/pause"),
        (ana.post("/v1/subscriptions/s/resume"), f"{subscription}/resume"),
        (ana.post("/v1/check", json={"text": "price < 9"}), "/v1/check"),
        (ana.post("/v1/preview", json={"text": "price < 9"}), "/v1/preview"),
        (shop.post("/v1/preview", json={"text": "price < 9"}), "/v1/preview"),
        (ana.delete("/v1/subscriptions/s"), subscription),
    ):
        assert contradictions(document, response, path) == [], (
            f"{response.request.method} {path} {response.status_code}"
        )


SENT = {
    "application/json": {"price": 5, "seller": {"city": "Oslo"}},
    "application/cloudevents+json": {
        "specversion": "1.0",
        "id": "1",
        "source": "/shop",
        "type": "sale",
        "data": [1],
        "shelf": 12,
    },
    "application/feed+json": {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "t",
        "items": [{"id": "1"}],
    },
}


def test_openapi_names_schemas_of_request_bodies(service: Service, document: dict[str, Any]) -> None:
    """A body without a schema has no type in a generated client, and one of several bodies with the same type
    cannot be chosen: openapi-python-client 0.29 generated a client that raised TypeError on every publish.
    """
    content = document["paths"]["/v1/publications"]["post"]["requestBody"]["content"]
    schemas = {kind: one["schema"] for kind, one in content.items() if "schema" in one}
    examples = {kind: one["example"] for kind, one in content.items() if "example" in one}
    assert (
        schemas.keys() | examples.keys() == set(accepted_media_types())
        and not schemas.keys() & examples.keys()
    )
    assert {kind for kind, schema in schemas.items() if schema.get("type") != "string"} == SENT.keys()
    assert len({schemas[kind]["$ref"] for kind in SENT}) == len(SENT)
    assert [problems(body, schemas[kind], document) for kind, body in SENT.items()] == [[], [], []]
    assert problems({}, schemas["application/cloudevents+json"], document)
    for kind, body in (SENT | examples).items():
        answer = service.shop.post("/v1/publications", json=body, headers={"Content-Type": kind})
        assert answer.status_code == 201, answer.text
    lines = document["paths"]["/v1/subscriptions"]["post"]["requestBody"]["content"]["application/jsonl"]
    assert lines["schema"] == {"type": "string"}


def test_openapi_names_server_and_licence(service: Service, document: dict[str, Any]) -> None:
    assert document["servers"] == [{"url": service.address}]
    assert document["info"]["license"] == {"name": "Apache License 2.0", "identifier": "Apache-2.0"}


def test_openapi_of_whole_service_is_complete(tmp_path: Path) -> None:
    from tidings.api.app import create_app  # noqa: PLC0415
    from tidings.api.v1.openapi import build_openapi as made_of  # noqa: PLC0415
    from tidings.feeds.hub.hub import Hub  # noqa: PLC0415 - the whole service, once
    from tidings.service.context import ServiceContext  # noqa: PLC0415

    with Tidings(tmp_path) as tidings:
        document = made_of(create_app(ServiceContext(tidings, Hub(tidings.feeds_at("http://127.0.0.1:1")))))
    OpenAPI.model_validate(document)
    assert PATHS.keys() <= document["paths"].keys()
    assert all(path.startswith("/v1/") for path in document["paths"])
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            statuses = operation["responses"].keys()
            assert "404" in statuses or "{" not in path, (method, path)
            assert {"400", "408", "413", "415", "422"} <= statuses or "requestBody" not in operation, (
                method,
                path,
            )
            assert {"400", "401", "403", "429", "503"} <= statuses, (method, path)
            assert operation["description"], (method, path)
    assert "404" in document["paths"]["/v1/audiences"]["delete"]["responses"]
    used = {tag for path in document["paths"].values() for one in path.values() for tag in one["tags"]}
    assert {tag["name"] for tag in document["tags"]} == used and all(
        tag["description"] for tag in document["tags"]
    )
    streamed = document["paths"]["/v1/notifications/stream"]["get"]["responses"]["200"]["content"]
    assert streamed == {"text/event-stream": {"schema": {"type": "string"}}}
    identifiers = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(identifiers)) == len(identifiers)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_at(tmp_path) as opened, opened.serve():
        yield opened


@pytest.fixture
def asyncapi(place: Place) -> dict[str, Any]:
    answer = httpx.get(f"{place.address}/v1/asyncapi.json", trust_env=False)
    body: dict[str, Any] = answer.raise_for_status().json()
    return body


def resolve(asyncapi: dict[str, Any], reference: dict[str, Any]) -> Any:
    target: Any = asyncapi
    for part in reference["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return resolve(asyncapi, target) if "$ref" in target else target


def references(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part
        for child in part.values():
            yield from references(child)
    elif isinstance(part, list):
        for child in part:
            yield from references(child)


def test_asyncapi_references_resolve(asyncapi: dict[str, Any], place: Place) -> None:
    assert asyncapi["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(asyncapi["info"])
    assert asyncapi["servers"]["events"]["host"] == place.address.removeprefix("http://")
    assert [server["protocol"] for server in asyncapi["servers"].values()] == ["http", "ws"]
    addresses = [channel["address"] for channel in asyncapi["channels"].values()]
    assert addresses == ["/v1/notifications/stream", "/v1/notifications/ws"]
    for reference in references(asyncapi):
        assert resolve(asyncapi, reference) is not None
    for operation in asyncapi["operations"].values():
        assert operation["action"] in ("send", "receive")
        channel = resolve(asyncapi, operation["channel"])
        for message in operation["messages"]:
            assert resolve(asyncapi, message) in [
                resolve(asyncapi, one) for one in channel["messages"].values()
            ]
            assert "payload" in resolve(asyncapi, message)


def test_stream_messages_conform_to_asyncapi_document(asyncapi: dict[str, Any], place: Place) -> None:
    place.notify("ana", 1)
    place.notify("ana", 1, body="no JSON é".encode("latin-1"))
    place.store.notifications.commit_batch(
        "objects", 0, [MatchRow("Script2", "school", "ana", kind="updated", bindings={"object": "Script:2"})]
    )
    [operation] = [one for name, one in asyncapi["operations"].items() if name == "streamNotifications"]
    schema = resolve(asyncapi, resolve(asyncapi, operation["messages"][0])["payload"])
    with (
        client_of(place, place.token("ana")) as client,
        client.stream("GET", "/v1/notifications/stream") as answer,
    ):
        events = events_of(answer)
        messages = [next(events).data for _ in range(4)][1:]
    for message in messages:
        assert problems(message, schema, asyncapi) == []
        CloudEvent.model_validate_json(json.dumps(message))
    assert problems(messages[0] | {"more": 1}, schema, asyncapi)
    assert problems({**messages[0], "specversion": "2.0"}, schema, asyncapi)
    without = {name: value for name, value in messages[0].items() if name != "data"}
    assert problems(without, schema, asyncapi)
    wrong = messages[0] | {"data": messages[0]["data"] | {"sequence": 0}}
    assert problems(wrong, schema, asyncapi)
