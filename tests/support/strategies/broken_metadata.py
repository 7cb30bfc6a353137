"""Graphs of metadata with an edge too many or too few."""

from __future__ import annotations

import rdflib
from hypothesis import strategies as st

from tidings.graphs.model import TYPE, XSD, Edge, Graph, Term, blank, iri, literal
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.metadata.schema.model import Schema

URI = "http://example.org/doc.rdf"
LITERALS = [literal("x"), literal("92"), literal("5", XSD + "integer"), literal("true", XSD + "boolean")]
some = st.sampled_from
NODES = [iri(f"{URI}#host"), iri(f"{URI}#disk"), iri(URI), blank("b0"), blank("b1")]
MORE = [*NODES, iri("http://other.org/x")]


def document_edges(schema: Schema) -> st.SearchStrategy[Edge]:
    """Edges with mostly classes and properties of the schema."""
    classes = [iri(each.iri) for each in schema.classes.values()]
    properties = [iri(each.iri) for found in schema.properties.values() for each in found]
    anything: list[Term] = [*MORE, *LITERALS, *classes, iri("http://other.org/Class")]
    return st.one_of(
        st.builds(Edge, some(NODES), st.just(iri(TYPE)), some(classes)),
        st.builds(Edge, some(MORE), some([*(properties or MORE), iri(TYPE)]), some(anything)),
    )


@st.composite
def broken(draw: st.DrawFn, graph: rdflib.Graph, more: st.SearchStrategy[Edge]) -> Graph:
    """A graph with one edge more or less, with both, or unchanged."""
    edges = list(decode(graph.serialize(format="nt", encoding="utf-8"), "application/n-triples").edges)
    for edge in draw(st.lists(some(edges), max_size=1)) if edges else []:
        edges.remove(edge)
    return Graph(tuple(dict.fromkeys((*edges, *draw(st.lists(more, max_size=1))))))
