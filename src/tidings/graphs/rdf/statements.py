"""Fast path for simple graphs: plain statements, in a third of the time of the decoder.

Most metadata documents are small, in RDF/XML or Turtle, and without blank nodes. All others go to the decoder. Both
accept and refuse the same documents.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyoxigraph as ox

from tidings.graphs.model import RDF, TYPE
from tidings.graphs.rdf.media_types import Syntax, syntax_of
from tidings.graphs.rdf.rdf_decoder import prepared
from tidings.graphs.rdf.rdf_errors import BASELESS, DEFAULT, Limits

Statement = tuple[str, str, str, str]
"""Subject, property, object and the object's datatype as texts; the datatype of an IRI is empty."""

_SIMPLE = frozenset({Syntax.RDF_XML, Syntax.TURTLE})
"""The decoder reads the others: it refuses JSON-LD without edges, N-Triples has no base, TriG has several graphs."""

_LONGEST_IMPLIED = 100
"""Upper bound for the length of IRIs of RDF and XSD, which syntax may imply without spelling them."""


def statements(body: bytes, media_type: str, base: str, limits: Limits = DEFAULT) -> list[Statement] | None:
    """Parse a simple graph; statements may repeat. None for a graph that is not simple or invalid.

    A simple graph has no blank nodes, no containers and no lists, and is far from every limit.
    """
    syntax = syntax_of(media_type)
    if syntax not in _SIMPLE or base.startswith(BASELESS):
        return None
    text, written = prepared(body, syntax, limits)
    longest = len(text) + len(base) + _LONGEST_IMPLIED  # a term is composed of the text and the base
    most = min(limits.edges, limits.nodes // 2, limits.text // (3 * longest))
    if longest > limits.term:
        return None
    try:
        return _at_most(most, ox.parse(text, format=written, base_iri=base))
    except (SyntaxError, ValueError):
        return None


def _at_most(most: int, quads: Iterator[ox.Quad]) -> list[Statement] | None:
    statements: list[Statement] = []
    for quad in quads:
        subject, property, value = quad.subject, quad.predicate.value, quad.object
        if not isinstance(subject, ox.NamedNode) or (property.startswith(_SPECIAL) and property != TYPE):
            return None
        object, datatype = _object(value)
        if datatype is None or len(statements) == most:
            return None
        statements.append((subject.value, property, object, datatype))
    return statements


def _object(value: object) -> tuple[str, str | None]:
    """Return text and datatype; the datatype is None for a term that is not simple."""
    if isinstance(value, ox.Literal):
        datatype = value.datatype.value
        return value.value, None if datatype.startswith(BASELESS) else datatype
    if isinstance(value, ox.NamedNode):
        iri = value.value
        return iri, None if iri.startswith(BASELESS) else ""
    return "", None


_SPECIAL = (RDF, BASELESS)
"""Containers and lists imply more edges; the decoder refuses relative IRIs."""
