"""Graphs: RDF and the items of feeds, matched with GQL and SPARQL patterns (paper 002, G-ToPSS)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidings.atoms import AtomShape
from tidings.errors import DecodeProblem
from tidings.graphs.model import Graph
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.media_types import (
    ATOM,
    FEEDS,
    JSON_FEED,
    JSON_LD,
    RDF_XML,
    RSS,
    SUFFIXES,
    SYNTAXES,
    TURTLE,
    plain,
)
from tidings.graphs.rdf.multipart import N_TRIPLES, SEVERAL, parts_of, resolved
from tidings.kinds import (
    Claims,
    Environment,
    Kind,
    LanguageGuide,
    Part,
    PublicationSummary,
    Reader,
    Rehearsal,
)
from tidings.model import Publication
from tidings.parsers.parser_pool import run_isolated
from tidings.parsers.strict_json import looks_like_json_lines

if TYPE_CHECKING:
    from tidings.matching.compiler.language import Language

_MARKUP = (
    (re.compile(r"<rdf:RDF\b"), RDF_XML),
    (re.compile(r"<rss\b"), RSS),
    (re.compile(r"<feed\b[^>]*www\.w3\.org/2005/Atom"), ATOM),
)
_IRI = re.compile(r"<[a-z][a-z0-9+.-]*:[^<>\s]*>\s", re.IGNORECASE)
_TURTLE = re.compile(r"@prefix\b|@base\b|PREFIX\b|BASE\b|_:", re.IGNORECASE)


class Graphs(Kind):
    name = "graph"
    shape = AtomShape.EDGES
    media_types = tuple(SYNTAXES)
    containers = tuple(sorted(FEEDS))
    languages = ("gql",)
    suffixes = SUFFIXES
    titles = {
        TURTLE: "RDF: Turtle",
        N_TRIPLES: "RDF: N-Triples",
        RDF_XML: "RDF: RDF/XML",
        JSON_LD: "RDF: JSON-LD",
        "application/trig": "RDF: TriG, each graph a publication",
        "application/n-quads": "RDF: N-Quads, each graph a publication",
        RSS: "RSS feed, each item a publication",
        ATOM: "Atom feed, each item a publication",
        JSON_FEED: "JSON feed, each item a publication",
    }
    sample = Part(TURTLE, b"")

    def language(self, name: str) -> Language:
        from tidings.graphs.pattern_language import GqlLanguage

        return GqlLanguage()

    def guide(self, name: str) -> LanguageGuide:
        from tidings.graphs.samples import GQL

        return GQL

    def rehearse(self) -> Rehearsal:
        from tidings.graphs.samples import REHEARSAL

        return REHEARSAL

    def decode(self, body: bytes, media_type: str, schema: object = None) -> Graph:
        return rdf_decoder.decode(body, media_type)

    def check(self, body: bytes, media_type: str, schema: object = None) -> Claims:
        run_isolated(check_graph, body, media_type)
        return Claims()

    def split(self, body: bytes, media_type: str, base: str | None = None) -> Sequence[Part] | None:
        """Divide the graphs of TriG and N-Quads and the items of feeds; and JSON-LD, if it has several graphs."""
        media_type = plain(media_type)
        if not self.may_split(media_type):
            return None
        parts = [Part(N_TRIPLES, part) for part in parts_of(body, media_type, base)]
        return None if media_type == JSON_LD and len(parts) < 2 else parts

    def may_split(self, media_type: str) -> bool:
        return media_type in SEVERAL or media_type == JSON_LD

    def resolve(self, body: bytes, media_type: str, base: str) -> Part:
        return Part(N_TRIPLES, resolved(body, media_type, base))

    def refuse_empty(self, body: bytes) -> None:
        """An empty body was meant to be another one; an empty graph has a comment, such as `# nothing today`."""
        if not body.strip():
            raise DecodeProblem("the body is empty", accepted="a graph, such as <urn:a> <urn:b> 5 .")

    def open(self, environment: Environment) -> Reader:
        from tidings.graphs.reader import GraphReader

        return GraphReader(environment)

    def summarize(self, publication: Publication, about: Sequence[str] = ()) -> PublicationSummary:
        from tidings.graphs.reader import summarize_graph

        return summarize_graph(publication, about)

    def sniff(self, text: str) -> str | None:
        head = text[:2_000]
        if _TURTLE.match(head) or _IRI.match(head):
            return TURTLE
        if head.startswith("<"):
            return next((media_type for pattern, media_type in _MARKUP if pattern.search(head)), None)
        if '"@context"' in head and not looks_like_json_lines(text.encode()):
            return JSON_LD
        is_feed = "https://jsonfeed.org/version/" in head and '"specversion"' not in head
        return JSON_FEED if is_feed and not looks_like_json_lines(text.encode()) else None


def check_graph(body: bytes, media_type: str) -> None:
    """Validate a graph, in a separate process if the service runs."""
    rdf_decoder.decode(body, media_type)


GRAPHS = Graphs()
