"""Descriptions of the API: the OpenAPI 3.1 document of `/v1`, and the AsyncAPI 3.0 document of its streams.

GET /v1/openapi.json
GET /v1/asyncapi.json
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tidings.api.authentication import COOKIE
from tidings.api.v1.route_classes import problem_descriptions
from tidings.api.v1.schemas import Acknowledgement, CloudEvent, Introduction, Problem
from tidings.core.arguments import TEXT_PATTERN
from tidings.events.json_decoder import REQUIRED
from tidings.events.kind import CLOUD_EVENT
from tidings.ingest.submission import CLOUD_EVENT_BATCH

# Schemas of bodies that can be published, for generators of clients.
#
# Each object has a named schema: with untyped bodies, generated clients cannot tell media types apart, or do not run.
# Bodies that may be arrays have an example and no schema for the same reason: a client of openapi-python-client 0.29
# tests each body with `isinstance(body, list[...])`, which Python refuses.


TEXT_SCHEMA: dict[str, Any] = {"type": "string"}


def request_content(media_types: tuple[str, ...]) -> dict[str, Any]:
    """Return the content of a request by media type: JSON with its schema, anything else as text."""
    return {name: _CONTENT.get(name, {"schema": TEXT_SCHEMA}) for name in media_types}


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": True,
    }


def _named(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


NAMED_SCHEMAS: dict[str, dict[str, Any]] = {
    "Event": _object("An event: attributes by name, nested to any depth."),
    "SentCloudEvent": _object(
        "A CloudEvent, version 1.0, in structured mode; other members are extension attributes.",
        specversion={"type": "string", "const": "1.0"},
        **{name: {"type": "string", "minLength": 1} for name in REQUIRED},
        subject=TEXT_SCHEMA,
        time={"type": "string", "format": "date-time"},
        datacontenttype=TEXT_SCHEMA,
        dataschema=TEXT_SCHEMA,
        data={},
        data_base64=TEXT_SCHEMA,
    )
    | {"required": ["specversion", *REQUIRED]},
    "JsonFeed": _object("A JSON Feed."),
}
_EXAMPLE = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "sale", "data": {"price": 180}}
_CONTENT: dict[str, dict[str, Any]] = {
    "application/json": _named("Event"),
    CLOUD_EVENT: _named("SentCloudEvent"),
    CLOUD_EVENT_BATCH: {"example": [_EXAMPLE]},
    "application/feed+json": _named("JsonFeed"),
    "application/ld+json": {"example": {"@id": "urn:lot:4711", "urn:shop:price": 180}},
}


PREFIX = "/v1/"
LICENCE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
TAGS = {
    "publications": "Publish one or many publications of any kind, and read them.",
    "subscriptions": "Subscribe, check and preview texts, pause and resume.",
    "notifications": "Read and acknowledge notifications, in pages or as a stream.",
    "destinations": "Deliver notifications to webhooks, chat services and Kafka; replay dead letters.",
    "preferences": "Quiet hours of a subscriber.",
    "feeds": "Addresses of the feeds of subscriptions.",
    "audiences": "Grants: which subscribers may see publications with an audience label.",
    "operating": "Telemetry of the stream over time.",
}
"""Descriptions of tags: generators make a module or a class of each."""

_WORD = re.compile(r"\w+")
_REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')

router = APIRouter(prefix="/v1")


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> JSONResponse:
    """Return the OpenAPI document, with this server's address."""
    app = request.app
    if not hasattr(app.state, "openapi"):
        app.state.openapi = build_openapi(app)
    return JSONResponse(app.state.openapi | {"servers": [{"url": str(request.base_url).rstrip("/")}]})


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application's routes below `/v1`, with their schemas."""
    document = get_openapi(
        title="Tidings",
        version=version("tidings"),
        openapi_version="3.1.0",
        summary="Content-based publish/subscribe.",
        license_info=LICENCE,
        routes=app.routes,
    )
    paths = {path: item for path, item in document["paths"].items() if path.startswith(PREFIX)}
    for path, operations in paths.items():
        for method, operation in operations.items():
            _correct(operation, f"{method}_{'_'.join(_WORD.findall(path)[1:])}")
            _complete(operation, path)
    _, definitions = models_json_schema(
        [(Problem, "validation")], ref_template="#/components/schemas/{model}"
    )
    used = {tag for item in paths.values() for operation in item.values() for tag in operation["tags"]}
    document["paths"] = paths
    document["tags"] = [{"name": name, "description": TAGS[name]} for name in TAGS if name in used]
    components = document["components"]
    components["schemas"] = _select_schemas(
        paths, components["schemas"] | definitions["$defs"] | NAMED_SCHEMAS
    )
    return document


def _declare_storable(schema: dict[str, Any]) -> None:
    """Declare the characters that `check_parameters` allows in a text."""
    for variant in (schema, *schema.get("anyOf", ())):
        if variant.get("type") == "string" and "enum" not in variant:
            variant.setdefault("pattern", TEXT_PATTERN)


