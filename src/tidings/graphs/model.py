"""RDF graphs as edges between nodes, each labelled with a property.

    <http://example.org/page> <http://purl.org/dc/elements/1.1/date> 2005 .

is one edge. Terms compare as in RDF, character by character: `2005` and `2005.0` are two terms with equal *values*.
Blank nodes are local to their publication.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"

STRING = XSD + "string"
LANGUAGE_STRING = RDF + "langString"
TYPE = RDF + "type"


class TermKind(IntEnum):
    """Kinds of terms."""

    IRI = 0
    BLANK = 1
    LITERAL = 2

    __hash__ = int.__hash__  # terms are looked up by the million, and an enum hashes its name in Python


class Term(NamedTuple):
    """A node or a property: an IRI, the label of a blank node, or the text of a literal.

    A literal always has a datatype, `STRING` by default; `language` is its tag in lower case, or empty.
    """

    kind: TermKind
    text: str
    datatype: str = ""
    language: str = ""


class Edge(NamedTuple):
    """Subject, property, object: in RDF terminology, a triple."""

    subject: Term
    property: Term
    object: Term


@dataclass(frozen=True, slots=True)
class Graph:
    """A published graph: its distinct edges in the order they were read."""

    edges: tuple[Edge, ...]


def iri(text: str) -> Term:
    return Term(TermKind.IRI, text)


def blank(label: str) -> Term:
    return Term(TermKind.BLANK, label)


def literal(text: str, datatype: str = STRING, language: str = "") -> Term:
    """Make a literal; one with a language has the datatype `rdf:langString`."""
    return Term(TermKind.LITERAL, text, LANGUAGE_STRING if language else datatype, language.lower())
