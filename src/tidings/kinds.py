"""What may be published: media types, and what checks each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tidings.documents import xml_decoder
from tidings.events import json_decoder
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.media_types import FEEDS, SYNTAXES, graph_media_type_of
from tidings.parsers.parser_pool import isolated

JSON = "application/json"
XML = "application/xml"

Decode = Callable[[bytes, EventSchema | None], object]


def check_document(body: bytes) -> None:
    """Refuse what is no document."""
    xml_decoder.decode(body)


def check_graph(body: bytes, media_type: str) -> None:
    """Refuse what is no graph."""
    rdf_decoder.decode(body, media_type)


def _document(body: bytes, _: EventSchema | None) -> None:
    """An event schema says nothing about documents."""
    isolated(check_document, body)


def _graph(body: bytes, _: EventSchema | None, media_type: str) -> None:
    """Nor about graphs."""
    isolated(check_graph, body, media_type)


MEDIA_TYPES: Mapping[str, Decode] = {
    JSON: json_decoder.decode,
    "application/cloudevents+json": json_decoder.decode,
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
