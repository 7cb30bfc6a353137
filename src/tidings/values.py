"""Values: what a publication carries and what a subscription compares it with.

A publication's value is a number (int or float), a string or a boolean. A subscription's literal may also be an
`Instant`. A number is never equal to a string and a boolean is neither; a string is read as an instant when it is
compared with one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum

Scalar = bool | int | float | str
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Kind(IntEnum):
    """What sort of thing a literal is."""

    NUMBER = 0
    STRING = 1
    BOOLEAN = 2
    INSTANT = 3


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A moment, as microseconds since 1970-01-01T00:00:00Z; `text` is how somebody wrote it."""

    micros: int
    text: str = field(compare=False, default="")


Literal = Scalar | Instant

_INSTANT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_instant(text: str) -> Instant | None:
    """An ISO 8601 date or date-time as an instant, or None for any other string.

    A date is its midnight, a missing zone is UTC, and digits beyond microseconds are cut off.
    """
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        midnight = date(int(year), int(month), int(day))
    except ValueError:
        return None
    h, m, s, offset = int(hour or 0), int(minute or 0), int(second or 0), _zone_minutes(zone)
    if h > 23 or m > 59 or s > 59 or offset is None:
        return None
    days = (midnight - _EPOCH.date()).days
    seconds = ((days * 24 + h) * 60 + m - offset) * 60 + s
    return Instant(seconds * 1_000_000 + int((fraction or "0")[:6].ljust(6, "0")), text)


def _zone_minutes(zone: str | None) -> int | None:
    if not zone or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def show_instant(instant: Instant) -> str:
    return instant.text or (_EPOCH + timedelta(microseconds=instant.micros)).isoformat()


def kind_of(literal: Literal) -> Kind:
    if isinstance(literal, bool):
        return Kind.BOOLEAN
    if isinstance(literal, str):
        return Kind.STRING
    return Kind.INSTANT if isinstance(literal, Instant) else Kind.NUMBER


def to_number(text: str) -> int | float | None:
    """A JSON number as an int where 64 bits hold it and as the nearest double elsewhere; None if it is infinite."""
    try:
        value: int | float = int(text)
    except ValueError:
        value = float(text)
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return value
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def split_number(number: int | float) -> tuple[float, int]:
    """A number as its nearest double and what the double leaves over.

    Pairs order exactly as the numbers do, which doubles alone do not: 2**53 and 2**53 + 1 are one double.
    """
    nearest = float(number)
    return nearest, int(number) - int(nearest) if isinstance(number, int) else 0


def show(value: Literal) -> str:
    """A value as a person would write it in a subscription."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Instant):
        return show_instant(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
