"""Literals of documents as values of the schema's kinds, each value in one form.

    memory="92"                           is a text in RDF; the schema's range says that it is a number
    "2004-05-31T14:30:00+02:00"           is kept as 2004-05-31T12:30:00.000000Z

Instants are texts of one length in UTC: their order is that of time, also for a database that knows nothing of time.
Numbers that are whole are kept as integers: 5.0 in one version of a document and 5 in the next is no change.
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
"""What the values of a property are whose range is one of these datatypes."""

_UNTYPED = {Kind.NUMBER: XSD + "double", Kind.BOOLEAN: XSD + "boolean", Kind.INSTANT: XSD + "dateTime"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_literal(term: Term, kind: Kind) -> Scalar | None:
    """The value of a literal; None if it is none of the kind.

    A text without a datatype is read as the kind has it; a typed literal has to be of the kind: `5` is no text.
    """
    if kind is Kind.STRING:
        return term.text if term.datatype in _TEXTS else None
    datatype = _UNTYPED[kind] if term.datatype == STRING else term.datatype
    found = meaning(literal(term.text.strip(" \t\r\n"), datatype))
    return None if found is None else _READERS[kind](found)


def _number(found: Meaning) -> Scalar | None:
    number = found.value
    if found.kind != "number" or not math.isfinite(number):
        return None
    whole = isinstance(number, float) and number.is_integer() and INT64_MIN <= int(number) <= INT64_MAX
    return int(number) if whole else number


def _boolean(found: Meaning) -> Scalar | None:
    return bool(found.value) if found.kind == "boolean" else None


def _instant(found: Meaning) -> Scalar | None:
    return format_instant(found.value) if found.kind == "instant" else None


_READERS = {Kind.NUMBER: _number, Kind.BOOLEAN: _boolean, Kind.INSTANT: _instant}


def format_instant(instant: Instant) -> str | None:
    """The one text of an instant; None if it lies between two microseconds, or in the year 0 or 10000 in UTC."""
    if instant.between:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=instant.micros)
    except OverflowError:
        return None
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S.%f}Z"
