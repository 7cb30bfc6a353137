"""Generated graphs, written by rdflib and pyoxigraph in all syntaxes that both support."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph as ox
import rdflib
from hypothesis import strategies as st

from tidings.graphs.model import STRING, XSD, Edge, Term, TermKind, blank, iri, literal

rdflib.NORMALIZE_LITERALS = False  # "01" is not "1": terms are compared character by character

NODES = tuple(
    iri(text)
    for text in (
        "http://example.org/a",
        "http://example.org/b#c",
        "urn:x:y",
        "http://example.org/é/日本",
        "http://example.org/q?a=1&b='2'",
        "mailto:ann@example.org",
    )
)
PROPERTIES = tuple(
    iri(text)
    for text in ("http://example.org/p", "http://purl.org/dc/elements/1.1/date", "urn:x#été", "urn:x:q-1.b")
)
TYPED = (
    ("integer", "7"),
    ("integer", "-12"),
    ("boolean", "true"),
    ("decimal", "1.5"),
    ("date", "2024-05-01"),
)
"""Literals in the form of rdflib, which writes 1 for 01 and 1.0e+00 for 1e0."""

texts = st.text(
    st.one_of(
        st.sampled_from("<>&'\"\\#{}[]()@^ \n\t;.,é日\U0001f600"),
        st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co"), max_codepoint=0x2FFF),
    ),
    max_size=8,
)
literals = st.one_of(
    st.builds(literal, texts, st.sampled_from([STRING, XSD + "anyURI", "urn:x:mine"])),
    st.sampled_from([literal(text, XSD + name) for name, text in TYPED]),
    st.builds(literal, texts, language=st.sampled_from(["en", "de-AT", "zh-hans"])),
)
blanks = st.sampled_from(["x", "y", "b0", "b1"]).map(blank)
nodes = st.one_of(st.sampled_from(NODES), blanks)
edges = st.builds(Edge, nodes, st.sampled_from(PROPERTIES), st.one_of(nodes, literals))
edge_lists = st.lists(edges, min_size=1, max_size=8, unique=True)


def to_rdflib(edges: Iterable[Edge]) -> rdflib.Graph:
    made = rdflib.Graph()
    for edge in edges:
        made.add(tuple(map(_rdflib_term, edge)))  # type: ignore[arg-type]
    return made


def _rdflib_term(term: Term) -> rdflib.term.Identifier:
    if term.kind is TermKind.IRI:
        return rdflib.URIRef(term.text)
    if term.kind is TermKind.BLANK:
        return rdflib.BNode(term.text)
    if term.language:
        return rdflib.Literal(term.text, lang=term.language)
    return rdflib.Literal(term.text, datatype=rdflib.URIRef(term.datatype))


def to_pyoxigraph(edges: Iterable[Edge]) -> list[ox.Triple]:
    return [ox.Triple(*map(_pyoxigraph_term, edge)) for edge in edges]  # type: ignore[arg-type]


def _pyoxigraph_term(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    if term.kind is TermKind.IRI:
        return ox.NamedNode(term.text)
    if term.kind is TermKind.BLANK:
        return ox.BlankNode(term.text)
    if term.language:
        return ox.Literal(term.text, language=term.language)
    return ox.Literal(term.text, datatype=ox.NamedNode(term.datatype))


RDFLIB = {
    "text/turtle": "turtle",
    "application/n-triples": "nt",
    "application/rdf+xml": "xml",
    "application/ld+json": "json-ld",
    "application/trig": "trig",
    "application/n-quads": "nquads",
}
PYOXIGRAPH = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-quads": ox.RdfFormat.N_QUADS,
}


def written_by_rdflib(edges: Iterable[Edge], media_type: str) -> bytes:
    graph = to_rdflib(edges)
    if media_type == "application/n-quads":
        dataset = rdflib.Dataset()
        for triple in graph:
            dataset.add(triple)
        return dataset.serialize(format="nquads", encoding="utf-8")
    return graph.serialize(format=RDFLIB[media_type], encoding="utf-8")


def written_by_pyoxigraph(edges: Iterable[Edge], media_type: str) -> bytes:
    return ox.serialize(to_pyoxigraph(edges), format=PYOXIGRAPH[media_type]) or b""
