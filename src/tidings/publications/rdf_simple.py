"""Simple graphs as plain statements, in a third of the time that graphs take.

Most metadata documents are small, in RDF/XML or Turtle, and name all that they describe. Whatever is not so is read as
a graph; nothing is refused here that would not be refused there, and nothing is taken that would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyoxigraph as ox

from tidings.graphs import RDF, TYPE
from tidings.publications.rdf import prepared
from tidings.publications.rdf_limits import DEFAULT, Limits
from tidings.publications.rdf_media_types import Syntax, syntax_of
from tidings.publications.rdf_problems import BASELESS


class Statement(NamedTuple):
    """An edge as texts. `datatype` is empty where the object is an IRI."""

    subject: str
    property: str
    object: str
    datatype: str


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
        statement = _statement(quad)
        if statement is None or len(found) == most:
            return None
        found.append(statement)
    return found


def _statement(quad: ox.Quad) -> Statement | None:
    subject, property, value = quad.subject, quad.predicate.value, quad.object
    if not isinstance(subject, ox.NamedNode) or (property.startswith(_SPECIAL) and property != TYPE):
        return None
    if isinstance(value, ox.Literal):
        datatype = value.datatype.value
        return (
            None
            if datatype.startswith(BASELESS)
            else Statement(subject.value, property, value.value, datatype)
        )
    if isinstance(value, ox.NamedNode) and not value.value.startswith(BASELESS):
        return Statement(subject.value, property, value.value, "")
    return None


_SPECIAL = (RDF, BASELESS)
"""Members of containers and lists make more edges; what is relative to nothing is refused."""
