"""Conversion of RDF literals to values of the schema's kinds, in one canonical form.

    memory="92"                           a string in RDF, but a number by the schema's range
    "2004-05-31T14:30:00+02:00"           stored as 2004-05-31T12:30:00.000000Z

Instants are strings of equal length in UTC: they sort chronologically in any database. Whole numbers are integers, so
that 5.0 in one version of a document and 5 in the next is not a change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tidings.graphs.model import LANGUAGE_STRING, RDFS, STRING, XSD, Term, literal
from tidings.graphs.values import INTEGERS, Meaning, meaning
from tidings.values import INT64_MAX, INT64_MIN, Instant, Kind, Scalar

_TEXTS = frozenset(
    {STRING, LANGUAGE_STRING, *(XSD + name for name in ("anyURI", "normalizedString", "token", "language"))}
)
DATE = XSD + "date"
DATATYPE_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(sorted(_TEXTS), Kind.STRING),
    RDFS + "Literal": Kind.STRING,
    **dict.fromkeys([XSD + name for name in (*INTEGERS, "decimal", "double", "float")], Kind.NUMBER),
    XSD + "boolean": Kind.BOOLEAN,
    **dict.fromkeys([XSD + "dateTime", DATE], Kind.INSTANT),
}
"""The kind of values of a property, by the datatype that is its range."""

_UNTYPED = {Kind.NUMBER: XSD + "double", Kind.BOOLEAN: XSD + "boolean", Kind.INSTANT: XSD + "dateTime"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_literal(term: Term, kind: Kind) -> Scalar | None:
    """Parse a literal as a value of a kind; None if it is not one.

    An untyped literal is parsed as the kind requires. A typed literal must match: the integer 5 is not a string.
    """
    if kind is Kind.STRING:
        return term.text if term.datatype in _TEXTS else None
    datatype = _UNTYPED[kind] if term.datatype == STRING else term.datatype
    parsed = meaning(literal(term.text.strip(" \t\r\n"), datatype))
    return None if parsed is None else _CONVERTERS[kind](parsed)


def _to_number(parsed: Meaning) -> Scalar | None:
    number = parsed.value
    if parsed.kind != "number" or not math.isfinite(number):
        return None
    whole = isinstance(number, float) and number.is_integer() and INT64_MIN <= int(number) <= INT64_MAX
    return int(number) if whole else number


def _to_boolean(parsed: Meaning) -> Scalar | None:
    return bool(parsed.value) if parsed.kind == "boolean" else None


def _to_instant(parsed: Meaning) -> Scalar | None:
    return format_instant(parsed.value) if parsed.kind == "instant" else None


_CONVERTERS = {Kind.NUMBER: _to_number, Kind.BOOLEAN: _to_boolean, Kind.INSTANT: _to_instant}


def format_instant(instant: Instant) -> str | None:
    """Format an instant canonically; None if it lies between two microseconds, or outside of years 1 to 9999 in UTC."""
    if instant.between:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=instant.micros)
    except OverflowError:
        return None
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S.%f}Z"
