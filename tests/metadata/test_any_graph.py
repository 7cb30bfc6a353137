"""Whatever a graph says: it is a schema or a document that holds what it should, or it is refused, and nothing else."""

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

OURS = "https://tidings.dev/metadata#"
CLASSES = [iri(A + name) for name in ("Host", "Disk", "Net")]
PROPERTIES = [iri(A + name) for name in ("size", "disk")]
RANGES = [iri(XSD + "integer"), iri(XSD + "string"), iri(XSD + "duration"), *CLASSES]
WORDS = [iri(RDFS + name) for name in ("subClassOf", "domain", "range", "comment")]
WORDS += [iri(OURS + name) for name in ("several", "reference")]
KINDS = [iri(RDFS + "Class"), iri(RDF + "Property")]
CLOSE = [iri(OURS + "strong"), iri(OURS + "weak")]

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
def test_a_schema_is_read_or_refused(data: st.DataObject) -> None:
    try:
        schema = parse_schema(data.draw(broken(schema_graph(data.draw(schemas())), schema_edges)))
    except MetadataSchemaError as problem:
        assert problem.findings
        return
    assert schema.classes
    for name, found in schema.properties.items():
        for each in found:
            assert (each.name, each.of in schema.classes) == (name, True)
            assert (each.kind is None) == (each.leads_to in schema.classes) == (each.reference is not None)


@given(st.data())
def test_a_document_is_read_or_refused(data: st.DataObject) -> None:
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
        holds(each, schema, document)


def holds(resource: Resource, schema: Schema, document: Document) -> None:
    """What every resource of an accepted document promises."""
    assert resource.uri == URI or resource.uri.startswith(f"{URI}#")
    there = {each.uri: each.cls for each in document.resources}
    for name, values in resource.values.items():
        property = schema.property_of(resource.cls, name)
        assert property is not None
        assert len(values) == 1 or property.several
        assert values == tuple(sorted(set(values))) != ()
        assert all(is_of(value, property, schema, there) for value in values)


def is_of(value: Value, property: Property, schema: Schema, there: dict[str, str]) -> bool:
    if isinstance(value, Ref):
        leads_to = there.get(value.uri)
        return leads_to is None or property.leads_to in schema.at_or_above(leads_to)
    if property.kind is Kind.INSTANT:
        return isinstance(value, str) and parse_instant(value) is not None
    return kind_of(value) is property.kind


@given(st.data(), some(["turtle", "xml"]))
def test_resources_without_a_name_are_the_same_resources(data: st.DataObject, syntax: str) -> None:
    """Some names are taken away: what is read has made ones instead, one for each, the same each time."""
    schema = data.draw(schemas())
    drawn: Registered = data.draw(documents(schema).filter(lambda made: made.resources))
    hidden = data.draw(st.lists(some([each.uri for each in drawn.resources]), unique=True))
    graph = document_graph(drawn.resources, schema)
    body = without_names(graph, hidden).serialize(format=syntax, encoding="utf-8")
    media_type = "text/turtle" if syntax == "turtle" else "application/rdf+xml"
    found = DocumentReader(schema).read(body, media_type, drawn.uri)
    assert found == DocumentReader(schema).read(body, media_type, drawn.uri)
    assert len({each.uri for each in found.resources}) == len(drawn.resources)
    assert sorted(map(seen, found.resources)) == sorted(map(seen, drawn.resources))
    kept = {each.uri for each in drawn.resources} - set(hidden)
    assert kept <= {each.uri for each in found.resources}


def without_names(graph: rdflib.Graph, hidden: list[str]) -> rdflib.Graph:
    blanks = {rdflib.URIRef(uri): rdflib.BNode() for uri in hidden}
    made = rdflib.Graph()
    for subject, property, object in graph:
        made.add((blanks.get(subject, subject), property, blanks.get(object, object)))  # type: ignore[call-overload]
    return made


def seen(resource: Resource) -> str:
    """A resource without any names in it."""
    values = {
        name: [None if isinstance(value, Ref) else value for value in found]
        for name, found in resource.values.items()
    }
    return repr((resource.cls, sorted(values.items())))
