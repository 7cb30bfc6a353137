"""Arbitrary graphs: each is read as a valid schema or document, or rejected with findings."""

from __future__ import annotations

import rdflib
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.broken_metadata import LITERALS, URI, broken, document_edges, some
from tests.support.strategies.metadata import (
    A,
    Registered,
    document_graph,
    documents,
    resources,
    schema_graph,
    schemas,
)
from tidings.graphs.model import RDF, RDFS, TYPE, XSD, Edge, blank, iri
from tidings.metadata.documents import Document, DocumentReader
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema.findings import MetadataError, MetadataSchemaError
from tidings.metadata.schema.model import Property, Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.values import Kind, kind_of, parse_instant

MD = "https://tidings.dev/metadata#"
CLASSES = [iri(A + name) for name in ("Host", "Disk", "Net")]
PROPERTIES = [iri(A + name) for name in ("size", "disk")]
RANGES = [iri(XSD + "integer"), iri(XSD + "string"), iri(XSD + "duration"), *CLASSES]
WORDS = [iri(RDFS + name) for name in ("subClassOf", "domain", "range", "comment")]
WORDS += [iri(MD + name) for name in ("several", "reference")]
KINDS = [iri(RDFS + "Class"), iri(RDF + "Property")]
CLOSE = [iri(MD + "strong"), iri(MD + "weak")]

schema_edges = st.one_of(
    st.builds(Edge, some(CLASSES), st.just(iri(TYPE)), st.just(KINDS[0])),
    st.builds(Edge, some(PROPERTIES), st.just(iri(TYPE)), st.just(KINDS[1])),
    st.builds(Edge, some(CLASSES), st.just(WORDS[0]), some(CLASSES)),
    st.builds(Edge, some(PROPERTIES), some(WORDS[1:3]), some(CLASSES)),
    st.builds(
        Edge,
        some([*CLASSES, *PROPERTIES, blank("b0")]),
        some([iri(TYPE), *WORDS]),
        some([*RANGES, *KINDS, *CLOSE, *LITERALS, blank("b0")]),
    ),
)


@given(st.data())
def test_parse_schema_arbitrary_graph_is_valid_or_rejected(data: st.DataObject) -> None:
    try:
        schema = parse_schema(data.draw(broken(schema_graph(data.draw(schemas())), schema_edges)))
    except MetadataSchemaError as problem:
        assert problem.findings
        return
    assert schema.classes
    for name, properties in schema.properties.items():
        for property in properties:
            assert (property.name, property.of in schema.classes) == (name, True)
            assert (
                (property.kind is None)
                == (property.leads_to in schema.classes)
                == (property.reference is not None)
            )


@given(st.data())
def test_read_graph_arbitrary_document_is_valid_or_rejected(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    good = document_graph(data.draw(resources(schema, URI)), schema)
    graph = data.draw(broken(good, document_edges(schema)))
    try:
        document = DocumentReader(schema).read_graph(graph, URI)
    except MetadataError as problem:
        assert problem.findings
        return
    assert "http://other.org/x" not in {edge.subject.text for edge in graph.edges}
    assert len({each.uri for each in document.resources}) == len(document.resources)
    for each in document.resources:
        check_resource(each, schema, document)


def check_resource(resource: Resource, schema: Schema, document: Document) -> None:
    """Check what every resource of an accepted document guarantees."""
    assert resource.uri == URI or resource.uri.startswith(f"{URI}#")
    classes_by_uri = {each.uri: each.cls for each in document.resources}
    for name, values in resource.values.items():
        property = schema.property_of(resource.cls, name)
        assert property is not None
        assert len(values) == 1 or property.several
        assert values == tuple(sorted(set(values))) != ()
        assert all(has_valid_type(value, property, schema, classes_by_uri) for value in values)


def has_valid_type(value: Value, property: Property, schema: Schema, classes_by_uri: dict[str, str]) -> bool:
    if isinstance(value, Ref):
        cls = classes_by_uri.get(value.uri)
        return cls is None or property.leads_to in schema.at_or_above(cls)
    if property.kind is Kind.INSTANT:
        return isinstance(value, str) and parse_instant(value) is not None
    return kind_of(value) is property.kind


@given(st.data(), some(["turtle", "xml"]))
def test_read_resources_without_names_get_stable_unique_names(data: st.DataObject, syntax: str) -> None:
    """Names are replaced by blank nodes: each such resource gets one stable generated name."""
    schema = data.draw(schemas())
    drawn: Registered = data.draw(documents(schema).filter(lambda document: document.resources))
    hidden = data.draw(st.lists(some([each.uri for each in drawn.resources]), unique=True))
    graph = document_graph(drawn.resources, schema)
    body = replace_by_blank_nodes(graph, hidden).serialize(format=syntax, encoding="utf-8")
    media_type = "text/turtle" if syntax == "turtle" else "application/rdf+xml"
    document = DocumentReader(schema).read(body, media_type, drawn.uri)
    assert document == DocumentReader(schema).read(body, media_type, drawn.uri)
    assert len({each.uri for each in document.resources}) == len(drawn.resources)
    assert sorted(map(describe_without_names, document.resources)) == sorted(
        map(describe_without_names, drawn.resources)
    )
    kept = {each.uri for each in drawn.resources} - set(hidden)
    assert kept <= {each.uri for each in document.resources}


def replace_by_blank_nodes(graph: rdflib.Graph, hidden: list[str]) -> rdflib.Graph:
    blanks = {rdflib.URIRef(uri): rdflib.BNode() for uri in hidden}
    result = rdflib.Graph()
    for subject, property, object in graph:
        result.add((blanks.get(subject, subject), property, blanks.get(object, object)))  # type: ignore[call-overload]
    return result


def describe_without_names(resource: Resource) -> str:
    """Describe a resource without any names."""
    values = {
        name: [None if isinstance(value, Ref) else value for value in property_values]
        for name, property_values in resource.values.items()
    }
    return repr((resource.cls, sorted(values.items())))
