"""What may be published: media types, and what takes each apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidings.publications import event, xml
from tidings.schema.event_schema import EventSchema

JSON = "application/json"
XML = "application/xml"

Decode = Callable[[bytes, EventSchema | None], object]


def _document(body: bytes, _: EventSchema | None) -> Any:
    """An event schema says nothing about documents."""
    return xml.decode(body)


MEDIA_TYPES: Mapping[str, Decode] = {
    JSON: event.decode,
    "application/cloudevents+json": event.decode,
    XML: _document,
    "text/xml": _document,
}

DOCUMENTS = frozenset({XML, "text/xml"})
"""Those that are documents; the others are events."""


def media_type_of(name: str) -> str:
    """The media type of a file, by its name."""
    return XML if name.lower().endswith(".xml") else JSON
