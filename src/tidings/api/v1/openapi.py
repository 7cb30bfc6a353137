"""The OpenAPI 3.1 document of everything below `/v1`: `GET /v1/openapi.json`."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic.json_schema import models_json_schema

from tidings.api.v1.route_classes import problem_descriptions
from tidings.api.v1.schemas import Problem
from tidings.core.storable import TEXT_PATTERN
from tidings.events.json_decoder import REQUIRED
from tidings.events.kind import CLOUD_EVENT
from tidings.service.submission import CLOUD_EVENT_BATCH

# Schemas of bodies that can be published, for generators of clients.
#
# Each object has a named schema: with untyped bodies, generated clients cannot tell media types apart, or do not run.
# Bodies that may be arrays have an example and no schema for the same reason: a client of openapi-python-client 0.29
# tests each body with `isinstance(body, list[...])`, which Python refuses.


TEXT_SCHEMA: dict[str, Any] = {"type": "string"}


def request_content(media_types: tuple[str, ...]) -> dict[str, Any]:
    """Return the content of a request by media type: JSON with its schema, anything else as text."""
    return {each: _CONTENT.get(each, {"schema": TEXT_SCHEMA}) for each in media_types}


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
    made = get_openapi(
        title="Tidings",
        version=version("tidings"),
        openapi_version="3.1.0",
        summary="Content-based publish/subscribe.",
        license_info=LICENCE,
        routes=app.routes,
    )
    made["paths"] = {path: found for path, found in made["paths"].items() if path.startswith(PREFIX)}
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            _correct(operation, f"{method}_{'_'.join(_WORD.findall(path)[1:])}")
            _complete(operation, path)
    _, known = models_json_schema([(Problem, "validation")], ref_template="#/components/schemas/{model}")
    used = {
        tag for path in made["paths"].values() for operation in path.values() for tag in operation["tags"]
    }
    made["tags"] = [{"name": name, "description": TAGS[name]} for name in TAGS if name in used]
    components = made["components"]
    components["schemas"] = _used(made["paths"], components["schemas"] | known["$defs"] | NAMED_SCHEMAS)
    return made


def _declare_storable(schema: dict[str, Any]) -> None:
    """Declare the characters that `check_parameters` allows in a text."""
    for one in (schema, *schema.get("anyOf", ())):
        if one.get("type") == "string" and "enum" not in one:
            one.setdefault("pattern", TEXT_PATTERN)


def _used(paths: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas that paths refer to, directly or not."""
    found, waiting = dict[str, Any](), _references(paths)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = schemas[name]
            waiting |= _references(schemas[name])
    return dict(sorted(found.items()))


def _references(part: Any) -> set[str]:
    return set(_REFERENCE.findall(json.dumps(part)))


def _correct(operation: dict[str, Any], name: str) -> None:
    """Replace FastAPI's validation errors by Problem Details, and give each operation a unique id."""
    operation["operationId"] = name
    told = operation["responses"]
    own = told.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if own.get("$ref", "").endswith("HTTPValidationError"):
        del told["422"]
        told |= {str(status): one for status, one in problem_descriptions(400, 422).items()}


def _complete(operation: dict[str, Any], path: str) -> None:
    """Add the errors common to all routes of this shape: 400, 404 for a path with an id, and those of bodies."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] in ("path", "query"):
            _declare_storable(parameter["schema"])
    told, may = operation["responses"], {400}
    may |= {404} if "{" in path else set()
    may |= {408, 413, 415, 422} if "requestBody" in operation else set()
    told |= {
        str(status): one for status, one in problem_descriptions(*may).items() if str(status) not in told
    }
    operation["responses"] = dict(sorted(told.items()))
