"""Numbers and instants in bytes: exact doubles, XPath numbers, dates and times.

Small numbers need one multiplication or division of exact doubles. The others use the algorithm of Eisel and
Lemire ("Number parsing at a gigabyte per second", 2021): multiply the digits by 128 bits of the power of ten.
The few products that are too close to the middle between two doubles are left to the caller, who has more
bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.compiled import inlined, kernel

MOST_POWER = 300
"""Larger powers of ten, up or down, are left to the caller: some are not finite or normal doubles."""

_SMALL_POWER = 22  # the last power of ten that a double holds exactly
_SMALL = np.array([float(10**i) for i in range(_SMALL_POWER + 1)])
_EXACT = np.uint64(1 << 53)
_SIGN = np.int64(-(1 << 63))
_LOW_32, _LOW_9 = np.uint64(0xFFFFFFFF), np.uint64(0x1FF)
_LOW_52 = np.uint64((1 << 52) - 1)
_32, _9, _52, _53, _63 = (np.uint64(i) for i in (32, 9, 52, 53, 63))
_ZERO, _ONE, _THREE = np.uint64(0), np.uint64(1), np.uint64(3)


def _powers() -> Any:
    """Return the first 128 bits of each power of ten, high and low half, truncated."""
    rows = []
    for power in range(-MOST_POWER, MOST_POWER + 1):
        top = 10**power if power >= 0 else (1 << (128 + (10**-power).bit_length())) // 10**-power
        bits = top << 128 >> top.bit_length()
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, np.uint64)


_POWERS = _powers()


@kernel
def _product(a: Any, b: Any) -> Any:
    """Return the high and the low half of the product."""
    a_high, a_low, b_high, b_low = a >> _32, a & _LOW_32, b >> _32, b & _LOW_32
    low, middle = a_low * b_low, a_high * b_low
    middle_2 = a_low * b_high + (middle & _LOW_32) + (low >> _32)
    return a_high * b_high + (middle >> _32) + (middle_2 >> _32), a * b


@kernel
def _leading_zeros(a: Any) -> int:
    count = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if a >> np.uint64(64 - shift) == _ZERO:
            a = a << np.uint64(shift)
            count += shift
    return count


@kernel
def _multiply(digits: Any, power: int) -> Any:
    """Return the bits of the double nearest to digits * 10**power, if 128 bits of the power decide it."""
    zeros = _leading_zeros(digits)
    digits = digits << np.uint64(zeros)
    exponent = (217706 * power >> 16) + 64 + 1023 - zeros
    high, low = _product(digits, _POWERS[power + MOST_POWER, 0])
    if high & _LOW_9 == _LOW_9 and low + digits < digits:
        more, rest = _product(digits, _POWERS[power + MOST_POWER, 1])
        merged = low + more
        if merged < low:
            high += _ONE
        if high & _LOW_9 == _LOW_9 and merged + _ONE == _ZERO and rest + digits < digits:
            return False, np.int64(0)
        low = merged
    top = high >> _63
    bits = high >> (top + _9)
    exponent -= np.int64(_ONE ^ top)
    if low == _ZERO and high & _LOW_9 == _ZERO and bits & _THREE == _ONE:
        return False, np.int64(0)
    bits = (bits + (bits & _ONE)) >> _ONE
    if bits >> _53 > _ZERO:
        bits >>= _ONE
        exponent += 1
    if exponent < 1 or exponent > 2046:
        return False, np.int64(0)
    return True, np.int64(np.uint64(exponent) << _52 | bits & _LOW_52)


@kernel
def nearest_double(digits: Any, power: int, minus: bool) -> Any:
    """Return whether the double nearest to digits * 10**power was found, and its bits; digits < 10**19."""
    if digits <= _EXACT and -_SMALL_POWER <= power <= _SMALL_POWER:
        value = np.float64(digits)
        value = value * _SMALL[power] if power >= 0 else value / _SMALL[-power]
        good, bits = True, np.float64(value).view(np.int64)
    elif digits == _ZERO or power < -MOST_POWER or power > MOST_POWER:
        good, bits = False, np.int64(0)
    else:
        good, bits = _multiply(digits, power)
    return good, (bits | _SIGN if minus else bits)


# Numbers in documents, as XPath's `number()` reads texts.


_MINUS, _DOT, _DIGIT_ZERO, _NINE = 0x2D, 0x2E, 0x30, 0x39
_MOST_DIGITS = 18
"""So many digits fit into 63 bits. Longer numbers, not counting leading zeros, are left to the caller."""

NO_NUMBER, NUMBER, UNSURE = 0, 1, 2


@kernel
def read_numbers(text: Any, start: Any, length: Any, number: Any, unsure: Any) -> int:
    """Write the number of each text, NaN for others; return how many are undecided. Their places are in `unsure`."""
    count = 0
    for i in range(len(start)):
        state, value = _parse_number(text, start[i], start[i] + length[i])
        number[i] = value
        if state == UNSURE:
            unsure[count] = i
            count += 1
    return count


@inlined
def _is_space(byte: int) -> bool:
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@inlined
def _parse_number(text: Any, at: int, end: int) -> Any:
    """Parse optional whitespace, minus, digits with at most one dot, whitespace; anything else is not a number."""
    while at < end and _is_space(text[at]):
        at += 1
    while at < end and _is_space(text[end - 1]):
        end -= 1
    minus = at < end and text[at] == _MINUS
    if minus:
        at += 1
    digits, seen, counted, power, dotted = np.uint64(0), False, 0, 0, False
    while at < end:
        byte = text[at]
        if _DIGIT_ZERO <= byte <= _NINE:
            seen = True
            counted += 1 if counted or byte != _DIGIT_ZERO else 0
            power -= 1 if dotted else 0
            if counted <= _MOST_DIGITS:
                digits = digits * np.uint64(10) + np.uint64(byte - _DIGIT_ZERO)
        elif byte == _DOT and not dotted:
            dotted = True
        else:
            return NO_NUMBER, np.nan
        at += 1
    if not seen:
        return NO_NUMBER, np.nan
    if counted > _MOST_DIGITS:
        return UNSURE, np.nan
    if power == 0 or digits == np.uint64(0):
        value = np.float64(np.int64(digits))  # the processor rounds to the nearest
        return NUMBER, -value if minus else value
    good, bits = nearest_double(digits, power, minus)
    return (NUMBER, np.int64(bits).view(np.float64)) if good else (UNSURE, np.nan)


NO_INSTANT = -(1 << 63)


@inlined
def _digits(text: Any, at: int, count: int) -> int:
    """Return a number of exactly `count` digits, or -1."""
    value = 0
    for i in range(at, at + count):
        digit = int(text[i]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@inlined
def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar."""
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
    """Return the day of the month of a number of days since 1970-01-01: the inverse of `_days`."""
    shifted = days + 719468
    of_era = shifted - shifted // 146097 * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return of_year - (153 * ((5 * of_year + 2) // 153) + 2) // 5 + 1


@kernel
def read_instant(text: Any, start: int, length: int) -> int:
    """Return the ticks of an instant, exactly as `values.parse_instant` reads it, or NO_INSTANT.

    A tick is half a microsecond, counted from 1970-01-01T00:00:00Z.
    """
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
