"""Media types and file names of graphs and feeds, and their syntaxes.

`application/xml` and `.xml` are not here: plain XML is a document.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem


class Syntax(Enum):
    """A syntax of graphs; the value is its display name."""

    TURTLE = "Turtle"
    N_TRIPLES = "N-Triples"
    TRIG = "TriG"
    N_QUADS = "N-Quads"
    RDF_XML = "RDF/XML"
    JSON_LD = "JSON-LD"


TURTLE = "text/turtle"
RDF_XML = "application/rdf+xml"
JSON_LD = "application/ld+json"
RSS = "application/rss+xml"
ATOM = "application/atom+xml"
JSON_FEED = "application/feed+json"

SYNTAXES: Mapping[str, Syntax] = {
    TURTLE: Syntax.TURTLE,
    "application/x-turtle": Syntax.TURTLE,
    "application/n-triples": Syntax.N_TRIPLES,
    "application/trig": Syntax.TRIG,
    "application/n-quads": Syntax.N_QUADS,
    RDF_XML: Syntax.RDF_XML,
    JSON_LD: Syntax.JSON_LD,
}

FEEDS = frozenset({RSS, ATOM, JSON_FEED})
"""Media types with items, each a publication of its own. RSS 1.0 served as RDF/XML is a graph."""

SUFFIXES: Mapping[str, str] = {
    ".ttl": TURTLE,
    ".nt": "application/n-triples",
    ".trig": "application/trig",
    ".nq": "application/n-quads",
    ".rdf": RDF_XML,
    ".owl": RDF_XML,
    ".rdfs": RDF_XML,
    ".jsonld": JSON_LD,
    ".rss": RSS,
    ".atom": ATOM,
    ".jsonfeed": JSON_FEED,
}


def plain(media_type: str) -> str:
    """Return the media type without its parameters: `text/turtle; charset=utf-8` is `text/turtle`."""
    return media_type.partition(";")[0].strip().lower()


def syntax_of(media_type: str) -> Syntax:
    """Return the syntax of graphs of this media type."""
    syntax = SYNTAXES.get(plain(media_type))
    if syntax is None:
        received, accepted = printable(media_type), ", ".join(SYNTAXES)
        raise DecodeProblem("not the media type of a graph", received=received, accepted=accepted)
    return syntax


def graph_media_type_of(name: str) -> str | None:
    """Return the media type of a file by its name; None if it is neither a graph nor a feed."""
    lower = name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if lower.endswith(suffix)), None)
