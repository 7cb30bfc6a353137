"""Simple graphs as plain statements, in a third of the time that graphs take.

Most metadata documents are small, in RDF/XML or Turtle, and name all that they describe. Whatever is not so is read as
a graph; nothing is refused here that would not be refused there, and nothing is taken that would be.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyoxigraph as ox

from tidings.graphs.model import RDF, TYPE
from tidings.graphs.rdf.limits import DEFAULT, Limits
from tidings.graphs.rdf.media_types import Syntax, syntax_of
from tidings.graphs.rdf.rdf_decoder import prepared
from tidings.graphs.rdf.syntax_errors import BASELESS

Statement = tuple[str, str, str, str]
"""Subject, property, object and its datatype as texts; the datatype is empty where the object is an IRI."""

_SIMPLE = frozenset({Syntax.RDF_XML, Syntax.TURTLE})
"""JSON-LD that says nothing is refused, N-Triples does not look at the base, the others have several graphs."""

_MEANT = 100
"""IRIs of RDF and XSD are shorter; they may be meant without being written."""


def statements(body: bytes, media_type: str, base: str, limits: Limits = DEFAULT) -> list[Statement] | None:
    """What a graph says, some of it maybe twice; None if it is not simple, or not a graph at all.

    A simple graph has no blank nodes, no containers and no lists, and is far from every limit.
    """
    syntax = syntax_of(media_type)
    if syntax not in _SIMPLE or base.startswith(BASELESS):
        return None
    text, written = prepared(body, syntax, limits)
    longest = len(text) + len(base) + _MEANT  # a term is put together from what is written, and from the base
    most = min(limits.edges, limits.nodes // 2, limits.text // (3 * longest))
    if longest > limits.term:
        return None
    try:
        return _at_most(most, ox.parse(text, format=written, base_iri=base))
    except (SyntaxError, ValueError):
        return None


def _at_most(most: int, quads: Iterator[ox.Quad]) -> list[Statement] | None:
    found: list[Statement] = []
    for quad in quads:
        subject, property, value = quad.subject, quad.predicate.value, quad.object
        if not isinstance(subject, ox.NamedNode) or (property.startswith(_SPECIAL) and property != TYPE):
            return None
        object, datatype = _object(value)
        if datatype is None or len(found) == most:
            return None
        found.append((subject.value, property, object, datatype))
    return found


def _object(value: object) -> tuple[str, str | None]:
    """Text and datatype; no datatype if it is nothing simple."""
    if isinstance(value, ox.Literal):
        datatype = value.datatype.value
        return value.value, None if datatype.startswith(BASELESS) else datatype
    if isinstance(value, ox.NamedNode):
        iri = value.value
        return iri, None if iri.startswith(BASELESS) else ""
    return "", None


_SPECIAL = (RDF, BASELESS)
"""Members of containers and lists make more edges; what is relative to nothing is refused."""
