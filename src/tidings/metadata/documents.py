"""Metadata documents: RDF in, resources out, checked against the schema.

    Reader(schema).read(body, "application/rdf+xml", "http://example.org/doc.rdf")

A document describes its own resources: the one that is called as the document is, and those behind its `#`. Whether a
resource is nested in another one or stands beside it is the same (section 2.1 of paper 001). What breaks the schema is
told all at once, and nothing of the document counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.model import STRING, TYPE, Graph, literal
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.statements import Statement, statements
from tidings.metadata.document_parser import DocumentParser
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import findings
from tidings.metadata.schema.findings import MetadataError
from tidings.metadata.schema.literals import parse_literal
from tidings.metadata.schema.model import Property, Schema
from tidings.metadata.schema.vocabulary import Vocabulary
from tidings.parsers.parser_pool import isolated
from tidings.values import Kind

# Documents without anything odd, from statements to resources in one go.
#
# Nothing is said here of what is wrong: who gets no answer reads the document again, in the way that collects
# findings.


_Said = dict[str, list[tuple[str, str]]]
"""What is said of a subject: by property, objects with their datatypes."""

_SHORT = 18
"""So many digits are below 2**63."""


def parse_simple_document(
    statements: Iterable[Statement], uri: str, vocabulary: Vocabulary
) -> tuple[Resource, ...] | None:
    """The resources in the order of their URIs; None if something is wrong, or needs a closer look."""
    said: dict[str, _Said] = {}
    classes: dict[str, str] = {}
    for subject, property, object, datatype in statements:
        if property != TYPE:
            said.setdefault(subject, {}).setdefault(property, []).append((object, datatype))
            continue
        cls = None if datatype else vocabulary.class_of(object)
        if cls is None or subject in classes:  # of several classes, the lowest would have to be found
            return None
        classes[subject] = cls
    if not said.keys() <= classes.keys() or not _belong(classes, uri):
        return None
    found = []
    for subject in sorted(classes):
        values = _values(classes[subject], said.get(subject, {}), classes, vocabulary)
        if values is None:
            return None
        found.append(Resource(subject, classes[subject], values))
    return tuple(found)


def _belong(subjects: Iterable[str], uri: str) -> bool:
    start = f"{uri}#"
    return all(subject.startswith(start) or subject == uri for subject in subjects)


def _values(
    cls: str, said: _Said, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Mapping[str, tuple[Value, ...]] | None:
    found: dict[str, tuple[Value, ...]] = {}
    for iri, objects in said.items():
        property = vocabulary.property_of(cls, iri)
        if property is None or property.name in found or (len(objects) > 1 and not property.several):
            return None
        values = [_value(*object, property, classes, vocabulary) for object in objects]
        if None in values:
            return None
        found[property.name] = tuple(sorted(set(values))) if len(values) > 1 else tuple(values)  # type: ignore[arg-type]
    return {each: found[each] for each in sorted(found, key=vocabulary.place_of)}


def _value(
    object: str, datatype: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Value | None:
    kind = property.kind
    if kind is None or not datatype:
        refers = kind is None and not datatype
        return Ref(object) if refers and _leads(object, property, classes, vocabulary) else None
    if kind is Kind.NUMBER and datatype == STRING and len(object) <= _SHORT and _is_whole(object):
        return int(object)
    if kind is Kind.STRING and datatype == STRING:
        return object
    return parse_literal(literal(object, datatype), kind)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _leads(target: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary) -> bool:
    """Whether a reference leads to its class; where it leads in another document is not known here."""
    cls = classes.get(target)
    return cls is None or property.leads_to in vocabulary.schema.at_or_above(cls)


@dataclass(frozen=True, slots=True)
class Document:
    """What a document says: its resources in the order of their URI references, whatever syntax it was written in."""

    uri: str
    resources: tuple[Resource, ...]


class DocumentReader:
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
        graph = (
            isolated(rdf_decoder.decode, body, media_type, uri)
            if isolate
            else rdf_decoder.decode(body, media_type, uri)
        )
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
        found = parse_simple_document(said, uri, self._vocabulary) if said is not None else None
        return None if found is None else Document(uri, found)

    def document(self, graph: Graph, uri: str) -> Document:
        """The document that a graph is."""
        reading = DocumentParser(graph, uri, self._vocabulary)
        found = reading.resources()
        if reading.findings:
            wrong = [findings.schema_in_document(uri)] if reading.is_schema() else reading.findings
            raise MetadataError(uri, wrong)
        return Document(uri, tuple(sorted(found, key=lambda each: each.uri)))


def check_uri(uri: str) -> None:
    """Refuse what cannot be the URI of a document."""
    if "#" in uri:
        what, accepted = "a fragment in the URI of a document", "http://example.org/doc.rdf"
        hint = "what stands behind # are its resources"
        raise DecodeProblem(what, received=printable(uri), accepted=accepted, hint=hint)
    rdf_decoder.check_base(uri)
