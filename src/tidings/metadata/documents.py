"""Metadata documents: RDF in, resources out, checked against the schema.

    Reader(schema).read(body, "application/rdf+xml", "http://example.org/doc.rdf")

A document describes its own resources: the one that is called as the document is, and those behind its `#`. Whether a
resource is nested in another one or stands beside it is the same (section 2.1 of paper 001). What breaks the schema is
told all at once, and nothing of the document counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.errors import DecodeProblem
from tidings.graphs import Graph
from tidings.metadata import document_findings as findings
from tidings.metadata.document_reading import Reading
from tidings.metadata.problems import MetadataError
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.metadata.simple_reading import resources
from tidings.metadata.vocabulary import Vocabulary
from tidings.publications import rdf
from tidings.publications.parser_pool import isolated
from tidings.publications.rdf_simple import statements
from tidings.schema.names import safe


@dataclass(frozen=True, slots=True)
class Document:
    """What a document says: its resources in the order of their URI references, whatever syntax it was written in."""

    uri: str
    resources: tuple[Resource, ...]


class Reader:
    """Reads documents by a schema."""

    def __init__(self, schema: Schema) -> None:
        self._vocabulary = Vocabulary(schema)

    def read(self, body: bytes, media_type: str, uri: str, isolate: bool = False) -> Document:
        """The document in the bytes. What is relative in it is relative to its URI.

        `isolate` is for what was just sent: it is parsed in a parser process, if there are any. What was accepted
        before is read here, where no deadline can refuse it.
        """
        simple = self._simple(body, media_type, uri, isolate)
        if simple is not None:
            return simple
        check_uri(uri)
        graph = isolated(rdf.decode, body, media_type, uri) if isolate else rdf.decode(body, media_type, uri)
        return self.document(graph, uri)

    def _simple(self, body: bytes, media_type: str, uri: str, isolate: bool) -> Document | None:
        """The document if it is simple and nothing is wrong with it."""
        if "#" in uri:
            return None
        try:
            said = (
                isolated(statements, body, media_type, uri) if isolate else statements(body, media_type, uri)
            )
        except DecodeProblem:
            return None  # a wrong URI is told first
        found = resources(said, uri, self._vocabulary) if said is not None else None
        return None if found is None else Document(uri, found)

    def document(self, graph: Graph, uri: str) -> Document:
        """The document that a graph is."""
        reading = Reading(graph, uri, self._vocabulary)
        found = reading.resources()
        if reading.findings:
            wrong = [findings.schema(uri)] if reading.is_schema() else reading.findings
            raise MetadataError(uri, wrong)
        return Document(uri, tuple(sorted(found, key=lambda each: each.uri)))


def check_uri(uri: str) -> None:
    """Refuse what cannot be the URI of a document."""
    if "#" in uri:
        what, accepted = "a fragment in the URI of a document", "http://example.org/doc.rdf"
        hint = "what stands behind # are its resources"
        raise DecodeProblem(what, received=safe(uri), accepted=accepted, hint=hint)
    rdf.check_base(uri)
