"""What may be published: media types, and what checks each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tidings.publications import event, rdf, xml
from tidings.publications.parser_pool import isolated
from tidings.publications.rdf_media_types import FEEDS, SYNTAXES, graph_media_type_of
from tidings.schema.event_schema import EventSchema

JSON = "application/json"
XML = "application/xml"

Decode = Callable[[bytes, EventSchema | None], object]


def check_document(body: bytes) -> None:
    """Refuse what is no document."""
    xml.decode(body)


def check_graph(body: bytes, media_type: str) -> None:
    """Refuse what is no graph."""
    rdf.decode(body, media_type)


def _document(body: bytes, _: EventSchema | None) -> None:
    """An event schema says nothing about documents."""
    isolated(check_document, body)


def _graph(body: bytes, _: EventSchema | None, media_type: str) -> None:
    """Nor about graphs."""
    isolated(check_graph, body, media_type)


MEDIA_TYPES: Mapping[str, Decode] = {
    JSON: event.decode,
    "application/cloudevents+json": event.decode,
    XML: _document,
    "text/xml": _document,
    **{media_type: partial(_graph, media_type=media_type) for media_type in SYNTAXES},
}

DOCUMENTS = frozenset({XML, "text/xml"})
GRAPHS = frozenset({*SYNTAXES, *FEEDS})
"""Those that are documents, and those that are graphs; the others are events. Feeds are taken apart before that."""


def media_type_of(name: str) -> str:
    """The media type of a file, by its name."""
    if name.lower().endswith(".xml"):
        return XML
    return graph_media_type_of(name) or JSON
