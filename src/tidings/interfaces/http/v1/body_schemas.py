"""What bodies that may be published look like, for programs that make clients of the OpenAPI document.

An object has a name of its own: where bodies may be anything, generators make clients that cannot tell one media type
from another, or do not run. What may come as an array has an example and no schema, for the same reason: a client of
openapi-python-client 0.29 asks whether each body is a `list[...]`, and Python refuses to answer.
"""

from __future__ import annotations

from typing import Any

from tidings.publications.envelope import REQUIRED
from tidings.service.offering import BATCH, CLOUD_EVENT

TEXT: dict[str, Any] = {"type": "string"}


def content_of(media_types: tuple[str, ...]) -> dict[str, Any]:
    """The content of a request, by media type: JSON as what it is, anything else as text."""
    return {each: _CONTENT.get(each, {"schema": TEXT}) for each in media_types}


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": True,
    }


def _named(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


NAMED: dict[str, dict[str, Any]] = {
    "Event": _object("Values by name, nested as one likes."),
    "SentCloudEvent": _object(
        "A CloudEvent of version 1.0 in the structured mode; what is not named here is an extension.",
        specversion={"type": "string", "const": "1.0"},
        **{name: {"type": "string", "minLength": 1} for name in REQUIRED},
        subject=TEXT,
        time={"type": "string", "format": "date-time"},
        datacontenttype=TEXT,
        dataschema=TEXT,
        data={},
        data_base64=TEXT,
    )
    | {"required": ["specversion", *REQUIRED]},
    "JsonFeed": _object("A JSON Feed."),
}
_EXAMPLE = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "sale", "data": {"price": 180}}
_CONTENT: dict[str, dict[str, Any]] = {
    "application/json": _named("Event"),
    CLOUD_EVENT: _named("SentCloudEvent"),
    BATCH: {"example": [_EXAMPLE]},
    "application/feed+json": _named("JsonFeed"),
    "application/ld+json": {"example": {"@id": "urn:lot:4711", "urn:shop:price": 180}},
}
