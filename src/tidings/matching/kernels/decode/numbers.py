"""Decimal digits to the nearest double, exactly, or not at all.

Small numbers need one multiplication or division of exact doubles. The others take the algorithm of Eisel and
Lemire ("Number parsing at a gigabyte per second", 2021): multiply the digits by 128 bits of the power of ten; the few
products that lie too near the middle between two doubles are left to somebody with more bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.compiled import inlined, reading

MOST_POWER = 300
"""Larger powers of ten, up or down, are left out: they are rare, and some are no finite or no normal double."""

_SMALL_POWER = 22  # the last power of ten that a double holds exactly
_SMALL = np.array([float(10**i) for i in range(_SMALL_POWER + 1)])
_EXACT = np.uint64(1 << 53)
_SIGN = np.int64(-(1 << 63))
_LOW_32, _LOW_9 = np.uint64(0xFFFFFFFF), np.uint64(0x1FF)
_LOW_52 = np.uint64((1 << 52) - 1)
_32, _9, _52, _53, _63 = (np.uint64(i) for i in (32, 9, 52, 53, 63))
_ZERO, _ONE, _THREE = np.uint64(0), np.uint64(1), np.uint64(3)


def _powers() -> Any:
    """The first 128 bits of each power of ten, high and low half, cut off and not rounded."""
    rows = []
    for power in range(-MOST_POWER, MOST_POWER + 1):
        top = 10**power if power >= 0 else (1 << (128 + (10**-power).bit_length())) // 10**-power
        bits = top << 128 >> top.bit_length()
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, np.uint64)


_POWERS = _powers()


@reading
def _product(a: Any, b: Any) -> Any:
    """The high and the low half of the product."""
    a_high, a_low, b_high, b_low = a >> _32, a & _LOW_32, b >> _32, b & _LOW_32
    low, middle = a_low * b_low, a_high * b_low
    middle_2 = a_low * b_high + (middle & _LOW_32) + (low >> _32)
    return a_high * b_high + (middle >> _32) + (middle_2 >> _32), a * b


@reading
def _leading_zeros(a: Any) -> int:
    count = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if a >> np.uint64(64 - shift) == _ZERO:
            a = a << np.uint64(shift)
            count += shift
    return count


@reading
def _by_product(digits: Any, power: int) -> Any:
    """The bits of the double next to digits * 10**power, if 128 bits of the power decide it."""
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


@reading
def nearest_double(digits: Any, power: int, minus: bool) -> Any:
    """Whether the nearest double to digits * 10**power was found, and its bits. The digits are below 10**19."""
    if digits <= _EXACT and -_SMALL_POWER <= power <= _SMALL_POWER:
        value = np.float64(digits)
        value = value * _SMALL[power] if power >= 0 else value / _SMALL[-power]
        good, bits = True, np.float64(value).view(np.int64)
    elif digits == _ZERO or power < -MOST_POWER or power > MOST_POWER:
        good, bits = False, np.int64(0)
    else:
        good, bits = _by_product(digits, power)
    return good, (bits | _SIGN if minus else bits)


# Numbers in documents: what XPath's `number()` makes of texts.


_MINUS, _DOT, _DIGIT_ZERO, _NINE = 0x2D, 0x2E, 0x30, 0x39
_MOST_DIGITS = 18
"""So many digits fit into 63 bits. Longer numbers, not counting zeros in front, are left to somebody with more bits."""

NO_NUMBER, NUMBER, UNSURE = 0, 1, 2


@reading
def read_numbers(text: Any, start: Any, length: Any, number: Any, unsure: Any) -> int:
    """The number of each text, NaN for those that are none; how many are left to somebody else, listed in `unsure`."""
    count = 0
    for i in range(len(start)):
        state, value = _number(text, start[i], start[i] + length[i])
        number[i] = value
        if state == UNSURE:
            unsure[count] = i
            count += 1
    return count


@inlined
def _is_space(byte: int) -> bool:
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@inlined
def _number(text: Any, at: int, end: int) -> Any:
    """Whitespace, perhaps a minus, digits with perhaps a dot among them, whitespace; nothing else is a number."""
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
