"""Reader of metadata documents: RDF in, resources out, checked against the schema.

    DocumentReader(schema).read(body, "application/rdf+xml", "http://example.org/doc.rdf")

A document describes its own resources only: the one with the URI of the document, and those with a fragment of it.
Nesting makes no difference (section 2.1 of paper 001). A document that breaks the schema is rejected as a whole, with
all findings at once.
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

# The fast path for valid documents, straight from statements to resources. It reports no problems: on None, the
# document is read again by `DocumentParser`, which collects findings.


_Statements = dict[str, list[tuple[str, str]]]
"""The statements about one subject: property IRI to objects with their datatypes."""

_MAX_DIGITS = 18
"""Whole numbers of so many digits are below 2**63."""


def parse_simple_document(
    statements: Iterable[Statement], uri: str, vocabulary: Vocabulary
) -> tuple[Resource, ...] | None:
    """Return the resources ordered by URI; None if something is wrong or needs `DocumentParser`."""
    by_subject: dict[str, _Statements] = {}
    classes: dict[str, str] = {}
    for subject, property, object, datatype in statements:
        if property != TYPE:
            by_subject.setdefault(subject, {}).setdefault(property, []).append((object, datatype))
            continue
        cls = None if datatype else vocabulary.class_of(object)
        if cls is None or subject in classes:  # of several classes, DocumentParser finds the lowest
            return None
        classes[subject] = cls
    if not by_subject.keys() <= classes.keys() or not _all_in_document(classes, uri):
        return None
    resources = []
    for subject in sorted(classes):
        values = _parse_values(classes[subject], by_subject.get(subject, {}), classes, vocabulary)
        if values is None:
            return None
        resources.append(Resource(subject, classes[subject], values))
    return tuple(resources)


def _all_in_document(subjects: Iterable[str], uri: str) -> bool:
    start = f"{uri}#"
    return all(subject.startswith(start) or subject == uri for subject in subjects)


def _parse_values(
    cls: str, statements: _Statements, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Mapping[str, tuple[Value, ...]] | None:
    by_name: dict[str, tuple[Value, ...]] = {}
    for iri, objects in statements.items():
        property = vocabulary.property_of(cls, iri)
        if property is None or property.name in by_name or (len(objects) > 1 and not property.several):
            return None
        values = [_parse_value(*object, property, classes, vocabulary) for object in objects]
        if None in values:
            return None
        by_name[property.name] = tuple(sorted(set(values))) if len(values) > 1 else tuple(values)  # type: ignore[arg-type]
    return {name: by_name[name] for name in sorted(by_name, key=vocabulary.place_of)}


def _parse_value(
    object: str, datatype: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Value | None:
    kind = property.kind
    if kind is None or not datatype:
        is_reference = kind is None and not datatype
        return (
            Ref(object) if is_reference and _is_valid_target(object, property, classes, vocabulary) else None
        )
    if kind is Kind.NUMBER and datatype == STRING and len(object) <= _MAX_DIGITS and _is_whole(object):
        return int(object)
    if kind is Kind.STRING and datatype == STRING:
        return object
    return parse_literal(literal(object, datatype), kind)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_valid_target(
    target: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary
) -> bool:
    """Whether a target has the class of the reference; in other documents, the class is not known here."""
    cls = classes.get(target)
    return cls is None or property.leads_to in vocabulary.schema.at_or_above(cls)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document: its resources ordered by URI reference, independent of the RDF syntax."""

    uri: str
    resources: tuple[Resource, ...]


class DocumentReader:
    """Reader of documents for one schema."""

    def __init__(self, schema: Schema) -> None:
        self._vocabulary = Vocabulary(schema)

    def read(self, body: bytes, media_type: str, uri: str, isolate: bool = False) -> Document:
        """Parse a document. Relative references are resolved against its URI.

        `isolate` is for untrusted new input: it is parsed in a parser process, if there are any. A document that was
        accepted before is parsed in this process, where no deadline can reject it.
        """
        simple = self._read_simple(body, media_type, uri, isolate)
        if simple is not None:
            return simple
        check_uri(uri)
        graph = (
            isolated(rdf_decoder.decode, body, media_type, uri)
            if isolate
            else rdf_decoder.decode(body, media_type, uri)
        )
        return self.read_graph(graph, uri)

    def _read_simple(self, body: bytes, media_type: str, uri: str, isolate: bool) -> Document | None:
        """Parse a document by the fast path; None if that is not possible."""
        if "#" in uri:
            return None
        try:
            parsed = (
                isolated(statements, body, media_type, uri) if isolate else statements(body, media_type, uri)
            )
        except DecodeProblem:
            return None  # a wrong URI is reported first
        resources = parse_simple_document(parsed, uri, self._vocabulary) if parsed is not None else None
        return None if resources is None else Document(uri, resources)

    def read_graph(self, graph: Graph, uri: str) -> Document:
        """Convert a graph to a document, or raise MetadataError with all findings."""
        parser = DocumentParser(graph, uri, self._vocabulary)
        resources = parser.resources()
        if parser.findings:
            problems = [findings.schema_in_document(uri)] if parser.is_schema() else parser.findings
            raise MetadataError(uri, problems)
        return Document(uri, tuple(sorted(resources, key=lambda resource: resource.uri)))


def check_uri(uri: str) -> None:
    """Raise DecodeProblem if a URI cannot be that of a document."""
    if "#" in uri:
        what, accepted = "the URI of a document has a fragment", "http://example.org/doc.rdf"
        hint = "fragments name the resources of a document"
        raise DecodeProblem(what, received=printable(uri), accepted=accepted, hint=hint)
    rdf_decoder.check_base(uri)
