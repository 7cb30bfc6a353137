"""Detection of the media type of a text, from its beginning."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tidings.kinds import JSON, XML

JSON_LINES = "application/jsonl"

KINDS: Mapping[str, str] = {
    JSON: "JSON",
    JSON_LINES: "JSON Lines: one event per line",
    "application/cloudevents+json": "CloudEvent",
    XML: "XML",
    "text/turtle": "RDF: Turtle",
    "application/n-triples": "RDF: N-Triples",
    "application/rdf+xml": "RDF: RDF/XML",
    "application/ld+json": "RDF: JSON-LD",
    "application/trig": "RDF: TriG, each graph a publication",
    "application/n-quads": "RDF: N-Quads, each graph a publication",
    "application/rss+xml": "RSS feed, each item a publication",
    "application/atom+xml": "Atom feed, each item a publication",
    "application/feed+json": "JSON feed, each item a publication",
}
"""Media types that the form offers, with their labels."""

_MARKUP = (
    (re.compile(r"<rdf:RDF\b"), "application/rdf+xml"),
    (re.compile(r"<rss\b"), "application/rss+xml"),
    (re.compile(r"<feed\b[^>]*www\.w3\.org/2005/Atom"), "application/atom+xml"),
)
_IRI = re.compile(r"<[a-z][a-z0-9+.-]*:[^<>\s]*>\s", re.IGNORECASE)
_TURTLE = re.compile(r"@prefix\b|@base\b|PREFIX\b|BASE\b|_:", re.IGNORECASE)
_HEAD = 2_000
"""Characters that are examined."""


def sniff_media_type(text: str) -> str:
    """Return the media type of a text. Anything unknown counts as JSON, whose error message helps most."""
    head = text.removeprefix("\ufeff").lstrip()[:_HEAD]
    if _TURTLE.match(head) or _IRI.match(head):
        return "text/turtle"
    if head.startswith("<"):
        return next((kind for looks, kind in _MARKUP if looks.search(head)), XML)
    return _json_kind(text, head)


def _json_kind(text: str, head: str) -> str:
    first, _, rest = text.strip().partition("\n")
    if rest.strip() and _is_object(first):
        return JSON_LINES
    if '"@context"' in head:
        return "application/ld+json"
    if '"specversion"' in head:
        return "application/cloudevents+json"
    return "application/feed+json" if "https://jsonfeed.org/version/" in head else JSON


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
