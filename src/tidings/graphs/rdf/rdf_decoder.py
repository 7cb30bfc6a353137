"""Decoder of RDF in Turtle, N-Triples, TriG, N-Quads, RDF/XML and JSON-LD: bytes to edges.

    <http://example.org/page> <http://purl.org/dc/elements/1.1/date> 2005 .

A check for each syntax precedes the parser (pyoxigraph), because small inputs can harm it: entities in RDF/XML, nested
triple terms in Turtle, contexts in JSON-LD. Nothing is fetched.

Blank nodes get the labels b0, b1 ... in order of appearance, so that equal bytes decode to equal graphs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import pyoxigraph as ox

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF, RDFS, Edge, Graph, Term, blank, iri, literal
from tidings.graphs.rdf import json_ld, rdf_xml, turtle
from tidings.graphs.rdf.media_types import Syntax, syntax_of
from tidings.graphs.rdf.rdf_errors import (
    BASELESS,
    DEFAULT,
    NO_BASE,
    Limits,
    at_most,
    beyond,
    relative,
    syntax_problem,
)
from tidings.parsers.xml_parser import Element

# Members of containers and lists are edges, so that a pattern can ask for them without knowing their position.
#
#     ex:talk ex:speakers ( ex:Ann ex:Bo )
#
# keeps the list's own edges (rdf:first, rdf:rest) and adds (list, rdfs:member, ex:Ann) and (list, rdfs:member, ex:Bo).
# Bag, Seq and Alt use rdf:_1, rdf:_2 ..., subproperties of rdfs:member in RDF Schema. Section 7 of paper 002 leaves
# bags and sequences to future work.


MEMBER = iri(RDFS + "member")
FIRST, REST = RDF + "first", RDF + "rest"

_PLACE = re.compile(re.escape(RDF) + r"_[1-9][0-9]*")


def members(edges: Collection[Edge]) -> Iterator[Edge]:
    """Yield the edges to members of containers and lists; some may exist already or repeat."""
    names = {edge.property.text for edge in edges}
    places = {name for name in names if name.startswith(RDF + "_") and _PLACE.fullmatch(name)}
    if places:
        yield from (Edge(subject, MEMBER, value) for subject, name, value in edges if name.text in places)
    if FIRST in names:
        yield from _elements(edges)


def _elements(edges: Collection[Edge]) -> Iterator[Edge]:
    first, rest = _values_of(FIRST, edges), _values_of(REST, edges)
    for head in _heads(first, rest, edges):
        for cell in _cells(head, rest):
            yield from (Edge(head, MEMBER, value) for value in first.get(cell, ()))


def _values_of(name: str, edges: Collection[Edge]) -> Mapping[Term, list[Term]]:
    values: dict[Term, list[Term]] = defaultdict(list)
    for edge in edges:
        if edge.property.text == name:
            values[edge.subject].append(edge.object)
    return dict(values)


def _heads(
    first: Mapping[Term, list[Term]], rest: Mapping[Term, list[Term]], edges: Collection[Edge]
) -> list[Term]:
    """Return the cells at which lists begin: not the rest of another cell, or the object of another edge.

    The second condition covers lists that share a tail, and cyclic lists.
    """
    inner = {value for values in rest.values() for value in values}
    pointed_at = {edge.object for edge in edges if edge.property.text != REST}
    return [cell for cell in first if cell not in inner or cell in pointed_at]


def _cells(head: Term, rest: Mapping[Term, list[Term]]) -> Iterator[Term]:
    """Yield the cells of a list from its head on, each once: a list may be cyclic or have two tails."""
    seen, waiting = {head}, [head]
    while waiting:
        cell = waiting.pop()
        yield cell
        for following in reversed(rest.get(cell, ())):
            if following not in seen:
                seen.add(following)
                waiting.append(following)


class NamedGraph(NamedTuple):
    """A graph of a publication; the name of the default graph is None."""

    name: Term | None
    graph: Graph


Prepare = Callable[[bytes, Limits], bytes]

_SYNTAXES: Mapping[Syntax, tuple[ox.RdfFormat, Prepare]] = {
    Syntax.TURTLE: (ox.RdfFormat.TURTLE, turtle.prepared),
    Syntax.N_TRIPLES: (ox.RdfFormat.N_TRIPLES, turtle.prepared),
    Syntax.TRIG: (ox.RdfFormat.TRIG, turtle.prepared),
    Syntax.N_QUADS: (ox.RdfFormat.N_QUADS, turtle.prepared),
    Syntax.RDF_XML: (ox.RdfFormat.RDF_XML, rdf_xml.prepared),
    Syntax.JSON_LD: (ox.RdfFormat.JSON_LD, json_ld.prepared),
}


def decode(body: bytes, media_type: str, base: str | None = None, limits: Limits = DEFAULT) -> Graph:
    """Decode one graph. Relative IRIs are resolved against `base`, and refused without one."""
    graphs = decode_graphs(body, media_type, base, limits)
    if len(graphs) > 1:
        message, received = "the publication has several graphs", f"{len(graphs):,} graphs"
        raise DecodeProblem(message, received=received, accepted="one graph per publication")
    return graphs[0].graph if graphs else Graph(())


def decode_graphs(
    body: bytes, media_type: str, base: str | None = None, limits: Limits = DEFAULT
) -> tuple[NamedGraph, ...]:
    """Decode all graphs with their names, in order of appearance. Blank nodes are local to each."""
    syntax = syntax_of(media_type)
    text, _ = prepared(body, syntax, limits)
    return _graphs(body, text, syntax, base, limits)


def decode_xml(root: Element, base: str | None = None, limits: Limits = DEFAULT) -> Graph:
    """Decode the elements that `rdf_xml.parse_rdf_xml` has parsed."""
    text = rdf_xml.serialise_rdf(root)
    graphs = _graphs(text, text, Syntax.RDF_XML, base, limits)
    return graphs[0].graph if graphs else Graph(())


def _graphs(
    body: bytes, text: bytes, syntax: Syntax, base: str | None, limits: Limits
) -> tuple[NamedGraph, ...]:
    """Decode the text that was prepared from the body."""
    collector = _GraphCollector(limits)
    collector.add(_quads(body, text, syntax, base, limits))
    if syntax is Syntax.JSON_LD and not collector.edges:
        raise _no_statements()
    return collector.graphs()


def prepared(body: bytes, syntax: Syntax, limits: Limits) -> tuple[bytes, ox.RdfFormat]:
    """Check a publication; return the text for the parser and its format."""
    if len(body) > limits.publication:
        raise beyond("publication", limits, received=f"{len(body):,} bytes")
    written, prepare = _SYNTAXES[syntax]
    return prepare(body, limits), written


def _no_statements() -> DecodeProblem:
    """JSON-LD ignores keys that no context defines: JSON without a context is an empty graph."""
    hint = "add an @context that defines the keys"
    return DecodeProblem("this JSON-LD has no statements", accepted="at least one edge", hint=hint)


def _quads(body: bytes, text: bytes, syntax: Syntax, base: str | None, limits: Limits) -> Iterator[ox.Quad]:
    try:
        yield from ox.parse(text, format=_SYNTAXES[syntax][0], base_iri=_base(syntax, base))
    except SyntaxError as error:
        if syntax is Syntax.RDF_XML:
            raise rdf_xml.xml_problem(error, body, limits) from None
        raise syntax_problem(error, text, syntax) from None
    except ValueError as error:
        raise _base_problem(error, base) from None


def check_base(base: str) -> None:
    """Refuse a base that is not an absolute IRI."""
    try:
        ox.parse(b"", format=ox.RdfFormat.TURTLE, base_iri=base)
    except ValueError as error:
        raise _base_problem(error, base) from None


def _base_problem(error: ValueError, base: str | None) -> DecodeProblem:
    accepted = "an absolute IRI such as http://example.org/page"
    return DecodeProblem(f"invalid base: {error}", received=f"'{printable(base or '')}'", accepted=accepted)


def _base(syntax: Syntax, base: str | None) -> str | None:
    """Return the base for the parser.

    Without one, the Turtle family reports where a relative IRI is; the other parsers skip or accept it, so they get a
    stand-in that is recognised in their output.
    """
    return NO_BASE if base is None and syntax in (Syntax.RDF_XML, Syntax.JSON_LD) else base


class _GraphCollector:
    """Collects edges by graph and enforces the limits."""

    def __init__(self, limits: Limits) -> None:
        self.edges = 0
        self._limits, self._most_text, self._most_edges = limits, limits.text, limits.edges
        self._graphs: dict[Term | None, _GraphParts] = {}
        self._iris: dict[str, Term] = {}
        self._nodes = self._text = 0

    def add(self, quads: Iterable[ox.Quad]) -> None:
        """Most terms are IRIs seen before: they are looked up inline, without a call for each."""
        graph, last, iris = None, None, self._iris
        for quad in quads:
            named, subject, value = quad.graph_name, quad.subject, quad.object
            if graph is None or named != last:
                graph, last = self._graph(named), named
            nodes, name = graph.iris, quad.predicate.value
            source = nodes.get(subject.value) if isinstance(subject, ox.NamedNode) else None
            target = nodes.get(value.value) if isinstance(value, ox.NamedNode) else None
            edge = Edge(
                source or self._node(subject, graph),
                iris.get(name) or self._iri(name),
                target or self._node(value, graph),
            )
            self._keep(graph, edge)

    def graphs(self) -> tuple[NamedGraph, ...]:
        for graph in self._graphs.values():
            for edge in members(tuple(graph.edges)):
                self._keep(graph, edge)
        return tuple(NamedGraph(name, Graph(tuple(graph.edges))) for name, graph in self._graphs.items())

    def _keep(self, graph: _GraphParts, edge: Edge) -> None:
        """Count text and edges at each repetition: a long prefix expands short names, and an edge of ten bytes that
        repeats a million times takes seconds to parse.
        """
        subject, property, value = edge
        self._text += len(subject.text) + len(property.text) + len(value.text)
        graph.edges[edge] = None
        self.edges += 1
        if self._text > self._most_text:
            raise beyond("text", self._limits)
        if self.edges > self._most_edges:
            raise beyond("edges", self._limits)

    def _graph(self, named: ox.NamedNode | ox.BlankNode | ox.DefaultGraph | ox.Triple) -> _GraphParts:
        name = None if isinstance(named, ox.DefaultGraph) else self._term(named, _BY_ITSELF)
        collected = self._graphs.get(name)
        if collected is None:
            at_most("graphs", len(self._graphs) + 1, self._limits)
            collected = self._graphs[name] = _GraphParts({}, {}, {}, set())
        return collected

    def _node(self, node: object, graph: _GraphParts) -> Term:
        """Convert an end of an edge, and count it if it is new."""
        term = self._term(node, graph.labels)
        before = len(graph.nodes)
        graph.nodes.add(term)
        self._nodes += len(graph.nodes) - before
        if self._nodes > self._limits.nodes:
            raise beyond("nodes", self._limits)
        if isinstance(node, ox.NamedNode):
            graph.iris[term.text] = term
        return term

    def _term(self, node: object, labels: dict[str, Term] | None) -> Term:
        if isinstance(node, ox.NamedNode):
            return self._iri(node.value)
        if isinstance(node, ox.BlankNode):
            return _blank_node(node.value, labels)
        if isinstance(node, ox.Literal):
            return self._literal(node)
        message, accepted = "a triple as a term (RDF 1.2) is not accepted", "IRIs, blank nodes and literals"
        raise DecodeProblem(message, accepted=accepted)

    def _iri(self, text: str) -> Term:
        term = self._iris.get(text)
        if term is None:
            if len(text) > self._limits.term:
                raise beyond("term", self._limits, where=printable(text))
            if text.startswith(BASELESS):
                raise relative(text)
            term = self._iris[text] = iri(text)
        return term

    def _literal(self, node: ox.Literal) -> Term:
        text = node.value
        if len(text) > self._limits.term:
            raise beyond("term", self._limits, where=printable(text))
        if node.direction is not None:
            message, accepted = (
                "the direction of a text (RDF 1.2) is not accepted",
                "a language alone, such as @en",
            )
            raise DecodeProblem(message, received=f"@{node.language}--{node.direction}", accepted=accepted)
        return literal(text, self._iri(node.datatype.value).text, node.language or "")


class _GraphParts(NamedTuple):
    """A graph under construction; the dictionary keeps edges distinct and in order. `iris` are the IRIs of `nodes`."""

    edges: dict[Edge, None]
    labels: dict[str, Term]
    iris: dict[str, Term]
    nodes: set[Term]


_BY_ITSELF = None
"""In place of labels, for the name of a graph: a blank node keeps its own label."""


def _blank_node(label: str, labels: dict[str, Term] | None) -> Term:
    if labels is None:
        return blank(label)
    term = labels.get(label)
    if term is None:
        term = labels[label] = blank(f"b{len(labels)}")
    return term
