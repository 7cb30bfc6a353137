"""The fast path for simple documents gives the same results and errors as the full path."""

from __future__ import annotations

import pytest
import rdflib
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.broken_metadata import URI, broken, document_edges
from tests.support.strategies.metadata import document_graph, resources, schemas
from tidings.errors import TidingsError
from tidings.graphs.model import Edge, Graph, Term, TermKind
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.rdf.rdf_errors import Limits
from tidings.graphs.rdf.statements import statements
from tidings.metadata import documents
from tidings.metadata.documents import Document, DocumentReader, check_uri
from tidings.metadata.schema.model import Schema, Vocabulary
from tidings.metadata.schema.schema_parser import parse_schema

EXAMPLES = ROOT / "examples" / "metadata"
PAPER = parse_schema(decode((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle"))
FIGURE_1 = (EXAMPLES / "host.rdf").read_bytes()
RDF_XML, TURTLE = "application/rdf+xml", "text/turtle"
MEDIA_TYPES = {"turtle": TURTLE, "xml": RDF_XML, "pretty-xml": RDF_XML, "nt": "application/n-triples"}


def read_in_full(schema: Schema, body: bytes, media_type: str, uri: str) -> Document:
    """Read a document by the path that collects findings."""
    check_uri(uri)
    return DocumentReader(schema).read_graph(decode(body, media_type, uri), uri)


def check_equal_reading(schema: Schema, body: bytes, media_type: str, uri: str = URI) -> None:
    """Check that both paths give the same document and order of properties, or the same error."""
    try:
        expected = read_in_full(schema, body, media_type, uri)
    except TidingsError as problem:
        with pytest.raises(type(problem)) as caught:
            DocumentReader(schema).read(body, media_type, uri)
        assert caught.value.message() == problem.message()
        return
    document = DocumentReader(schema).read(body, media_type, uri)
    assert document == expected
    assert [list(each.values) for each in document.resources] == [
        list(each.values) for each in expected.resources
    ]


def is_simple(schema: Schema, body: bytes, media_type: str) -> bool:
    parsed = statements(body, media_type, URI)
    return parsed is not None and documents.parse_simple_document(parsed, URI, Vocabulary(schema)) is not None


def rdflib_term(term: Term) -> rdflib.term.Identifier:
    if term.kind is TermKind.LITERAL:
        return rdflib.Literal(term.text, datatype=rdflib.URIRef(term.datatype))
    return rdflib.URIRef(term.text) if term.kind is TermKind.IRI else rdflib.BNode(term.text)


def serialize(graph: Graph, syntax: str) -> bytes:
    rdflib_graph = rdflib.Graph()
    for edge in graph.edges:
        rdflib_graph.add(tuple(map(rdflib_term, Edge(*edge))))  # type: ignore[arg-type]
    try:
        return rdflib_graph.serialize(format=syntax, encoding="utf-8")
    except (ValueError, AssertionError):  # RDF/XML cannot express every graph
        reject()


@given(st.data(), st.sampled_from(sorted(MEDIA_TYPES)))
def test_read_fast_path_equals_full_path_on_any_document(data: st.DataObject, syntax: str) -> None:
    schema = data.draw(schemas())
    good = document_graph(data.draw(resources(schema, URI)), schema, data.draw(st.booleans()))
    check_equal_reading(schema, good.serialize(format=syntax, encoding="utf-8"), MEDIA_TYPES[syntax])
    check_equal_reading(
        schema, serialize(data.draw(broken(good, document_edges(schema))), syntax), MEDIA_TYPES[syntax]
    )


@given(
    st.integers(0, len(FIGURE_1)),
    st.sampled_from([b"", b"<", b"&", b'"', b" ", b"\xff", b"#", b"x"]),
    st.integers(0, 8),
)
def test_read_fast_path_equals_full_path_on_damaged_body(offset: int, inserted: bytes, removed: int) -> None:
    check_equal_reading(PAPER, FIGURE_1[:offset] + inserted + FIGURE_1[offset + removed :], RDF_XML)


@pytest.mark.parametrize(
    "uri", ["doc.rdf", "http://example.org/doc.rdf#host", "", "http://[", "tidings-no-base:x"]
)
@pytest.mark.parametrize("body", [FIGURE_1, b"<", b""])
@pytest.mark.parametrize("media_type", sorted({*MEDIA_TYPES.values()}))
def test_read_fast_path_equals_full_path_on_invalid_uris(uri: str, body: bytes, media_type: str) -> None:
    check_equal_reading(PAPER, body, media_type, uri)


@pytest.mark.parametrize(
    ("turtle", "simple"),
    [
        ("<#h> a s:CycleProvider ; s:serverPort 80 .", True),
        ("<#h> a s:CycleProvider ; s:serverPort ' 80 ' .", True),
        ("<#h> a s:CycleProvider ; s:serverPort 80, 80 .", False),
        ("<#h> a s:CycleProvider ; s:serverHost 'Jörg'@de .", True),
        ("<#h> a s:CycleProvider ; s:serverInformation <http://other.org/x> .", True),
        ("<> a s:CycleProvider .", True),
        ("", True),
        ("<#h> a s:CycleProvider ; s:serverPort 80, '80' .", False),
        ("<#h> a s:CycleProvider ; s:serverInformation [ a s:ServerInformation ] .", False),
        ("<#h> a s:CycleProvider ; s:serverInformation <#h> .", False),
        ("<#h> a s:CycleProvider ; s:serverInformation <tidings-no-base:x> .", False),
        ("<#h> a s:CycleProvider ; rdf:_1 <#h> .", False),
        ("<#h> s:serverPort 80 .", False),
        ("<#h> a s:CycleProvider, s:ServerInformation .", False),
        ("<http://other.org/x> a s:CycleProvider .", False),
    ],
)
def test_parse_simple_document_accepts_only_simple_documents(turtle: str, simple: bool) -> None:
    rdf = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."
    body = f"@prefix s: <http://example.org/servers#> . {rdf} {turtle}".encode()
    assert is_simple(PAPER, body, TURTLE) is simple
    check_equal_reading(PAPER, body, TURTLE)


def test_parse_simple_document_accepts_figure_1() -> None:
    assert is_simple(PAPER, FIGURE_1, RDF_XML)


@pytest.mark.parametrize("limit", ["edges", "nodes", "term", "text"])
def test_statements_body_beyond_limit_returns_none(limit: str) -> None:
    assert statements(FIGURE_1, RDF_XML, URI, Limits(**{limit: 6})) is None
