"""Dates and date-times of ISO 8601 and RFC 3339 in bytes, read exactly as `values.parse_instant` reads strings."""

from __future__ import annotations

from typing import Any

from tidings.matching.kernels.compiled import inlined, reading

NO_INSTANT = -(1 << 63)


@inlined
def _digits(text: Any, at: int, count: int) -> int:
    """A number of exactly `count` digits, or -1."""
    value = 0
    for i in range(at, at + count):
        digit = int(text[i]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@inlined
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the proleptic Gregorian calendar."""
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    of_era = y - era * 400
    shifted = month + (-3 if month > 2 else 9)
    of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@inlined
def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@inlined
def _day_of_month(days: int) -> int:
    """The day of the month that is so many days from 1970-01-01: `_days` turned around."""
    shifted = days + 719468
    of_era = shifted - shifted // 146097 * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return of_year - (153 * ((5 * of_year + 2) // 153) + 2) // 5 + 1


@reading
def read_instant(text: Any, start: int, length: int) -> int:
    """The `ticks` of an instant: half microseconds since 1970-01-01T00:00:00Z; or NO_INSTANT."""
    if length < 10 or text[start + 4] != 45 or text[start + 7] != 45:
        return NO_INSTANT
    year, month, day = _digits(text, start, 4), _digits(text, start + 5, 2), _digits(text, start + 8, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _month_length(year, month):
        return NO_INSTANT
    days = _days(year, month, day)
    if length == 10:
        return days * 172_800_000_000
    end, at = start + length, start + 10
    if length < 16 or (text[at] != 84 and text[at] != 116 and text[at] != 32) or text[at + 3] != 58:
        return NO_INSTANT
    hour, minute, second, micros, between = _digits(text, at + 1, 2), _digits(text, at + 4, 2), 0, 0, 0
    at += 6
    if at < end and text[at] == 58:
        if end - at < 3:
            return NO_INSTANT
        second = _digits(text, at + 1, 2)
        at += 3
        if at < end and text[at] == 46:
            at += 1
            digits = 0
            while at < end and 48 <= text[at] <= 57:
                if digits < 6:
                    micros = micros * 10 + int(text[at]) - 48
                elif text[at] != 48:
                    between = 1
                digits += 1
                at += 1
            if digits < 1:
                return NO_INSTANT
            for _ in range(digits, 6):
                micros *= 10
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 60:
        return NO_INSTANT
    offset = 0
    if at < end:
        mark = text[at]
        if mark == 90 or mark == 122:
            at += 1
        elif mark == 43 or mark == 45:
            left = end - at
            colon = left == 6 and text[at + 3] == 58
            if not colon and left != 5:
                return NO_INSTANT
            hours, minutes = _digits(text, at + 1, 2), _digits(text, end - 2, 2)
            if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
                return NO_INSTANT
            offset = (hours * 60 + minutes) * (-1 if mark == 45 else 1)
            at = end
    if at != end:
        return NO_INSTANT
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    if second == 60:
        is_leap = seconds % 86_400 == 0 and _day_of_month(seconds // 86_400) == 1
        return 2 * (seconds * 1_000_000 - 1) + 1 if is_leap else NO_INSTANT
    return 2 * (seconds * 1_000_000 + micros) + between
