"""RDF graphs as edges between terms, and the values of literals.

    <http://example.org/page> <http://purl.org/dc/elements/1.1/date> 2005 .

is one edge. Terms compare as in RDF, character by character: `2005` and `2005.0` are two terms with equal *values*.
Blank nodes are local to their publication. Values compare as in SPARQL 1.1, with more practical dates:

    "05"^^xsd:integer = 5.0         numbers of any type
    "2004-05-01"^^xsd:date < "2004-05-01T12:00:00Z"^^xsd:dateTime

SPARQL orders dates among dates and instants among instants, and does not compare values with and without a zone. A
subscription for everything after a day means both: here a date is its midnight, and a missing zone is UTC, as in
events.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from tidings.values import Instant, Scalar, parse_instant, to_number

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


class Meaning(NamedTuple):
    """A kind, and a value that is comparable with others of that kind. Each language is a kind of its own."""

    kind: str
    value: Any


INTEGERS = (
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
    "nonPositiveInteger",
    "negativeInteger",
)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ENDLESS = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_ZONED_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(Z|[+-]\d{2}:\d{2})", re.ASCII)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def meaning(term: Term) -> Meaning | None:
    """Return the value of a term; None for a literal of an unknown datatype or with an invalid text."""
    if term.kind is not TermKind.LITERAL:
        return Meaning("node", term)
    if term.datatype == LANGUAGE_STRING:
        return Meaning(f"@{term.language}", term.text)
    read = _READERS.get(term.datatype)
    return read(term.text) if read else None


def scalar(term: Term) -> Scalar:
    """Convert a term to a value for display: numbers and booleans as Python values, all others as their text."""
    value = meaning(term)
    plain = value is not None and isinstance(value.value, bool | int | float)
    return value.value if value and plain and math.isfinite(value.value) else term.text


def equal(left: Term, right: Term) -> bool | None:
    """Return whether two terms have equal values; None if that is unknown.

    `5` differs from "5", from every node and from every date: different kinds have no value in common. A literal of an
    unknown datatype may equal any other literal, except one with a language.
    """
    first, second = meaning(left), meaning(right)
    if first is not None and second is not None:
        return first.kind == second.kind and bool(
            first.value == second.value
        )  # NaN is not even equal to itself
    if left == right:
        return True
    comparable = [value for value in (first, second) if value is not None]
    return False if any(value.kind == "node" or value.kind[0] == "@" for value in comparable) else None


def compare(left: Term, order: Callable[[Any, Any], bool], right: Term) -> bool:
    """Return whether two values of one kind are in the given order; values of different kinds are not."""
    first, second = meaning(left), meaning(right)
    if first is None or second is None or first.kind != second.kind or first.kind == "node":
        return False
    return order(first.value, second.value)


def text_of(term: Term) -> str | None:
    """Return the text of a string, with or without a language; None for everything else."""
    return term.text if term.datatype in (STRING, LANGUAGE_STRING) else None


def _integer(text: str) -> Meaning | None:
    return _number(text) if _INTEGER.fullmatch(text) else None


def _decimal(text: str) -> Meaning | None:
    return _number(text) if _DECIMAL.fullmatch(text) else None


def _double(text: str) -> Meaning | None:
    if text in _ENDLESS:
        return Meaning("number", _ENDLESS[text])
    return _number(text) if _DOUBLE.fullmatch(text) else None


def _number(text: str) -> Meaning:
    """Read a number: exact if it is a 64-bit integer, else the nearest double, which may be infinite."""
    number = to_number(text)
    return Meaning("number", number if number is not None else math.copysign(math.inf, float(text)))


def _boolean(text: str) -> Meaning | None:
    return Meaning("boolean", _BOOLEANS[text]) if text in _BOOLEANS else None


def _instant(text: str) -> Meaning | None:
    instant = parse_instant(_ZONED_DATE.sub(r"\1T00:00\2", text) if _ZONED_DATE.fullmatch(text) else text)
    return Meaning("instant", Instant(instant.micros, instant.between)) if instant else None


_READERS: dict[str, Callable[[str], Meaning | None]] = {
    STRING: lambda text: Meaning("string", text),
    XSD + "boolean": _boolean,
    XSD + "decimal": _decimal,
    XSD + "double": _double,
    XSD + "float": _double,
    XSD + "date": _instant,
    XSD + "dateTime": _instant,
    **dict.fromkeys([XSD + name for name in INTEGERS], _integer),
}