def _select_schemas(paths: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas that paths refer to, directly or not."""
    used, waiting = dict[str, Any](), _references(paths)
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = schemas[name]
            waiting |= _references(schemas[name])
    return dict(sorted(used.items()))


def _references(part: Any) -> set[str]:
    return set(_REFERENCE.findall(json.dumps(part)))


def _correct(operation: dict[str, Any], name: str) -> None:
    """Replace FastAPI's validation errors by Problem Details, and give each operation a unique id."""
    operation["operationId"] = name
    responses = operation["responses"]
    own = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if own.get("$ref", "").endswith("HTTPValidationError"):
        del responses["422"]
        responses |= {str(status): response for status, response in problem_descriptions(400, 422).items()}


def _complete(operation: dict[str, Any], path: str) -> None:
    """Add the errors common to all routes of this shape: 400, 404 for a path with an id, and those of bodies."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] in ("path", "query"):
            _declare_storable(parameter["schema"])
    statuses = {400}
    statuses |= {404} if "{" in path else set()
    statuses |= {408, 413, 415, 422} if "requestBody" in operation else set()
    common = {str(status): response for status, response in problem_descriptions(*statuses).items()}
    operation["responses"] = dict(sorted((common | operation["responses"]).items()))


# AsyncAPI


MESSAGES: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("notification", CloudEvent, "A notification as a CloudEvent; the cursor is `data.sequence`."),
    ("acknowledgement", Acknowledgement, "Acknowledges everything up to a sequence number."),
    ("introduction", Introduction, "The first message of a client that sends neither a header nor a cookie."),
)

_AFTER = "A cursor: only notifications after it. Default: the unacknowledged ones."
_PARAMETERS = {
    "after": {"type": "integer", "minimum": 0, "description": _AFTER},
    "subscription": {"type": "string", "description": "Only notifications of this subscription."},
    "subscriber": {
        "type": "string",
        "description": "The subscriber; only administrators may name another one.",
    },
}
_QUERY = {"type": "object", "properties": _PARAMETERS}


@router.get("/asyncapi.json", include_in_schema=False)
def asyncapi(request: Request) -> JSONResponse:
    """Return the AsyncAPI document, with this server's address."""
    return JSONResponse(build_asyncapi(request.url.netloc, request.url.scheme == "https"))


def build_asyncapi(host: str, is_secure: bool = False) -> dict[str, Any]:
    """Return the document of the streams at a host."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Notifications of Tidings",
            "version": version("tidings"),
            "description": "Live notifications of a subscriber, resumed by cursor without loss or repetition.",
        },
        "defaultContentType": "application/json",
        "servers": {
            "events": _describe_server(host, "https" if is_secure else "http"),
            "sockets": _describe_server(host, "wss" if is_secure else "ws"),
        },
        "channels": {"stream": _describe_stream(), "socket": _describe_socket()},
        "operations": {
            "streamNotifications": _describe_operation("send", "stream", "notification")
            | {"bindings": {"http": {"method": "GET", "query": _QUERY, "bindingVersion": "0.3.0"}}},
            "sendNotifications": _describe_operation("send", "socket", "notification"),
            "receiveAcknowledgements": _describe_operation("receive", "socket", "acknowledgement"),
            "receiveIntroduction": _describe_operation("receive", "socket", "introduction"),
        },
        "components": {
            "messages": {name: _describe_message(name, kind, summary) for name, kind, summary in MESSAGES},
            "schemas": _list_message_schemas(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `tidings token make` created",
                },
                "console": {"type": "httpApiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


def _describe_server(host: str, protocol: str) -> dict[str, Any]:
    schemes = [{"$ref": f"#/components/securitySchemes/{name}"} for name in ("bearer", "console")]
    return {"host": host, "protocol": protocol, "security": schemes}


def _describe_stream() -> dict[str, Any]:
    return {
        "address": "/v1/notifications/stream",
        "title": "Server-sent events",
        "description": "The `id` of an event is its cursor; `Last-Event-ID` resumes after it. Comments are heartbeats.",
        "servers": [{"$ref": "#/servers/events"}],
        "messages": _reference_messages("notification"),
    }


def _describe_socket() -> dict[str, Any]:
    return {
        "address": "/v1/notifications/ws",
        "title": "WebSocket",
        "description": (
            "Closed with 1001 or 1012 when the server shuts down, 1013 for too many streams or requests, 4400 for an "
            "invalid message, parameter or cursor, 4401 without a valid token, 4403 for a token without the scope."
        ),
        "servers": [{"$ref": "#/servers/sockets"}],
        "messages": _reference_messages("notification", "acknowledgement", "introduction"),
        "bindings": {"ws": {"method": "GET", "query": _QUERY, "bindingVersion": "0.1.0"}},
    }


def _reference_messages(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _describe_operation(action: str, channel: str, message: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
    }


def _describe_message(name: str, kind: type[BaseModel], summary: str) -> dict[str, Any]:
    payload = {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {"name": name, "summary": summary, "contentType": "application/json", "payload": payload}


def _list_message_schemas() -> dict[str, Any]:
    kinds = [(kind, "serialization") for _, kind, _ in MESSAGES]
    _, document = models_json_schema(kinds, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    schemas: dict[str, Any] = document["$defs"]
    return schemas
