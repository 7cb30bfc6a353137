"""Values of publications, and the values that subscriptions compare them with.

A value of a publication is a number (int or float), a string or a boolean. A literal of a subscription may
also be an `Instant`. A number never equals a string, and a boolean equals neither; a string is read as an
instant when it is compared with one.
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
    """The kind of a literal."""

    NUMBER = 0
    STRING = 1
    BOOLEAN = 2
    INSTANT = 3


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A moment, as microseconds since 1970-01-01T00:00:00Z; `text` is its original spelling.

    Subscriptions name whole microseconds, publications any moment. A moment between two microseconds, with
    more digits or in a leap second, is the earlier one with `between`: it equals no whole microsecond, and
    orders correctly with each of them. Truncated, 12:00:00.0000001 would equal 12:00:00.
    """

    micros: int
    between: bool = False
    text: str = field(compare=False, default="")

    @property
    def ticks(self) -> int:
        """The moment as one number, for arrays: twice the microseconds, plus one for a moment between two."""
        return 2 * self.micros + self.between


BETWEEN_MICROSECONDS = "instants are compared to the microsecond, and this one is between two"
WHOLE_MICROSECONDS = "at most six decimal places of a second, apart from zeros, and no leap second"
"""The error for a literal that `Instant` cannot represent exactly, and the accepted literals."""

Literal = Scalar | Instant

_INSTANT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?([Zz]|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_instant(text: str) -> Instant | None:
    """Parse a date or date-time of ISO 8601 or RFC 3339; None for any other string.

    A date is its midnight, and a missing zone is UTC. A second may have any number of digits, and may be the
    leap second at the end of a month in UTC.
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        midnight = date(int(year), int(month), int(day))
    except ValueError:
        return None
    h, m, s, offset = int(hour or 0), int(minute or 0), int(second or 0), _zone_minutes(zone)
    if h > 23 or m > 59 or s > 60 or offset is None:
        return None
    days = (midnight - _EPOCH.date()).days
    seconds = ((days * 24 + h) * 60 + m - offset) * 60 + s
    if s == 60:  # after 23:59:59.999999, and before the midnight that `seconds` is
        return Instant(seconds * 1_000_000 - 1, True, text) if _begins_month(seconds) else None
    digits = (fraction or "").ljust(6, "0")
    return Instant(seconds * 1_000_000 + int(digits[:6]), digits[6:].strip("0") != "", text)


_CALENDAR_DAYS = 146_097
"""The calendar repeats every 400 years; the day itself may be outside the range of `date`."""


def _begins_month(seconds: int) -> bool:
    days, of_day = divmod(seconds, 86_400)
    day = date.fromordinal((_EPOCH.toordinal() + days - 1) % _CALENDAR_DAYS + 1).day
    return of_day == 0 and day == 1


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
    """Parse a JSON number as an int if 64 bits hold it, else as the nearest double; None if that is infinite."""
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
    """Return the nearest double of a number and the remainder.

    Pairs order exactly as the numbers do, which doubles alone do not: 2**53 and 2**53 + 1 are one double.
    """
    nearest = float(number)
    return nearest, int(number) - int(nearest) if isinstance(number, int) else 0


def show(value: Literal) -> str:
    """Format a value as in a subscription."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Instant):
        return show_instant(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
