"""JSON tokens in bytes: strings, keys, numbers, words.

Each scanner gets the text, a start and the end of the document, and returns where it stopped; -1 means that
the token is invalid, or one that the specification has to decide. None reads a byte beyond the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bytes import (
    BYTES,
    FNV_BASIS,
    FNV_PRIME,
    POWERS,
    count_before_first,
    finish_hash,
    flag_non_digits,
    flag_special,
    load_word,
    parse_digits,
)
from tidings.matching.kernels.compiled import inlined

QUOTE, BACKSLASH, COMMA, COLON, DOT, PLUS, MINUS, ZERO, NINE = 34, 92, 44, 58, 46, 43, 45, 48, 57
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 123, 125, 91, 93
TRUE, FALSE, NULL = 116, 102, 110
_U, _E, _BIG_E = 117, 101, 69

_PLAIN = np.array([32 <= c < 128 and c not in (QUOTE, BACKSLASH) for c in range(256)])
_IN_KEY = _PLAIN & (np.arange(256) != DOT)
_SIMPLE_ESCAPE = np.array([chr(c) in '"\\/bfnrt' for c in range(256)])
_HEX = np.array([int(chr(c), 16) if chr(c) in "0123456789abcdefABCDEF" else -1 for c in range(256)], np.int32)

_TEN = np.uint64(10)

MOST_DIGITS = 19
"""So many decimal digits always fit into 64 bits."""


@inlined
def _follows(text: Any, at: int, end: int, low: int, high: int) -> bool:
    return at < end and low <= text[at] <= high


@inlined
def utf8_length(text: Any, at: int, end: int) -> int:
    """Return the length of a non-ASCII character in bytes, or 0 if it is not valid UTF-8 (Unicode, table 3-7)."""
    c = text[at]
    if 0xC2 <= c <= 0xDF:
        return 2 if _follows(text, at + 1, end, 0x80, 0xBF) else 0
    if 0xE0 <= c <= 0xEF:
        low = 0xA0 if c == 0xE0 else 0x80
        high = 0x9F if c == 0xED else 0xBF
        good = _follows(text, at + 1, end, low, high) and _follows(text, at + 2, end, 0x80, 0xBF)
        return 3 if good else 0
    if 0xF0 <= c <= 0xF4:
        low = 0x90 if c == 0xF0 else 0x80
        high = 0x8F if c == 0xF4 else 0xBF
        good = _follows(text, at + 1, end, low, high) and _follows(text, at + 2, end, 0x80, 0xBF)
        return 4 if good and _follows(text, at + 3, end, 0x80, 0xBF) else 0
    return 0


@inlined
def _hex_unit(text: Any, at: int, end: int) -> int:
    """Return the number of an escape like \\u00e9 that begins at the backslash, or -1."""
    if at + 6 > end or text[at] != BACKSLASH or text[at + 1] != _U:
        return -1
    unit = 0
    for i in range(at + 2, at + 6):
        digit = _HEX[text[i]]
        if digit < 0:
            return -1
        unit = unit * 16 + digit
    return unit


@inlined
def escape_length(text: Any, at: int, end: int) -> int:
    """Return the length of an escape in bytes (12 for a surrogate pair), or 0 if it is invalid."""
    if at + 1 < end and _SIMPLE_ESCAPE[text[at + 1]]:
        return 2
    unit = _hex_unit(text, at, end)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return 0
    if 0xD800 <= unit <= 0xDBFF:
        return 12 if 0xDC00 <= _hex_unit(text, at + 6, end) <= 0xDFFF else 0
    return 6


@inlined
def scan_string(text: Any, at: int, end: int) -> Any:
    """Return the place of the closing quote, or -1, and whether there are escapes. Starts after the opening quote."""
    escaped = False
    while at < end:
        while at + BYTES <= end:
            plain = count_before_first(flag_special(load_word(text, at)))
            at += plain
            if plain < BYTES:
                break
        if at == end:
            break
        c = text[at]
        if _PLAIN[c]:
            at += 1
            continue
        if c == QUOTE:
            return at, escaped
        step = 0
        if c >= 128:
            step = utf8_length(text, at, end)
        elif c == BACKSLASH:
            escaped = True
            step = escape_length(text, at, end)
        if step == 0:
            break
        at += step
    return -1, escaped


@inlined
def scan_key(text: Any, at: int, end: int) -> Any:
    """Return the place of the closing quote and the `hash_bytes` of the key. Starts after the opening quote.

    An empty key, or one with an escape or a dot, gives -1: the specification decides which path it names.
    """
    first = at
    h = FNV_BASIS
    while at < end:
        c = text[at]
        if c == QUOTE:
            return (at if at > first else -1), finish_hash(h)
        step = 1
        if c >= 128:
            step = utf8_length(text, at, end)
        elif not _IN_KEY[c]:
            step = 0
        if step == 0:
            break
        for _ in range(step):
            h = (h ^ np.uint64(text[at])) * FNV_PRIME
            at += 1
    return -1, h


@inlined
def scan_word(text: Any, at: int, end: int) -> int:
    """Return the place after `true`, `false` or `null`, or -1."""
    left = end - at
    if left < 4:
        return -1
    c = text[at]
    if c == TRUE and text[at + 1] == 114 and text[at + 2] == 117 and text[at + 3] == 101:
        return at + 4
    if c == NULL and text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108:
        return at + 4
    if c == FALSE and left > 4 and text[at + 1] == 97 and text[at + 2] == 108:
        return at + 5 if text[at + 3] == 115 and text[at + 4] == 101 else -1
    return -1


@inlined
def scan_digits(text: Any, at: int, end: int, value: Any) -> Any:
    """Return the place after the digits, and `value` with them appended (modulo 2**64)."""
    while at + BYTES <= len(text):
        word = load_word(text, at)
        count = min(count_before_first(flag_non_digits(word)), end - at)
        if count == 0:
            return at, value
        value = value * POWERS[count] + parse_digits(word, count)
        at += count
        if count < BYTES:
            return at, value
    while at < end:
        digit = np.uint64(text[at]) - np.uint64(ZERO)
        if digit > np.uint64(9):
            break
        value = value * _TEN + digit
        at += 1
    return at, value


@inlined
def scan_exponent(text: Any, at: int, end: int) -> Any:
    """Return the end and the value of an exponent, starting after the e; -1 if it has more than five digits."""
    minus = at < end and text[at] == MINUS
    if at < end and (text[at] == MINUS or text[at] == PLUS):
        at += 1
    stop, value = scan_digits(text, at, end, np.uint64(0))
    if stop == at or stop - at > 5:
        return -1, np.int64(0)
    return stop, (-np.int64(value) if minus else np.int64(value))


@inlined
def _leading_zeros(text: Any, at: int, end: int) -> int:
    zeros = 0
    while at < end and (text[at] == ZERO or text[at] == DOT):
        zeros += text[at] == ZERO
        at += 1
    return zeros


@inlined
def scan_number(text: Any, at: int, end: int) -> Any:
    """Return the end of a number, its digits as one integer, their count, the power of ten, and whether it is
    whole.

    The value is digits * 10**power without the sign, if there are at most MOST_DIGITS digits; a whole number
    has neither point nor exponent. Invalid numbers end at -1.
    """
    if at < end and text[at] == MINUS:
        at += 1
    first = at
    at, digits = scan_digits(text, at, end, np.uint64(0))
    count, power, whole = at - first, np.int64(0), True
    if count == 0 or (count > 1 and text[first] == ZERO):
        return -1, digits, count, power, whole
    if at < end and text[at] == DOT:
        point = at + 1
        at, digits = scan_digits(text, point, end, digits)
        count, power, whole = count + at - point, np.int64(point - at), False
        if at == point:
            return -1, digits, count, power, whole
    if count > MOST_DIGITS:
        count -= _leading_zeros(text, first, at)
    if at < end and (text[at] == _E or text[at] == _BIG_E):
        at, exponent = scan_exponent(text, at + 1, end)
        power, whole = power + exponent, False
    return at, digits, count, power, whole
