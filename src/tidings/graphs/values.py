"""Values of literals, and how they compare: as in SPARQL 1.1, with more practical dates.

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
from typing import Any, NamedTuple

from tidings.graphs.model import LANGUAGE_STRING, STRING, XSD, Term, TermKind
from tidings.values import Instant, Scalar, parse_instant, to_number


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
    """Convert a term to a value for display: numbers and booleans as such, everything else as its text."""
    found = meaning(term)
    plain = found is not None and isinstance(found.value, bool | int | float)
    return found.value if found and plain and math.isfinite(found.value) else term.text


def equal(left: Term, right: Term) -> bool | None:
    """Return whether two terms have equal values; None if that is unknown.

    `5` differs from "5", from every node and from every date: different kinds have no value in common. A literal of an
    unknown datatype may equal any other literal, except one with a language.
    """
    one, other = meaning(left), meaning(right)
    if one is not None and other is not None:
        return one.kind == other.kind and bool(one.value == other.value)  # NaN is not even equal to itself
    if left == right:
        return True
    told = [found for found in (one, other) if found is not None]
    return False if any(found.kind == "node" or found.kind[0] == "@" for found in told) else None


def compare(left: Term, order: Callable[[Any, Any], bool], right: Term) -> bool:
    """Return whether two values of one kind are in the given order; values of different kinds are not."""
    one, other = meaning(left), meaning(right)
    if one is None or other is None or one.kind != other.kind or one.kind == "node":
        return False
    return order(one.value, other.value)


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
    found = parse_instant(_ZONED_DATE.sub(r"\1T00:00\2", text) if _ZONED_DATE.fullmatch(text) else text)
    return Meaning("instant", Instant(found.micros, found.between)) if found else None


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
